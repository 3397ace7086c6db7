//! Actions of a monitor on tests, done or tried.

use maud::{Markup, html};

use crate::{
    api::List,
    page::{backtest, paged::Paged, row::place},
    record::{Monitor, MonitorAction, MonitorBacktest, TakenAction, Time},
    text::{counted, long_time, number, plain, short_time},
};

/// The actions that a monitor has taken, or would have taken.
pub(super) fn done(monitor: &Monitor, actions: &List<TakenAction>, query: &Paged<()>) -> Markup {
    html! {
        h2 { @if monitor.dry_run { "Actions it would have taken" } @else { "Actions taken" } }
        @if actions.items.is_empty() {
            (query.nothing("Nothing in the last 90 days. Monitors act after the end of an execution."))
        }
        ol.rows.spaced { @for taken in &actions.items { (row(&taken.action, taken.time, !taken.is_dry)) } }
    }
}

/// The actions that the monitor of a form would have taken in the past.
pub(super) fn replayed(backtest: &MonitorBacktest) -> Markup {
    let tests = counted(backtest.raised, "time");
    let facts = [
        html! { (counted(backtest.executions, "execution")) " of its branch" },
        html! { b { (tests) } " a test would have reached the threshold" },
        html! { b { (number(backtest.recovered)) } " recovered" },
        html! { b { (number(backtest.broken)) } " turned out to be broken" },
    ];
    let hint = backtest.left_from.map(|time| {
        html! {
            "Only executions before " (long_time(time)) " were replayed: the time of a page is limited."
        }
    });
    let all = (backtest.raised + backtest.recovered + backtest.broken, "action");
    let rows = backtest.actions.iter();
    let rows = rows.map(|replayed| row(&replayed.action, replayed.request_time, false));
    backtest::answer(&facts, hint.as_ref(), all, rows)
}

fn row(action: &MonitorAction, time: Time, is_taken: bool) -> Markup {
    let (class, label) = action.label(is_taken);
    html! {
        li.row.past {
            span.mark {}
            div.what {
                a href=(format!("/cases/{}", action.test_case_id)) {
                    bdi { (plain(&action.test_case_name)) }
                }
                (place(&action.test_case_identifier, &action.test_case_name))
                p.small { (plain(&action.reason)) }
            }
            span.marks {
                span class=(format!("badge {class}")) { (label) }
                a.small href=(format!("/executions/{}", action.execution_id)) { (short_time(time)) }
            }
        }
    }
}
