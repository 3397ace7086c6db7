//! Privileges of the containers of `docker-compose.yml`.

use std::{fs, path::Path};

/// Returns the services, each with its name and its lines.
fn services(text: &str) -> Vec<(&str, String)> {
    let services =
        text.split("\nservices:\n").nth(1).unwrap().split("\nvolumes:\n").next().unwrap();
    let mut found: Vec<(&str, String)> = Vec::new();
    for line in services.lines() {
        match line.strip_prefix("  ").filter(|name| !name.starts_with(' ')) {
            Some(name) if name.ends_with(':') => found.push((name, String::new())),
            _ => found.last_mut().into_iter().for_each(|(_, lines)| *lines += line),
        }
    }
    found
}

#[test]
fn containers_gain_no_privileges_and_publish_one_port_on_this_machine() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docker-compose.yml");
    let text = fs::read_to_string(file).unwrap();
    let (program, _) = text.split_once("services:").unwrap();
    for rule in ["read_only: true", "cap_drop: [ALL]", "no-new-privileges:true"] {
        assert!(program.contains(rule), "{rule}");
    }
    let services = services(&text);
    assert_eq!(services.len(), 8, "{services:?}");
    for (name, lines) in &services {
        let is_restricted =
            lines.contains("<<: *program") || lines.contains("no-new-privileges:true");
        assert!(is_restricted, "{name} may gain privileges");
        for forbidden in ["privileged", "network_mode", "docker.sock", "cap_add", "pid: host"] {
            assert!(!lines.contains(forbidden), "{forbidden} of {name}");
        }
    }
    let published = services.iter().filter(|(_, lines)| lines.contains("ports:"));
    let published: Vec<_> = published.collect();
    assert_eq!(published.len(), 1, "{published:?}");
    assert!(published[0].1.contains("ports: [\"${ASSAY_ADDRESS:-127.0.0.1}:"), "{published:?}");
    // A password has no default, except that of the administrator: none.
    for default in text.split("PASSWORD:-").skip(1) {
        assert!(default.starts_with('}'), "a default password");
    }
}

#[test]
fn containers_have_memory_limits_and_services_the_retention_of_events() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docker-compose.yml");
    let text = fs::read_to_string(file).unwrap();
    let (program, _) = text.split_once("services:").unwrap();
    assert!(program.contains("mem_limit: "));
    for (name, lines) in services(&text) {
        let is_program = lines.contains("<<: *program");
        assert!(is_program || lines.contains("mem_limit: "), "{name} may use all memory");
        if lines.contains("ASSAY_DATABASE_URL: ") {
            assert!(lines.contains("ASSAY_EVENT_RETENTION_DAYS: "), "{name}");
        }
    }
}
