//! Puts attributes on the generated types, by the rules in `main.rs`.

use prost_reflect::{DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use tonic_prost_build::Builder;

pub const TIMESTAMP: &str = "google.protobuf.Timestamp";

/// Returns the code generator, with the attributes of all messages and enums of Assay.
pub fn all(pool: &DescriptorPool) -> Builder {
    let codegen = tonic_prost_build::configure()
        .extern_path(format!(".{TIMESTAMP}"), "crate::Timestamp")
        .codec_path("crate::Codec")
        .bytes(".");
    let ours = |name: &str| name.starts_with("assay.");
    let codegen = pool.all_messages().filter(|m| ours(m.full_name())).fold(codegen, message);
    pool.all_enums().filter(|e| ours(e.full_name())).fold(codegen, choice)
}

/// Ends of the names of envelopes.
const ENVELOPES: [&str; 3] = ["Request", "Batch", "Reply"];

/// Use of a message, derived from its name.
#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    Envelope,
    Input,
    List,
    Record,
}

impl Role {
    pub fn of(message: &MessageDescriptor) -> Self {
        match message.name() {
            _ if message.is_map_entry() => Self::Envelope,
            name if ENVELOPES.iter().any(|end| name.ends_with(end)) => Self::Envelope,
            name if name.ends_with("Input") => Self::Input,
            name if is_list(name) => Self::List,
            _ => Self::Record,
        }
    }
}

/// Returns whether an input ignores fields that it does not have.
pub fn is_open(message: &MessageDescriptor) -> bool {
    let Some(option) = message.parent_pool().get_extension_by_name("assay.open") else {
        return false;
    };
    message.options().get_extension(&option).as_bool() == Some(true)
}

fn is_list(name: &str) -> bool {
    name.ends_with("List")
}

fn message(codegen: Builder, message: MessageDescriptor) -> Builder {
    let role = Role::of(&message);
    if role == Role::Envelope {
        return codegen;
    }
    let path = message.full_name();
    let mut codegen =
        codegen.message_attribute(path, "#[derive(serde::Serialize, serde::Deserialize)]");
    if role == Role::List {
        return codegen.message_attribute(path, "#[serde(transparent)]");
    }
    codegen = codegen
        .message_attribute(path, r#"#[cfg_attr(feature = "rest", derive(utoipa::ToSchema))]"#)
        .message_attribute(path, r#"#[serde(rename_all = "PascalCase")]"#);
    if role == Role::Input && !is_open(&message) {
        codegen = codegen.message_attribute(path, "#[serde(deny_unknown_fields)]");
    }
    if role == Role::Record {
        codegen = codegen
            .message_attribute(path, r#"#[cfg_attr(feature = "sql", derive(sqlx::FromRow))]"#);
    }
    message.fields().fold(codegen, |codegen, field| {
        let path = field.full_name();
        let shape = Shape::of(&field, role);
        let attributes = [
            (shape.serde, r"#[serde(", ")]"),
            (shape.sql, r#"#[cfg_attr(feature = "sql", sqlx("#, "))]"),
            (shape.rest, r#"#[cfg_attr(feature = "rest", schema("#, "))]"),
        ];
        attributes.into_iter().filter(|(words, ..)| !words.is_empty()).fold(
            codegen,
            |codegen, (words, open, close)| {
                codegen.field_attribute(path, format!("{open}{}{close}", words.join(", ")))
            },
        )
    })
}

/// Arguments of a field's attributes.
#[derive(Default)]
struct Shape {
    serde: Vec<String>,
    sql: Vec<String>,
    rest: Vec<String>,
}

impl Shape {
    fn of(field: &FieldDescriptor, role: Role) -> Self {
        let mut shape = Self::default();
        let optional = field.field_descriptor_proto().proto3_optional();
        if role == Role::Input || optional || field.is_list() {
            shape.serde.push("default".to_owned());
        }
        if let Some(name) = text(field, "assay.json") {
            shape.serde.push(format!("rename = {name:?}"));
        }
        if let Some(alias) = alias(field) {
            shape.serde.push(format!("alias = {alias:?}"));
        }
        let is_required = || extension(field, "assay.required").is_some();
        if role == Role::Record || role == Role::Input && is_required() {
            shape.rest.push("required = true".to_owned());
        }
        match field.kind() {
            Kind::Message(message) => {
                shape.message(&message, optional, field.is_list());
                let is_object = message.full_name() != TIMESTAMP && !is_list(message.name());
                if role == Role::Input && is_object && !field.is_list() {
                    let read = r#"deserialize_with = "crate::optional_object""#;
                    shape.serde.push(read.to_owned());
                }
            }
            Kind::Int32 | Kind::Int64 => shape.integer(optional, field.is_list()),
            Kind::Enum(choice) => shape.choice(&rust_path(choice.full_name()), optional, field),
            Kind::String if is_id(field) => {
                let column = if optional { "crate::OptionalIdColumn" } else { "uuid::Uuid" };
                shape.sql.push(format!("try_from = {column:?}"));
                // Empty text is not a UUID.
                if !is_blank(field) {
                    shape.rest.push("format = Uuid".to_owned());
                }
            }
            _ => {}
        }
        if is_blank(field) {
            shape.serde.push(r#"with = "crate::blank""#.to_owned());
            shape.rest.push("value_type = String".to_owned());
        }
        if role != Role::Record {
            shape.sql.clear();
        }
        shape
    }

    fn message(&mut self, message: &MessageDescriptor, optional: bool, repeated: bool) {
        if message.full_name() == TIMESTAMP {
            let seen_as = if optional { "Option<String>" } else { "String" };
            self.rest.push(format!("value_type = {seen_as}, format = DateTime"));
            return;
        }
        if repeated {
            self.sql.push("json, default".to_owned());
            return;
        }
        self.sql.push("json(nullable), default".to_owned());
        if is_list(message.name()) {
            let item = message.fields().next().map(|field| field.kind());
            if let Some(Kind::Message(item)) = item {
                let item = rust_path(item.full_name());
                self.rest.push(format!("value_type = Option<Vec<{item}>>"));
            }
        } else if !optional {
            self.rest.push(format!("value_type = {}", rust_path(message.full_name())));
        }
    }

    fn integer(&mut self, optional: bool, repeated: bool) {
        let read = match (optional, repeated) {
            (true, _) => "optional_integer",
            (_, true) => "integers",
            _ => "integer",
        };
        self.serde.push(format!(r#"deserialize_with = "crate::{read}""#));
    }

    fn choice(&mut self, path: &str, optional: bool, field: &FieldDescriptor) {
        let (name, column, seen_as) = if field.is_list() {
            ("EnumNames", "EnumColumns", format!("Vec<{path}>"))
        } else if optional {
            ("OptionalEnumName", "OptionalEnumColumn", format!("Option<{path}>"))
        } else {
            ("EnumName", "EnumColumn", path.to_owned())
        };
        self.serde.push(format!(r#"with = "crate::{name}::<{path}>""#));
        self.sql.push(format!(r#"try_from = "crate::{column}<{path}>""#));
        self.rest.push(format!("value_type = {seen_as}"));
    }
}

/// Excludes the zero value of an enum from JSON: it stands for a field that was not set.
fn choice(codegen: Builder, choice: EnumDescriptor) -> Builder {
    let path = choice.full_name();
    let unspecified = choice.default_value();
    codegen
        .enum_attribute(path, "#[derive(serde::Serialize, serde::Deserialize)]")
        .enum_attribute(path, r#"#[cfg_attr(feature = "rest", derive(utoipa::ToSchema))]"#)
        .field_attribute(format!("{path}.{}", unspecified.name()), "#[serde(skip)]")
}

/// Returns whether a string is the id of a record of Assay, which is a UUID.
pub fn is_id(field: &FieldDescriptor) -> bool {
    let named_so = field.name() == "id" || field.name().ends_with("_id");
    is(field, "assay.id") || named_so && !is(field, "assay.opaque")
}

/// Returns whether an absent text is empty in JSON instead of null.
pub fn is_blank(field: &FieldDescriptor) -> bool {
    is(field, "assay.blank")
}

/// Returns whether a boolean option of a field is set.
fn is(field: &FieldDescriptor, option: &str) -> bool {
    extension(field, option).and_then(|value| value.as_bool()) == Some(true)
}

/// Returns the second JSON name under which a field is read.
pub fn alias(field: &FieldDescriptor) -> Option<String> {
    text(field, "assay.alias")
}

pub fn text(field: &FieldDescriptor, extension_name: &str) -> Option<String> {
    let text = extension(field, extension_name)?.as_str()?.to_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns the value of an option of Assay on a field, if it is set.
pub fn extension(field: &FieldDescriptor, name: &str) -> Option<prost_reflect::Value> {
    let extension = field.parent_pool().get_extension_by_name(name)?;
    let options = field.options();
    options.has_extension(&extension).then(|| options.get_extension(&extension).into_owned())
}

/// Returns the path of the Rust type of a message or enum. Packages are modules of this crate.
pub fn rust_path(full_name: &str) -> String {
    full_name.replacen("assay", "crate", 1).replace('.', "::")
}

/// Returns the JSON name of a field.
pub fn json_name(field: &FieldDescriptor) -> String {
    let capitalize = |word: &str| word[..1].to_uppercase() + &word[1..];
    let pascal_case = || field.name().split('_').map(capitalize).collect();
    text(field, "assay.json").unwrap_or_else(pascal_case)
}
