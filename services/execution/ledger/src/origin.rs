//! The tags of executions, and the origin of the tested software.

use assay_records::Check;

use crate::link;

/// Maximum length of the tags, branch, commit or build of an execution, in characters.
const LONGEST: usize = 1000;

/// The tags of a new execution, and the origin of the tested software.
#[derive(Debug, Default)]
pub struct Origin {
    pub tags: Option<String>,
    pub branch: Option<String>,
    pub commit: Option<String>,
    pub build: Option<String>,
    pub ci_url: Option<String>,
}

/// Takes an [`Origin`] out of a message. Several messages of the contracts have its fields, since JSON shows
/// them beside others.
#[macro_export]
macro_rules! take_origin {
    ($message:expr) => {
        $crate::origin::Origin {
            tags: $message.tags.take(),
            branch: $message.branch.take(),
            commit: $message.commit.take(),
            build: $message.build.take(),
            ci_url: $message.ci_url.take(),
        }
    };
}

impl Origin {
    /// Checks the fields, which have these names in the request.
    pub fn check(&self, names: &OriginNames, check: &mut Check) {
        let Self { tags, branch, commit, build, ci_url } = self;
        for (name, text) in [
            (names.tags, tags),
            (names.branch, branch),
            (names.commit, commit),
            (names.build, build),
        ] {
            check.line(name, text.as_deref().unwrap_or_default(), 0..=LONGEST);
        }
        if let Some(problem) = link::web_problem(ci_url.as_deref().unwrap_or_default()) {
            check.refuse(names.ci_url, problem);
        }
    }
}

/// The names of the fields of an [`Origin`] in a request.
pub struct OriginNames {
    tags: &'static str,
    branch: &'static str,
    commit: &'static str,
    build: &'static str,
    ci_url: &'static str,
}

impl OriginNames {
    /// The names in a body.
    pub const FIELDS: Self =
        Self { tags: "Tags", branch: "Branch", commit: "Commit", build: "Build", ci_url: "CiUrl" };
    /// The names in a query.
    pub const PARAMETERS: Self =
        Self { tags: "tags", branch: "branch", commit: "commit", build: "build", ci_url: "ciUrl" };
}
