//! Who vouches for whom, in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use rustls::{ClientConfig, DEFAULT_VERSIONS, RootCertStore, SupportedProtocolVersion};
use tempfile::TempDir;
use xds_transport::grpc::tls::{Pem, provider};

/// Somebody who vouches for others.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    /// Of this name, by which those whom it vouches for are told from those of others.
    pub(crate) fn named(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }
}

/// A directory of certificates and keys.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// NAME.pem of an authority.
    pub(crate) fn authority(&self, name: &str, authority: &Authority) {
        fs::write(self.path(&format!("{name}.pem")), &authority.pem).unwrap();
    }

    /// NAME.pem and NAME.key of who is vouched for, by the name of a host or a URI, until the end of a year.
    pub(crate) fn identity(&self, name: &str, by: &Authority, of: &str, until: i32) {
        let mut params = CertificateParams::default();
        params.not_after = rcgen::date_time_ymd(until, 12, 31);
        params.subject_alt_names.push(match of.contains("://") {
            true => SanType::URI(of.try_into().unwrap()),
            false => SanType::DnsName(of.try_into().unwrap()),
        });
        let key = KeyPair::generate().unwrap();
        fs::write(self.path(&format!("{name}.pem")), params.signed_by(&key, &by.issuer).unwrap().pem()).unwrap();
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// A client that trusts CA.pem, and shows NAME.pem.
    pub(crate) fn client(&self, ca: &str, shows: Option<&str>) -> Arc<ClientConfig> {
        self.client_of(DEFAULT_VERSIONS, ca, shows)
    }

    /// The same, which speaks no other versions of TLS.
    pub(crate) fn client_of(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        ca: &str,
        shows: Option<&str>,
    ) -> Arc<ClientConfig> {
        let read = |name: String| Pem::read(Path::new(&self.path(&name))).unwrap();
        let roots: RootCertStore = read(format!("{ca}.pem")).roots().unwrap();
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(versions).unwrap().with_root_certificates(roots);
        let mut config = match shows {
            Some(name) => {
                let (certificate, key) = (read(format!("{name}.pem")), read(format!("{name}.key")));
                builder.with_client_auth_cert(certificate.certificates().unwrap(), key.key().unwrap()).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }
}
