//! The rules for subjects.

use assay_proto::{
    Fault, SubjectId,
    catalog::{SubjectInput, SubjectType},
};
use assay_records::Check;
use http::Uri;

use crate::secrets;

pub(super) const BASE_SUBJECT: &str = "BaseSubjectId";

/// Returns a new subject, which is active.
pub(super) fn new(input: SubjectInput) -> SubjectInput {
    SubjectInput { archived: false, ..input }
}

pub(super) fn valid(mut input: SubjectInput) -> Result<SubjectInput, Fault> {
    let mut check = Check::default();
    match input.subject_type() {
        SubjectType::Webpage => {
            if input.uri.trim().is_empty() {
                check.refuse("Uri", "is required for a Webpage");
            }
        }
        SubjectType::RequiresInstallation => {
            require_file(&mut check, "SoftwareFileId", input.software_file_id.as_deref());
            require_file(&mut check, "InstructionFileId", input.instruction_file_id.as_deref());
        }
        SubjectType::Unspecified => {
            check.refuse("SubjectType", "must be Webpage or RequiresInstallation");
            // The texts are checked as JSON, which has no name for an unset value.
            input.set_subject_type(SubjectType::Webpage);
        }
    }
    check.texts(&input);
    check.name("Identifier", &input.identifier);
    check.name("Name", &input.name);
    check.size("SoftwareFileSize", input.software_file_size);
    if !input.uri.is_empty() && !is_web_address(&input.uri) {
        check.refuse("Uri", "must be an http or https address without user information");
    }
    secrets::check(&mut check, &input.variables);
    check.done().map(|()| input)
}

fn require_file(check: &mut Check, field: &str, file: Option<&str>) {
    if file.unwrap_or_default().trim().is_empty() {
        check.refuse(field, "is required for software that RequiresInstallation");
    }
}

/// Returns the subject that a subject is based on.
pub(super) fn base(input: &SubjectInput, id: SubjectId) -> Result<Option<SubjectId>, Fault> {
    let base = SubjectId::from_field_if_any(BASE_SUBJECT, input.base_subject_id.as_deref())?;
    if base == Some(id) {
        return Err(Fault::invalid(BASE_SUBJECT, "must be the id of another subject"));
    }
    Ok(base)
}

/// Returns whether a text is an http or https address without user information, which is safe to show
/// as a link.
fn is_web_address(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let host = uri.authority().filter(|authority| !authority.as_str().contains('@'));
    is_web && host.is_some_and(|authority| !authority.host().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_without_user_information_are_valid() {
        for good in ["https://example.com", "http://10.0.0.1:8080/a?b=c#d", "HTTPS://EXAMPLE.COM/"]
        {
            assert!(is_web_address(good), "{good} should be valid");
        }
        for bad in [
            "example.com",
            "/path",
            "ftp://example.com",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://user:password@example.com",
            "https://user@example.com",
            "https://",
            "https:///path",
            "https://exa mple.com",
            "https://example.com/\r\nx",
        ] {
            assert!(!is_web_address(bad), "{bad} should not be valid");
        }
    }

    #[test]
    fn required_fields_depend_on_the_subject_type() {
        let problems = |subject_type: SubjectType| {
            let input = SubjectInput {
                identifier: "1.0".into(),
                name: "Shop".into(),
                subject_type: subject_type.into(),
                ..SubjectInput::default()
            };
            let Err(Fault::Invalid(violations)) = valid(input) else {
                panic!("the subject should not be valid")
            };
            violations.into_iter().map(|violation| violation.field).collect::<Vec<_>>()
        };
        assert_eq!(problems(SubjectType::Webpage), ["Uri"]);
        assert_eq!(
            problems(SubjectType::RequiresInstallation),
            ["SoftwareFileId", "InstructionFileId"]
        );
        assert_eq!(problems(SubjectType::Unspecified), ["SubjectType"]);
    }
}
