//! The customer named by the host of a request.

/// Returns the label of `host` below `base_domain`; `host` may have a port.
pub(crate) fn subdomain(host: &str, base_domain: Option<&str>) -> Option<String> {
    let domain = base_domain?.trim_matches('.').to_ascii_lowercase();
    let host = host.split(':').next()?.trim_end_matches('.').to_ascii_lowercase();
    let label = host.strip_suffix(&domain)?.strip_suffix('.')?;
    (!label.is_empty() && !label.contains('.')).then(|| label.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_label_before_the_base_domain_is_a_subdomain() {
        for (host, found) in [
            ("acme.assay.example", Some("acme")),
            ("ACME.Assay.Example:8443", Some("acme")),
            ("acme.assay.example.", Some("acme")),
            ("assay.example", None),
            (".assay.example", None),
            ("a.b.assay.example", None),
            ("acmeassay.example", None),
            ("acme.assay.example.evil.example", None),
            ("", None),
        ] {
            assert_eq!(subdomain(host, Some("assay.example")).as_deref(), found, "{host}");
        }
        assert_eq!(subdomain("acme.assay.example", None), None);
    }
}
