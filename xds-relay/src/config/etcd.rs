//! A cluster of etcd, and which keys of it are the relay's.

use std::path::{Path, PathBuf};

use super::fields::{ETCD_FIELDS, ETCD_USER_FIELDS};
use super::tls::{self, File};
use super::{OriginTls, ServerAddress, rules};
use crate::yaml::{Error, Node};

/// A cluster of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Etcd {
    /// Its members, which are tried in turn: at least one, all in clear text or none.
    pub endpoints: Vec<ServerAddress>,
    /// What all keys begin with that are used; it ends with `/`.
    pub prefix: String,
    /// How members are spoken to: in clear text, if there is none.
    pub tls: Option<OriginTls>,
    /// Who the relay is to them, where that is by password.
    pub user: Option<EtcdUser>,
}

/// A user of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EtcdUser {
    /// Its name.
    pub name: String,
    /// A file with nothing but its password.
    pub password_file: PathBuf,
}

const EXPECTED: &str = "expected https://HOST:PORT, or HOST:PORT for clear text, such as 10.0.0.1:2379";
const NO_ENDPOINTS: &str = "empty; expected at least one member, such as 10.0.0.1:2379";
const IN_CLEAR_TEXT: &str = "a password goes over TLS only; expected tls, or https://HOST:PORT";

impl Etcd {
    /// A cluster with members at these addresses, by TLS where they are `https://HOST:PORT`.
    ///
    /// ```
    /// use xds_relay::config::Etcd;
    ///
    /// let etcd = Etcd::new(["https://etcd-0:2379".parse()?, "https://etcd-1:2379".parse()?], "mesh/");
    /// assert!(etcd.tls.is_some() && etcd.user.is_none());
    /// # Ok::<(), String>(())
    /// ```
    pub fn new(endpoints: impl IntoIterator<Item = ServerAddress>, prefix: impl Into<String>) -> Self {
        let endpoints: Vec<_> = endpoints.into_iter().collect();
        let tls = endpoints.iter().any(ServerAddress::is_https).then(OriginTls::default);
        Self { endpoints, prefix: prefix.into(), tls, user: None }
    }

    /// By this user, whose password a file has. It is sent over TLS only.
    #[must_use]
    pub fn with_user(self, name: impl Into<String>, password_file: impl Into<PathBuf>) -> Self {
        Self { user: Some(EtcdUser { name: name.into(), password_file: password_file.into() }), ..self }
    }

    /// What is wrong with it, if anything: the field, and in which way.
    pub(super) fn problem(&self) -> Option<(String, String)> {
        if self.endpoints.is_empty() {
            return Some(("endpoints".to_owned(), NO_ENDPOINTS.to_owned()));
        }
        for (index, member) in self.endpoints.iter().enumerate() {
            if let Err(problem) = is_one_more(member, self.endpoints.get(..index).unwrap_or_default()) {
                return Some((format!("endpoints[{index}]"), problem));
            }
        }
        if let Err(problem) = prefix_problem(&self.prefix) {
            return Some(("prefix".to_owned(), problem));
        }
        let is_secret = self.user.is_none() || self.tls.is_some();
        (!is_secret).then(|| ("user".to_owned(), IN_CLEAR_TEXT.to_owned()))
    }
}

/// The prefix is to be said, unless there is one by `default`.
pub(super) fn etcd(node: &Node, default: Option<&str>, file: File<'_>) -> Result<Etcd, Error> {
    node.expect_fields(ETCD_FIELDS)?;
    let endpoints = node.required_field("endpoints", "expected a list of the cluster's members", endpoints)?;
    let prefix = |node: &Node| {
        let prefix = node.text()?;
        prefix_problem(prefix).or_else(|problem| node.refuse(problem))?;
        Ok(prefix.to_owned())
    };
    let prefix = match default {
        Some(default) => node.field("prefix", prefix)?.unwrap_or_else(|| default.to_owned()),
        None => node.required_field("prefix", "expected what its keys begin with, such as mesh/", prefix)?,
    };
    let etcd = Etcd::new(endpoints, prefix);
    let tls = node.field("tls", |node| tls::origin(node, file))?.or_else(|| etcd.tls.clone());
    let user = node.field("user", |node| if tls.is_some() { user(node, file) } else { node.refuse(IN_CLEAR_TEXT) })?;
    Ok(Etcd { tls, user, ..etcd })
}

fn endpoints(list: &Node) -> Result<Vec<ServerAddress>, Error> {
    let mut endpoints = Vec::new();
    list.items(|node| {
        let text = node.text()?;
        let member = rules::server(text).or_else(|_| node.refuse(format!("`{text}`: {EXPECTED}")))?;
        is_one_more(&member, &endpoints).or_else(|problem| node.refuse(problem))?;
        endpoints.push(member);
        Ok(())
    })?;
    if endpoints.is_empty() { list.refuse(NO_ENDPOINTS) } else { Ok(endpoints) }
}

fn user(node: &Node, file: File<'_>) -> Result<EtcdUser, Error> {
    node.expect_fields(ETCD_USER_FIELDS)?;
    let text = |node: &Node| node.text().map(str::to_owned);
    Ok(EtcdUser {
        name: node.required_field("name", "expected the name of a user of etcd", text)?,
        password_file: node.required_field("password_file", "expected a file with the user's password", file)?,
    })
}

/// Whether a member may stand behind these.
fn is_one_more(member: &ServerAddress, before: &[ServerAddress]) -> Result<(), String> {
    match member {
        ServerAddress::Http(_) => {
            rules::is_one_more(member, before).map_err(|problem| problem.replace("servers[", "endpoints["))
        }
        ServerAddress::Unix(_) => Err(format!("`{member}`: {EXPECTED}")),
    }
}

/// A prefix that ends within a word would have the keys of whoever has a longer word.
fn prefix_problem(prefix: &str) -> Result<(), String> {
    let is_good = prefix.ends_with('/') && !prefix.contains(char::is_control);
    is_good
        .then_some(())
        .ok_or_else(|| format!("`{}`: expected a text that ends with /, such as mesh/", prefix.escape_debug()))
}

/// Written as it is read; `path` and `tls` write files.
pub(super) fn written<E>(
    Etcd { endpoints, prefix, tls, user }: &Etcd,
    path: impl Fn(&Path) -> Result<serde_json::Value, E>,
    written_tls: impl Fn(&OriginTls) -> Result<serde_json::Value, E>,
) -> Result<serde_json::Value, E> {
    let endpoints: Vec<_> = endpoints.iter().map(ToString::to_string).collect();
    let mut written = serde_json::Map::new();
    written.insert("endpoints".to_owned(), endpoints.into());
    written.insert("prefix".to_owned(), prefix.as_str().into());
    if let Some(tls) = tls {
        written.insert("tls".to_owned(), written_tls(tls)?);
    }
    if let Some(EtcdUser { name, password_file }) = user {
        let user = serde_json::json!({ "name": name, "password_file": path(password_file)? });
        written.insert("user".to_owned(), user);
    }
    Ok(written.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn read(etcd: &str) -> Result<Etcd, String> {
        let text = format!("origins: [{{ name: a, server: 'a:1' }}]\nstate: {{ path: ., etcd: {etcd} }}");
        let config = Config::parse("relay.yaml", &text).map_err(|error| error.to_string())?;
        Ok(config.state.and_then(|state| state.etcd).unwrap())
    }

    #[test]
    fn a_cluster_is_members_a_prefix_and_who_one_is_there() {
        let etcd = read("{ endpoints: ['a:2379', 'http://b:2379'] }").unwrap();
        assert_eq!(etcd, Etcd::new(["http://a:2379", "http://b:2379"].map(|at| at.parse().unwrap()), "xds-relay/v1/"));
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let user = format!("user: {{ name: me, password_file: {file} }}");
        let etcd = read(&format!("{{ endpoints: ['https://a:1'], prefix: b/, {user} }}")).unwrap();
        assert_eq!(etcd, Etcd::new(["https://a:1".parse().unwrap()], "b/").with_user("me", file));
        let etcd = read(&format!("{{ endpoints: ['a:1'], tls: {{ ca: {file} }}, {user} }}")).unwrap();
        assert_eq!(etcd.tls.and_then(|tls| tls.ca).as_deref(), Some(Path::new(file)));
    }

    #[test]
    fn what_is_wrong_names_its_field() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let in_clear_text = format!("{{ endpoints: ['a:1'], user: {{ name: me, password_file: {file} }} }}");
        for (etcd, words) in [
            ("{}", "state.etcd.endpoints: missing; expected a list"),
            ("{ endpoints: [] }", "state.etcd.endpoints: empty"),
            ("{ endpoints: [a] }", "state.etcd.endpoints[0]: `a`: expected https://HOST:PORT"),
            ("{ endpoints: ['unix:/a'] }", "state.etcd.endpoints[0]: `unix:/a`: expected https://HOST:PORT"),
            ("{ endpoints: ['a:1', 'a:1'] }", "state.etcd.endpoints[1]: `a:1` is endpoints[0] already"),
            ("{ endpoints: ['a:1', 'https://b:1'] }", "state.etcd.endpoints[1]: `b:1`: expected no https://"),
            ("{ endpoints: ['a:1'], prefix: a }", "state.etcd.prefix: `a`: expected a text that ends with /"),
            ("{ endpoints: ['a:1'], prefix: \"a\\0/\" }", "state.etcd.prefix: `a\\0/`: expected"),
            ("{ endpoints: ['a:1'], password: x }", "state.etcd.password: unknown field `password`"),
            ("{ endpoints: ['https://a:1'], user: { name: x } }", "state.etcd.user.password_file: missing"),
            (&in_clear_text, "state.etcd.user: a password goes over TLS only"),
        ] {
            let error = read(etcd).unwrap_err();
            assert!(error.contains(words), "{etcd}: {error}");
        }
    }

    #[test]
    fn an_origin_says_its_prefix_and_is_nothing_else() {
        let read = |origin: &str| {
            let text = format!("origins: [{{ name: a, {origin} }}]");
            Config::parse("relay.yaml", &text).map_err(|error| error.to_string())
        };
        let config = read("etcd: { endpoints: ['a:1'], prefix: x/ }").unwrap();
        assert_eq!(config.origins[0].kind.etcd().map(|(etcd, _)| etcd.prefix.as_str()), Some("x/"));
        for (origin, words) in [
            ("etcd: { endpoints: ['a:1'] }", "origins[0].etcd.prefix: missing; expected what its keys begin with"),
            (
                "etcd: { endpoints: ['a:1'], prefix: '' }",
                "origins[0].etcd.prefix: ``: expected a text that ends with /",
            ),
            ("server: 'a:1', etcd: {}", "origins[0].etcd: an origin is one of a server, files, etcd and kubernetes"),
            ("files: ., etcd: {}", "origins[0].etcd: an origin is one of a server, files, etcd and kubernetes"),
            ("tls: {}, etcd: { endpoints: ['a:1'], prefix: x/ }", "origins[0].tls: expected tls within etcd"),
            (
                "keepalive: 1m, etcd: { endpoints: ['a:1'], prefix: x/ }",
                "origins[0].keepalive: only an origin with a server",
            ),
        ] {
            let error = read(origin).unwrap_err();
            assert!(error.contains(words), "{origin}: {error}");
        }
        let made = Config::new([crate::config::Origin::etcd("a", Etcd::new([], "x/"))]);
        assert_eq!(made.validate().unwrap_err().field, "origins[0].etcd.endpoints");
    }

    #[test]
    fn one_that_a_program_makes_is_held_to_the_same() {
        let of = |at: &[&str], prefix: &str| Etcd::new(at.iter().map(|at| at.parse().unwrap()), prefix);
        let problem = |etcd: Etcd| etcd.problem().map(|(field, _)| field);
        assert_eq!(problem(of(&["a:1"], "a/")), None);
        assert_eq!(problem(of(&["https://a:1"], "a/").with_user("me", "file")), None);
        assert_eq!(problem(of(&[], "a/")).as_deref(), Some("endpoints"));
        assert_eq!(problem(of(&["a:1", "a:1"], "a/")).as_deref(), Some("endpoints[1]"));
        assert_eq!(problem(of(&["a:1"], "a")).as_deref(), Some("prefix"));
        assert_eq!(problem(of(&["a:1"], "a/").with_user("me", "file")).as_deref(), Some("user"));
    }
}
