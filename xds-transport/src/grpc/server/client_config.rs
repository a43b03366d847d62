//! One client in the words of CSDS.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use xdstp_cache::{Resource, TypeUrl};

use crate::frame::Frame;
use crate::grpc::now;
use crate::server::{Reception, SessionView};
use crate::wire::Timestamp;
use crate::wire::client_status::{ClientResourceStatus, ConfigStatus, GenericXdsConfig, UpdateFailureState};

/// What a client has of a resource that is there for it. `reception` is what it said of this version, if it was sent it.
/// `contents` says whether the resource itself is told.
///
/// A server knows what it sent and what was said of that. What a client refuses stands in `error_state`, and beside it
/// nothing: what the client has instead is of before, if it has anything.
pub fn config_of_resource(
    session: &SessionView<'_>,
    name: &str,
    resource: &Resource<Frame>,
    reception: Option<Reception>,
    contents: bool,
) -> GenericXdsConfig {
    let (config_status, client_status) = match reception {
        None => (ConfigStatus::NotSent, ClientResourceStatus::Requested),
        Some(Reception::Unanswered) => (ConfigStatus::Stale, ClientResourceStatus::Requested),
        Some(Reception::Refused { .. }) => (ConfigStatus::Error, ClientResourceStatus::Nacked),
        Some(Reception::Accepted) => (ConfigStatus::Synced, ClientResourceStatus::Acked),
        Some(Reception::Unknown) => (ConfigStatus::Unknown, ClientResourceStatus::Unknown),
    };
    let version = resource.version.to_string();
    let body = if contents { resource.value.any().clone() } else { Bytes::new() };
    let empty = of_name(session.type_url, name, config_status, client_status);
    match reception {
        Some(Reception::Refused { .. }) => {
            let nack = session.tally.last_nack.as_ref();
            let error_state = UpdateFailureState {
                failed_configuration: body,
                last_update_attempt: nack.map(|nack| timestamp(nack.at)),
                details: nack.map_or_else(String::new, |nack| nack.message.clone()),
                version_info: version,
            };
            GenericXdsConfig { error_state: Some(error_state), ..empty }
        }
        Some(Reception::Accepted) => {
            let last_updated = session.accepted.map(|accepted| timestamp(accepted.at));
            GenericXdsConfig { version_info: version, xds_config: body, last_updated, ..empty }
        }
        _ => GenericXdsConfig { version_info: version, xds_config: body, ..empty },
    }
}

/// What a client has of a name that it asks for, and that there is nothing of: because there is no such resource, if that is
/// known.
pub fn config_of_missing(type_url: &TypeUrl, name: &str, is_known: bool) -> GenericXdsConfig {
    let status = if is_known { ClientResourceStatus::DoesNotExist } else { ClientResourceStatus::Requested };
    of_name(type_url, name, ConfigStatus::NotSent, status)
}

fn of_name(type_url: &TypeUrl, name: &str, of: ConfigStatus, at_client: ClientResourceStatus) -> GenericXdsConfig {
    GenericXdsConfig {
        type_url: type_url.to_string(),
        name: name.to_owned(),
        config_status: of.into(),
        client_status: at_client.into(),
        ..GenericXdsConfig::default()
    }
}

/// A moment of the machine's clock by the wall clock, as that is now.
fn timestamp(at: Instant) -> Timestamp {
    let ago = now().saturating_duration_since(at);
    let since =
        SystemTime::now().checked_sub(ago).and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    // Less than 10^9.
    Timestamp { seconds, nanos: i32::try_from(since.subsec_nanos()).unwrap_or_default() }
}
