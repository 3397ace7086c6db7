//! Mutual TLS between the programs of Assay, which have certificates of one authority.

use std::{
    fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, bail};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    server::WebPkiClientVerifier,
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};
use webpki::EndEntityCert;

/// Maximum duration of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings for mutual TLS between programs.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct TlsConfig {
    /// File with the certificate chain (PEM) that this program presents to the other programs of
    /// Assay. Enables TLS for gRPC, which then accepts only programs with a certificate of the same
    /// authority
    #[arg(
        long,
        env = "ASSAY_TLS_CERTIFICATE_FILE",
        requires_all = ["tls_key_file", "tls_ca_file"]
    )]
    pub tls_certificate_file: Option<PathBuf>,
    /// File with the private key (PEM) of the certificate
    #[arg(long, env = "ASSAY_TLS_KEY_FILE", requires = "tls_certificate_file")]
    pub tls_key_file: Option<PathBuf>,
    /// File with the certificates (PEM) of the authority that issues the certificates of the
    /// programs of Assay, and no others
    #[arg(long, env = "ASSAY_TLS_CA_FILE", requires = "tls_certificate_file")]
    pub tls_ca_file: Option<PathBuf>,
    /// DNS names, separated by commas, in the certificates of programs that are trusted to forward
    /// the client's address and the request id
    #[arg(
        long,
        env = "ASSAY_TLS_FORWARDERS",
        value_delimiter = ',',
        default_value = "gateway,execution"
    )]
    pub tls_forwarders: Vec<String>,
}

/// The certificate of a program and the authority that it trusts. Changed files are loaded before
/// the next connection.
#[derive(Clone)]
pub struct Tls(Arc<Inner>);

struct Inner {
    files: Files,
    forwarders: Vec<String>,
    loaded: Mutex<Loaded>,
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    authority: PathBuf,
}

struct Loaded {
    changed_at: [SystemTime; 3],
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Tls {
    /// Loads the configured files; `None` if TLS is not configured. Fails if a file is not usable.
    pub fn open(config: &TlsConfig) -> anyhow::Result<Option<Self>> {
        let TlsConfig { tls_certificate_file, tls_key_file, tls_ca_file, tls_forwarders } =
            config.clone();
        let files = match (tls_certificate_file, tls_key_file, tls_ca_file) {
            (None, None, None) => return Ok(None),
            (Some(certificate), Some(key), Some(authority)) => {
                Files { certificate, key, authority }
            }
            _ => bail!(
                "ASSAY_TLS_CERTIFICATE_FILE, ASSAY_TLS_KEY_FILE and ASSAY_TLS_CA_FILE must be set together"
            ),
        };
        let loaded = Mutex::new(files.load()?);
        Ok(Some(Self(Arc::new(Inner { files, forwarders: tls_forwarders, loaded }))))
    }

    /// Performs a handshake as the server.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<server::TlsStream<TcpStream>> {
        let server = self.configs().0;
        timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(server).accept(stream)).await?
    }

    /// Performs a handshake with the server of this name.
    pub async fn connect(
        &self,
        name: &str,
        stream: TcpStream,
    ) -> io::Result<client::TlsStream<TcpStream>> {
        let client = self.configs().1;
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        timeout(HANDSHAKE_TIMEOUT, TlsConnector::from(client).connect(name, stream)).await?
    }

    /// Whether the owner of a certificate is trusted to forward the client's address and request
    /// id.
    pub fn may_forward(&self, certificate: &CertificateDer<'_>) -> bool {
        let certificate = EndEntityCert::try_from(certificate);
        let is_forwarder = |name: &str| self.0.forwarders.iter().any(|known| known == name);
        certificate.is_ok_and(|certificate| certificate.valid_dns_names().any(is_forwarder))
    }

    /// Returns the current certificates. If changed files are not usable, the previous ones stay in
    /// use: a certificate may be replaced a moment before its key.
    fn configs(&self) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
        let mut loaded = self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let changed_at = self.0.files.changed_at().unwrap_or(loaded.changed_at);
        if changed_at != loaded.changed_at {
            match self.0.files.load() {
                Ok(changed) => {
                    tracing::info!("loaded the changed TLS certificates");
                    *loaded = changed;
                }
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(error, "the changed TLS certificates cannot be used");
                    loaded.changed_at = changed_at;
                }
            }
        }
        (loaded.server.clone(), loaded.client.clone())
    }
}

impl Files {
    fn changed_at(&self) -> io::Result<[SystemTime; 3]> {
        let changed_at = |path: &PathBuf| fs::metadata(path)?.modified();
        Ok([changed_at(&self.certificate)?, changed_at(&self.key)?, changed_at(&self.authority)?])
    }

    fn load(&self) -> anyhow::Result<Loaded> {
        let name = |path: &PathBuf| path.display().to_string();
        let changed_at = self.changed_at().with_context(|| format!("{self:?}"))?;
        let certificates = |path: &PathBuf| -> anyhow::Result<Vec<CertificateDer<'static>>> {
            let read = CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>()?;
            if read.is_empty() {
                bail!("no certificate");
            }
            Ok(read)
        };
        let mut roots = RootCertStore::empty();
        for root in certificates(&self.authority).with_context(|| name(&self.authority))? {
            roots.add(root).with_context(|| name(&self.authority))?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(&self.certificate).with_context(|| name(&self.certificate))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).with_context(|| name(&self.key))?;

        let verifier = WebPkiClientVerifier::builder(roots.clone()).build()?;
        let mut server = ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())?;
        let mut client = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)?;
        server.alpn_protocols = vec![b"h2".to_vec()];
        client.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Loaded { changed_at, server: Arc::new(server), client: Arc::new(client) })
    }
}
