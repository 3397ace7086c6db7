//! What makes a subject.

use assay_proto::{
    Fault, SubjectId,
    catalog::{SubjectInput, SubjectType},
};
use assay_records::Check;
use http::Uri;

use crate::secrets;

pub(super) fn valid(mut input: SubjectInput) -> Result<SubjectInput, Fault> {
    let mut check = Check::default();
    match input.subject_type() {
        SubjectType::Webpage => {
            if input.uri.trim().is_empty() {
                check.refuse("Uri", "is needed for a web page");
            }
        }
        SubjectType::RequiresInstallation => {
            needed(&mut check, "SoftwareFileId", input.software_file_id.as_deref());
            needed(&mut check, "InstructionFileId", input.instruction_file_id.as_deref());
        }
        SubjectType::Unspecified => {
            check.refuse("SubjectType", "must be Webpage or RequiresInstallation");
            // So that the texts can be looked at all the same.
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

fn needed(check: &mut Check, field: &str, file: Option<&str>) {
    if file.unwrap_or_default().trim().is_empty() {
        check.refuse(field, "is needed for software that requires installation");
    }
}

/// The subject that this one is to be built upon.
pub(super) fn base(input: &SubjectInput, id: SubjectId) -> Result<Option<SubjectId>, Fault> {
    let base = SubjectId::from_field_if_any("BaseSubjectId", input.base_subject_id.as_deref())?;
    if base == Some(id) {
        return Err(Fault::invalid("BaseSubjectId", "must be the id of another subject"));
    }
    Ok(base)
}

/// Whether users can be sent to that address: no scheme that runs something, and no password to be
/// given away.
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
    fn only_web_addresses_are_taken() {
        for good in ["https://example.com", "http://10.0.0.1:8080/a?b=c#d", "HTTPS://EXAMPLE.COM/"]
        {
            assert!(is_web_address(good), "{good} was refused");
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
            assert!(!is_web_address(bad), "{bad} was taken");
        }
    }

    #[test]
    fn what_a_subject_needs_depends_on_its_type() {
        let problems = |subject_type: SubjectType| {
            let input = SubjectInput {
                identifier: "1.0".into(),
                name: "Shop".into(),
                subject_type: subject_type.into(),
                ..SubjectInput::default()
            };
            let Err(Fault::Invalid(violations)) = valid(input) else { panic!("it was taken") };
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
