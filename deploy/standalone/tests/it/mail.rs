//! What arrives in mailboxes.

use std::{fs, path::Path};

use assay_testkit::eventually;

use crate::world::World;

/// A mail that was sent.
pub(crate) struct Mail {
    /// Its header, unfolded.
    pub(crate) header: String,
    /// Its body, with what is encoded decoded.
    pub(crate) body: String,
}

impl Mail {
    pub(crate) fn read(mail: &str) -> Self {
        let (header, body) = mail.split_once("\r\n\r\n").expect("a header and a body");
        let header = header.replace("\r\n ", " ");
        // Quoted-printable, of which links need no more.
        let body = body.replace("=\r\n", "").replace("=3D", "=");
        Self { header, body }
    }

    /// The link in the text, which is the one in the HTML too.
    pub(crate) fn link(&self) -> &str {
        let start = self.body.find("http").expect("a link");
        let link = self.body[start..].split_whitespace().next().unwrap();
        assert!(self.body.contains(&format!("href=\"{link}\"")), "{}", self.body);
        link
    }

    /// What the link proves.
    pub(crate) fn token(&self) -> &str {
        self.link().split_once("#token=").expect("a token").1
    }
}

impl World {
    /// Takes the only mail to somebody out of their mailbox, once it is there.
    pub(crate) async fn mail_to(&self, email: &str) -> Mail {
        let to = format!("To: {email}");
        eventually(&format!("a mail to {email}"), || async {
            let is_it = |mail: &Mail| mail.header.lines().any(|line| line == to);
            self.take_mail(is_it)
        })
        .await
    }

    /// Whether there is any mail.
    pub(crate) fn has_mail(&self) -> bool {
        let files = fs::read_dir(self.mail_dir()).into_iter().flatten();
        files.count() > 0
    }

    /// How many mails there are.
    pub(crate) fn mails(&self) -> usize {
        let files = fs::read_dir(self.mail_dir()).into_iter().flatten().flatten();
        let is_mail = |path: &Path| path.extension().is_some_and(|ending| ending == "eml");
        files.filter(|file| is_mail(&file.path())).count()
    }

    fn take_mail(&self, is_it: impl Fn(&Mail) -> bool) -> Option<Mail> {
        for file in fs::read_dir(self.mail_dir()).ok()? {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "eml") {
                continue;
            }
            let mail = Mail::read(&fs::read_to_string(&path).unwrap());
            if is_it(&mail) {
                fs::remove_file(path).unwrap();
                return Some(mail);
            }
        }
        None
    }
}
