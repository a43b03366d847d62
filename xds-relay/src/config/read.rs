//! From the file as written to a configuration that can be run.

use std::{
    collections::BTreeMap,
    fs::Metadata,
    path::{Path, PathBuf},
    time::Duration,
};

use xds_transport::{Dialect, Protocol};
use xdstp_client::UnixAddress;

use super::{
    Config, DEFAULT_DRAIN, DEFAULT_DRAIN_DELAY, DEFAULT_KEEPALIVE, DEFAULT_LINGER, DEFAULT_LISTEN,
    DEFAULT_STREAMS_PER_CONNECTION, FileReading, LogFilter, LogFilterError, Methods, NodeField, Orders, Origin,
    OriginKind, ServerAddress, Unknown, XdstpStreams,
    aggregation::{self, aggregation},
    clients, drift,
    etcd::etcd,
    files,
    follow::{NO_SERVER, follow, unused},
    kubernetes::kubernetes,
    listening::{Admin, address, admin, unix},
    node::{metadata, relay_node},
    node_parameters::node_parameters,
    orders,
    own_address::OwnAddresses,
    rollout, rules,
    state::{ready_when, state},
    statsd,
    tls::{self, OriginTls},
    traces,
};
use crate::config::fields::{FIELDS, ORIGIN_FIELDS};
use crate::config::limits::limits;
use crate::config::values::{count, duration, flag};
use crate::text_file;
use crate::yaml::{self, Error};

/// Relative paths start from `directory`, where the configuration is, not from where the relay was started.
pub(super) fn config(root: &yaml::Node, directory: &Path) -> Result<Config, Error> {
    aggregation::misplaced(root)?;
    root.expect_fields(FIELDS)?;
    let listen = |node: &yaml::Node| {
        address(node, directory, "expected IP:PORT, such as 127.0.0.1:18000 or [::]:18000, or unix:PATH")
    };
    let listen = root.field("listen", listen)?.unwrap_or(DEFAULT_LISTEN);
    let file = |node: &yaml::Node| existing(node, directory, "file", Metadata::is_file);
    let tls = root.field("tls", |node| tls::listen(node, &file))?;
    let listening = clients::Listening {
        asks_for_certificates: tls.as_ref().is_some_and(|tls| tls.client_ca.is_some()),
        is_private: tls.is_some() || !rules::is_reached(&listen),
    };
    let clients = root.field("clients", |list| clients::clients(list, listening, &file))?;
    let admin = match root.field("admin", |node| admin(node, directory, &listen, &file))? {
        Some(admin) => admin,
        None => {
            let apart = rules::listen_beside_default_admin(&listen);
            root.field("listen", |node| apart.or_else(|problem| node.refuse(problem)))?;
            Admin::unsaid()
        }
    };
    let own = OwnAddresses { listen: listen.clone(), admin: admin.address.clone() };
    let admin_hosts = root.field("admin_hosts", |list| list.items(host))?.unwrap_or(vec!["localhost".to_owned()]);
    let client_status = root.field("client_status", flag)?.unwrap_or_default();
    let node = root.field("node", relay_node)?.unwrap_or_default();
    let share_by = root.field("share_by", share_by)?;
    let aggregation = root.field("aggregation", |node| aggregation(node, &file))?;
    let state = root.field("state", |node| state(node, directory, &file))?;
    let ready_when = root.field("ready_when", ready_when)?.unwrap_or_default();
    let dynamic_parameters = root.field("dynamic_parameters", dialect)?.unwrap_or_default();
    let node_parameters = root.field("node_parameters", node_parameters)?.unwrap_or_default();
    let unknown = root.field("unknown", unknown)?.unwrap_or_default();
    let linger = root.field("linger", duration)?.unwrap_or(DEFAULT_LINGER);
    let drain_delay = root.field("drain_delay", duration)?.unwrap_or(DEFAULT_DRAIN_DELAY);
    let drain = root.field("drain", duration)?.unwrap_or(DEFAULT_DRAIN);
    let limits = root.field("limits", limits)?.unwrap_or_default();
    let drift = root.field("drift", drift::drift)?;
    let statsd = root.field("statsd", statsd::statsd)?;
    let traces = root.field("traces", |node| traces::traces(node, &file))?;
    let log = root.field("log", log_filter)?.unwrap_or_default();
    let expected =
        "expected a list of at least one origin, each with a name and a server or files, or etcd or kubernetes";
    let origins = root.required_field("origins", expected, |node| origins(node, directory, &own, expected))?;
    let first = origins.first().map(|origin| origin.name.clone()).unwrap_or_default();
    let default_origin = root.field("default_origin", |node| default_origin(node, &origins))?.unwrap_or(first);
    let rollout = root.field("rollout", rollout::rollouts)?.unwrap_or_default();
    if let Some((place, problem)) = rollout::problem(&rollout, (&origins, &default_origin), state.as_ref()) {
        let path = format!("rollout{place}");
        let position = root.place_of(&path);
        return Err(Error { path, ..Error::new(position, problem) });
    }
    if let Some((index, field, problem)) = unused(&rollout, (&origins, &default_origin)) {
        let path = format!("origins[{index}].{field}");
        let position = root.place_of(&path);
        return Err(Error { path, ..Error::new(position, problem) });
    }
    let orders = match root.field("orders", |node| orders::orders(node, directory, state.as_ref(), &file))? {
        Some(orders) => orders,
        None => match state.as_ref().filter(|_| !rollout.is_empty()).map(Orders::unsaid).transpose() {
            Ok(orders) => orders,
            Err(problem) => {
                return Err(Error {
                    path: "state.path".to_owned(),
                    ..Error::new(root.place_of("state.path"), problem)
                });
            }
        },
    };
    if let Some(problem) = orders.as_ref().and_then(|orders| orders.problem(&listen, admin.address.as_ref())) {
        return Err(Error { path: "orders".to_owned(), ..Error::new(root.place_of("orders"), problem) });
    }
    Ok(Config {
        listen,
        tls,
        clients,
        admin: admin.address,
        admin_tls: admin.tls,
        admin_token: admin.token,
        admin_write_token: admin.write_token,
        admin_hosts,
        client_status,
        node,
        origins,
        default_origin,
        share_by,
        aggregation,
        state,
        rollout,
        orders,
        ready_when,
        dynamic_parameters,
        node_parameters,
        unknown,
        linger,
        drain_delay,
        drain,
        limits,
        drift,
        statsd,
        traces,
        log,
    })
}

fn log_filter(node: &yaml::Node) -> Result<LogFilter, Error> {
    node.text()?.parse().or_else(|error: LogFilterError| node.refuse(error.to_string()))
}

fn host(node: &yaml::Node) -> Result<String, Error> {
    let host = node.text()?;
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if host.is_empty() || !host.chars().all(letter) {
        return node.refuse(format!("`{host}`: expected the name of a host without a port, such as relay.example.com"));
    }
    Ok(host.to_owned())
}

fn origins(list: &yaml::Node, directory: &Path, own: &OwnAddresses, expected: &str) -> Result<Vec<Origin>, Error> {
    // The positions of origins by name, the names of origins by authority.
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    let origins = list.items(|node| {
        node.expect_fields(ORIGIN_FIELDS)?;
        let expected = "expected a name for this origin";
        let name = node.required_field("name", expected, |node| {
            let name = origin_name(node)?;
            match names.insert(name.clone(), names.len()) {
                None => Ok(name),
                Some(other) => node.refuse(rules::is_taken(&name, other)),
            }
        })?;
        let authorities = node.field("authorities", |list| {
            list.items(|node| {
                let authority = authority(node)?;
                match owners.insert(authority.clone(), name.clone()) {
                    None => Ok(authority),
                    Some(owner) => node.refuse(rules::is_listed(&authority, &owner)),
                }
            })
        })?;
        let kind = origin_kind(node, directory, own)?;
        let follow = node.field("follow", follow)?;
        let file = |node: &yaml::Node| existing(node, directory, "file", Metadata::is_file);
        let tls = node.field("tls", |node| tls::origin(node, &file))?;
        let tls = tls.or_else(|| is_https(&kind).then(OriginTls::default));
        let token = node.field("token", |node| match rules::token(tls.as_ref()) {
            Some(problem) => node.refuse(problem),
            None => file(node),
        })?;
        Ok(Origin {
            tls,
            token,
            kind,
            authorities: authorities.unwrap_or_default(),
            methods: node.field("methods", Methods::read)?.unwrap_or_default(),
            xdstp: node.field("xdstp", xdstp_streams)?.unwrap_or_default(),
            dynamic_parameters: node.field("dynamic_parameters", dialect)?.unwrap_or_default(),
            keepalive: node.field("keepalive", keepalive)?.unwrap_or(DEFAULT_KEEPALIVE),
            streams_per_connection: node
                .field("streams_per_connection", count)?
                .unwrap_or(DEFAULT_STREAMS_PER_CONNECTION),
            node_metadata: node.field("node_metadata", metadata)?.unwrap_or_default(),
            follow,
            name,
        })
    })?;
    if origins.is_empty() {
        return list.refuse(format!("empty; {expected}"));
    }
    Ok(origins)
}

fn origin_name(node: &yaml::Node) -> Result<String, Error> {
    let name = node.text()?;
    rules::name(name).or_else(|problem| node.refuse(problem))?;
    Ok(name.to_owned())
}

fn authority(node: &yaml::Node) -> Result<String, Error> {
    let authority = node.text()?;
    rules::authority(authority).or_else(|problem| node.refuse(problem))?;
    Ok(authority.to_owned())
}

fn origin_kind(node: &yaml::Node, directory: &Path, own: &OwnAddresses) -> Result<OriginKind, Error> {
    let belongs_elsewhere = |key, reason| node.field(key, |node| node.refuse::<()>(reason));
    let has = |key| node.entry(key).is_some();
    let (is_server, is_files) = (has("server") || has("servers"), has("files"));
    let (is_etcd, is_kubernetes) = (has("etcd"), has("kubernetes"));
    if has("server") {
        belongs_elsewhere("servers", "an origin has a server or servers, not both; expected one list of all")?;
    }
    if is_server {
        belongs_elsewhere("files", "an origin has a server or files, not both; expected two origins")?;
        belongs_elsewhere("descriptors", "only an origin with files, or in etcd or kubernetes, has descriptors")?;
        belongs_elsewhere("validate", "only an origin with files, or in etcd or kubernetes, is read as texts")?;
    }
    if !is_files {
        FileReading::refuse(node)?;
    }
    const ONE: &str = "an origin is one of a server, files, etcd and kubernetes; expected another origin";
    if is_server || is_files {
        belongs_elsewhere("etcd", ONE)?;
    }
    if is_server || is_files || is_etcd {
        belongs_elsewhere("kubernetes", ONE)?;
    }
    if is_files || is_etcd || is_kubernetes {
        let of_connection = "only an origin with a server has a connection";
        belongs_elsewhere("protocol", "only an origin with a server has a protocol")?;
        let of_tls = match (is_etcd, is_kubernetes) {
            (true, _) => "expected tls within etcd",
            (_, true) => "expected tls within kubernetes",
            _ => of_connection,
        };
        belongs_elsewhere("tls", of_tls)?;
        belongs_elsewhere("token", "only an origin with a server is called")?;
        belongs_elsewhere("methods", "only an origin with a server has methods")?;
        belongs_elsewhere("xdstp", "only an origin with a server has streams")?;
        belongs_elsewhere("dynamic_parameters", "only an origin with a server is asked")?;
        belongs_elsewhere("keepalive", of_connection)?;
        belongs_elsewhere("streams_per_connection", "only an origin with a server has connections")?;
        belongs_elsewhere("node_metadata", "only an origin with a server is told of nodes")?;
        belongs_elsewhere("follow", NO_SERVER)?;
    }
    let server = |node: &yaml::Node| Ok(vec![server(node, directory, own)?]);
    if let Some(servers) = node
        .field("server", server)?
        .map_or_else(|| node.field("servers", |list| servers(list, directory, own)), |one| Ok(Some(one)))?
    {
        return Ok(OriginKind::Server { servers, protocol: node.field("protocol", protocol)?.unwrap_or_default() });
    }
    let file = |node: &yaml::Node| existing(node, directory, "file", Metadata::is_file);
    let files = node.field("files", |node| existing(node, directory, "directory", Metadata::is_dir))?;
    let etcd = node.field("etcd", |node| etcd(node, None, &file))?;
    let kubernetes = node.field("kubernetes", |node| kubernetes(node, &file))?;
    let descriptors = node.field("descriptors", file)?;
    match (files, etcd, kubernetes) {
        (Some(directory), ..) => Ok(OriginKind::Files { directory, descriptors, reading: FileReading::read(node)? }),
        (None, Some(etcd), _) => Ok(OriginKind::Etcd { etcd, descriptors, validate: files::validate(node)? }),
        (None, None, Some(kubernetes)) => Ok(OriginKind::Kubernetes { kubernetes, descriptors, validate: files::validate(node)? }),
        (None, None, None) => node.refuse(
            "expected server: HOST:PORT, servers: [HOST:PORT, …] or files: DIRECTORY, or etcd with endpoints and a prefix, or kubernetes",
        ),
    }
}

fn existing(
    node: &yaml::Node,
    directory: &Path,
    what: &'static str,
    is_that: fn(&Metadata) -> bool,
) -> Result<PathBuf, Error> {
    let path = directory.join(node.text()?);
    let shown = path.display();
    match path.metadata() {
        Ok(metadata) if is_that(&metadata) => Ok(path),
        Ok(metadata) if metadata.is_file() => node.refuse(format!("{shown}: a file, not a {what}")),
        Ok(metadata) => node.refuse(format!("{shown}: {}, not a {what}", text_file::name(metadata.file_type()))),
        Err(_) => node.refuse(format!("no {what} {shown}")),
    }
}

fn is_https(kind: &OriginKind) -> bool {
    kind.servers().is_some_and(|servers| servers.iter().any(ServerAddress::is_https))
}

fn protocol(node: &yaml::Node) -> Result<Protocol, Error> {
    match node.text()? {
        "delta" => Ok(Protocol::Delta),
        "sotw" => Ok(Protocol::Sotw),
        other => node.refuse(format!("`{other}`: expected delta or sotw")),
    }
}

fn xdstp_streams(node: &yaml::Node) -> Result<XdstpStreams, Error> {
    match node.text()? {
        "shared" => Ok(XdstpStreams::Shared),
        "by_node" => Ok(XdstpStreams::ByNode),
        other => node.refuse(format!("`{other}`: expected shared or by_node")),
    }
}

fn dialect(node: &yaml::Node) -> Result<Dialect, Error> {
    match node.text()? {
        "final" => Ok(Dialect::Final),
        "draft" => Ok(Dialect::Draft),
        other => node.refuse(format!("`{other}`: expected final or draft")),
    }
}

fn unknown(node: &yaml::Node) -> Result<Unknown, Error> {
    match node.text()? {
        "end" => Ok(Unknown::End),
        "wait" => Ok(Unknown::Wait),
        other => node.refuse(format!("`{other}`: expected end or wait")),
    }
}

fn keepalive(node: &yaml::Node) -> Result<Duration, Error> {
    let keepalive = duration(node)?;
    rules::keepalive(keepalive, node.text()?).or_else(|problem| node.refuse(problem))?;
    Ok(keepalive)
}

fn default_origin(node: &yaml::Node, origins: &[Origin]) -> Result<String, Error> {
    let name = node.text()?;
    rules::default_origin(name, origins).or_else(|problem| node.refuse(problem))?;
    Ok(name.to_owned())
}

fn share_by(list: &yaml::Node) -> Result<Vec<NodeField>, Error> {
    let mut fields: Vec<NodeField> = Vec::new();
    list.items(|node| {
        let text = node.text()?;
        match text.parse() {
            Err(expected) => node.refuse(format!("`{text}`: {expected}")),
            Ok(field) if fields.contains(&field) => node.refuse(format!("`{text}`: listed twice")),
            Ok(field) => {
                fields.push(field);
                Ok(())
            }
        }
    })?;
    // An empty list would put every node into one group: nobody who writes it can be sure to mean that.
    if fields.is_empty() {
        return list.refuse(rules::NO_PARTS);
    }
    Ok(fields)
}

/// In order of preference.
fn servers(list: &yaml::Node, directory: &Path, own: &OwnAddresses) -> Result<Vec<ServerAddress>, Error> {
    let mut servers: Vec<ServerAddress> = Vec::new();
    list.items(|node| {
        let server = server(node, directory, own)?;
        rules::is_one_more(&server, &servers).or_else(|problem| node.refuse(problem))?;
        servers.push(server);
        Ok(())
    })?;
    if servers.is_empty() { list.refuse(rules::NO_SERVERS) } else { Ok(servers) }
}

fn server(node: &yaml::Node, directory: &Path, own: &OwnAddresses) -> Result<ServerAddress, Error> {
    let text = node.text()?;
    let uri = match UnixAddress::has_scheme(text) {
        true => ServerAddress::Unix(unix(node, directory)?),
        false => rules::server(text).or_else(|problem| node.refuse(problem))?,
    };
    match own.at(&uri) {
        None => Ok(uri),
        Some(place) => node.refuse(rules::is_own(text, &place)),
    }
}
