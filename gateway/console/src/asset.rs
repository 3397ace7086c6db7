//! Files of the pages, under URLs with a hash of their contents, so that browsers keep them.

use std::sync::LazyLock;

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
    content: String,
    hash: u64,
}

pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let style = compact(include_str!("../assets/console.css"));
    Asset::new("console.css", "text/css; charset=utf-8", style)
});

pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let script = compact(include_str!("../assets/console.js"));
    Asset::new("console.js", "text/javascript; charset=utf-8", script)
});

pub(crate) static ICON: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg").to_owned())
});

/// Returns a script or a style without what browsers ignore: indentation, blank lines, and comments that have lines of
/// their own.
fn compact(text: &str) -> String {
    let is_comment =
        |line: &str| line.starts_with("//") || (line.starts_with("/*") && line.ends_with("*/"));
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_comment(line));
    lines.collect::<Vec<_>>().join("\n")
}

impl Asset {
    fn new(name: &'static str, content_type: &'static str, content: String) -> Self {
        let hash = hash(content.as_bytes());
        Self { name, content_type, content, hash }
    }

    pub(crate) fn url(&self) -> String {
        format!("/assets/{:016x}/{}", self.hash, self.name)
    }

    /// Returns the file. While a new version is rolled out, a page of the other one may ask for it
    /// under another hash; caches do not store that.
    fn respond(&'static self, hash: &str) -> Response {
        let is_current = hash == format!("{:016x}", self.hash);
        let caching = if is_current { "public, max-age=31536000, immutable" } else { "no-store" };
        let headers = [(CONTENT_TYPE, self.content_type), (CACHE_CONTROL, caching)];
        (headers, self.content.as_str()).into_response()
    }
}

/// Computes the FNV-1a hash of a file.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/assets/{hash}/{name}", get(asset))
}

async fn asset(Path((hash, name)): Path<(String, String)>) -> Response {
    let asset: Option<&'static Asset> =
        [&*STYLE, &*SCRIPT, &*ICON].into_iter().find(|asset| asset.name == name);
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
    fn a_script_is_sent_without_comments_and_indentation() {
        let script = "// Keys.\nif (a) {\n\n  b(); // now\n}\n/* All of it. */\n";
        assert_eq!(compact(script), "if (a) {\nb(); // now\n}");
    }

    #[test]
    fn the_script_is_small() {
        assert!(SCRIPT.content.len() < 11 << 10, "{}", SCRIPT.content.len());
        assert!(STYLE.content.len() < 24 << 10, "{}", STYLE.content.len());
    }
}
