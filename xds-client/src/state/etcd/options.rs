//! Where a cluster is, and who we are to it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::endpoint::{Endpoint, EndpointError};
#[cfg(feature = "rustls-any")]
use crate::tls::Tls;

/// How often a member is pinged that has something to answer: as often as etcd bears it, and half of that.
const KEEPALIVE: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(3600);
const DEADLINE: Duration = Duration::from_secs(5);

/// Where a cluster of etcd is, which keys of it are used, and who we are to it.
///
/// ```
/// use std::time::Duration;
/// use xdstp_client::state::EtcdOptions;
///
/// let options = EtcdOptions::new(["http://10.0.0.1:2379", "http://10.0.0.2:2379"], "xds-relay/v1/")?;
/// assert_eq!(options.with_deadline(Duration::from_secs(2)).prefix(), "xds-relay/v1/");
/// // Nothing of it is anybody else's.
/// assert!(EtcdOptions::new(["http://10.0.0.1:2379"], "").is_err());
/// # Ok::<(), xdstp_client::state::EtcdOptionsError>(())
/// ```
#[derive(Clone)]
pub struct EtcdOptions {
    pub(super) members: Vec<Endpoint>,
    pub(super) prefix: String,
    pub(super) user: Option<User>,
    pub(super) deadline: Duration,
}

/// Who we are, where that is by password.
#[derive(Clone)]
pub(super) struct User {
    pub(super) name: String,
    /// It is asked for each time that we say who we are.
    pub(super) password: Arc<dyn Fn() -> Result<String, String> + Send + Sync>,
}

/// Such a cluster is none that could be spoken to.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdOptionsError {
    /// No member has an address.
    #[error("no endpoint of etcd is given")]
    NoEndpoint,
    /// All keys of the cluster would be this store's.
    #[error("the prefix of keys in etcd is empty")]
    NoPrefix,
    /// A password would be sent in clear text, to whoever listens.
    #[error("{uri:?}: a password goes to etcd over TLS only; expected https://HOST:PORT")]
    PasswordInClearText {
        /// The address of the member.
        uri: String,
    },
    /// An address of a member is none.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl EtcdOptions {
    /// A cluster whose members are at these addresses, `http://host:port`, or `https` for TLS by whom the system trusts; they are
    /// tried in turn. All keys that are used begin with `prefix`, and of these all may be.
    ///
    /// # Errors
    /// There is no address, one is none, or the prefix is empty.
    pub fn new(
        endpoints: impl IntoIterator<Item = impl AsRef<str>>,
        prefix: impl Into<String>,
    ) -> Result<Self, EtcdOptionsError> {
        let member = |uri: &str| {
            let mut endpoint = Endpoint::new(uri)?.with_keepalive(KEEPALIVE);
            // Who has nothing to answer hangs up on who pings.
            endpoint.transport = endpoint.transport.keep_alive_while_idle(false).keep_alive_timeout(KEEPALIVE_TIMEOUT);
            Ok::<_, EndpointError>(endpoint)
        };
        let members = endpoints.into_iter().map(|uri| member(uri.as_ref())).collect::<Result<Vec<_>, _>>()?;
        if members.is_empty() {
            return Err(EtcdOptionsError::NoEndpoint);
        }
        let prefix = prefix.into();
        if prefix.is_empty() {
            return Err(EtcdOptionsError::NoPrefix);
        }
        Ok(Self { members, prefix, user: None, deadline: DEADLINE })
    }

    /// Members are spoken to by TLS with it, whatever the scheme of their addresses was.
    #[cfg(feature = "rustls-any")]
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.members = self.members.into_iter().map(|member| member.with_tls(tls.clone())).collect();
        self
    }

    /// We are this user of etcd. A certificate that is shown with [TLS](Self::with_tls) needs no password.
    ///
    /// # Errors
    /// A member is spoken to in clear text: TLS is to be [said](Self::with_tls) before.
    pub fn with_user(self, name: impl Into<String>, password: impl Into<String>) -> Result<Self, EtcdOptionsError> {
        let password = password.into();
        self.with_user_of(name, move || Ok(password.clone()))
    }

    /// The same with a password that may be another each time that we say who we are, which is with each connection: read from a file, say.
    /// Why it is not there is in words; it is asked for again then.
    ///
    /// # Errors
    /// As [`with_user`](Self::with_user).
    pub fn with_user_of(
        mut self,
        name: impl Into<String>,
        password: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) -> Result<Self, EtcdOptionsError> {
        if let Some(member) = self.members.iter().find(|member| !is_secure(member)) {
            return Err(EtcdOptionsError::PasswordInClearText { uri: member.uri() });
        }
        self.user = Some(User { name: name.into(), password: Arc::new(password) });
        Ok(self)
    }

    /// What is asked is answered within this time, or fails: 5 seconds otherwise, and an hour at most. A listing may
    /// come in many answers, each of which has as long.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline: deadline.min(LONGEST), ..self }
    }

    /// What all keys in etcd begin with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { members, prefix, user, deadline } = self;
        let members: Vec<_> = members.iter().map(Endpoint::uri).collect();
        let user = user.as_ref().map(|user| &user.name);
        f.debug_struct("EtcdOptions")
            .field("members", &members)
            .field("prefix", prefix)
            .field("user", &user)
            .field("deadline", deadline)
            .finish()
    }
}

#[cfg(feature = "rustls-any")]
fn is_secure(member: &Endpoint) -> bool {
    member.tls.is_some()
}

#[cfg(not(feature = "rustls-any"))]
fn is_secure(_: &Endpoint) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_for_tls_and_for_no_log() {
        let options = EtcdOptions::new(["http://127.0.0.1:2379"], "a/").unwrap();
        let refused = options.clone().with_user("me", "secret").unwrap_err();
        assert!(refused.to_string().starts_with("\"http://127.0.0.1:2379/\": a password"), "{refused}");
        #[cfg(feature = "rustls-any")]
        {
            let known = options.with_tls(Tls::default()).with_user("me", "secret").unwrap();
            let said = format!("{known:?}");
            assert!(said.contains("me") && !said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        assert!(matches!(EtcdOptions::new([""; 0], "a/"), Err(EtcdOptionsError::NoEndpoint)));
        assert!(matches!(EtcdOptions::new(["ftp://a:1"], "a/"), Err(EtcdOptionsError::Endpoint(_))));
    }
}
