//! Certificates and keys in files, as PEM.

use std::fmt;
use std::fs::{self, File, FileType};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ParsedCertificate;

use crate::grpc::tls::error::TlsError;
use crate::grpc::tls::validity::{NEVER_GOOD, Role, Stage, Validity};

/// The largest file that is read, in bytes: all that systems trust are less than 300 KB.
const MAX_BYTES: u64 = 4 << 20;

/// What is in a file. It may be a key, and is not shown.
///
/// ```
/// use xds_transport::grpc::tls::Pem;
///
/// let error = Pem::read("no/such.pem".as_ref()).unwrap_err();
/// assert!(error.to_string().starts_with("no/such.pem: "));
/// ```
#[derive(PartialEq, Eq)]
pub struct Pem {
    file: PathBuf,
    bytes: Vec<u8>,
}

impl Pem {
    /// Reads a file of at most 4 MiB.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(file: &Path) -> Result<Self, TlsError> {
        match read(file) {
            Ok(bytes) => Ok(Self { file: file.to_owned(), bytes }),
            Err(reason) => Err(TlsError::Unreadable { file: file.to_owned(), reason: reason.into() }),
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

    /// Between which times the certificates in it are good: those of the first version of X.509, which do not say what they are for, are
    /// left out.
    ///
    /// # Errors
    /// There is none, or something else.
    pub fn validity(&self, role: Role) -> Result<Vec<Validity>, TlsError> {
        let certificates = self.certificates()?;
        let dated = certificates.iter().zip(1..);
        Ok(dated.filter_map(|(der, position)| Validity::of(der, &self.file, position, role)).collect())
    }

    /// Whether the first certificate is good at present, of which nobody is told before he shows it: it has expired, or is not
    /// valid yet.
    ///
    /// # Errors
    /// It is not, or is none.
    pub fn check_date(&self) -> Result<(), TlsError> {
        let own = self.certificates()?.into_iter().next();
        let Some(own) = own else { return Ok(()) };
        ParsedCertificate::try_from(&own).map_err(|error| self.bad(error))?;
        let dated = Validity::of(&own, &self.file, 1, Role::Shown);
        if dated.as_ref().is_some_and(Validity::is_never) {
            return Err(self.bad(format!("the certificate {NEVER_GOOD}")));
        }
        match dated.map(|own| own.stage(SystemTime::now())) {
            Some(Stage::Expired) => Err(self.bad("the certificate has expired")),
            Some(Stage::NotYet) => Err(self.bad("the certificate is not good yet")),
            _ => Ok(()),
        }
    }

    fn bad(&self, reason: impl ToString) -> TlsError {
        TlsError::bad(&self.file, reason)
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pem").field("file", &self.file).finish_non_exhaustive()
    }
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    // To open a FIFO is to wait for who writes it, and a device may have no end.
    let kind = fs::metadata(file)?.file_type();
    if !kind.is_file() {
        return Err(io::Error::other(format!("{}, not a file", name(kind))));
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other(format!("larger than {MAX_BYTES} bytes"))),
        false => Ok(bytes),
    }
}

fn name(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        if kind.is_fifo() {
            return "a FIFO";
        }
    }
    if kind.is_dir() { "a directory" } else { "a device" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_or_too_large_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let said = |path: &Path| Pem::read(path).unwrap_err().to_string();
        assert!(said(directory.path()).ends_with(": a directory, not a file"));
        let path = directory.path().join("large.pem");
        File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert!(said(&path).ends_with("large.pem: larger than 4194304 bytes"));
        File::create(&path).unwrap().set_len(MAX_BYTES).unwrap();
        assert!(Pem::read(&path).is_ok());
    }

    #[test]
    fn a_key_is_not_shown() {
        let pem = Pem { file: "a.key".into(), bytes: b"secret".to_vec() };
        assert_eq!(format!("{pem:?}"), r#"Pem { file: "a.key", .. }"#);
    }

    #[test]
    fn a_certificate_is_good_between_its_dates() {
        let key = rcgen::KeyPair::generate().unwrap();
        let checked = |from: i32, until: i32| {
            let mut params = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
            (params.not_before, params.not_after) =
                (rcgen::date_time_ymd(from, 1, 1), rcgen::date_time_ymd(until, 1, 1));
            let bytes = params.self_signed(&key).unwrap().pem().into_bytes();
            Pem { file: "a.pem".into(), bytes }.check_date().map_err(|error| error.to_string())
        };
        assert_eq!(checked(2001, 4000), Ok(()));
        for (from, until, words) in [
            (2001, 2002, "a.pem: the certificate has expired"),
            (3999, 4000, "a.pem: the certificate is not good yet"),
            (4000, 2001, "a.pem: the certificate is never good: it expires before it begins to be"),
        ] {
            assert_eq!(checked(from, until), Err(words.to_owned()));
        }
    }
}
