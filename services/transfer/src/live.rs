//! Tools that are read over their interfaces: what they return is written to files, which are then
//! converted like files of their users. Reading continues where it was interrupted.

mod kiwi;
mod remote;
mod reportportal;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use self::remote::Remote;
use crate::{folder::Root, source::Format};

/// Access to the tool that `--from` names the URL of
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Origin {
    /// Project of `ReportPortal`, or product of Kiwi TCMS. Required for `ReportPortal`; default for Kiwi
    /// TCMS: all products
    #[arg(long)]
    source_project: Option<String>,
    /// User name for Kiwi TCMS
    #[arg(long, env = "ASSAY_SOURCE_USER")]
    source_user: Option<String>,
    /// API key for `ReportPortal`, or password for Kiwi TCMS. Prefer a file: other users of the machine
    /// can see the options of a process
    #[arg(long, env = "ASSAY_SOURCE_TOKEN", hide_env_values = true)]
    source_token: Option<SecretString>,
    /// File with the API key or password
    #[arg(long, env = "ASSAY_SOURCE_TOKEN_FILE")]
    source_token_file: Option<PathBuf>,
    /// Also read logs and files of tests that have passed. Default: only of others
    #[arg(long)]
    all_logs: bool,
}

impl Origin {
    /// Returns the API key or password.
    fn token(&self) -> Result<SecretString> {
        if let Some(token) = &self.source_token {
            return Ok(token.clone());
        }
        let file = self.source_token_file.as_ref();
        let file = file.context("--source-token or --source-token-file is required for a URL")?;
        let text = fs::read_to_string(file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        Ok(text.trim().into())
    }

    /// Returns the name of the default folder for what is read.
    pub(crate) fn folder(&self, url: &Url) -> PathBuf {
        let project = self.source_project.as_deref().unwrap_or("all");
        let name = format!("{}-{project}.import", url.host_str().unwrap_or_default());
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
        name.chars().map(|c| if fits(c) { c } else { '_' }).collect::<String>().into()
    }
}

/// Returns the URL, if a source is one.
pub(crate) fn url_of(source: &Path) -> Option<Url> {
    let text = source.to_str()?;
    let is_url = text.starts_with("http://") || text.starts_with("https://");
    Url::parse(text).ok().filter(|_| is_url)
}

/// Reads a tool into files of a folder, and returns them. Files that are complete are kept.
pub(crate) async fn read(
    url: &Url,
    format: Format,
    origin: &Origin,
    folder: &Path,
) -> Result<Vec<PathBuf>> {
    let token = origin.token()?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    match format {
        Format::Reportportal => {
            let project = origin.source_project.as_deref();
            let project = project.context("--source-project is required for ReportPortal")?;
            let remote = Remote::new(url, Some(token.expose_secret()))?;
            reportportal::read(&remote, project, folder, origin.all_logs).await
        }
        Format::Kiwi => {
            let user = origin.source_user.as_deref();
            let user = user.context("--source-user is required for Kiwi TCMS")?;
            let login = [user, token.expose_secret()];
            let remote = Remote::new(url, None)?;
            kiwi::read(&remote, login, origin.source_project.as_deref(), folder).await
        }
        _ => bail!("--format: must be reportportal or kiwi if --from is a URL"),
    }
}

/// Writes a file, which has another name until it is complete. Links are not followed.
fn write(path: &Path, contents: &[u8]) -> Result<()> {
    let name = path.file_name().and_then(|name| name.to_str()).context("a file has no name")?;
    let root = Root::open(path.parent().unwrap_or(path))?;
    let draft = format!("{name}.part");
    let written = root.create(&draft)?.write_all(contents);
    written.with_context(|| format!("cannot write {}", path.display()))?;
    root.rename(&draft, name)?;
    Ok(())
}

#[cfg(test)]
mod tests;
