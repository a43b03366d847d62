//! Who a client is, for what one client may use up.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Who a client is, by what it shows and cannot make up: of all streams with an equal one it is counted together what they use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Identity {
    /// The first name in its certificate, or its subject where that has no names.
    Certificate(Arc<str>),
    /// The hash of a token that its rule asks for.
    Token([u8; 32]),
    /// Where it comes from: of IPv6 the first 64 bits, as whoever has one of these addresses has them all.
    Address(IpAddr),
    /// By a unix socket, or by a listener of a program that does not say from where.
    Local,
}

impl Identity {
    /// Of who comes from an address.
    pub fn of_address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            other => other,
        })
    }

    /// Whether it may stand for many that nothing tells apart: all who come from this machine, such as by a proxy that has the port that
    /// others know.
    pub fn is_this_machine(&self) -> bool {
        match self {
            Self::Local => true,
            Self::Address(address) => address.is_loopback(),
            Self::Certificate(_) | Self::Token(_) => false,
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(name) => write!(f, "certificate of {name}"),
            // No more of it, as it is a secret.
            Self::Token(_) => f.write_str("token"),
            Self::Address(IpAddr::V6(address)) if !address.is_loopback() => write!(f, "{address}/64"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Local => f.write_str("local"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_many_addresses_is_one_client() {
        let of = |text: &str| Identity::of_address(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::7"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.2"), of("10.0.0.1"));
        let all = [of("2001:db8:1:2::1"), of("10.0.0.1"), Identity::Token([7; 32])].map(|of| of.to_string());
        assert_eq!(all, ["2001:db8:1:2::/64", "10.0.0.1", "token"]);
    }

    #[test]
    fn who_comes_from_this_machine_may_be_many() {
        let of = |text: &str| Identity::of_address(text.parse().unwrap());
        let here = [of("127.0.0.1"), of("127.9.9.9"), of("::1"), of("::ffff:127.0.0.1"), Identity::Local];
        assert!(here.iter().all(Identity::is_this_machine), "{here:?}");
        let elsewhere =
            [of("10.0.0.1"), of("::2"), of("2001:db8::1"), Identity::Token([7; 32]), Identity::Certificate("a".into())];
        assert!(!elsewhere.iter().any(Identity::is_this_machine), "{elsewhere:?}");
    }
}
