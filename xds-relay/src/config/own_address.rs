use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::Uri;

use super::{Address, ServerAddress};

/// Where the relay itself is, which is no origin of it.
#[derive(Clone, Debug)]
pub(super) struct OwnAddresses {
    pub(super) listen: Address,
    pub(super) admin: Option<Address>,
}

impl OwnAddresses {
    /// What of the relay is at `server`, in words.
    pub(super) fn at(&self, server: &ServerAddress) -> Option<String> {
        let Self { listen, admin } = self;
        let listens = is_own(server, listen).then(|| format!("where the relay itself listens ({listen})"));
        listens.or_else(|| {
            let admin = admin.as_ref().filter(|admin| is_own(server, admin))?;
            Some(format!("where the relay itself has its admin pages ({admin})"))
        })
    }
}

fn is_own(server: &ServerAddress, address: &Address) -> bool {
    match (server, address) {
        (ServerAddress::Http(server), Address::Tcp(address)) => is_own_address(server, *address),
        (ServerAddress::Unix(server), Address::Unix(address)) => server == address,
        _ => false,
    }
}

/// Whether whoever dials `server` reaches what listens on `listen`, as far as the texts tell: names other than
/// `localhost` are not looked up.
fn is_own_address(server: &Uri, listen: SocketAddr) -> bool {
    if server.port_u16() != Some(listen.port()) {
        return false;
    }
    let Some(ip) = server.host().and_then(ip) else { return false };
    let listen = listen.ip().to_canonical();
    ip == listen || (is_this_host(ip) && is_this_host(listen)) || (ip.is_loopback() && listen.is_unspecified())
}

fn ip(host: &str) -> Option<IpAddr> {
    if host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case("localhost") {
        return Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    address.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// What one dials to reach this host: connecting to an unspecified address reaches the loopback one, and `localhost` may
/// be of either family. Other loopback addresses (`127.0.0.2`) are told apart.
fn is_this_host(ip: IpAddr) -> bool {
    ip.is_unspecified() || ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaches(server: &str, listen: &str) -> bool {
        is_own_address(&format!("http://{server}/").parse().unwrap(), listen.parse().unwrap())
    }

    #[test]
    fn this_host_is_the_same_by_any_of_its_addresses() {
        let own = ["127.0.0.1:1", "0.0.0.0:1", "[::1]:1", "[::]:1"];
        for listen in own {
            for server in own.into_iter().chain(["localhost:1", "LocalHost.:1", "[::ffff:127.0.0.1]:1"]) {
                assert!(reaches(server, listen), "{server} {listen}");
            }
            for server in ["127.0.0.1:2", "localhost:2", "10.0.0.1:1", "example.com:1", "localhost.example.com:1"] {
                assert!(!reaches(server, listen), "{server} {listen}");
            }
        }
    }

    #[test]
    fn other_addresses_are_compared_as_they_are() {
        assert!(reaches("10.0.0.1:1", "10.0.0.1:1"));
        assert!(reaches("[2001:db8:0::1]:1", "[2001:db8::1]:1"));
        assert!(!reaches("10.0.0.2:1", "10.0.0.1:1"));
        assert!(reaches("127.0.0.2:1", "127.0.0.2:1"));
        assert!(reaches("127.0.0.2:1", "0.0.0.0:1"), "what listens everywhere listens there");
        assert!(!reaches("127.0.0.2:1", "127.0.0.1:1"), "two relays on one machine");
        assert!(!reaches("127.0.0.1:1", "127.0.0.2:1"));
    }
}
