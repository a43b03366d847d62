//! Certificates for the book's programs.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, Error, IsCa, Issuer, KeyPair, SanType};

/// Who vouches for others.
#[derive(Debug)]
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new one.
    ///
    /// # Panics
    /// There is no randomness to be had.
    pub fn new() -> Self {
        made().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Writes who it is, and the certificate and key of somebody, by the name of a host or a URI.
    ///
    /// # Panics
    /// It is no name, or the directory cannot be written to.
    pub fn writes(&self, directory: &Path, authority: &str, whose: &str, name: &str) {
        let (certificate, key) = self.vouched(name).unwrap_or_else(|error| panic!("{error}"));
        let files = [
            (format!("{authority}.pem"), &self.certificate),
            (format!("{whose}.pem"), &certificate),
            (format!("{whose}.key"), &key),
        ];
        for (file, text) in files {
            fs::write(directory.join(file), text).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    fn vouched(&self, name: &str) -> Result<(String, String), Error> {
        let mut params = CertificateParams::default();
        params.subject_alt_names.push(match name.contains("://") {
            true => SanType::URI(name.try_into()?),
            false => SanType::DnsName(name.try_into()?),
        });
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &self.issuer)?.pem(), key.serialize_pem()))
    }
}

fn made() -> Result<Authority, Error> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?.pem();
    Ok(Authority { certificate, issuer: Issuer::new(params, key) })
}
