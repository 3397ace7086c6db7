//! Keys of test runs.

use assay_digest::hex;
use aws_lc_rs::digest::{SHA256, digest};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Maximum length of a key, in characters. Assay accepts 255; the rest is for the number of a repeated
/// run.
const LONGEST: usize = 240;

/// Length of the hash at the end of a key that is too long, in bytes.
const HASH: usize = 16;

/// Characters that are encoded in a part, so that different parts never make the same key.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b':');

/// The keys of a run and of a job in it, from the CI system to the job.
pub(super) struct Key {
    run: String,
    job: String,
    /// Whether the system names the run that the job is a part of.
    is_known: bool,
}

impl Key {
    pub(super) fn new(system: &str) -> Self {
        Self { run: system.to_owned(), job: String::new(), is_known: true }
    }

    /// Adds a part that all jobs of the run have. An absent one leaves its place empty.
    pub(super) fn push(&mut self, part: Option<String>) {
        self.run.push_str(&encoded(part));
    }

    /// Adds a part that belongs to the job.
    pub(super) fn push_job(&mut self, part: Option<String>) {
        self.job.push_str(&encoded(part));
    }

    /// Adds the address of a server without its scheme, user and final slash.
    pub(super) fn push_server(&mut self, url: Option<String>) {
        let address = url.map(|url| {
            let address = url.split_once("://").map_or(&*url, |(_, address)| address);
            let (host, path) = address.split_once('/').unwrap_or((address, ""));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_lowercase();
            format!("{host}/{path}").trim_end_matches('/').to_owned()
        });
        self.push(address);
    }

    /// Notes that the system does not name the run that the job is a part of.
    pub(super) fn clear(&mut self) {
        self.is_known = false;
    }

    /// Returns the key of the run.
    pub(super) fn of_run(&self) -> Option<String> {
        self.is_known.then(|| shortened(self.run.clone()))
    }

    /// Returns the key of the job.
    pub(super) fn of_job(&self) -> Option<String> {
        self.is_known.then(|| shortened(format!("{}{}", self.run, self.job)))
    }
}

/// Returns a part in visible characters, with the separator in front of it.
fn encoded(part: Option<String>) -> String {
    format!(":{}", utf8_percent_encode(&part.unwrap_or_default(), ENCODED))
}

/// Returns a key of limited length. One that is too long ends with a hash of the whole.
fn shortened(mut key: String) -> String {
    if key.len() > LONGEST {
        let hash = digest(&SHA256, key.as_bytes());
        key.truncate(LONGEST - 2 * HASH - 1);
        key.push('~');
        key.push_str(&hex(&hash.as_ref()[..HASH]));
    }
    key
}
