//! The installation that a project moves from or to.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use assay_client::Account;
use reqwest::Url;
use secrecy::SecretString;

/// URL of Assay and a token
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Access {
    /// URL of Assay, such as <https://assay.example.org>. Redirects are not followed
    #[arg(long, env = "ASSAY_URL", default_value = "http://127.0.0.1:8080")]
    url: Url,
    /// API token. Prefer a file: other users of the machine can see the options of a process
    #[arg(
        long,
        env = "ASSAY_TOKEN",
        hide_env_values = true,
        required_unless_present = "token_file"
    )]
    token: Option<SecretString>,
    /// File with the API token
    #[arg(long, env = "ASSAY_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

impl Access {
    /// Returns the account. The token itself precedes its file.
    pub(crate) fn account(&self) -> Result<Account> {
        let token = match (&self.token, &self.token_file) {
            (None, Some(file)) => {
                let text = fs::read_to_string(file);
                let text = text.with_context(|| format!("cannot read {}", file.display()))?;
                text.trim().into()
            }
            (Some(token), _) => token.clone(),
            (None, None) => SecretString::from(""),
        };
        Ok(Account { url: self.url.clone(), token })
    }
}
