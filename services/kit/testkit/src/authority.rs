//! A certificate authority.

use std::{fs, path::Path};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Issues certificates to programs and servers of a test.
///
/// Its methods panic if they fail.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Default for Authority {
    fn default() -> Self {
        assay_runtime::install_crypto();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), certificate }
    }
}

impl Authority {
    /// Writes a certificate for this name and `localhost`, its key and the authority's certificate
    /// into a directory, with the file names of Kubernetes: `tls.crt`, `tls.key`, `ca.crt`.
    pub fn issue(&self, name: &str, directory: &Path) {
        let names = vec![name.to_owned(), "localhost".to_owned()];
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(names).expect("names");
        let certificate = certificate.signed_by(&key, &self.issuer).expect("a certificate");
        let files = [
            ("tls.crt", certificate.pem()),
            ("tls.key", key.serialize_pem()),
            ("ca.crt", self.certificate.clone()),
        ];
        for (file, content) in files {
            fs::write(directory.join(file), content).expect("a file");
        }
    }
}
