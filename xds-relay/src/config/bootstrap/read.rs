//! From the file as the original has it to a configuration.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use xds_transport::Protocol;

use super::go_duration::go_duration;
use super::{Found, Remark, rules};
use crate::config::own_address::OwnAddresses;
use crate::config::statsd::plain_prefix;
use crate::config::values::LONGEST;
use crate::config::{Address, Config, LogFilter, Methods, Origin, OriginKind, Statsd};
use crate::proto_json::{Message, duration, int32, some_text, text};
use crate::yaml::{Error, Node};

/// What a note calls that there are no rules.
pub(super) const NO_RULES: &str = "aggregation rules";

/// The least that the original's library allows, and this relay.
const SHORTEST_KEEPALIVE: Duration = Duration::from_secs(10);

/// The least that this relay allows.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Notes(Vec<Remark>);

impl Notes {
    /// About a field of the configuration, or none.
    fn add(&mut self, node: &Node, field: &'static str, beside: &'static str, text: impl Display) {
        self.0.push(Remark { position: node.position, field, beside, text: text.to_string() });
    }
}

pub(super) fn bootstrap(root: &Node) -> Result<Found, Error> {
    let notes = &mut Notes::default();
    let file = Message::read(root, &["server", "origin_server", "logging", "cache", "metrics_sink", "admin"])?;
    let listen = file.required("server", |node| of_address(node, listen))?;
    let admin = file.required("admin", |node| of_address(node, |node| admin(node, &listen, notes)))?;
    let own = OwnAddresses { listen: listen.clone(), admin: Some(admin.clone()) };
    let mut config = Config::new([]);
    (config.listen, config.admin) = (listen, Some(admin));
    let keepalive = file.required("origin_server", |node| origin(node, &own, &mut config, notes))?;
    file.required("logging", |node| logging(node, &mut config, notes))?;
    file.required("cache", |node| cache(node, &mut config, notes))?;
    file.required("metrics_sink", |node| metrics_sink(node, &mut config, notes))?;
    let text = "there is no file of them here, so that each node is served apart from others; \
                `--aggregation FILE` brings one along";
    notes.add(root, NO_RULES, "", text);
    Ok(Found { config, says_keepalive: keepalive, notes: std::mem::take(&mut notes.0) })
}

/// The one field of a message that has an address and nothing else.
fn of_address<'a, T>(node: &'a Node, read: impl FnOnce(&'a Node) -> Result<T, Error>) -> Result<T, Error> {
    Message::read(node, &["address"])?.required("address", read)
}

/// A host and a port.
fn socket(node: &Node) -> Result<(String, u16), Error> {
    let address = Message::read(node, &["address", "port_value"])?;
    let host = address.required("address", |node| {
        let host = text(node)?;
        let is_known = host.parse::<IpAddr>().is_ok() || is_host_name(&host);
        if is_known {
            Ok(host)
        } else {
            node.refuse(format!("`{host}`: value must be a valid hostname, or ip address"))
        }
    })?;
    let port = address.optional("port_value", |node| {
        let port = int32(node)?;
        u16::try_from(port).or_else(|_| node.refuse(format!("`{port}`: value must be less than or equal to 65535")))
    })?;
    Ok((host, port.unwrap_or_default()))
}

fn is_host_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    host.len() <= 253 && host.split('.').all(is_label)
}

fn listen(node: &Node) -> Result<Address, Error> {
    let (host, port) = socket(node)?;
    let ip = if host.eq_ignore_ascii_case("localhost") { Some(Ipv4Addr::LOCALHOST.into()) } else { host.parse().ok() };
    let Some(ip) = ip else {
        let problem =
            format!("`{host}`: the relay listens at addresses, not at names; expected the address of this name");
        return node.refuse::<Address>(problem).map_err(|error| error.under_key("address"));
    };
    Ok(Address::Tcp(SocketAddr::new(ip, port)))
}

fn admin(node: &Node, listen_at: &Address, notes: &mut Notes) -> Result<Address, Error> {
    let mut admin = listen(node)?;
    if rules::is_reached(&admin) {
        let loopback: IpAddr = match admin.tcp() {
            Some(SocketAddr::V6(_)) => Ipv6Addr::LOCALHOST.into(),
            _ => Ipv4Addr::LOCALHOST.into(),
        };
        let text = format!(
            "other machines reached the admin pages at {admin}, whoever asked. Here only this machine does, \
             unless there is `admin.tls` beside `admin.token`"
        );
        notes.add(node, "admin.address", "admin", text);
        let port = admin.tcp().map(|address| address.port()).unwrap_or_default();
        admin = Address::Tcp(SocketAddr::new(loopback, port));
    }
    rules::admin(&admin, listen_at).or_else(|problem| node.refuse(problem))?;
    Ok(admin)
}

/// Whether it says how long a connection may be quiet.
fn origin(node: &Node, own: &OwnAddresses, config: &mut Config, notes: &mut Notes) -> Result<bool, Error> {
    const FIELDS: &[&str] =
        &["address", "keep_alive_time", "stream_timeout", "stream_timeout_jitter", "request_node_metadata"];
    let origin = Message::read(node, FIELDS)?;
    let server = origin.required("address", |node| {
        let (host, port) = socket(node)?;
        let host = if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host };
        let text = format!("{host}:{port}");
        let server = rules::server(&text).or_else(|problem| node.refuse(problem))?;
        match own.at(&server) {
            None => Ok(server),
            Some(place) => node.refuse(rules::is_own(&text, &place)),
        }
    })?;
    let remark = "it is asked by a stream for each type for those who share, as ever: where the control plane speaks ADS, too, one stream \
                  will do (methods: ads)";
    notes.add(node, "origin_server", "origins", remark);
    let mut asked = Origin::server("origin", server);
    if let OriginKind::Server { protocol, .. } = &mut asked.kind {
        *protocol = Protocol::Sotw;
    }
    asked.methods = Methods::PerType;
    let keepalive = origin.optional("keep_alive_time", time)?.flatten();
    if let Some(keepalive) = keepalive {
        asked.keepalive = keepalive.clamp(SHORTEST_KEEPALIVE, LONGEST);
    }
    for (field, full) in [
        ("stream_timeout", "origin_server.stream_timeout"),
        ("stream_timeout_jitter", "origin_server.stream_timeout_jitter"),
    ] {
        let said = origin.optional(field, |node| Ok(time(node)?.map(|_| node)))?.flatten();
        if let Some(node) = said {
            let text = "streams to the origin are not ended after a time: what is lost of one is asked for again";
            notes.add(node, full, "origins", text);
        }
    }
    origin.optional("request_node_metadata", |node| {
        let value = text(node)?;
        if !value.is_empty() {
            asked.node_metadata.insert("xdsrelay_node_metadata".to_owned(), value.into());
        }
        Ok(())
    })?;
    config.default_origin.clone_from(&asked.name);
    config.origins.push(asked);
    Ok(keepalive.is_some())
}

/// A duration of Go; an empty text is none.
fn time(node: &Node) -> Result<Option<Duration>, Error> {
    let text = text(node)?;
    match go_duration(&text) {
        None if text.is_empty() => Ok(None),
        None => node.refuse(format!("`{text}`: expected a duration, such as 500ms, 30s or 2m")),
        Some(time) => Ok(Some(time)),
    }
}

fn logging(node: &Node, config: &mut Config, notes: &mut Notes) -> Result<(), Error> {
    const LEVELS: [&str; 4] = ["INFO", "DEBUG", "WARN", "ERROR"];
    let logging = Message::read(node, &["path", "level"])?;
    logging.optional("path", |node| {
        if !text(node)?.is_empty() {
            notes.add(node, "logging.path", "log", "the log goes to standard error, which may be led to this file");
        }
        Ok(())
    })?;
    let level = logging.optional("level", |node| {
        let by_name = text(node).ok();
        let found = match &by_name {
            Some(name) => LEVELS.iter().find(|level| *level == name),
            None => usize::try_from(int32(node)?).ok().and_then(|number| LEVELS.get(number)),
        };
        let level: Option<LogFilter> = found.and_then(|level| level.to_ascii_lowercase().parse().ok());
        level.map_or_else(|| node.refuse(format!("expected one of {}", LEVELS.join(", "))), Ok)
    })?;
    config.log = level.unwrap_or_default();
    Ok(())
}

fn cache(node: &Node, config: &mut Config, notes: &mut Notes) -> Result<(), Error> {
    let cache = Message::read(node, &["ttl", "max_entries"])?;
    config.linger = cache.required("ttl", |node| {
        let ttl = duration(node)?;
        let text = "what a client wants is kept for as long as it does, and no stream is ended by this; it is how long what \
                    nobody wants any more is kept";
        notes.add(node, "cache.ttl", "linger", text);
        if ttl.is_zero() || ttl > LONGEST {
            notes.add(node, "cache.ttl", "linger", "a day is the longest");
            return Ok(LONGEST);
        }
        Ok(ttl)
    })?;
    cache.optional("max_entries", |node| {
        if let Some(most) = usize::try_from(int32(node)?).ok().filter(|most| *most > 0) {
            config.limits.lingering_names = most.min(config.limits.names);
            let text = "it counts names in place of keys, and only those that nobody wants any more: no stream is ended by this";
            notes.add(node, "cache.max_entries", "limits", text);
        }
        Ok(())
    })?;
    Ok(())
}

fn metrics_sink(node: &Node, config: &mut Config, notes: &mut Notes) -> Result<(), Error> {
    let sink = Message::read(node, &["statsd"])?;
    sink.required("statsd", |node| {
        let statsd = Message::read(node, &["address", "root_prefix", "flush_interval"])?;
        let (host, port) = statsd.required("address", socket)?;
        let host = if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host };
        let mut sent = Statsd::new(format!("{host}:{port}"));
        sent.prefix = statsd.required("root_prefix", |node| {
            let text = some_text(node)?;
            let prefix = plain_prefix(&text);
            if prefix != text {
                let words = format!(
                    "it is `{prefix}`: up to 128 letters, digits, `.`, `_` and `-` mean nothing else to statsd"
                );
                notes.add(node, "metrics_sink.statsd.root_prefix", "statsd", words);
            }
            Ok(prefix)
        })?;
        sent.interval = statsd.required("flush_interval", |node| {
            let said = duration(node)?;
            let interval = said.clamp(SHORTEST_INTERVAL, LONGEST);
            if interval != said {
                let words = format!("it is {}: from 100ms to a day", humantime::format_duration(interval));
                notes.add(node, "metrics_sink.statsd.flush_interval", "statsd", words);
            }
            Ok(interval)
        })?;
        let text = "metrics have the relay's own names, and no keys of requests in them";
        notes.add(node, "metrics_sink.statsd", "statsd", text);
        if let Some((_, problem)) = sent.problem() {
            return node.refuse(problem);
        }
        config.statsd = Some(sent);
        Ok(())
    })
}
