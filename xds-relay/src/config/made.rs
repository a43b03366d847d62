//! A configuration that a program makes.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;

use xds_transport::{Dialect, Protocol};

use super::own_address::OwnAddresses;
use super::{
    Config, DEFAULT_ADMIN, DEFAULT_DRAIN, DEFAULT_DRAIN_DELAY, DEFAULT_KEEPALIVE, DEFAULT_LINGER, DEFAULT_LISTEN,
    DEFAULT_STREAMS_PER_CONNECTION, Etcd, FileReading, KnownIn, Kubernetes, Limits, ListenTls, LogFilter, Methods,
    Node, Origin, OriginKind, OriginTls, ReadyWhen, ServerAddress, Unknown, XdstpStreams,
};
use super::{clients, rollout, rules};

/// Why a configuration that a program made cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
#[non_exhaustive]
pub struct InvalidConfig {
    /// Such as `origins[1].name`, as a file calls it.
    pub field: String,
    /// What is wrong and what was expected.
    pub problem: String,
}

impl Config {
    /// What a file would be that lists these origins and nothing else: the first of them is the default one.
    ///
    /// ```
    /// use xds_relay::Config;
    /// use xds_relay::config::Origin;
    ///
    /// let origin = Origin::server("control-plane", "http://127.0.0.1:18010".parse()?).with_authorities(["example.com"]);
    /// let mut config = Config::new([origin]);
    /// config.admin = None;
    /// config.validate()?;
    /// let text = "{ admin: none, origins: [{ name: control-plane, server: 127.0.0.1:18010, authorities: [example.com] }] }";
    /// assert_eq!(config, Config::parse("relay.yaml", text)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(origins: impl IntoIterator<Item = Origin>) -> Self {
        let origins: Vec<Origin> = origins.into_iter().collect();
        Self {
            listen: DEFAULT_LISTEN,
            tls: None,
            clients: None,
            admin: Some(DEFAULT_ADMIN),
            admin_tls: None,
            admin_token: None,
            admin_write_token: None,
            admin_hosts: vec!["localhost".to_owned()],
            client_status: false,
            node: Node::default(),
            default_origin: origins.first().map(|origin| origin.name.clone()).unwrap_or_default(),
            origins,
            share_by: None,
            aggregation: None,
            state: None,
            rollout: Vec::new(),
            orders: None,
            ready_when: ReadyWhen::default(),
            dynamic_parameters: Dialect::default(),
            node_parameters: BTreeMap::new(),
            unknown: Unknown::default(),
            linger: DEFAULT_LINGER,
            drain_delay: DEFAULT_DRAIN_DELAY,
            drain: DEFAULT_DRAIN,
            limits: Limits::default(),
            drift: None,
            statsd: None,
            traces: None,
            log: LogFilter::default(),
        }
    }

    /// Whether it can be run, as far as that can be said without a look at files: one that was read can.
    ///
    /// # Errors
    /// What is wrong first, and where.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        if let Some(admin) = &self.admin {
            rules::admin(admin, &self.listen).map_err(at("admin"))?;
        }
        let tokens = (self.admin_token.as_deref(), self.admin_write_token.as_deref());
        rules::admin_reach(self.admin.as_ref(), self.admin_tls.as_ref(), tokens.0, tokens.1).map_err(at("admin"))?;
        if self.clients.as_ref().is_some_and(Vec::is_empty) {
            return Err(at("clients")(clients::NO_RULES.to_owned()));
        }
        if let Some(index) = self.clients.iter().flatten().position(|rule| rule.matches.is_empty()) {
            return Err(at(format!("clients[{index}].match"))("empty; expected any of its fields".to_owned()));
        }
        if self.origins.is_empty() {
            return Err(at("origins")("empty; expected at least one origin".to_owned()));
        }
        let own = OwnAddresses { listen: self.listen.clone(), admin: self.admin.clone() };
        let (mut names, mut owners) = (BTreeMap::new(), BTreeMap::new());
        for (index, origin) in self.origins.iter().enumerate() {
            let field = |name: &str| format!("origins[{index}].{name}");
            rules::name(&origin.name).map_err(at(field("name")))?;
            if let Some(other) = names.insert(&origin.name, index) {
                return Err(at(field("name"))(rules::is_taken(&origin.name, other)));
            }
            for (index, authority) in origin.authorities.iter().enumerate() {
                let field = field(&format!("authorities[{index}]"));
                rules::authority(authority).map_err(at(&field))?;
                if let Some(owner) = owners.insert(authority, &origin.name) {
                    return Err(at(field)(rules::is_listed(authority, owner)));
                }
            }
            if let Some(servers) = origin.kind.servers() {
                check_servers(servers, &own, &field)?;
            }
            if let Some((part, problem)) = origin.kind.etcd().and_then(|(etcd, _)| etcd.problem()) {
                return Err(at(field(&format!("etcd.{part}")))(problem));
            }
            if let Some((part, problem)) = origin.kind.kubernetes().and_then(|(kubernetes, _)| kubernetes.problem()) {
                return Err(at(field(&format!("kubernetes.{part}")))(problem));
            }
            if let Some(problem) = origin.token.as_ref().and_then(|_| rules::token(origin.tls.as_ref())) {
                return Err(at(field("token"))(problem.to_owned()));
            }
            let followed = origin.follow.as_ref().map(|follow| match origin.kind.servers() {
                Some(_) => follow.problem().map(|(part, problem)| (format!("follow.{part}"), problem)),
                None => Some(("follow".to_owned(), super::follow::NO_SERVER.to_owned())),
            });
            if let Some((part, problem)) = followed.flatten() {
                return Err(at(field(&part))(problem));
            }
            rules::keepalive(origin.keepalive, &format!("{:?}", origin.keepalive)).map_err(at(field("keepalive")))?;
        }
        rules::default_origin(&self.default_origin, &self.origins).map_err(at("default_origin"))?;
        if self.share_by.as_ref().is_some_and(Vec::is_empty) {
            return Err(at("share_by")(rules::NO_PARTS.to_owned()));
        }
        let origins = (&*self.origins, &*self.default_origin);
        if let Some((place, problem)) = rollout::problem(&self.rollout, origins, self.state.as_ref()) {
            return Err(at(format!("rollout{place}"))(problem));
        }
        if let Some((index, field, problem)) = super::follow::unused(&self.rollout, origins) {
            return Err(at(format!("origins[{index}].{field}"))(problem));
        }
        if let Some(problem) = self.orders.as_ref().and_then(|of| of.problem(&self.listen, self.admin.as_ref())) {
            return Err(at("orders")(problem));
        }
        for (key, field) in &self.node_parameters {
            rules::parameter(key, field).map_err(at(format!("node_parameters.{key}")))?;
        }
        if let Some((field, problem)) = self.state.as_ref().and_then(|state| state.etcd.as_ref()?.problem()) {
            return Err(at(format!("state.etcd.{field}"))(problem));
        }
        if self.state.as_ref().is_some_and(|state| state.etcd.is_none() && state.last_known_good == KnownIn::Shared) {
            return Err(at("state.last_known_good".to_owned())("shared: there is no etcd to have it in".to_owned()));
        }
        if let Some((field, problem)) = self.drift.and_then(super::Drift::problem) {
            return Err(at(format!("drift.{field}"))(problem));
        }
        if let Some((field, problem)) = self.statsd.as_ref().and_then(super::Statsd::problem) {
            return Err(at(format!("statsd.{field}"))(problem));
        }
        if let Some((field, problem)) = self.traces.as_ref().and_then(super::Traces::problem) {
            return Err(at(format!("traces.{field}"))(problem));
        }
        match self.limits.none_of() {
            Some(key) => Err(at(format!("limits.{key}"))("none; expected some".to_owned())),
            None => Ok(()),
        }
    }
}

fn check_servers(
    servers: &[ServerAddress],
    own: &OwnAddresses,
    field: &dyn Fn(&str) -> String,
) -> Result<(), InvalidConfig> {
    if servers.is_empty() {
        return Err(at(field("servers"))(rules::NO_SERVERS.to_owned()));
    }
    for (index, server) in servers.iter().enumerate() {
        let text = server.to_string();
        let field = if servers.len() == 1 { field("server") } else { field(&format!("servers[{index}]")) };
        let server = rules::server(&text).map_err(at(&field))?;
        if let Some(place) = own.at(&server) {
            return Err(at(field)(rules::is_own(&text, &place)));
        }
        rules::is_one_more(&server, servers.get(..index).unwrap_or_default()).map_err(at(field))?;
    }
    Ok(())
}

fn at(field: impl Display) -> impl FnOnce(String) -> InvalidConfig {
    move |problem| InvalidConfig { field: field.to_string(), problem }
}

impl Origin {
    /// A server at `http://HOST:PORT`, at `https://HOST:PORT` whom the system trusts, or at a unix socket, that delta is spoken
    /// with.
    pub fn server(name: impl Into<String>, server: ServerAddress) -> Self {
        Self::servers(name, [server])
    }

    /// Several such, in order of preference, that all have the same resources: the next one is asked while those before it fail
    /// and something is wanted that is not known (gRFC A71).
    pub fn servers(name: impl Into<String>, servers: impl IntoIterator<Item = ServerAddress>) -> Self {
        let servers: Vec<ServerAddress> = servers.into_iter().collect();
        let tls = servers.iter().any(ServerAddress::is_https).then(OriginTls::default);
        Self { tls, ..Self::new(name, OriginKind::Server { servers, protocol: Protocol::default() }) }
    }

    /// A directory of resource files, whose types are built in.
    pub fn files(name: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        let reading = FileReading::default();
        Self::new(name, OriginKind::Files { directory: directory.into(), descriptors: None, reading })
    }

    /// Keys of etcd, whose types are built in.
    pub fn etcd(name: impl Into<String>, etcd: Etcd) -> Self {
        let validate = FileReading::default().validate;
        Self::new(name, OriginKind::Etcd { etcd, descriptors: None, validate })
    }

    /// Objects of Kubernetes, whose types are built in.
    pub fn kubernetes(name: impl Into<String>, kubernetes: Kubernetes) -> Self {
        let validate = FileReading::default().validate;
        Self::new(name, OriginKind::Kubernetes { kubernetes, descriptors: None, validate })
    }

    /// One that the program [brings](crate::RelayBuilder::origin) itself.
    pub fn embedded(name: impl Into<String>) -> Self {
        Self::new(name, OriginKind::Embedded)
    }

    /// The same, followed: the relay knows all that there is of these collections, so that it has releases. Only a server is.
    #[must_use]
    pub fn following(self, follow: super::Follow) -> Self {
        Self { follow: Some(follow), ..self }
    }

    /// Whether the relay knows all that it has, which comes some time after the relay started.
    pub(crate) fn is_followed(&self) -> bool {
        self.follow.is_some() || self.kind.etcd().is_some() || self.kind.kubernetes().is_some()
    }

    /// The `xdstp:` names of these authorities come from it. They are spelled without escapes.
    #[must_use]
    pub fn with_authorities(self, authorities: impl IntoIterator<Item: Into<String>>) -> Self {
        Self { authorities: authorities.into_iter().map(Into::into).collect(), ..self }
    }

    fn new(name: impl Into<String>, kind: OriginKind) -> Self {
        Self {
            name: name.into(),
            authorities: Vec::new(),
            kind,
            tls: None,
            token: None,
            methods: Methods::default(),
            xdstp: XdstpStreams::default(),
            dynamic_parameters: Dialect::default(),
            keepalive: DEFAULT_KEEPALIVE,
            streams_per_connection: DEFAULT_STREAMS_PER_CONNECTION,
            node_metadata: serde_json::Map::new(),
            follow: None,
        }
    }
}

impl ListenTls {
    /// By these files; no client is asked for a certificate.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate: certificate.into(), key: key.into(), client_ca: None }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::NodeField;

    fn origin(name: &str) -> Origin {
        Origin::embedded(name)
    }

    #[test]
    fn what_a_file_may_not_say_a_program_may_not_say_either() {
        let server = |uri: &'static str| Origin::server("a", uri.parse().unwrap());
        let change = |change: &dyn Fn(&mut Config)| {
            let mut config = Config::new([origin("a")]);
            change(&mut config);
            config
        };
        for (config, expected) in [
            (Config::new([]), "origins: empty; expected at least one origin"),
            (
                Config::new([origin("a b")]),
                "origins[0].name: `a b`: expected up to 64 letters, digits, `.`, `_` and `-`",
            ),
            (Config::new([origin("a"), origin("a")]), "origins[1].name: `a` is the name of origins[0] already"),
            (
                Config::new([origin("a").with_authorities(["x/y"])]),
                "origins[0].authorities[0]: `x/y`: expected an authority alone, such as example.com",
            ),
            (
                Config::new([origin("a").with_authorities(["x"]), origin("b").with_authorities(["y", "x"])]),
                "origins[1].authorities[1]: `x` is listed by origin `a` already",
            ),
            (
                Config::new([server("http://127.0.0.1:18000")]),
                "origins[0].server: `http://127.0.0.1:18000/`: where the relay itself listens (127.0.0.1:18000); \
                 expected another server",
            ),
            (
                change(&|config| config.origins = vec![Origin { token: Some("t".into()), ..server("http://a:1") }]),
                "origins[0].token: a token goes over TLS only; expected tls, or https://HOST:PORT",
            ),
            (
                change(&|config| config.origins[0].keepalive = Duration::from_secs(1)),
                "origins[0].keepalive: `1s`: expected at least 10s",
            ),
            (change(&|config| config.default_origin = "b".into()), "default_origin: no origin `b`; expected one of a"),
            (
                change(&|config| config.admin = Some(config.listen.clone())),
                "admin: the same address as listen; expected another one",
            ),
            (change(&|config| config.share_by = Some(Vec::new())), &format!("share_by: {}", rules::NO_PARTS)),
            (
                change(&|config| _ = config.node_parameters.insert("where".into(), NodeField::Locality)),
                "node_parameters.where: `locality` is three; \
                 expected locality.region, locality.zone or locality.sub_zone",
            ),
            (change(&|config| config.limits.names = 0), "limits.names: none; expected some"),
            (change(&|config| config.limits.preface = Duration::ZERO), "limits.preface: none; expected some"),
        ] {
            assert_eq!(config.validate().unwrap_err().to_string(), expected);
        }
        let servers = |uris: &[&str]| Origin::servers("a", uris.iter().map(|uri| uri.parse().unwrap()));
        for (uris, expected) in [
            (&[][..], "origins[0].servers: empty; expected at least one server"),
            (&["http://a:1", "http://b:1/x"], "origins[0].servers[1]: `http://b:1/x`: expected HOST:PORT"),
            (&["http://a:1", "http://a:1"], "origins[0].servers[1]: `a:1` is servers[0] already"),
            (&["http://a:1", "https://b:1"], "origins[0].servers[1]: `b:1`: expected no https://"),
            (&["unix:/a", "unix:/b", "unix:/a"], "origins[0].servers[2]: `unix:/a` is servers[0] already"),
            (&["unix:/a", "https://b:1", "http://c:1"], "origins[0].servers[2]: `c:1`: expected https://"),
        ] {
            let error = Config::new([servers(uris)]).validate().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        for uris in [&["https://a:1", "https://b:1"][..], &["unix:/a", "https://b:1"], &["a:1", "unix:/a", "b:1"]] {
            assert_eq!(Config::new([servers(uris)]).validate(), Ok(()), "{uris:?}");
        }
        for uri in ["http://a", "ftp://a:1", "http://a:1/b", "/"] {
            assert_eq!(Config::new([server(uri)]).validate().unwrap_err().field, "origins[0].server", "{uri}");
        }
        assert_eq!(Config::new([server("https://a:1"), origin("b")]).validate(), Ok(()));
    }
}
