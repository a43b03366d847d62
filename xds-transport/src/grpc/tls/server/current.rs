//! What connections are secured with at present.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use crate::grpc::tls::error::TlsError;
use crate::grpc::tls::server::accepting::Accepting;
use crate::grpc::tls::server::files::{ALPN, Contents, ServerFiles};
use crate::grpc::tls::server::sessions::Withheld;
use crate::grpc::tls::validity::Validity;

/// How often files are looked at: whoever replaces them seldom waits for it.
const LOOK: Duration = Duration::from_secs(1);

/// A server's TLS: see [the module](crate::grpc::tls). Clones share it.
#[derive(Clone)]
pub struct ServerTls(Arc<From>);

enum From {
    Config(Arc<ServerConfig>),
    Files(Mutex<Current>),
}

/// Files, what was in them, and what was made of it: sessions are resumed for as long as it is the same, where clients are asked for
/// no certificates.
#[derive(Clone)]
struct Current {
    files: Arc<ServerFiles>,
    contents: Arc<Contents>,
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads files, which are from then on [looked at](Self::look) by whoever [follows](Self::follow) them;
    /// [`incoming`](Self::incoming) does.
    ///
    /// # Errors
    /// Which is not good, and why. Certificates that have expired are: [`validity`](Self::validity) tells.
    pub fn load(files: ServerFiles) -> Result<Self, TlsError> {
        let contents = files.read()?;
        let config = Arc::new(files.config(&contents)?);
        let current = Current { files: Arc::new(files), contents: Arc::new(contents), config };
        Ok(Self(Arc::new(From::Files(Mutex::new(current)))))
    }

    /// TLS with a configuration of one's own: a verifier, a source of certificates, a provider. If it says nothing of ALPN, that
    /// is HTTP/2.
    ///
    /// rustls does not verify a client again that resumes a session. So [`accept`](Self::accept) keeps sessions only of those that
    /// showed no certificate. A `ticketer` goes past that: with one, how long a certificate counts that is no longer good is for
    /// whoever gave it to say, as it is for who makes handshakes with [`config`](Self::config) himself.
    #[must_use]
    pub fn from_config(mut config: ServerConfig) -> Self {
        if config.alpn_protocols.is_empty() {
            config.alpn_protocols = vec![ALPN.to_vec()];
        }
        Self(Arc::new(From::Config(Arc::new(config))))
    }

    /// What the next handshake is made with.
    pub fn config(&self) -> Arc<ServerConfig> {
        match &*self.0 {
            From::Config(config) => config.clone(),
            From::Files(current) => lock(current).config.clone(),
        }
    }

    /// Begins to speak TLS on a connection. That it ends is for the caller to see to; [`incoming`](Self::incoming) does.
    pub fn accept<I: AsyncRead + AsyncWrite + Unpin>(&self, io: I) -> Accepting<I> {
        let (config, withheld) = match &*self.0 {
            From::Config(config) => {
                let (config, withheld) = Withheld::of_one(config);
                (config, Some(withheld))
            }
            From::Files(current) => (lock(current).config.clone(), None),
        };
        Accepting::new(TlsAcceptor::from(config).accept(io), withheld)
    }

    /// The file of the server's certificate: none, if it is one of a configuration.
    pub fn certificate(&self) -> Option<PathBuf> {
        match &*self.0 {
            From::Config(_) => None,
            From::Files(current) => Some(lock(current).contents.certificate().file().to_owned()),
        }
    }

    /// Between which times the certificates in use are good, the server's and of who may vouch for its clients, as files were read
    /// last: those of a configuration are not looked at.
    pub fn validity(&self) -> Vec<Validity> {
        let From::Files(current) = &*self.0 else { return Vec::new() };
        let contents = lock(current).contents.clone();
        contents.validity()
    }

    /// Reads the files again, and has them count from now on: whether there was anything new. It waits for a disk.
    ///
    /// # Errors
    /// Which file is not good, and why. What counted before still does. A certificate that has expired, or is not good yet, is not
    /// good in place of one that is.
    pub fn look(&self) -> Result<bool, TlsError> {
        let From::Files(current) = &*self.0 else { return Ok(false) };
        let (files, before) = {
            let current = lock(current);
            (current.files.clone(), current.contents.clone())
        };
        let contents = files.read()?;
        if contents == *before {
            return Ok(false);
        }
        let config = Arc::new(files.config(&contents)?);
        // What is out of date is shown to nobody for as long as there is better.
        contents.certificate().check_date().or_else(|late| match before.certificate().check_date() {
            Ok(()) => Err(late),
            Err(_) => Ok(()),
        })?;
        let mut current = lock(current);
        // Unless there are others meanwhile.
        let counts = Arc::ptr_eq(&current.contents, &before);
        if counts {
            *current = Current { files, contents: Arc::new(contents), config };
        }
        Ok(counts)
    }

    /// Has other files, as they were read, count in place of these: who comes from now on is spoken to with them. Whether it was
    /// so: one that is made of a configuration stays what it is.
    pub fn replace(&self, others: &Self) -> bool {
        let (From::Files(current), From::Files(others)) = (&*self.0, &*others.0) else { return false };
        // The two may be one.
        let new = lock(others).clone();
        *lock(current) = new;
        true
    }

    /// Looks at the files once a second, for as long as it is awaited. It is told when others count from now on, and what is wrong
    /// with those that do not: once, until that changes.
    pub async fn follow(&self, mut told: impl FnMut(Result<(), TlsError>)) {
        if matches!(*self.0, From::Config(_)) {
            return std::future::pending().await;
        }
        let mut said: Option<String> = None;
        loop {
            sleep(LOOK).await;
            let this = self.clone();
            // A disk may not answer. One that is looked at no more is over when it does.
            let Ok(looked) = tokio::task::spawn_blocking(move || this.look()).await else { continue };
            let words = looked.as_ref().err().map(ToString::to_string);
            match looked {
                Ok(true) => told(Ok(())),
                Err(error) if words != said => told(Err(error)),
                _ => {}
            }
            said = words;
        }
    }
}

fn lock(current: &Mutex<Current>) -> MutexGuard<'_, Current> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            From::Config(_) => f.write_str("ServerTls(a configuration)"),
            From::Files(current) => f.debug_tuple("ServerTls").field(&lock(current).files).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::grpc::tls::provider;

    fn identity(directory: &Path) -> [String; 2] {
        let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
        let texts = [made.cert.pem(), made.signing_key.serialize_pem()];
        for (name, text) in ["a.pem", "a.key"].iter().zip(&texts) {
            fs::write(directory.join(name), text).unwrap();
        }
        texts
    }

    fn load(directory: &Path) -> ServerTls {
        ServerTls::load(ServerFiles::new(directory.join("a.pem"), directory.join("a.key"))).unwrap()
    }

    #[test]
    fn what_is_not_good_does_not_replace_what_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name| directory.path().join(name);
        let first = identity(directory.path());
        let tls = load(directory.path());
        let before = tls.config();
        assert!(!tls.look().unwrap(), "nothing is new");

        let second = identity(directory.path());
        fs::write(path("a.key"), &first[1]).unwrap();
        let error = tls.look().unwrap_err().to_string();
        assert!(error.contains("a.pem with the key "), "{error}");
        fs::write(path("a.pem"), "torn").unwrap();
        tls.look().unwrap_err();
        fs::remove_file(path("a.pem")).unwrap();
        tls.look().unwrap_err();
        assert!(Arc::ptr_eq(&tls.config(), &before));

        fs::write(path("a.pem"), &second[0]).unwrap();
        fs::write(path("a.key"), &second[1]).unwrap();
        assert!(tls.look().unwrap());
        assert!(!Arc::ptr_eq(&tls.config(), &before));
    }

    #[test]
    fn what_is_out_of_date_does_not_replace_what_is_good_and_otherwise_does() {
        let directory = tempfile::tempdir().unwrap();
        let renew = |from: i32, until: i32| {
            let key = rcgen::KeyPair::generate().unwrap();
            let mut params = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
            (params.not_before, params.not_after) =
                (rcgen::date_time_ymd(from, 1, 1), rcgen::date_time_ymd(until, 1, 1));
            fs::write(directory.path().join("a.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
            fs::write(directory.path().join("a.key"), key.serialize_pem()).unwrap();
        };
        renew(2001, 2002);
        let tls = load(directory.path());
        renew(2001, 2003);
        assert!(tls.look().unwrap(), "neither is good");
        renew(2001, 4000);
        assert!(tls.look().unwrap());
        let good = tls.config();
        for ((from, until), words) in [
            ((2001, 2002), "has expired"),
            ((3999, 4000), "is not good yet"),
            ((4000, 2001), "is never good: it expires before it begins to be"),
        ] {
            renew(from, until);
            let error = tls.look().unwrap_err().to_string();
            assert!(error.ends_with(&format!("a.pem: the certificate {words}")), "{error}");
            assert_eq!(tls.look().unwrap_err().to_string(), error, "which is said once");
        }
        assert!(Arc::ptr_eq(&tls.config(), &good));
        renew(2001, 3999);
        assert!(tls.look().unwrap());
    }

    #[test]
    fn other_files_count_from_then_on_and_it_is_they_that_are_looked_at() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        for directory in [&one, &other] {
            identity(directory.path());
        }
        let (tls, others) = (load(one.path()), load(other.path()));
        assert!(tls.replace(&others) && tls.replace(&tls.clone()));
        assert!(Arc::ptr_eq(&tls.config(), &others.config()));
        assert_eq!(tls.certificate(), Some(other.path().join("a.pem")));
        identity(one.path());
        assert!(!tls.look().unwrap());
        identity(other.path());
        assert!(tls.look().unwrap());
    }

    #[test]
    fn a_configuration_stays_what_it_is_and_speaks_http2() {
        let directory = tempfile::tempdir().unwrap();
        identity(directory.path());
        let files = load(directory.path());
        let made = |alpn: &[&str]| {
            let builder = ServerConfig::builder_with_provider(provider());
            let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
            let mut config = builder.with_cert_resolver(Arc::new(rustls::server::ResolvesServerCertUsingSni::new()));
            config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
            ServerTls::from_config(config)
        };
        let tls = made(&[]);
        assert_eq!(tls.config().alpn_protocols, [b"h2"]);
        assert_eq!(made(&["http/1.1"]).config().alpn_protocols, [b"http/1.1"]);
        assert!(!tls.replace(&files) && !files.replace(&tls) && !tls.look().unwrap());
        assert_eq!(tls.certificate(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_wrong_is_said_once_until_it_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.pem");
        identity(directory.path());
        let tls = load(directory.path());
        let good = fs::read(&path).unwrap();
        let told = std::cell::Cell::new(0);
        let mut following =
            std::pin::pin!(tls.follow(|looked| told.update(|told| told + usize::from(looked.is_err()))));
        // What is done to the file is done between two looks.
        tokio::time::timeout(LOOK / 2, &mut following).await.unwrap_err();
        let torn = &b"torn"[..];
        let found = [
            (Some(torn), 1),
            (Some(torn), 1),
            (None, 2),
            (None, 2),
            (Some(&good), 2),
            (Some(torn), 3),
            (Some(torn), 3),
        ];
        for (at, (file, words)) in found.into_iter().enumerate() {
            match file {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => drop(fs::remove_file(&path)),
            }
            tokio::time::timeout(LOOK, &mut following).await.unwrap_err();
            assert_eq!(told.get(), words, "at look {at}");
        }
    }
}
