//! References of images with automated tests.

use assay_proto::Fault;

use crate::file::reference::{Field, is_id};

/// Field of a plan with the id of a file, the reference of an image, or a text of another system.
pub(crate) const CONTAINER: &str = "AutomatedTestContainerId";

const PROBLEM: &str = "must be the reference of an image with its digest, such as \
                       registry.example.org/name@sha256: and 64 hexadecimal digits in lower case; the id of \
                       a file of the project; or a text without @";

/// Fails if a field has changed to a reference with a digest that is not valid. References without a digest have
/// no form that distinguishes them from texts of other systems.
pub(super) fn check(field: &Field<'_>) -> Result<(), Fault> {
    let text = field.text.unwrap_or_default();
    if field.has_changed() && !is_id(text) && text.contains('@') && !is_reference(text) {
        return Err(Fault::invalid(field.name, PROBLEM));
    }
    Ok(())
}

/// Whether a text is the reference of an image with its digest.
fn is_reference(text: &str) -> bool {
    let Some((name, digest)) = text.split_once("@sha256:") else { return false };
    let is_name =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@');
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    is_name && digest.len() == 64 && digest.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    fn accepts(text: &str) -> bool {
        check(&Field::new(CONTAINER, Some(text), None)).is_ok()
    }

    #[test]
    fn a_reference_with_a_digest_has_64_digits() {
        assert!(accepts(&format!("registry.example.org:5000/shop/tests@sha256:{DIGEST}")));
        assert!(accepts(&format!("shop:2.4@sha256:{DIGEST}")));
        for wrong in [
            "shop@".to_owned(),
            "shop@latest".to_owned(),
            "shop@sha256:".to_owned(),
            format!("shop@sha256:{}", &DIGEST[1..]),
            format!("shop@sha256:{DIGEST}0"),
            format!("shop@sha256:{}", DIGEST.to_uppercase()),
            format!("shop@sha512:{DIGEST}"),
            format!("@sha256:{DIGEST}"),
            format!("a b@sha256:{DIGEST}"),
            format!("a@b@sha256:{DIGEST}"),
            format!("shop@sha256:{DIGEST} "),
        ] {
            assert!(!accepts(&wrong), "{wrong}");
        }
    }

    #[test]
    fn other_texts_and_those_from_before_stay() {
        for text in ["", "shop", "registry.example.org/shop:2.4", "share/7", "Container 12"] {
            assert!(accepts(text), "{text}");
        }
        let kept = Field::new(CONTAINER, Some("team@example.org"), Some("team@example.org"));
        assert!(check(&kept).is_ok());
    }
}
