//! What is asked, and of whom: shared by the commands that speak to a server.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use clap::ValueEnum;
use tokio::sync::mpsc;
use xds_transport::Protocol;
use xds_transport::wire::Node;
use xdstp_cache::{Interest, Version};
use xdstp_client::upstream::Connection;
use xdstp_client::{Client, Endpoint, Event};
use xdstp_uri::ResourceName;

use crate::secure;

#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// The server, as host:port or URI
    #[arg(long, default_value = "127.0.0.1:18000")]
    server: String,
    #[command(flatten)]
    secure: secure::Args,
    /// The protocol
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
        let client = Client::connect(self.secure.secure(endpoint)?);
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

/// What was printed of each name: a resource that several of the names cover comes once for each of them.
#[derive(Debug, Default)]
pub(crate) struct Printed(BTreeMap<ResourceName, Option<(Version, Bytes)>>);

impl Printed {
    /// Prints one event as one line, if it says something new.
    pub(crate) fn print(&mut self, event: Event) -> io::Result<()> {
        match self.line(event) {
            Some(line) => writeln!(io::stdout().lock(), "{}  {line}", clock()),
            None => Ok(()),
        }
    }

    fn line(&mut self, event: Event) -> Option<String> {
        let (name, state, line) = match event {
            Event::Put { name, version, body } => {
                let line = format!("put      {name}  version {version}  {} bytes", body.len());
                (name, Some((version, body)), line)
            }
            Event::Removed { name } => (name.clone(), None, format!("removed  {name}")),
            _ => return None,
        };
        let before = self.0.insert(name, state.clone());
        (before != Some(state)).then_some(line)
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

    #[test]
    fn what_several_names_cover_is_printed_once_for_each_change() {
        let mut printed = Printed::default();
        let name: ResourceName = "a".parse().unwrap();
        let put = |version: &str, body: &'static str| Event::Put {
            name: name.clone(),
            version: version.into(),
            body: body.into(),
        };
        let removed = || Event::Removed { name: name.clone() };
        let mut lines = |events: &[Event]| events.iter().filter_map(|event| printed.line(event.clone())).count();
        assert_eq!(lines(&[put("1", "x"), put("1", "x"), Event::Answered]), 1);
        assert_eq!(lines(&[put("2", "x"), put("2", "x")]), 1);
        assert_eq!(lines(&[put("2", "y"), put("2", "y")]), 1, "new content at an old version");
        assert_eq!(lines(&[removed(), removed()]), 1);
        assert_eq!(lines(&[put("2", "y")]), 1, "it is back");
    }
}
