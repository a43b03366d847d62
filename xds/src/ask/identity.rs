//! How servers are spoken to, and who we say that we are.

use std::error::Error;
use std::path::Path;

use clap::ValueEnum;
use xds_transport::wire::Node;
use xds_transport::{Dialect, Protocol};
use xdstp_cache::Selector;
use xdstp_client::bootstrap::Bootstrap;
use xdstp_client::{Client, Endpoint};

use super::documents::Readers;
use super::key_value::KeyValue;
use super::secure;

const NAME: &str = "xds";
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, clap::Args)]
// Flattened into the arguments of another command, whose group has this name.
#[group(skip)]
pub(crate) struct Identity {
    #[command(flatten)]
    secure: secure::Args,
    /// The protocol
    #[arg(long, value_enum, default_value_t = ProtocolName::Delta)]
    protocol: ProtocolName,
    /// A dynamic parameter that goes with every name (TP2): of each, the variant comes that is for it
    #[arg(long = "param", value_name = "KEY=VALUE")]
    parameters: Vec<KeyValue>,
    /// The form of TP2 that the server speaks
    #[arg(long, value_enum, default_value_t = DialectName::Final)]
    dialect: DialectName,
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

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DialectName {
    /// Of 2022: clients send parameters
    Final,
    /// Of 2021: clients send constraints
    Draft,
}

impl Identity {
    /// A server by its address, secured as the arguments say.
    ///
    /// # Errors
    /// It is no address, or a file is not good.
    pub(super) fn endpoint(&self, server: &str) -> Result<Endpoint, Box<dyn Error>> {
        let node = Node {
            id: self.node.clone(),
            cluster: self.cluster.clone(),
            user_agent_name: NAME.into(),
            user_agent_version: VERSION.into(),
            client_features: vec!["xds.config.resource-in-sotw".into()],
            ..Node::default()
        };
        let (dialect, selector) = self.selecting();
        let endpoint = Endpoint::new(server)?.with_protocol(self.protocol()).with_node(&node);
        self.secure.secure(server, endpoint.selecting(dialect, selector)?)
    }

    /// By what it selects among the variants of every name.
    pub(crate) fn selector(&self) -> Selector {
        let parameters = self.parameters.iter().map(|KeyValue { key, value }| (key.as_str(), value.as_str()));
        Selector::Parameters(parameters.collect())
    }

    /// The servers of a bootstrap, whose node we are, in the protocol of the arguments.
    ///
    /// # Errors
    /// They cannot be asked with the parameters of the arguments.
    pub(super) fn client(
        &self,
        bootstrap: Bootstrap,
        state: Option<&Path>,
        Readers { files, http }: Readers,
    ) -> Result<Client, Box<dyn Error>> {
        let (dialect, selector) = self.selecting();
        let mut builder = Client::builder(bootstrap).protocol(self.protocol()).user_agent(NAME, VERSION);
        if let Some(directory) = state {
            builder = builder.state(directory);
        }
        if let Some(files) = files {
            builder = builder.files(files);
        }
        if let Some(http) = http {
            builder = builder.http(http);
        }
        Ok(builder.selecting(dialect, selector)?.build()?)
    }

    fn protocol(&self) -> Protocol {
        match self.protocol {
            ProtocolName::Delta => Protocol::Delta,
            ProtocolName::Sotw => Protocol::Sotw,
        }
    }

    fn selecting(&self) -> (Dialect, Selector) {
        (self.dialect.dialect(), self.selector())
    }
}

impl DialectName {
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Self::Final => Dialect::Final,
            Self::Draft => Dialect::Draft,
        }
    }
}
