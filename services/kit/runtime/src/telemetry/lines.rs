//! Log lines in JSON, with the ids of their trace and request.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Format, Json, Writer, json},
    },
    registry::LookupSpan,
};

use super::ids::request_id;
use super::trace;

pub(super) struct JsonLines(Format<Json>);

impl JsonLines {
    pub(super) fn new() -> Self {
        Self(json().flatten_event(true).with_span_list(false))
    }
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        let open = line.trim_end().strip_suffix('}').ok_or(fmt::Error)?;
        writer.write_str(open)?;
        // The ids contain no characters that JSON escapes.
        if let Some(id) = trace::id() {
            write!(writer, r#","trace_id":"{id}""#)?;
        }
        if let Some(id) = request_id() {
            write!(writer, r#","request_id":"{id}""#)?;
        }
        writer.write_str("}\n")
    }
}
