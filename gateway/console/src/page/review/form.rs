//! The form that judges test reports, on the page that lists or shows them.

use maud::{Markup, html};

use super::entry::{Entry, RESET};
use crate::{
    api::List,
    claims::Claims,
    record::{Cause, FailureMatch, Permission, Report, ReportStatus},
    text::{clean, counted, number, plain, short_time},
};

/// Beginning of the reason of the interface.
const CHANGED: &str = "changed since the given version: ";

/// Id of the form, to which the boxes of rows belong.
pub(in crate::page) const FORM: &str = "review";

/// The judgements: the status, the button, its key and the permission that it needs.
const JUDGEMENTS: [(ReportStatus, &str, &str, &[Permission]); 4] = [
    (ReportStatus::Accepted, "Accept", "a", &[Permission::Accept]),
    (ReportStatus::Rejected, "Reject", "r", &[Permission::Reject]),
    (ReportStatus::Investigation, "Investigate", "i", &[Permission::Accept, Permission::Reject]),
    (RESET, "Reset", "", &[Permission::Accept, Permission::Reject]),
];

/// Returns whether a user can judge test reports.
pub(in crate::page) fn may_review(user: &Claims) -> bool {
    user.may(Permission::Accept) || user.may(Permission::Reject)
}

/// The test reports that a form is about.
#[derive(Clone, Copy)]
pub(in crate::page) enum Scope<'a> {
    /// Those selected in the list.
    Selected,
    /// Those selected in the list of a cause, which has made these test cases fail.
    Cause(&'a List<FailureMatch>),
    /// All of this cause that are not muted.
    Whole(&'a Cause),
    /// Those of this cause that need a review.
    Unreviewed(&'a Cause),
    /// This one.
    One(&'a Report),
}

impl Scope<'_> {
    /// Returns whether there may be judgements to take back.
    fn may_be_judged(&self) -> bool {
        match self {
            Self::Unreviewed(_) => false,
            Self::One(report) => report.status.is_judged(),
            Self::Selected | Self::Cause(_) | Self::Whole(_) => true,
        }
    }

    /// Returns whether there may be failures to mute.
    fn may_fail(&self) -> bool {
        !matches!(self, Self::One(report) if !report.result.is_failure())
    }

    /// Says what a judgement does that is sent again although there is another one since.
    fn again(&self) -> &'static str {
        match self {
            Self::One(_) => "to replace the other one, with its comment and its ticket",
            Self::Unreviewed(_) => "to judge the tests that are left",
            Self::Selected | Self::Cause(_) | Self::Whole(_) => {
                "to replace the other one; its comment and its ticket stay where a field is empty"
            }
        }
    }
}

/// The form, which is sent to the page `here`.
pub(in crate::page) fn form(user: &Claims, here: &str, scope: Scope<'_>, entry: &Entry) -> Markup {
    let is_bulk = !matches!(scope, Scope::One(_));
    let is_sticky = matches!(scope, Scope::Selected | Scope::Cause(_));
    html! {
        @if may_review(user) {
            @if !is_sticky { h2 { "Review" } }
            form.review-form.bulk[is_sticky] id=(FORM) aria-label="Review" method="post" action=(here)
            {
                (refusal(scope, entry))
                (reports(scope, entry))
                @if is_bulk { (text_field("comment", "Comment", 4000, entry.comment.as_deref())) }
                @else { (comment(entry)) }
                (text_field("ticket", "Ticket", 255, entry.ticket.as_deref()))
                @if is_bulk { p.hint { "Empty fields keep what tests have." } }
                @else { input type="hidden" name="whole" value="true"; }
                @if user.may(Permission::Accept) && scope.may_fail() { (mute(scope, entry)) }
                div.buttons { @for (status, label, key, permissions) in JUDGEMENTS {
                    @let is_allowed = permissions.iter().any(|permission| user.may(*permission));
                    @if is_allowed && (status != RESET || scope.may_be_judged()) {
                        button.quiet[status == RESET] name="status" value=(status) data-key=(key) { (label) }
                    }
                } }
            }
        }
    }
}

/// The reason why the last judgement was refused.
fn refusal(scope: Scope<'_>, entry: &Entry) -> Markup {
    html! {
        @if let Some(problem) = &entry.problem {
            p.alert role="alert" {
                @if entry.is_conflict {
                    "Reviewed since this page was shown: "
                    (plain(problem.trim_start_matches(CHANGED))) ". Your judgement, "
                    b { (plain(&entry.status)) } ", is not saved. Send it again " (scope.again()) "."
                } @else { (plain(problem)) }
            }
        }
    }
}

fn reports(scope: Scope<'_>, entry: &Entry) -> Markup {
    html! {
        @match scope {
            Scope::Selected | Scope::Cause(_) => output #selected { "Selected tests" },
            Scope::Whole(cause) => (whole(cause, entry)),
            Scope::Unreviewed(cause) => {
                (whole(cause, entry))
                input type="hidden" name="unreviewed" value="true";
                @if cause.unreviewed < cause.count {
                    p.hint {
                        "Only for the " (counted(cause.unreviewed, "test")) " to review of these "
                        (number(cause.count)) "."
                    }
                }
            }
            Scope::One(report) => {
                input type="hidden" name="report" value=(report.id);
                input type="hidden" name="seen" value=(entry.seen(&report.id, &report.data_version));
            }
        }
    }
}

/// The fields of a judgement of a cause.
fn whole(cause: &Cause, entry: &Entry) -> Markup {
    html! {
        input type="hidden" name="cause" value=(cause.fingerprint);
        input type="hidden" name="seenCause" value=(entry.seen_cause(cause));
    }
}

fn text_field(name: &str, label: &str, maximum: u32, value: Option<&str>) -> Markup {
    let value = clean(value.unwrap_or_default());
    html! {
        label.field.grow[name == "comment"] {
            span { (label) }
            input name=(name) maxlength=(maximum) value=(value);
        }
    }
}

/// The comment of one test, which may have several lines.
fn comment(entry: &Entry) -> Markup {
    html! {
        label.field.grow {
            span { "Comment" }
            // The end of a line after the tag belongs to the markup.
            textarea name="comment" rows="2" maxlength="4000" {
                "\n" (clean(entry.comment.as_deref().unwrap_or_default()))
            }
        }
    }
}

/// The fields that mute failures in later executions.
fn mute(scope: Scope<'_>, entry: &Entry) -> Markup {
    html! {
        label.field {
            span { "Mute until and including, at most 90 days" span.utc { " (UTC)" } }
            input type="date" name="until" value=[entry.until.as_deref()] data-last data-days="90";
        }
        @if let Scope::Cause(matches) = scope {
            div.every {
                label.check {
                    input type="checkbox" name="every" value="true" checked[entry.every_case];
                    " Mute every test with this cause"
                }
                (preview(matches))
            }
        }
    }
}

/// The test cases that a known failure of every test case would have muted.
fn preview(matches: &List<FailureMatch>) -> Markup {
    let count = i64::try_from(matches.items.len()).unwrap_or(i64::MAX);
    html! {
        details {
            summary {
                @if matches.next.is_some() { "More than " }
                (counted(count, "test")) " failed with this cause in the last 30 days"
            }
            ul { @for one in &matches.items {
                li {
                    a href=(format!("/cases/{}", one.test_case_id)) { bdi { (plain(&one.test_case_name)) } }
                    span.dim {
                        " in " (counted(one.executions, "execution")) ", last " (short_time(one.last_seen))
                    }
                }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(scope: Scope<'_>, entry: &Entry) -> String {
        let user = serde_json::json!({"permissions": "Accept, Reject", "iat": 0, "exp": 1});
        let user: Claims = serde_json::from_value(user).unwrap();
        form(&user, "/here", scope, entry).into_string()
    }

    fn refused() -> Entry {
        let mut entry = Entry::read(Vec::new());
        entry.problem = Some(format!("{CHANGED}“pays” is Rejected"));
        entry.is_conflict = true;
        entry
    }

    fn cause(count: i64, unreviewed: i64) -> Cause {
        serde_json::from_value(serde_json::json!({
            "Fingerprint": "ab", "Headline": "", "Count": count, "Variants": 1,
            "Unreviewed": unreviewed, "DataVersion": "7", "Reports": [],
        }))
        .unwrap()
    }

    #[test]
    fn empty_fields_of_many_tests_keep_their_texts_after_another_judgement_too() {
        let (hint, whole) = ("Empty fields keep what tests have.", "name=\"whole\"");
        let report = Report::example();
        for entry in [Entry::default(), refused()] {
            let many = shown(Scope::Selected, &entry);
            assert!(many.contains(hint) && !many.contains(whole), "{many}");
            let one = shown(Scope::One(&report), &entry);
            assert!(!one.contains(hint) && one.contains(whole), "{one}");
        }
        let alert = shown(Scope::Selected, &refused());
        assert!(alert.contains("its ticket stay where a field is empty."), "{alert}");
        let alert = shown(Scope::One(&report), &refused());
        assert!(alert.contains("replace the other one, with its comment"), "{alert}");
    }

    #[test]
    fn a_judgement_of_what_is_left_of_a_cause_says_of_how_many_tests() {
        let (left, field) = (cause(5, 3), "name=\"unreviewed\"");
        let html = shown(Scope::Unreviewed(&left), &refused());
        assert!(html.contains("Only for the 3 tests to review of these 5."), "{html}");
        assert!(html.contains(field) && html.contains("judge the tests that are left."), "{html}");
        assert!(!html.contains(">Reset<"), "nothing of them is judged: {html}");
        let html = shown(Scope::Unreviewed(&cause(5, 5)), &Entry::default());
        assert!(html.contains(field) && !html.contains("Only for"), "{html}");
        let html = shown(Scope::Whole(&left), &Entry::default());
        assert!(!html.contains(field) && html.contains(">Reset<"), "{html}");
    }
}
