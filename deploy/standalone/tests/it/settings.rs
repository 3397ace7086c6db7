//! `docs/settings.md`, generated from the `--help` of each program.

use std::{env, fmt::Write as _, path::Path, process::Command};

/// The programs and their descriptions.
const PROGRAMS: [(&str, &str); 7] = [
    ("assay", "All programs in one process, as started by `make run`."),
    ("assay-gateway", "The HTTP interface."),
    ("assay-identity", "Customers, users and tokens."),
    ("assay-catalog", "Projects, test cases, test sets, subjects and environments."),
    ("assay-execution", "Executions and their results."),
    ("assay-notification", "Notifications and webhooks."),
    (
        "assay-engine",
        "The reference engine, which runs tests by a command; see [engines](engines.md).",
    ),
];

const HEAD: &str = "\
# Settings

Environment variables of each program, generated from `--help`, which also lists the command-line
options. For every variable `X`, `X_FILE` can name a file that contains the value. An empty variable
counts as absent.
";

/// An option of a program with an environment variable.
#[derive(Default)]
struct Setting {
    variable: Option<String>,
    default: String,
    meaning: Vec<String>,
}

/// The `--help` of a program, in an empty environment.
fn help(program: &str) -> String {
    let tests = env::current_exe().unwrap();
    let path = tests.ancestors().nth(2).unwrap().join(program);
    let output = Command::new(&path).arg("--help").env_clear().output();
    let output =
        output.unwrap_or_else(|error| panic!("{program}: {error}: run cargo build --bins"));
    String::from_utf8(output.stdout).unwrap()
}

fn settings(help: &str) -> Vec<Setting> {
    let options = help.split_once("Options:\n").unwrap().1;
    let mut settings = Vec::new();
    for line in options.lines() {
        let text = line.trim();
        // Another section of the help begins without indentation.
        if !text.is_empty() && !line.starts_with(' ') {
            break;
        }
        let is_option = line.starts_with("      --") || line.starts_with("  -");
        if is_option {
            settings.push(Setting::default());
            continue;
        }
        let Some(setting) = settings.last_mut() else { continue };
        let tag = |name| text.strip_prefix(name)?.strip_suffix(']');
        if let Some(variable) = tag("[env: ") {
            setting.variable = variable.split('=').next().map(str::to_owned);
        } else if let Some(default) = tag("[default: ") {
            default.trim_matches('"').clone_into(&mut setting.default);
        } else if !text.is_empty() {
            setting.meaning.push(text.trim_start_matches("- ").to_owned());
        }
    }
    settings
}

fn document() -> String {
    let mut document = HEAD.to_owned();
    for (program, about) in PROGRAMS {
        write!(document, "\n## {program}\n\n{about}\n\n").unwrap();
        document.push_str("| Variable | Default | Meaning |\n|---|---|---|\n");
        for Setting { variable, default, meaning } in settings(&help(program)) {
            let Some(variable) = variable else { continue };
            let default = if default.is_empty() { default } else { format!("`{default}`") };
            let meaning = meaning.join(" ").replace('|', "\\|");
            writeln!(document, "| `{variable}` | {default} | {meaning} |").unwrap();
        }
    }
    document
}

#[test]
fn the_settings_are_documented_as_the_programs_describe_them() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let document = document();
    assert!(document.matches("ASSAY_").count() > 100, "{document}");
    if env::var_os("UPDATE_SETTINGS").is_some() {
        std::fs::write(path, document).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == document, "run UPDATE_SETTINGS=1 cargo nextest run -p assay settings");
}
