//! Tests of the forms that errors are sent in.

use assay_proto::{Fault, LARGEST_HEADERS, Violation};
use tonic::Status;
use tonic_types::StatusExt as _;

#[test]
fn a_status_fits_into_headers_whatever_a_client_has_sent() {
    let long = |char: &str| char.repeat(1 << 16);
    let violation = |text: &str| Violation { field: text.to_owned(), problem: text.to_owned() };
    for fault in [
        Fault::invalid("Name", format!("invalid type: string \"{}\"", long("a"))),
        Fault::Invalid(vec![violation(&long("é")); 100]),
        Fault::Invalid(vec![violation("é"); 10_000]),
        Fault::Malformed(long("é")),
        Fault::Refused { code: "refused", reason: long("\u{1}") },
    ] {
        let status = Status::from(fault);
        let headers = status.clone().into_http::<()>().into_parts().0.headers;
        let sizes = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32);
        let size: usize = sizes.sum();
        assert!(size < LARGEST_HEADERS as usize, "{size}");
        let found = status.get_error_details().bad_request().map(|all| all.field_violations.len());
        assert_ne!(found, Some(0));
    }
}

#[test]
fn short_texts_are_sent_as_they_are() {
    let status = Status::from(Fault::invalid("Name", "must not be blank"));
    assert_eq!(status.message(), "Name: must not be blank");
    let details = status.get_error_details();
    let violation = &details.bad_request().unwrap().field_violations[0];
    assert_eq!((&*violation.field, &*violation.description), ("Name", "must not be blank"));
}
