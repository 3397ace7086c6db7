//! Commands that upload results, to paste where tests run.

use maud::{Markup, html};

use crate::text::{clean, plain};

/// Stands for the URL of this host, which the script knows.
const HOST: &str = "https://assay.example.com";

/// The command that uploads reports to a project and a test set, and creates both.
pub(super) fn by_names(project: &str, set: &str) -> Markup {
    let (project, set) = (quoted(project), quoted(set));
    commands(&format!(
        "export ASSAY_URL={HOST} ASSAY_TOKEN=…\n\
         assay-ci upload 'reports/**/*.xml' --project {project} --set {set}"
    ))
}

/// The commands that do the same for an existing project without `assay-ci`.
pub(super) fn to_project(project_id: &str) -> Markup {
    commands(&format!(
        "sets={HOST}/api/projects/{project_id}/testsets\n\
         set=$(curl -s \"$sets\" -H \"Authorization: Bearer $ASSAY_TOKEN\" --json '{{\"Name\": \
         \"nightly\"}}' \\\n  | sed 's/^{{\"Id\":\"\\([^\"]*\\)\".*/\\1/')\n\
         curl \"$sets/$set/results\" -H \"Authorization: Bearer $ASSAY_TOKEN\" \\\n  \
         -H 'Content-Type: application/xml' --data-binary @junit.xml"
    ))
}

/// The command that uploads a report to a test set.
pub(super) fn to_set(project_id: &str, set_id: &str) -> Markup {
    commands(&format!(
        "curl {HOST}/api/projects/{project_id}/testsets/{set_id}/results \\\n  \
         -H \"Authorization: Bearer $ASSAY_TOKEN\" -H 'Content-Type: application/xml' \\\n  \
         --data-binary @junit.xml"
    ))
}

fn quoted(name: &str) -> String {
    format!("'{}'", clean(name).replace('\'', "'\\''"))
}

/// Commands with a button that copies them, in which the script names this host.
fn commands(text: &str) -> Markup {
    html! { div.code data-copy="" data-host="" { pre tabindex="0" { (plain(text)) } } }
}

/// A text with a button that copies it.
pub(super) fn copyable(text: &str) -> Markup {
    html! { div.code data-copy="" { pre tabindex="0" { (plain(text)) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_for_the_shell() {
        assert_eq!(quoted("it's $(x)"), "'it'\\''s $(x)'");
        let command = by_names("shop", "nightly").into_string();
        assert!(
            command.contains("--project &#39;shop&#39;") || command.contains("--project 'shop'")
        );
    }
}
