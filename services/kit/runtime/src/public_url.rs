//! The public URL of Assay.

use url::Url;

/// The public URL of Assay, which links begin with.
#[derive(clap::Args, Clone, Debug)]
pub struct PublicUrl {
    /// Public URL of Assay, such as <https://assay.example>, for links in mails and
    /// events, and to artifacts
    #[arg(long, env = "ASSAY_PUBLIC_URL", value_parser = origin)]
    pub public_url: Url,
}

/// Parses an origin: a scheme, a host and an optional port, without a path.
fn origin(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let is_origin = url.origin().ascii_serialization() == url.as_str().trim_end_matches('/');
    if matches!(url.scheme(), "http" | "https") && is_origin {
        return Ok(url);
    }
    Err("must be an origin, such as https://assay.example or http://localhost:8080".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_url_is_an_origin() {
        for good in ["https://assay.example", "https://assay.example/", "http://localhost:8080"] {
            origin(good).unwrap();
        }
        for wrong in [
            "assay.example",
            "ftp://assay.example",
            "https://assay.example/path",
            "https://assay.example?a",
            "https://user@assay.example",
            "mailto:a@b",
        ] {
            assert!(origin(wrong).is_err(), "{wrong} was accepted");
        }
    }
}
