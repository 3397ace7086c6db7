//! Names and messages of untrusted reports, which CI systems must not take for commands or markup.

use std::fs;

use axum::{
    Json, Router,
    http::StatusCode,
    routing::{get, post},
};
use serde_json::{Value, json};

use super::{EXECUTION, PROJECT, assay, complete, execution, run, serve};

/// Names that are commands of CI systems or of terminals.
const HOSTILE: [&str; 14] = [
    "::error::owned",
    "x\n::set-output name=a::b",
    "x\r\n  ::stop-commands::token",
    "x\u{2028}::add-mask::b",
    "##vso[task.setvariable variable=a]b",
    "x ##[error]owned",
    "#\u{1b}#vso[task.complete result=Succeeded]",
    "#\u{200d}#[error]owned",
    "##teamcity[buildStatus status='SUCCESS']",
    "section_start:1700000000:owned\r\u{1b}[0Kowned",
    "\u{1b}]1338;url=http://evil.example\u{7}",
    "\u{9b}31mred\u{202e}txt.exe",
    "a\u{200b}b\u{ad}c\u{e0041}",
    "\u{ad}::error::owned",
];

/// Markup that a name must not become.
const MARKUP: &str = "<img src=x onerror=y> ![i](http://evil.example/i) [l](http://evil.example) | `c` \
    https://evil.example www.evil.example @everyone &lt;b&gt;";

fn assert_harmless(output: &str) {
    for line in output.split('\n') {
        let bare: String = line.chars().filter(|c| !matches!(c, '\u{200d}' | '\u{200c}')).collect();
        assert!(!bare.trim_start().starts_with("::"), "{line:?}");
        assert!(!bare.contains("##"), "{line:?}");
        assert!(!bare.contains("section_start:"), "{line:?}");
        let hidden = |c: char| {
            c.is_control()
                || matches!(
                    c,
                    '\u{ad}' | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}'
                )
                || matches!(c, '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
        };
        assert!(!line.contains(hidden), "{line:?}");
    }
}

/// Fails if Markdown has markup that is not that of a title with a link and of tables.
fn assert_plain(markdown: &str) {
    let mut escaped = false;
    let bare: String = markdown
        .chars()
        .filter(|char| {
            let is_bare = !escaped && *char != '\\';
            escaped = !escaped && *char == '\\';
            is_bare
        })
        .collect();
    let title = bare.lines().next().unwrap_or_default();
    let title = title.replacen("](", "", 1).replacen('[', "", 1);
    for (line, text) in [title.as_str()].into_iter().chain(bare.lines().skip(1)).enumerate() {
        let markup = ['<', '`', '[', ']', '!', '&', '@', '*', '~'];
        assert!(!text.contains(markup), "{line}: {text}\n{markdown}");
        let is_link = line > 0 && text.contains("://") || text.contains("www.");
        assert!(!is_link, "{line}: {text}\n{markdown}");
    }
}

fn with_names() -> Value {
    let report = |name: &str| json!({"Result": name, "TestCaseIdentifier": name, "IsFlaky": true});
    let names = HOSTILE.into_iter().chain([MARKUP]);
    let mut execution = execution();
    execution["TestReports"] = names.map(report).collect();
    execution["TestSetName"] = HOSTILE.join(" ").into();
    execution["Url"] = "https://assay.example/x)<img>\n::error::y".into();
    execution["Result"] = "Failed\n::error::owned".into();
    execution
}

#[tokio::test]
async fn names_of_tests_are_neither_commands_nor_markup() {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.md");
    let url = serve(assay(with_names())).await;
    let variables = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_RUN_ID", "7"),
        ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
    ];

    let (code, output) = complete(&url, folder.path(), &variables, "").await;

    assert_eq!(code, 0, "{output}");
    assert_harmless(&output);
    assert!(output.contains("owned"), "names stay readable: {output}");
    let summary = fs::read_to_string(summary).unwrap();
    assert_harmless(&summary.replace("###", ""));
    assert!(summary.contains("onerror"), "names stay readable: {summary}");
    assert_plain(&summary);
    let rows = summary.lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(rows, HOSTILE.len() + 2, "{summary}");
}

#[tokio::test]
async fn notes_problems_and_paths_are_not_commands() {
    let folder = tempfile::tempdir().unwrap();
    let open = json!({"CompletionDateTime": null});
    let mut opened = execution();
    opened["CompletionDateTime"] = open["CompletionDateTime"].clone();
    let at = format!("/api/projects/{PROJECT}/executions/{EXECUTION}");
    let problem = json!({"code": "no\n::error::", "detail": HOSTILE.join("\n")});
    let app = Router::new()
        .route("/api/executions", post(|| async { Json(opened) }))
        .route(
            &format!("{at}/reports"),
            post(|| async { Json(json!({"Accepted": 1, "Notes": HOSTILE})) }),
        )
        .route(
            &format!("{at}/complete"),
            post(|| async { (StatusCode::BAD_REQUEST, Json(problem)) }),
        );
    let url = serve(app).await;
    let name = "\n::error::owned ##vso[x].xml";
    fs::write(folder.path().join(name), "<testsuite/>").unwrap();

    for format in ["text", "json"] {
        let upload =
            format!("upload *.xml --project shop --set nightly --key k --log-format {format}");
        let (code, output) = run(&url, folder.path(), &[], &upload).await;
        assert_eq!(code, 3, "{output}");
        assert!(output.contains("owned") && output.contains("400 Bad Request"), "{output}");
        assert_harmless(&output);
    }
}

#[tokio::test]
async fn the_summary_of_a_verdict_has_no_markup_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.md");
    let at = format!("/api/projects/{PROJECT}/executions/{EXECUTION}/verdict");
    let verdict = json!({
        "TestSetName": MARKUP, "State": "Failed",
        "Statistic": {"TestCasesTotal": 1, "TestCasesPassed": 0, "TestCasesFailed": 1, "TestCasesWithError": 0},
        "Changes": {"Fixed": 0, "Flaky": 0, "Muted": 0},
        "Rules": [{"Rule": HOSTILE[4], "IsMet": false, "Message": MARKUP}],
        "NewFailures": [{"TestCaseIdentifier": HOSTILE[1], "Headline": MARKUP}],
    });
    let app = assay(execution())
        .route(&at, get(|| async { Json(verdict) }))
        .route(&format!("{at}.md"), get(|| async { MARKUP }));
    let url = serve(app).await;
    let variables = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_RUN_ID", "7"),
        ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
    ];

    let (code, output) = complete(&url, folder.path(), &variables, "--gate").await;

    assert_eq!(code, 1, "{output}");
    assert_harmless(&output);
    let summary = fs::read_to_string(summary).unwrap();
    assert_plain(&summary);
}
