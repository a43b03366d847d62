//! What the descriptors that this process may have allow: so many connections of clients and to origins, and so much of what is served
//! over the latter. Admin pages and files have theirs, whatever strangers do.

use xds_transport::TypeRules;

use crate::config::{self, Config, Methods, OriginKind};

/// How many there may be of what costs descriptors, though the configuration says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Connections of clients.
    pub(crate) connections: usize,
    /// Connections to origins, beside two to each server, and two for load reports.
    pub(crate) upward: usize,
    /// Node groups, each of which is a stream to its origin.
    pub(crate) groups: usize,
    /// Each of which is one to the default origin.
    pub(crate) load_report_streams: usize,
}

/// Which part of the descriptors, and how many at the least, are not for connections of clients.
const RESERVED_PART: u64 = 8;
const RESERVED: u64 = 32;

impl Bounds {
    /// For a configuration, by what the system says.
    pub(crate) fn of(config: &Config) -> Self {
        #[cfg(unix)]
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        #[cfg(not(unix))]
        let descriptors: Option<u64> = None;
        let any = usize::MAX;
        let none = Self { connections: any, upward: any, groups: any, load_report_streams: any };
        descriptors.map_or(none, |descriptors| Self::within(descriptors, config))
    }

    /// Of what is not for clients half is for connections to origins. Each server has one, and one that is being left, and as many
    /// for load reports, whatever others take; of the others half may be full of streams of node groups, and a quarter of load
    /// reports, so that some are left for what is not counted.
    fn within(descriptors: u64, config: &Config) -> Self {
        let reserved = (descriptors / RESERVED_PART).max(RESERVED);
        let connections = number(descriptors.saturating_sub(reserved).max(1));
        let servers = |origin: &config::Origin| origin.kind.servers().map_or(0, <[_]>::len);
        let all: usize = config.origins.iter().map(servers).sum();
        let default_origin = config.origin(&config.default_origin);
        let pools = all + default_origin.map_or(0, servers);
        let upward = number(reserved / 2).max(3 * pools) - 2 * pools;
        // A group may have a stream to each server of its origin, and one for each type.
        let with_servers = config.origins.iter().filter(|origin| servers(origin) > 0);
        let of_one = with_servers.map(|origin| (upward / 2).saturating_mul(groups_of_one(origin)) / servers(origin));
        let groups = of_one.min().map_or(usize::MAX, |groups| groups.max(1));
        let reports = default_origin.map_or(1, |origin| origin.streams_per_connection.get());
        let load_report_streams = (upward / 4).saturating_mul(reports).max(1);
        Self { connections, upward, groups, load_report_streams }
    }

    /// Connections of clients, where the configuration says how many.
    pub(crate) fn connections(&self, config: &Config) -> usize {
        match config.limits.connections.map(std::num::NonZero::get) {
            Some(said) if said > self.connections => {
                let most = self.connections;
                tracing::warn!("limits.connections is {said}, and descriptors allow {most} (ulimit -n)");
                most
            }
            Some(said) => said,
            None => self.connections,
        }
    }

    /// Says of what there is less than the configuration says.
    pub(crate) fn say(&self, config: &Config) {
        let limits = &config.limits;
        let said = [
            ("groups", limits.groups, self.groups),
            ("load_report_streams", limits.load_report_streams, self.load_report_streams),
        ];
        for (key, said, most) in said.into_iter().filter(|(_, said, most)| said > most) {
            tracing::info!("limits.{key} is {said}, and descriptors allow {most} (ulimit -n)");
        }
    }
}

/// How many node groups share a connection, as [`Pool`](xdstp_client::upstream::Pool) reckons it.
fn groups_of_one(origin: &config::Origin) -> usize {
    let each = match (origin.methods, &origin.kind) {
        (Methods::PerType, OriginKind::Server { protocol, .. }) => TypeRules::envoy().methods(*protocol).max(1),
        _ => 1,
    };
    (origin.streams_per_connection.get() / each).max(1)
}

fn number(of: u64) -> usize {
    usize::try_from(of).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(descriptors: u64, origins: &str) -> Bounds {
        Bounds::within(descriptors, &Config::parse("relay.yaml", &format!("origins: {origins}")).unwrap())
    }

    #[test]
    fn some_descriptors_are_left_for_everything_else() {
        let connections = |descriptors| within(descriptors, "[{ name: up, server: 'a:1' }]").connections;
        assert_eq!([1024, 100, 8, 1 << 20].map(connections), [896, 68, 1, 917_504]);
    }

    #[test]
    fn what_is_served_over_connections_to_origins_fits_into_half_of_these() {
        for descriptors in [40, 64, 80, 256, 1024, 4096, 65_536] {
            for (origins, servers, streams, of_one) in [
                ("[{ name: up, server: 'a:1' }]", 1, 100, 100),
                ("[{ name: up, server: 'a:1', streams_per_connection: 1 }]", 1, 1, 1),
                ("[{ name: up, servers: ['a:1', 'b:1'], streams_per_connection: 10 }]", 2, 10, 10),
                ("[{ name: up, server: 'a:1', methods: per_type }]", 1, 100, 9),
                ("[{ name: up, server: 'a:1', methods: per_type, protocol: sotw }]", 1, 100, 11),
                ("[{ name: up, servers: ['a:1', 'b:1'], methods: per_type, streams_per_connection: 5 }]", 2, 5, 1),
            ] {
                let bounds = within(descriptors, origins);
                let Bounds { connections, upward, groups, load_report_streams } = bounds;
                let full = (groups * servers).div_ceil(of_one) + load_report_streams.div_ceil(streams);
                assert!(full <= upward, "{descriptors} {origins}: {bounds:?}");
                let upward = upward + 4 * servers;
                assert!(
                    connections + upward + 16 <= usize::try_from(descriptors).unwrap(),
                    "{descriptors} {origins}: {bounds:?}"
                );
            }
        }
        let usual = within(65_536, "[{ name: up, server: 'a:1' }]");
        assert!(usual.groups > 20_000 && usual.load_report_streams > 50_000, "the defaults are less: {usual:?}");
        assert_eq!(within(1024, "[{ name: f, files: . }]").groups, usize::MAX, "of files they cost none");
        assert!(within(40, "[{ name: a, server: 'a:1' }]").groups >= 1);
        let several = within(1024, "[{ name: up, servers: ['a:1', 'b:1'], streams_per_connection: 1 }]");
        assert!(several.groups > 10, "a connection for each is not none for any: {several:?}");
    }

    #[test]
    fn a_limit_that_descriptors_do_not_allow_is_what_they_do() {
        let connections = |said: &str| {
            let config = format!("{{ origins: [{{ name: up, server: 'a:1' }}], limits: {{ {said} }} }}");
            let config = Config::parse("relay.yaml", &config).unwrap();
            Bounds::within(1024, &config).connections(&config)
        };
        assert_eq!(["", "connections: 7", "connections: 5000"].map(connections), [896, 7, 896]);
    }
}
