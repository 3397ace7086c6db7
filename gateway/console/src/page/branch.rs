//! The branch whose results a page shows: the default branch of the project, unless the URL names another
//! one, or every one. Runs of branches under work would otherwise look like changes of the default branch.

use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::{paged::unless_empty, part::text_field};
use crate::{
    api::Api,
    failure::Failure,
    record::{ExecutionEntry, Project},
    text::plain,
};

/// The parameters of the URL.
#[derive(Clone, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(super) struct Branch {
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// Any text for every branch.
    #[serde(
        deserialize_with = "unless_empty",
        rename = "everyBranch",
        skip_serializing_if = "Option::is_none"
    )]
    every: Option<String>,
}

/// The query of the latest execution of a branch.
#[derive(Serialize)]
struct Latest<'a> {
    branch: &'a str,
    limit: u32,
}

impl Branch {
    /// Every branch.
    fn every() -> Self {
        Self { branch: None, every: Some("yes".to_owned()) }
    }

    /// The branch with this name.
    pub(super) fn of(name: &str) -> Self {
        Self { branch: Some(name.to_owned()), every: None }
    }

    /// Returns the branch to show, or nothing for every one. `executions` is the path of the executions that
    /// the page is about; if none of them is of the default branch, the page shows every branch.
    pub(super) async fn shown(
        &self,
        api: &Api,
        executions: &str,
        project: &Project,
    ) -> Result<Option<String>, Failure> {
        if self.branch.is_some() || self.every.is_some() {
            return Ok(self.branch.clone());
        }
        let branch = &project.default_branch;
        let latest = api.list::<ExecutionEntry>(executions, &Latest { branch, limit: 1 }).await?;
        Ok((!latest.items.is_empty()).then(|| branch.clone()))
    }

    /// The field of a filter, and the link to every branch or back. Without a name in it, the field keeps every branch
    /// if that was chosen. `address` returns that of the page.
    pub(super) fn field(
        &self,
        shown: Option<&str>,
        project: &Project,
        address: impl Fn(Self) -> String,
    ) -> Markup {
        html! {
            (text_field("branch", "Branch", shown))
            @if shown.is_some() {
                a.button.quiet href=(address(Self::every())) { "Every branch" }
            } @else {
                @if self.every.is_some() { input type="hidden" name="everyBranch" value="yes"; }
                @let branch = &project.default_branch;
                a.button.quiet href=(address(Self::of(branch))) {
                    "Only " bdi { (plain(branch)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_branch_is_kept_until_one_is_named() {
        let project: Project =
            serde_json::from_value(serde_json::json!({"Id": "1", "Name": "Shop"})).unwrap();
        let field = |branch: &Branch, shown: Option<&str>| {
            branch.field(shown, &project, |_| "/".to_owned()).into_string()
        };
        let kept = "<input type=\"hidden\" name=\"everyBranch\" value=\"yes\">";
        assert!(field(&Branch::every(), None).contains(kept));
        assert!(
            !field(&Branch::default(), None).contains(kept),
            "nothing ran on the default branch"
        );
        // A name that is typed comes with the field that was hidden.
        let named = Branch { branch: Some("main".to_owned()), ..Branch::every() };
        assert!(!field(&named, Some("main")).contains(kept));
    }
}
