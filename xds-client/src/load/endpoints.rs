//! What is counted of the endpoints of a locality.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use prost::Message;
use xds_transport::wire::load_report::{Address, SocketAddress, UpstreamEndpointStats};

use super::bounds::{Bounds, MOST_ENDPOINTS, Room};
use super::calls::{Calls, Taken};
use super::sums::{Sums, named};

/// By their addresses.
#[derive(Debug, Default)]
pub(super) struct Endpoints(Mutex<BTreeMap<SocketAddr, Arc<Endpoint>>>);

#[derive(Debug)]
pub(super) struct Endpoint {
    address: SocketAddr,
    calls: Calls,
    _room: Room,
}

impl Endpoints {
    /// The one at an address, if it is told apart, and how many are not.
    pub(super) fn of(&self, address: SocketAddr, bounds: &Arc<Bounds>) -> (Option<Arc<Endpoint>>, u64) {
        // Without what is known on this machine only: the scope of an address.
        let address = SocketAddr::new(address.ip(), address.port());
        let mut endpoints = self.0.lock();
        if let Some(known) = endpoints.get(&address) {
            return (Some(known.clone()), 0);
        }
        let mut left_out = 0;
        if endpoints.len() >= MOST_ENDPOINTS {
            endpoints.retain(|_, endpoint| {
                let held = Arc::get_mut(endpoint).is_none();
                left_out += u64::from(!held && !endpoint.calls.is_empty());
                held
            });
        }
        let room = if endpoints.len() < MOST_ENDPOINTS { bounds.room() } else { None };
        let Some(room) = room else { return (None, left_out + 1) };
        let made = Arc::new(Endpoint { address, calls: Calls::default(), _room: room });
        endpoints.insert(address, made.clone());
        (Some(made), left_out)
    }

    /// What there is to report, with these metrics: of each that somebody holds, or that there is anything of.
    pub(super) fn take(&self, metrics: Sums<(SocketAddr, String)>) -> Vec<UpstreamEndpointStats> {
        let mut metrics = metrics.into_iter().peekable();
        let mut reported = Vec::new();
        self.0.lock().retain(|address, endpoint| {
            let held = Arc::get_mut(endpoint).is_none();
            if held || !endpoint.calls.is_empty() {
                let mut stats = endpoint.take();
                // Both are in order of addresses.
                while metrics.next_if(|((at, _), _)| at < address).is_some() {}
                while let Some(((_, name), sum)) = metrics.next_if(|((at, _), _)| at == address) {
                    stats.load_metric_stats.push(named(name, &sum));
                }
                reported.push(stats);
            }
            held
        });
        reported
    }
}

impl Endpoint {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn calls(&self) -> &Calls {
        &self.calls
    }

    fn take(&self) -> UpstreamEndpointStats {
        let Taken { issued, succeeded, failed, in_progress } = self.calls.take();
        UpstreamEndpointStats {
            address: encoded(self.address).into(),
            total_issued_requests: issued,
            total_successful_requests: succeeded,
            total_error_requests: failed,
            total_requests_in_progress: in_progress,
            ..UpstreamEndpointStats::default()
        }
    }

    pub(super) fn put_back(&self, stats: &UpstreamEndpointStats) {
        self.calls.put_back(Taken {
            issued: stats.total_issued_requests,
            succeeded: stats.total_successful_requests,
            failed: stats.total_error_requests,
            in_progress: 0,
        });
    }
}

fn encoded(address: SocketAddr) -> Vec<u8> {
    let (address, port_value) = (address.ip().to_string(), u32::from(address.port()));
    Address { socket_address: Some(SocketAddress { address, port_value }) }.encode_to_vec()
}

/// Of which endpoint these are.
pub(super) fn address_of(stats: &UpstreamEndpointStats) -> Option<SocketAddr> {
    let SocketAddress { address, port_value } = Address::decode(stats.address.clone()).ok()?.socket_address?;
    Some(SocketAddr::new(address.parse::<IpAddr>().ok()?, port_value.try_into().ok()?))
}
