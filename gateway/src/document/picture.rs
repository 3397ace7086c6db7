//! Pictures of steps, by their links. Only those that Assay stores for the customer are read: nothing here connects
//! to a host that a link names.

use assay_auth::{Caller, anonymous};
use assay_document::Picture;
use assay_proto::{CustomerId, execution::DownloadArtifactRequest};
use bytes::BytesMut;
use tonic::{Code, Status};
use url::Url;

use super::Documents;

const ELSEWHERE: &str = "it is not stored here";

impl Documents {
    /// Reads a picture of at most this size, or returns why it is left out.
    pub(super) async fn picture(
        &mut self,
        caller: &Caller,
        link: &str,
        most: usize,
    ) -> Result<Picture, String> {
        let request = request(caller.customer, link).ok_or(ELSEWHERE)?;
        let mut parts = self
            .artifacts
            .download_artifact(anonymous(request))
            .await
            .map_err(|status| reason(&status))?
            .into_inner();
        let mut bytes = BytesMut::new();
        while let Some(part) = parts.message().await.map_err(|status| reason(&status))? {
            let size = usize::try_from(part.size).unwrap_or(usize::MAX);
            if size > most || bytes.len() + part.chunk.len() > most {
                return Err("it is too large".to_owned());
            }
            bytes.extend_from_slice(&part.chunk);
        }
        Picture::read(bytes.freeze()).map_err(|unusable| unusable.to_string())
    }
}

fn reason(status: &Status) -> String {
    match status.code() {
        Code::NotFound | Code::PermissionDenied | Code::InvalidArgument => {
            "it does not exist any more"
        }
        _ => "it cannot be read at the moment",
    }
    .to_owned()
}

/// Returns the request for the file of a signed link. The service checks the signature.
fn request(customer: CustomerId, link: &str) -> Option<DownloadArtifactRequest> {
    let url = parsed(link)?;
    let rest = url.path().strip_prefix("/api/artifacts/")?;
    let (id, name) = rest.split_once('/').filter(|(_, name)| !name.contains('/'))?;
    let value = |wanted: &str| {
        url.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
    };
    let customer_id = value("customer")?;
    // A link of another customer is one to elsewhere.
    if customer_id != customer.to_string() {
        return None;
    }
    Some(DownloadArtifactRequest {
        id: id.to_owned(),
        name: name.to_owned(),
        customer_id,
        expires: value("expires")?.parse().ok()?,
        signature: value("signature")?,
        ..DownloadArtifactRequest::default()
    })
}

/// Returns the name of the file of a link, as far as it has one.
pub(super) fn name(link: &str) -> &str {
    let path = link.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("picture")
}

fn parsed(link: &str) -> Option<Url> {
    let base = Url::parse("http://assay/").ok()?;
    Url::options().base_url(Some(&base)).parse(link).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUSTOMER: &str = "019cade2-11c0-7226-b375-01b542390175";

    fn of(link: &str) -> Option<DownloadArtifactRequest> {
        request(CustomerId(CUSTOMER.parse().unwrap()), link)
    }

    #[test]
    fn only_links_of_the_customer_are_read() {
        let query = format!("customer={CUSTOMER}&expires=1772447400&signature=a-b_c");
        let link = format!("https://assay.example/api/artifacts/1/cart.png?{query}");
        let request = of(&link).unwrap();
        assert_eq!((request.name.as_str(), request.signature.as_str()), ("cart.png", "a-b_c"));
        assert!(of(&format!("/api/artifacts/1/cart.png?{query}")).is_some());
        for link in [
            "https://evil.example/cart.png".to_owned(),
            "file:///etc/passwd".to_owned(),
            format!("https://assay.example/api/artifacts/1/a/b.png?{query}"),
            link.replace(CUSTOMER, "019cade2-11c0-7226-b375-01b542390176"),
            link.replace("&signature=a-b_c", ""),
            link.replace("expires=1772447400", "expires=never"),
            "not a link".to_owned(),
            String::new(),
        ] {
            assert!(of(&link).is_none(), "{link}");
        }
    }

    #[test]
    fn the_name_is_the_last_part() {
        assert_eq!(name("https://a.example/x/cart.png?y=/z"), "cart.png");
        assert_eq!(name("cart.png"), "cart.png");
        assert_eq!(name(""), "picture");
    }
}
