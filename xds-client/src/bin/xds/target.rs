//! What is asked, and of whom: shared by the commands that speak to a server.

use std::error::Error;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use tokio::sync::mpsc;
use xds_transport::Protocol;
use xds_transport::wire::Node;
use xdstp_cache::Interest;
use xdstp_client::upstream::Connection;
use xdstp_client::{Client, Endpoint, Event};

#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// The server, as host:port or URI
    #[arg(long, default_value = "127.0.0.1:18000")]
    server: String,
    /// The variant of the protocol
    #[arg(long, value_enum, default_value_t = ProtocolName::Delta)]
    protocol: ProtocolName,
    /// The id of the node we say we are
    #[arg(long, default_value = "xds")]
    node: String,
    /// The cluster of the node we say we are
    #[arg(long, default_value = "")]
    cluster: String,
    /// A type URL, or: cluster, endpoint, extension, listener, locality-endpoint, route, runtime, scoped-route,
    /// secret, virtual-host
    #[arg(value_name = "TYPE")]
    type_url: String,
    /// Names, globs, or `*` for everything
    #[arg(value_name = "NAME", default_value = "*")]
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProtocolName {
    Delta,
    Sotw,
}

const TYPES: [(&str, &str); 10] = [
    ("cluster", "envoy.config.cluster.v3.Cluster"),
    ("endpoint", "envoy.config.endpoint.v3.ClusterLoadAssignment"),
    ("extension", "envoy.config.core.v3.TypedExtensionConfig"),
    ("listener", "envoy.config.listener.v3.Listener"),
    ("locality-endpoint", "envoy.config.endpoint.v3.LbEndpoint"),
    ("route", "envoy.config.route.v3.RouteConfiguration"),
    ("runtime", "envoy.service.runtime.v3.Runtime"),
    ("scoped-route", "envoy.config.route.v3.ScopedRouteConfiguration"),
    ("secret", "envoy.extensions.transport_sockets.tls.v3.Secret"),
    ("virtual-host", "envoy.config.route.v3.VirtualHost"),
];

/// A running subscription.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) interests: Vec<Interest>,
    /// Events, each with the place of its watch in `interests`.
    pub(crate) events: mpsc::Receiver<(usize, Event)>,
}

impl Target {
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Subscribes to everything that was asked for.
    pub(crate) fn open(&self) -> Result<Session, Box<dyn Error>> {
        let type_url = type_url(&self.type_url)?;
        let protocol = match self.protocol {
            ProtocolName::Delta => Protocol::Delta,
            ProtocolName::Sotw => Protocol::Sotw,
        };
        let node = Node {
            id: self.node.clone(),
            cluster: self.cluster.clone(),
            user_agent_name: "xds".into(),
            user_agent_version: env!("CARGO_PKG_VERSION").into(),
            client_features: vec!["xds.config.resource-in-sotw".into()],
            ..Node::default()
        };
        let endpoint = Endpoint::new(&self.server)?.with_protocol(protocol).with_node(&node);
        let client = Client::connect(endpoint);
        // A full channel holds the watches back, and those coalesce.
        let (sender, events) = mpsc::channel(1);
        let mut interests = Vec::with_capacity(self.names.len());
        for (index, name) in self.names.iter().enumerate() {
            let mut watch = client.watch(type_url.as_str(), name)?;
            interests.push(watch.interest().clone());
            let sender = sender.clone();
            tokio::spawn(async move { while sender.send((index, watch.changed().await)).await.is_ok() {} });
        }
        Ok(Session { client, interests, events })
    }
}

/// Says on standard error when the stream is lost, and when there is one again.
pub(crate) async fn report_connection(client: Client, server: String) {
    let mut connection = client.connection();
    let mut lost = false;
    while connection.changed().await.is_ok() {
        match &*connection.borrow_and_update() {
            Some(Connection::Disconnected { error: Some(error), .. }) if !lost => {
                lost = true;
                eprintln!("xds: no stream to {server}: {error}; trying again");
            }
            Some(Connection::Answered) if lost => {
                lost = false;
                eprintln!("xds: connected to {server}");
            }
            _ => {}
        }
    }
}

/// Prints one event as one line.
pub(crate) fn print(event: &Event) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let time = clock();
    match event {
        Event::Put { name, version, body } => {
            writeln!(out, "{time}  put      {name}  version {version}  {} bytes", body.len())
        }
        Event::Removed { name } => writeln!(out, "{time}  removed  {name}"),
        _ => Ok(()),
    }
}

/// The time of day, UTC.
fn clock() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}.{:03}Z", seconds / 3600, seconds / 60 % 60, seconds % 60, since.subsec_millis())
}

fn type_url(text: &str) -> Result<String, String> {
    const PREFIX: &str = "type.googleapis.com/";
    if text.contains('/') {
        return Ok(text.to_owned());
    }
    if text.contains('.') {
        return Ok(format!("{PREFIX}{text}"));
    }
    TYPES.iter().find(|(short, _)| *short == text).map(|(_, full)| format!("{PREFIX}{full}")).ok_or_else(|| {
        let known: Vec<_> = TYPES.iter().map(|(short, _)| *short).collect();
        format!("no type {text:?}: give a type URL or one of {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_given_short_or_in_full() {
        let full = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
        for text in ["cluster", "envoy.config.cluster.v3.Cluster", full] {
            assert_eq!(type_url(text).as_deref(), Ok(full));
        }
        assert!(type_url("clusterr").is_err_and(|error| error.contains("\"clusterr\"")));
    }
}
