//! How servers are spoken to, and who we say that we are.

use std::error::Error;

use clap::ValueEnum;
use xds_transport::Protocol;
use xds_transport::wire::Node;
use xdstp_client::Endpoint;

use super::secure;

#[derive(Debug, clap::Args)]
// Flattened into the arguments of another command, whose group has this name.
#[group(skip)]
pub(crate) struct Identity {
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
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProtocolName {
    Delta,
    Sotw,
}

impl Identity {
    /// A server by its address, secured as the arguments say.
    ///
    /// # Errors
    /// It is no address, or a file is not good.
    pub(super) fn endpoint(&self, server: &str) -> Result<Endpoint, Box<dyn Error>> {
        let node = Node { id: self.node.clone(), cluster: self.cluster.clone(), ..Node::default() };
        Ok(self.secure.secure(self.introduce(Endpoint::new(server)?, &node))?)
    }

    /// The endpoint, told who we are, in the protocol of the arguments.
    pub(super) fn introduce(&self, endpoint: Endpoint, node: &Node) -> Endpoint {
        let protocol = match self.protocol {
            ProtocolName::Delta => Protocol::Delta,
            ProtocolName::Sotw => Protocol::Sotw,
        };
        let node = Node {
            user_agent_name: "xds".into(),
            user_agent_version: env!("CARGO_PKG_VERSION").into(),
            client_features: vec!["xds.config.resource-in-sotw".into()],
            ..node.clone()
        };
        endpoint.with_protocol(protocol).with_node(&node)
    }
}
