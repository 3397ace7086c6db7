//! Files of the pages, under URLs with a hash of their contents, so that browsers keep them.

use axum::{
    Router,
    extract::Path,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{
    StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};

/// A file that pages load.
pub(crate) struct Asset {
    name: &'static str,
    content_type: &'static str,
    content: &'static str,
    hash: u64,
}

pub(crate) static STYLE: Asset =
    Asset::new("console.css", "text/css; charset=utf-8", include_str!("../assets/console.css"));

pub(crate) static SCRIPT: Asset = Asset::new(
    "console.js",
    "text/javascript; charset=utf-8",
    include_str!("../assets/console.js"),
);

pub(crate) static ICON: Asset =
    Asset::new("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg"));

impl Asset {
    const fn new(name: &'static str, content_type: &'static str, content: &'static str) -> Self {
        Self { name, content_type, content, hash: hash(content.as_bytes()) }
    }

    pub(crate) fn url(&self) -> String {
        format!("/assets/{:016x}/{}", self.hash, self.name)
    }

    /// Returns the file. While a new version is rolled out, a page of the other one may ask for it
    /// under another hash; caches do not store that.
    fn respond(&self, hash: &str) -> Response {
        let is_current = hash == format!("{:016x}", self.hash);
        let caching = if is_current { "public, max-age=31536000, immutable" } else { "no-store" };
        let headers = [(CONTENT_TYPE, self.content_type), (CACHE_CONTROL, caching)];
        (headers, self.content).into_response()
    }
}

/// Computes the FNV-1a hash of a file at compile time.
const fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut index = 0;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        index += 1;
    }
    hash
}

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/assets/{hash}/{name}", get(asset))
}

async fn asset(Path((hash, name)): Path<(String, String)>) -> Response {
    let asset = [&STYLE, &SCRIPT, &ICON].into_iter().find(|asset| asset.name == name);
    asset.map_or(StatusCode::NOT_FOUND.into_response(), |asset| asset.respond(&hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_contents() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn the_script_is_small() {
        assert!(SCRIPT.content.len() < 13 << 10, "{}", SCRIPT.content.len());
        assert!(STYLE.content.len() < 24 << 10, "{}", STYLE.content.len());
    }
}
