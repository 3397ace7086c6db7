//! Durations of requests.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use metrics::Histogram;

pub(super) const DURATION: &str = "http_server_request_duration_seconds";

/// The series of each route, by method and status. The recorder finds a series by its labels as
/// text, which is done once for each.
#[derive(Default)]
pub(crate) struct Durations(RwLock<HashMap<String, Vec<(Labels, Histogram)>>>);

type Labels = (&'static str, u16);

impl Durations {
    pub(super) fn record(&self, method: &'static str, route: &str, status: u16, seconds: f64) {
        if !self.record_known((method, status), route, seconds) {
            let labels = [
                ("method", method.into()),
                ("route", route.to_owned()),
                ("status", status.to_string()),
            ];
            let series = metrics::histogram!(DURATION, &labels);
            series.record(seconds);
            let mut routes = self.0.write().unwrap_or_else(PoisonError::into_inner);
            routes.entry(route.to_owned()).or_default().push(((method, status), series));
        }
    }

    /// Returns whether the series is known.
    fn record_known(&self, labels: Labels, route: &str, seconds: f64) -> bool {
        let routes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let series = routes.get(route).and_then(|of_route| {
            of_route.iter().find_map(|(known, series)| (*known == labels).then_some(series))
        });
        series.map(|series| series.record(seconds)).is_some()
    }
}
