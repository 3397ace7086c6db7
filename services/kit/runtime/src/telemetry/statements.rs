//! Spans for statements to PostgreSQL. sqlx reports each statement when it has ended, without its
//! parameters.

use std::{
    fmt::Debug,
    time::{Duration, SystemTime},
};

use opentelemetry::{
    KeyValue,
    trace::{Span as _, SpanKind, Tracer as _},
};
use opentelemetry_sdk::trace::SdkTracer;
use tracing::{
    Event, Level, Span, Subscriber,
    field::{Field, Visit},
};
use tracing_opentelemetry::get_otel_context;
use tracing_subscriber::{Layer, filter::Targets, layer::Context, registry::LookupSpan};

const TARGET: &str = "sqlx::query";

struct Statements(SdkTracer);

/// Creates spans from the events of sqlx.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(tracer: SdkTracer) -> impl Layer<S> {
    Statements(tracer).with_filter(Targets::new().with_target(TARGET, Level::DEBUG))
}

impl<S: Subscriber> Layer<S> for Statements {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let current = Span::current().with_subscriber(|(id, all)| get_otel_context(id, all));
        // Statements of background work, such as polls of a queue, are not part of a trace.
        let Some(parent) = current.flatten() else { return };
        let mut query = QueryEvent::default();
        event.record(&mut query);
        let text = if query.text.is_empty() { &query.summary } else { &query.text };
        let Statement { operation, table } = Statement::of(text);
        let name = [operation, table].into_iter().flatten().collect::<Vec<_>>().join(" ");

        let ended = SystemTime::now();
        let mut attributes = vec![KeyValue::new("db.system.name", "postgresql")];
        let words = [("db.operation.name", operation), ("db.collection.name", table)];
        let words = words.into_iter().filter_map(|(key, word)| Some((key, word?.to_owned())));
        attributes.extend(words.map(|(key, word)| KeyValue::new(key, word)));
        self.0
            .span_builder(if name.is_empty() { "statement".to_owned() } else { name })
            .with_kind(SpanKind::Client)
            .with_start_time(ended - query.elapsed)
            .with_attributes(attributes)
            .start_with_context(&self.0, &parent)
            .end_with_timestamp(ended);
    }
}

/// The fields of an event of sqlx. `text` is empty if `summary` is the whole statement.
#[derive(Default)]
struct QueryEvent {
    summary: String,
    text: String,
    elapsed: Duration,
}

impl Visit for QueryEvent {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "summary" => value.clone_into(&mut self.summary),
            "db.statement" => value.clone_into(&mut self.text),
            _ => {}
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if field.name() == "elapsed_secs" {
            self.elapsed = Duration::try_from_secs_f64(value).unwrap_or_default();
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// The operation of a statement and its table.
#[derive(Debug, PartialEq)]
struct Statement<'a> {
    operation: Option<&'a str>,
    table: Option<&'a str>,
}

impl<'a> Statement<'a> {
    /// Finds the first operation in the text, and its table.
    fn of(text: &'a str) -> Self {
        // Words that keep a parenthesis are calls, such as `now()`.
        let trim = |word: &'a str| word.trim_start_matches('(').trim_end_matches([')', ',', ';']);
        let words = || text.split_whitespace().map(trim);
        let is_name = |word: &&str| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b"_.".contains(&b))
        };
        let changes = |word: &&str| ["insert", "update", "delete"].contains(word);
        let first = words().find(|word| changes(word) || *word == "select");
        let before = match first {
            Some("insert") => "into",
            Some("update") => "update",
            Some(_) => "from",
            None => return Self { operation: words().find(is_name), table: None },
        };
        let pairs = words().zip(words().skip(1));
        let mut tables = pairs.filter(|(word, _)| *word == before).map(|(_, table)| table);
        Self { operation: first, table: tables.find(is_name) }
    }
}

#[test]
fn a_statement_is_named_after_its_operation_and_table() {
    for (text, operation, table) in [
        ("select id from project where id = $1", "select", "project"),
        ("select extract(epoch from now()), id\n from test_case", "select", "test_case"),
        ("insert into outbox (id) values ($1)", "insert", "outbox"),
        ("update lease set ended_at = now()", "update", "lease"),
        ("(select id from lease) union (select 1)", "select", "lease"),
        ("delete from inbox where id = 'secret'", "delete", "inbox"),
        ("with done as (\n insert into report (id) select $1) select", "insert", "report"),
    ] {
        let expected = Statement { operation: Some(operation), table: Some(table) };
        assert_eq!(Statement::of(text), expected, "{text}");
    }
    assert_eq!(Statement::of("commit"), Statement { operation: Some("commit"), table: None });
    assert_eq!(Statement::of(""), Statement { operation: None, table: None });
}
