//! What happens in a script, for who looks at a finding: with `RELAY_TRANSCRIPT=1`, on stderr.

use std::fmt::Debug;
use std::sync::OnceLock;

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse};

pub(crate) fn say(line: impl FnOnce() -> String) {
    static WANTED: OnceLock<bool> = OnceLock::new();
    if *WANTED.get_or_init(|| std::env::var_os("RELAY_TRANSCRIPT").is_some()) {
        eprintln!("{}", line());
    }
}

pub(crate) fn request(from: &dyn Debug, protocol: Protocol, message: &Bytes) {
    say(|| format!("{from:?} -> {}", read::<DeltaDiscoveryRequest, DiscoveryRequest>(protocol, message)));
}

pub(crate) fn response(to: &dyn Debug, protocol: Protocol, message: &Bytes) {
    say(|| format!("{to:?} <- {}", read::<DeltaDiscoveryResponse, DiscoveryResponse>(protocol, message)));
}

/// All of a message but what it lacks.
fn read<D: Message + Default + Debug, S: Message + Default + Debug>(protocol: Protocol, message: &Bytes) -> String {
    let text = match protocol {
        Protocol::Delta => D::decode(message.clone()).map(|message| format!("{message:?}")),
        Protocol::Sotw => S::decode(message.clone()).map(|message| format!("{message:?}")),
    };
    let mut text = text.unwrap_or_else(|error| format!("{} bytes: {error}", message.len()));
    for nothing in ["[]", "None", "\"\"", "b\"\"", "false"] {
        while let Some(at) = text.find(&format!(": {nothing}")) {
            let from = text[..at].rfind([' ', '{']).unwrap_or(at);
            text.replace_range(from..at + 2 + nothing.len(), "");
        }
    }
    text.replace(",,", ",").replace("type.googleapis.com/envoy.", "").chars().take(2000).collect()
}
