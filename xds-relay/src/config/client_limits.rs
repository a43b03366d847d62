//! What one client may use up, by the rule for it.

use std::num::NonZeroUsize;

use serde_json::{Value, json};

use super::fields::CLIENT_LIMIT_FIELDS;
use super::limits::{Limits, number};
use crate::yaml::{self, Error};

/// Bounds on what one client may use up, over all of its streams: `None` where it is a part of the [limits](super::Limits) of all
/// clients together ([`one_client`](super::Limits::one_client)). Which streams are one client's, what it shows says: its certificate; else its token, where its rule asks for
/// one; else its address, of IPv6 the first 64 bits.
///
/// ```
/// use std::num::NonZeroUsize;
/// use xds_relay::Config;
///
/// let config = Config::parse(
///     "relay.yaml",
///     "
///     origins: [{ name: control-plane, server: 127.0.0.1:18010 }]
///     clients: [{ match: { any: true }, limits: { streams: 10 } }]
///     ",
/// )?;
/// let limits = config.clients.unwrap()[0].limits;
/// assert_eq!((limits.streams, limits.names), (NonZeroUsize::new(10), None));
/// # Ok::<(), xds_relay::config::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientLimits {
    /// How many streams it may have.
    pub streams: Option<NonZeroUsize>,
    /// How many it may open in a second, with those of load reports.
    pub new_streams_per_second: Option<NonZeroUsize>,
    /// How many streams of load reports it may have.
    pub load_report_streams: Option<NonZeroUsize>,
    /// In how many node groups it may be.
    pub groups: Option<NonZeroUsize>,
    /// Of how many authorities it may ask for names.
    pub authorities: Option<NonZeroUsize>,
    /// How many names it may ask for. Those that it holds when it connects again count among what all clients have.
    pub names: Option<NonZeroUsize>,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClientLimit {
    Streams,
    NewStreams,
    LoadReports,
    Groups,
    Authorities,
    Names,
}

impl ClientLimit {
    /// In the order of the README.
    pub(crate) const ALL: [Self; 6] =
        [Self::Streams, Self::NewStreams, Self::LoadReports, Self::Groups, Self::Authorities, Self::Names];

    /// Its field, from the root of a configuration.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Streams => "clients[].limits.streams",
            Self::NewStreams => "clients[].limits.new_streams_per_second",
            Self::LoadReports => "clients[].limits.load_report_streams",
            Self::Groups => "clients[].limits.groups",
            Self::Authorities => "clients[].limits.authorities",
            Self::Names => "clients[].limits.names",
        }
    }

    /// Its field.
    pub(crate) fn key(self) -> &'static str {
        self.path().rsplit('.').next().unwrap_or_default()
    }

    /// Its field, where the part of a client is what is met: which part, of which limit.
    pub(crate) fn part_path(self) -> &'static str {
        match self {
            Self::Streams => "one_client of limits.streams",
            Self::NewStreams => "one_client of limits.new_streams_per_second",
            Self::LoadReports => "one_client of limits.load_report_streams",
            Self::Groups => "one_client of limits.groups",
            Self::Authorities => "one_client of limits.authorities",
            Self::Names => "one_client of limits.names",
        }
    }

    /// Whether it is one client that has a limit of this path.
    pub(crate) fn is_of_client(path: &str) -> bool {
        Self::of_path(path).is_some() || Self::is_part(path)
    }

    /// Whether this is such a [path](Self::part_path).
    pub(crate) fn is_part(path: &str) -> bool {
        Self::ALL.into_iter().any(|limit| limit.part_path() == path)
    }

    /// The one of a [path](Self::path).
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.path() == path)
    }

    /// Of what there may be so much, for people.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Streams => "streams of one client",
            Self::NewStreams => "new streams of one client a second",
            Self::LoadReports => "streams of load reports of one client",
            Self::Groups => "node groups of one client",
            Self::Authorities => "authorities of one client",
            Self::Names => "names of one client",
        }
    }

    /// How much there may be, if that is limited.
    pub(crate) fn most(self, limits: &ClientLimits) -> Option<NonZeroUsize> {
        *self.at(&mut limits.clone())
    }

    /// How much there may be of one client for which no rule says that, if that is less than of all.
    pub(crate) fn part(self, limits: &Limits) -> Option<usize> {
        let all = match self {
            Self::Streams => limits.streams,
            Self::NewStreams => usize::try_from(limits.new_streams_per_second).unwrap_or(usize::MAX),
            Self::LoadReports => limits.load_report_streams,
            Self::Groups => limits.groups,
            Self::Authorities => limits.authorities,
            Self::Names => limits.names,
        };
        part(all, limits.one_client)
    }

    fn at(self, limits: &mut ClientLimits) -> &mut Option<NonZeroUsize> {
        match self {
            Self::Streams => &mut limits.streams,
            Self::NewStreams => &mut limits.new_streams_per_second,
            Self::LoadReports => &mut limits.load_report_streams,
            Self::Groups => &mut limits.groups,
            Self::Authorities => &mut limits.authorities,
            Self::Names => &mut limits.names,
        }
    }
}

/// So much of a hundred of all, if it is less than that: at least one of a few, as nobody would be let in.
pub(crate) fn part(all: usize, percent: u8) -> Option<usize> {
    let part = usize::from(percent);
    (part < 100).then(|| (all / 100 * part + all % 100 * part / 100).max(1))
}

pub(super) fn client_limits(node: &yaml::Node) -> Result<ClientLimits, Error> {
    node.expect_fields(CLIENT_LIMIT_FIELDS)?;
    let mut limits = ClientLimits::default();
    for limit in ClientLimit::ALL {
        *limit.at(&mut limits) = node.field(limit.key(), number)?.and_then(NonZeroUsize::new);
    }
    Ok(limits)
}

/// As a file would have them, if there are any.
pub(super) fn written(limits: &ClientLimits) -> Option<Value> {
    let set = |limit: ClientLimit| Some((limit.key().to_owned(), json!(limit.most(limits)?)));
    let fields: serde_json::Map<_, _> = ClientLimit::ALL.into_iter().filter_map(set).collect();
    (!fields.is_empty()).then_some(Value::Object(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_one_at_least_and_none_where_all_is_allowed() {
        let part =
            |one_client, streams| ClientLimit::Streams.part(&Limits { one_client, streams, ..Limits::default() });
        assert_eq!([part(50, 1), part(50, 2), part(50, 3), part(99, 50_000)], [1, 1, 1, 49_500].map(Some));
        assert_eq!((part(1, usize::MAX), part(100, 7)), (Some(usize::MAX / 100), None));
        let all = ClientLimit::ALL.map(|limit| limit.part(&Limits::default()).unwrap());
        assert_eq!(all, [25_000, 1000, 25_000, 10_000, 5000, 10_000_000]);
        let paths = ClientLimit::ALL.map(|limit| format!("one_client of limits.{}", limit.key()));
        assert_eq!(ClientLimit::ALL.map(ClientLimit::part_path).to_vec(), paths);
        assert!(paths.iter().all(|path| ClientLimit::is_part(path)) && !ClientLimit::is_part("streams"));
    }

    #[test]
    fn each_field_is_that_of_its_name() {
        let keys = ClientLimit::ALL.map(ClientLimit::key);
        assert_eq!(keys, CLIENT_LIMIT_FIELDS);
        for limit in ClientLimit::ALL {
            let root = yaml::parse(&format!("{}: 77", limit.key())).unwrap().unwrap();
            let read = client_limits(&root).unwrap();
            let debugged = format!("{read:?}");
            assert!(debugged.contains(&format!("{}: Some(77)", limit.key())), "{debugged}");
            assert_eq!(debugged.matches("None").count(), keys.len() - 1);
            assert_eq!(written(&read), Some(json!({ limit.key(): 77 })));
        }
        assert_eq!(written(&ClientLimits::default()), None);
    }
}
