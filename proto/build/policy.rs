//! Generates the tables of methods: the access rule of each, those that only read, those that wait
//! for their caller or for an event, those that issue credentials or grants, and those that accept
//! stream tokens.

use std::{error::Error, fmt::Write};

use prost_reflect::{DescriptorPool, MethodDescriptor, Value};

/// Prefixes of the names of methods that only read, so that their calls may be repeated.
const READING: [&str; 7] = ["Get", "BatchGet", "List", "Find", "Export", "Download", "Watch"];

/// The access rule of a method that needs no token, as Rust code.
const NO_TOKEN: &str = "Needs::Nothing";

/// Returns the tables as Rust code. Fails for a method with neither a permission nor an access, and
/// for one without a token that has the option `assay.issues`.
pub fn table(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let mut table = String::from("pub static POLICY: &[(&str, Needs)] = &[\n");
    let mut reading = String::from("pub static READING: &[(&str, Reading)] = &[\n");
    let mut waiting = String::from("pub static WAITING: &[&str] = &[\n");
    let mut streaming = String::from("pub static STREAMING: &[&str] = &[\n");
    let mut issuing = String::from("pub static ISSUING: &[&str] = &[\n");
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let needs = needs(pool, &method)
            .ok_or_else(|| format!("{}: add the option assay.permission", method.full_name()))?;
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        writeln!(table, "    ({path:?}, {needs}),")?;
        if method.is_client_streaming() || is_set(pool, &method, "assay.waits") {
            writeln!(waiting, "    {path:?},")?;
        }
        if is_set(pool, &method, "assay.issues") {
            if needs == NO_TOKEN {
                let name = method.full_name();
                return Err(format!("{name}: assay.issues needs a token to compare").into());
            }
            writeln!(issuing, "    {path:?},")?;
        }
        if is_set(pool, &method, "assay.streams") {
            writeln!(streaming, "    {path:?},")?;
        }
        let reads = READING.iter().any(|verb| method.name().starts_with(verb));
        if reads && !method.is_client_streaming() {
            let response = if method.name().starts_with("Watch") {
                "Events"
            } else if method.is_server_streaming() {
                "Stream"
            } else {
                "Message"
            };
            writeln!(reading, "    ({path:?}, Reading::{response}),")?;
        }
    }
    Ok(format!("{table}];\n\n{reading}];\n\n{waiting}];\n\n{issuing}];\n\n{streaming}];\n"))
}

/// Returns whether a method has an option that is either true or absent.
fn is_set(pool: &DescriptorPool, method: &MethodDescriptor, name: &str) -> bool {
    option(pool, method, name).and_then(|value| value.as_bool()) == Some(true)
}

fn option(pool: &DescriptorPool, method: &MethodDescriptor, name: &str) -> Option<Value> {
    Some(method.options().get_extension(&pool.get_extension_by_name(name)?).into_owned())
}

fn needs(pool: &DescriptorPool, method: &MethodDescriptor) -> Option<String> {
    let option = |name| option(pool, method, name);
    match option("assay.access")?.as_enum_number()? {
        1 => return Some(NO_TOKEN.to_owned()),
        2 => return Some("Needs::Token".to_owned()),
        _ => {}
    }
    let one_of = permissions(pool, &option("assay.permission")?)?;
    let all_of = permissions(pool, &option("assay.also")?)?;
    let needs = format!("Needs::Permissions {{ one_of: &[{one_of}], all_of: &[{all_of}] }}");
    Some(needs).filter(|_| !one_of.is_empty())
}

/// Returns the permissions of an option as Rust code.
fn permissions(pool: &DescriptorPool, option: &Value) -> Option<String> {
    let known = pool.get_enum_by_name("assay.Permission")?;
    let names: Option<Vec<String>> = option
        .as_list()?
        .iter()
        .map(|value| {
            let name = known.get_value(value.as_enum_number()?)?.name().to_owned();
            let words = name.trim_start_matches("PERMISSION_").split('_');
            let variant: String =
                words.map(|word| word[..1].to_owned() + &word[1..].to_lowercase()).collect();
            Some(format!("Permission::{variant}"))
        })
        .collect();
    Some(names?.join(", "))
}
