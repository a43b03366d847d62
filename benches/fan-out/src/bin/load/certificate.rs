//! What a relay by TLS shows, and what clients go by that trust it.

use std::path::PathBuf;
use std::sync::Arc;

use fan_out::Error;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

/// A certificate for the loopback, which vouches for itself. Its files are there as long as this.
pub(crate) struct Certificate {
    made: CertifiedKey<KeyPair>,
    files: PathBuf,
}

impl Default for Certificate {
    fn default() -> Self {
        let made = generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("an address");
        Self { made, files: std::env::temp_dir().join(format!("fan-out-{}-tls", std::process::id())) }
    }
}

impl Certificate {
    /// The lines of a relay's configuration that have it shown.
    pub(crate) fn configuration(&self) -> Result<String, Error> {
        let (certificate, key) = (self.files.with_extension("pem"), self.files.with_extension("key"));
        std::fs::write(&certificate, self.made.cert.pem())?;
        std::fs::write(&key, self.made.signing_key.serialize_pem())?;
        Ok(format!("tls: {{ certificate: {}, key: {} }}\n", certificate.display(), key.display()))
    }

    /// What clients speak with, who remember their sessions or do not.
    pub(crate) fn connector(&self, resumes: bool) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.made.cert.der().clone()).expect("a certificate");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("what ring has");
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        if !resumes {
            config.resumption = Resumption::disabled();
        }
        Arc::new(config).into()
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        for extension in ["pem", "key"] {
            let _ = std::fs::remove_file(self.files.with_extension(extension));
        }
    }
}
