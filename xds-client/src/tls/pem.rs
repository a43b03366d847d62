//! Certificates and keys in files, as PEM.

use std::fs;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// What is in a file. It may be a key, and is not shown.
#[derive(PartialEq, Eq)]
pub struct Pem {
    file: PathBuf,
    bytes: Vec<u8>,
}

impl Pem {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(file: &Path) -> Result<Self, TlsError> {
        match fs::read(file) {
            Ok(bytes) => Ok(Self { file: file.to_owned(), bytes }),
            Err(reason) => Err(TlsError::Unreadable { file: file.to_owned(), reason }),
        }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The certificates, in their order.
    ///
    /// # Errors
    /// There is none, or something else.
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let certificates: Vec<_> =
            CertificateDer::pem_slice_iter(&self.bytes).collect::<Result<_, _>>().map_err(|error| self.bad(error))?;
        if certificates.is_empty() {
            return Err(self.bad("there is no certificate in it; expected PEM"));
        }
        Ok(certificates)
    }

    /// The first private key.
    ///
    /// # Errors
    /// There is none, or something else.
    pub fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        use rustls::pki_types::pem::Error;
        PrivateKeyDer::from_pem_slice(&self.bytes).map_err(|error| match error {
            Error::NoItemsFound => self.bad("there is no private key in it; expected PEM"),
            error => self.bad(error),
        })
    }

    /// Certificates of those who may vouch for others.
    ///
    /// # Errors
    /// There is none, or one that cannot be used.
    pub fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for (index, certificate) in self.certificates()?.into_iter().enumerate() {
            roots.add(certificate).map_err(|error| self.bad(format!("certificate {}: {error}", index + 1)))?;
        }
        Ok(roots)
    }

    fn bad(&self, reason: impl ToString) -> TlsError {
        TlsError::bad(&self.file, reason)
    }
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pem").field("file", &self.file).finish_non_exhaustive()
    }
}
