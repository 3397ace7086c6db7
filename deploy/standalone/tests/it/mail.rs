//! Mails in the mail directory.

use std::{fs, path::Path};

use assay_testkit::eventually;

use crate::installation::Installation;

/// A sent mail.
pub(crate) struct Mail {
    /// The unfolded header.
    pub(crate) header: String,
    /// The decoded body.
    pub(crate) body: String,
}

impl Mail {
    pub(crate) fn read(mail: &str) -> Self {
        let (header, body) = mail.split_once("\r\n\r\n").expect("a header and a body");
        let header = header.replace("\r\n ", " ");
        // The part of quoted-printable that links need.
        let body = body.replace("=\r\n", "").replace("=3D", "=");
        Self { header, body }
    }

    /// The link in the text; asserts that the HTML has the same one.
    pub(crate) fn link(&self) -> &str {
        let start = self.body.find("http").expect("a link");
        let link = self.body[start..].split_whitespace().next().unwrap();
        assert!(self.body.contains(&format!("href=\"{link}\"")), "{}", self.body);
        link
    }

    /// The token of the link.
    pub(crate) fn token(&self) -> &str {
        self.link().split_once("#token=").expect("a token").1
    }
}

impl Installation {
    /// Waits for the only mail to an address and removes it.
    pub(crate) async fn take_mail_to(&self, email: &str) -> Mail {
        let to = format!("To: {email}");
        eventually(&format!("a mail to {email}"), || async {
            let matches = |mail: &Mail| mail.header.lines().any(|line| line == to);
            self.take_mail(matches)
        })
        .await
    }

    /// Returns whether there is any mail.
    pub(crate) fn has_mail(&self) -> bool {
        let files = fs::read_dir(self.mail_dir()).into_iter().flatten();
        files.count() > 0
    }

    /// Number of mails.
    pub(crate) fn mail_count(&self) -> usize {
        let files = fs::read_dir(self.mail_dir()).into_iter().flatten().flatten();
        let is_mail = |path: &Path| path.extension().is_some_and(|extension| extension == "eml");
        files.filter(|file| is_mail(&file.path())).count()
    }

    fn take_mail(&self, matches: impl Fn(&Mail) -> bool) -> Option<Mail> {
        for file in fs::read_dir(self.mail_dir()).ok()? {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "eml") {
                continue;
            }
            // Another story may have removed the mail.
            let Ok(mail) = fs::read_to_string(&path) else { continue };
            let mail = Mail::read(&mail);
            if matches(&mail) {
                fs::remove_file(path).unwrap();
                return Some(mail);
            }
        }
        None
    }
}
