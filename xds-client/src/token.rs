//! The bearer token that calls carry, from a file (gRFC A97).
//!
//! The file is read whenever a stream is opened, so that one that was replaced counts from the next stream on. It has a JWT, whose
//! signature is the origin's business: only the time that it says is looked at.
//!
//! ```
//! use xdstp_client::Endpoint;
//! use xdstp_client::token::TokenFile;
//!
//! let token = TokenFile::new("no/such/token");
//! assert!(token.check().unwrap_err().to_string().starts_with("no/such/token: "));
//! let endpoint = Endpoint::new("https://control-plane.example.com:443")?.with_token(token.clone())?;
//! assert!(Endpoint::new("127.0.0.1:18000")?.with_token(token).is_err(), "in clear text");
//! # Ok::<(), xdstp_client::EndpointError>(())
//! ```

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use thiserror::Error;
use tonic::metadata::{Ascii, MetadataValue};

/// What expires so soon is taken for expired: it is to be good when it arrives.
const EARLY: Duration = Duration::from_secs(30);
/// For how long a file that was not good is not read again.
const PAUSE: Duration = Duration::from_secs(1);
/// The largest file that is read: what is larger is no header.
const MOST: u64 = 64 << 10;

const PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64URL: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::URL_SAFE, PADDING);

/// A file with a token: see [the module](self). Clones share what was read.
#[derive(Clone)]
pub struct TokenFile {
    file: PathBuf,
    read: Arc<Mutex<Last>>,
}

/// What was read last. Of what is not good it is kept until when that counts.
#[derive(Default)]
struct Last {
    good: Option<Token>,
    bad: Option<(SystemTime, TokenError)>,
}

#[derive(Clone)]
struct Token {
    header: MetadataValue<Ascii>,
    expires: SystemTime,
}

/// There is no token.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read.
    #[error("{}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// What is in it is no token that says until when it is good.
    #[error("{}: {reason}", file.display())]
    Bad {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It is not good any more, or not for long.
    #[error("{}: the token has expired, or is about to", file.display())]
    Expired {
        /// The file.
        file: PathBuf,
    },
}

impl TokenFile {
    /// The token in `file`.
    #[must_use]
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), read: Arc::default() }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Reads the file, to know whether it is good.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self) -> Result<(), TokenError> {
        self.fresh(SystemTime::now()).map(drop)
    }

    /// What calls carry that are made now: reads the file. One that is not good, as while it is written, is done without as
    /// long as the one before is.
    pub(crate) fn header(&self, now: SystemTime) -> Result<MetadataValue<Ascii>, TokenError> {
        let Last { good, bad } = &mut *self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if !bad.as_ref().is_some_and(|(until, _)| (*until - PAUSE..*until).contains(&now)) {
            match self.fresh(now) {
                Ok(token) => (*good, *bad) = (Some(token), None),
                Err(error) => *bad = Some((now + PAUSE, error)),
            }
        }
        match (&*good, &*bad) {
            (Some(token), _) if token.is_good(now) => Ok(token.header.clone()),
            (_, Some((_, error))) => Err(error.clone()),
            _ => Err(TokenError::Expired { file: self.file.clone() }),
        }
    }

    fn fresh(&self, now: SystemTime) -> Result<Token, TokenError> {
        let mut text = String::new();
        let read = File::open(&self.file).and_then(|file| file.take(MOST + 1).read_to_string(&mut text));
        read.map_err(|source| TokenError::Unreadable { file: self.file.clone(), source: Arc::new(source) })?;
        let bad = |reason| TokenError::Bad { file: self.file.clone(), reason };
        if text.len() as u64 > MOST {
            return Err(bad("it is too large for a token"));
        }
        let token = Token::of(text.trim()).map_err(bad)?;
        if token.is_good(now) { Ok(token) } else { Err(TokenError::Expired { file: self.file.clone() }) }
    }
}

impl Token {
    /// RFC 7519: three parts, the second of which is JSON.
    fn of(text: &str) -> Result<Self, &'static str> {
        const NO_JWT: &str = "there is no JWT in it; expected HEADER.CLAIMS.SIGNATURE";
        let mut parts = text.split('.');
        let (Some(_), Some(claims), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(NO_JWT);
        };
        let claims = BASE64URL.decode(claims).map_err(|_| NO_JWT)?;
        let claims: serde_json::Value = serde_json::from_slice(&claims).map_err(|_| NO_JWT)?;
        let expires = claims.get("exp").and_then(serde_json::Value::as_f64).filter(|seconds| *seconds >= 0.0);
        let expires = expires.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let expires = expires.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        let expires = expires.ok_or("its token does not say until when it is good (exp)")?;
        let mut header: MetadataValue<Ascii> = format!("Bearer {text}").parse().map_err(|_| NO_JWT)?;
        // It is in no log, and in no table of HPACK.
        header.set_sensitive(true);
        Ok(Self { header, expires })
    }

    fn is_good(&self, now: SystemTime) -> bool {
        now + EARLY < self.expires
    }
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile").field("file", &self.file).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn jwt(claims: &str) -> String {
        format!("e30.{}.c2ln", BASE64URL.encode(claims))
    }

    fn header(file: &TokenFile, seconds: u64) -> Result<String, String> {
        let header = file.header(at(seconds)).map_err(|error| error.to_string())?;
        assert!(header.is_sensitive());
        Ok(header.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_token_is_read_anew_and_the_one_before_counts_while_that_is_not_good() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let file = TokenFile::new(&path);
        assert!(header(&file, 1000).unwrap_err().starts_with(&format!("{}: ", path.display())));
        let (first, second) = (jwt(r#"{"exp":2000}"#), jwt(r#"{"exp":3000.5}"#));
        fs::write(&path, format!("{first}\n")).unwrap();
        assert!(header(&file, 1000).is_err(), "it was looked at a moment ago");
        assert_eq!(header(&file, 1001).unwrap(), format!("Bearer {first}"));
        assert_eq!(header(&file, 1969).unwrap(), format!("Bearer {first}"));
        fs::write(&path, "torn").unwrap();
        assert_eq!(header(&file, 1969).unwrap(), format!("Bearer {first}"));
        assert!(header(&file, 1970).unwrap_err().contains("no JWT"), "it is as good as expired");
        fs::write(&path, &second).unwrap();
        assert_eq!(header(&file, 1980).unwrap(), format!("Bearer {second}"));
        // The clock was set back.
        assert_eq!(header(&file, 1000).unwrap(), format!("Bearer {second}"));
        assert!(header(&file, 2971).unwrap_err().contains("expired"));
        assert!(!format!("{file:?}").contains("Bearer"));
    }

    #[test]
    fn what_is_no_token_is_said_to_be_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let file = TokenFile::new(&path);
        for (text, words) in [
            ("", "no JWT"),
            ("a.b", "no JWT"),
            ("a.!.c", "no JWT"),
            (&jwt("no JSON"), "no JWT"),
            (&format!("{}.d", jwt("{}")), "no JWT"),
            (&jwt("{}"), "(exp)"),
            (&jwt(r#"{"exp":"1"}"#), "(exp)"),
            (&jwt(r#"{"exp":-1}"#), "(exp)"),
            (&jwt(r#"{"exp":1e300}"#), "(exp)"),
            (&jwt(r#"{"exp":1}"#), "expired"),
            (&"a".repeat(MOST as usize + 1), "too large"),
        ] {
            fs::write(&path, text).unwrap();
            let error = file.check().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        fs::write(&path, [0xff]).unwrap();
        assert!(matches!(file.check(), Err(TokenError::Unreadable { .. })));
        fs::write(&path, jwt(r#"{"exp":99999999999}"#).replace('=', "")).unwrap();
        file.check().unwrap();
    }
}
