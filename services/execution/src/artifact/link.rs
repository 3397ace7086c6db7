//! Signed links to artifacts. A link lets its bearer read one file until it expires.

use assay_auth::{SealConfig, Signer};
use assay_proto::{ArtifactId, CustomerId, Fault, ShareLinkId};
use url::Url;

/// Time until a link expires, in seconds.
pub(super) const LIFETIME: i64 = 3600;

/// Creates and verifies links.
#[derive(Clone)]
pub(super) struct Links {
    signer: Signer,
    base: Url,
}

impl Links {
    /// Returns links that begin with `base` and are signed with the keys of `seal`.
    pub(super) fn new(seal: &SealConfig, base: Url) -> anyhow::Result<Self> {
        Ok(Self { signer: Signer::new(seal, "links to artifacts")?, base })
    }

    /// Returns the link to an artifact. `expires` is in seconds since 1970. With a share link, it is valid
    /// only as long as that one grants access.
    pub(super) fn link(
        &self,
        customer: CustomerId,
        id: ArtifactId,
        name: &str,
        expires: i64,
        share_link: Option<ShareLinkId>,
    ) -> String {
        let signature = self.signer.sign(&signed(customer, id, name, expires, share_link));
        let mut link = self.base.clone();
        link.set_path(&format!("/api/artifacts/{id}/{name}"));
        link.query_pairs_mut()
            .append_pair("customer", &customer.to_string())
            .append_pair("expires", &expires.to_string())
            .extend_pairs(share_link.map(|share_link| ("share", share_link.to_string())))
            .append_pair("signature", &signature);
        link.into()
    }

    /// Fails unless the signature of a link is valid. [`check_time`] shows whether the link has expired.
    pub(super) fn verify(
        &self,
        customer: CustomerId,
        id: ArtifactId,
        name: &str,
        (expires, share_link): (i64, Option<ShareLinkId>),
        signature: &str,
    ) -> Result<(), Fault> {
        let signed = signed(customer, id, name, expires, share_link);
        self.signer.verify(&signed, signature).then_some(()).ok_or_else(forbidden)
    }
}

/// Fails if a link has expired. Both times are in seconds since 1970.
pub(super) fn check_time(expires: i64, now: i64) -> Result<(), Fault> {
    (now < expires).then_some(()).ok_or_else(forbidden)
}

/// Returns the same fault for every invalid link.
pub(super) fn forbidden() -> Fault {
    Fault::Forbidden("the link is not valid, or has expired".to_owned())
}

fn signed(
    customer: CustomerId,
    id: ArtifactId,
    name: &str,
    expires: i64,
    share_link: Option<ShareLinkId>,
) -> String {
    let share_link = share_link.map(|id| format!("/{id}")).unwrap_or_default();
    format!("{customer}/{id}/{name}/{expires}{share_link}")
}

#[cfg(test)]
mod tests {
    use assay_auth::new_seal_key;

    use super::*;

    #[test]
    fn links_are_valid_for_one_artifact_until_they_expire() {
        let seal = SealConfig { encryption_keys: new_seal_key("1").unwrap() };
        let base = Url::parse("https://assay.test/ignored?x#y").unwrap();
        let links = Links::new(&seal, base).unwrap();
        let (customer, id) = (CustomerId::new(), ArtifactId::new());
        let link = Url::parse(&links.link(customer, id, "a.png", 1000, None)).unwrap();
        assert_eq!(link.path(), format!("/api/artifacts/{id}/a.png"));
        assert_eq!(link.host_str(), Some("assay.test"));
        let signature = link.query_pairs().find(|(name, _)| name == "signature").unwrap().1;

        let is_valid = |customer, id, name, expires| {
            links.verify(customer, id, name, (expires, None), &signature).is_ok()
        };
        assert!(is_valid(customer, id, "a.png", 1000));
        assert!(!is_valid(customer, id, "a.png", 2000), "prolonged");
        assert!(!is_valid(customer, id, "b.png", 1000));
        assert!(!is_valid(customer, ArtifactId::new(), "a.png", 1000));
        assert!(!is_valid(CustomerId::new(), id, "a.png", 1000));
        assert!(check_time(1000, 999).is_ok());
        assert!(check_time(1000, 1000).is_err(), "expired");
        let shared =
            links.verify(customer, id, "a.png", (1000, Some(ShareLinkId::new())), &signature);
        assert!(shared.is_err(), "the share link is signed, too");
    }
}
