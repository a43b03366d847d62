//! The bounds on what others may use up.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

use bytesize::ByteSize;

use self::Field::{Count, Number, Percent, Rate, Size, Time};
use crate::config::values::{count, duration};
use crate::yaml::{self, Error};

/// Bounds on what a peer may send, and on what all peers may cost together. Who goes beyond one has its stream ended with
/// `RESOURCE_EXHAUSTED`, and words that name the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest message from a subscriber, in bytes.
    pub max_request_bytes: usize,
    /// The longest message from an origin, in bytes.
    pub max_response_bytes: usize,
    /// How many connections clients may have at a time; more are closed at once. `None`: as many as the process may have
    /// descriptors for, less some for itself.
    pub connections: Option<NonZeroUsize>,
    /// The longest message to an origin, in bytes.
    pub max_upstream_request_bytes: usize,
    /// How many names one stream may ask for, of all types together, and how many it may bring along.
    pub names_per_stream: usize,
    /// How many types one stream may ask for.
    pub types_per_stream: usize,
    /// With how many sets of dynamic parameters or constraints one stream may ask. A set that is sent for two types counts twice.
    pub parameter_sets_per_stream: usize,
    /// How many authorities one stream may ask for names of, for each type.
    pub authorities_per_stream: usize,
    /// How many requests one stream may send in a second, beside one for each response.
    pub requests_per_second: u32,
    /// How many bytes of unfinished requests are kept, of all streams together.
    pub unfinished_request_bytes: usize,
    /// How long a client may take to say that it speaks HTTP/2.
    pub preface: Duration,
    /// How long a stream may be without its first request, and a connection without a stream.
    pub first_request: Duration,
    /// How long a stream lives, more or less: each ends at a moment of its own, between three and five quarters of it.
    pub stream_age: Duration,
    /// How long an admin connection may be open while nothing is answered on it.
    pub admin_idle: Duration,
    /// How many streams one connection may have at a time.
    pub streams_per_connection: u32,
    /// How many streams there may be.
    pub streams: usize,
    /// How many streams may be opened in a second.
    pub new_streams_per_second: u32,
    /// How many streams of load reports there may be: each is one to the default origin, too.
    pub load_report_streams: usize,
    /// How many node groups there may be.
    pub groups: usize,
    /// How many authorities there may be names of.
    pub authorities: usize,
    /// How many names all streams may ask for together, with those that they bring along until these are compared.
    pub names: usize,
    /// Which part of the `streams`, `new_streams_per_second`, `load_report_streams`, `groups`, `authorities` and `names` one client may
    /// have, in percent, where its rule does not say how many of them. At 100 nobody has a limit of his own.
    pub one_client: u8,
    /// How many names that nobody wants any more stay subscribed and held at a time. Beyond that, those go that would be first:
    /// nobody is refused.
    pub lingering_names: usize,
    /// How many names are looked at for one stream before others have their turn.
    pub names_per_turn: usize,
    /// How long a name may be, in bytes, and a type URL or a version. A name that is longer is answered as the name of nothing,
    /// so that the others of its stream are none the worse.
    pub name_bytes: usize,
    /// How long a node may be, in bytes.
    pub node_bytes: usize,
}

impl Default for Limits {
    /// 16 MiB down, 64 MiB up: requests carry names, responses bodies. The others are above what a relay of usual size
    /// sees, and below what it could not bear.
    fn default() -> Self {
        Self {
            max_request_bytes: 16 << 20,
            max_response_bytes: 64 << 20,
            connections: None,
            max_upstream_request_bytes: 4 << 20,
            names_per_stream: 100_000,
            types_per_stream: 64,
            parameter_sets_per_stream: 100,
            authorities_per_stream: 1000,
            requests_per_second: 1000,
            unfinished_request_bytes: 128 << 20,
            preface: Duration::from_secs(10),
            first_request: Duration::from_secs(300),
            stream_age: Duration::from_secs(24 * 3600),
            admin_idle: Duration::from_secs(60),
            streams_per_connection: 1000,
            streams: 50_000,
            new_streams_per_second: 2000,
            load_report_streams: 50_000,
            groups: 20_000,
            authorities: 10_000,
            names: 20_000_000,
            one_client: 50,
            lingering_names: 20_000_000,
            names_per_turn: 4096,
            name_bytes: 64 << 10,
            node_bytes: 64 << 10,
        }
    }
}

/// A limit as all who go through them know it: the reader, the writer, the schema, the rules of what a program made, the metrics.
/// Its default, and what it bounds, are with its field.
pub(crate) struct Limit {
    /// Its field, and its name in the configuration.
    pub(crate) key: &'static str,
    /// Whether it is counted how often it was met.
    pub(crate) is_counted: bool,
    pub(super) field: Field,
}

/// Where the value of a limit is, and what it may be.
pub(super) enum Field {
    /// Bytes, so many of them.
    Size(Sizes, At<usize>),
    /// Of something that there must be one of.
    Number(At<usize>),
    /// In a second, or on one connection.
    Rate(At<u32>),
    Time(At<Duration>),
    /// Of other limits.
    Percent(At<u8>),
    /// What may be left out.
    Count(At<Option<NonZeroUsize>>),
}

type At<T> = fn(&mut Limits) -> &mut T;

/// What a limit is set to.
pub(super) enum Amount {
    Number(u64),
    Time(Duration),
    Percent(u8),
}

/// All of them, in the order of the README.
pub(crate) const LIMITS: &[Limit] = &[
    counted("max_request_bytes", Size(MESSAGE_BYTES, |of| &mut of.max_request_bytes)),
    uncounted("max_response_bytes", Size(MESSAGE_BYTES, |of| &mut of.max_response_bytes)),
    counted("max_upstream_request_bytes", Size(UPSTREAM_REQUEST_BYTES, |of| &mut of.max_upstream_request_bytes)),
    counted("connections", Count(|of| &mut of.connections)),
    counted("names_per_stream", Number(|of| &mut of.names_per_stream)),
    counted("types_per_stream", Number(|of| &mut of.types_per_stream)),
    counted("parameter_sets_per_stream", Number(|of| &mut of.parameter_sets_per_stream)),
    counted("authorities_per_stream", Number(|of| &mut of.authorities_per_stream)),
    counted("requests_per_second", Rate(|of| &mut of.requests_per_second)),
    counted("unfinished_request_bytes", Size(MESSAGE_BYTES, |of| &mut of.unfinished_request_bytes)),
    counted("preface", Time(|of| &mut of.preface)),
    counted("first_request", Time(|of| &mut of.first_request)),
    counted("stream_age", Time(|of| &mut of.stream_age)),
    counted("admin_idle", Time(|of| &mut of.admin_idle)),
    counted("streams_per_connection", Rate(|of| &mut of.streams_per_connection)),
    counted("streams", Number(|of| &mut of.streams)),
    counted("new_streams_per_second", Rate(|of| &mut of.new_streams_per_second)),
    counted("load_report_streams", Number(|of| &mut of.load_report_streams)),
    counted("groups", Number(|of| &mut of.groups)),
    counted("authorities", Number(|of| &mut of.authorities)),
    counted("names", Number(|of| &mut of.names)),
    counted("one_client", Percent(|of| &mut of.one_client)),
    uncounted("lingering_names", Number(|of| &mut of.lingering_names)),
    uncounted("names_per_turn", Number(|of| &mut of.names_per_turn)),
    counted("name_bytes", Size(NAME_BYTES, |of| &mut of.name_bytes)),
    counted("node_bytes", Size(NODE_BYTES, |of| &mut of.node_bytes)),
];

const fn counted(key: &'static str, field: Field) -> Limit {
    Limit { key, is_counted: true, field }
}

/// Nobody is refused for it.
const fn uncounted(key: &'static str, field: Field) -> Limit {
    Limit { key, is_counted: false, field }
}

/// A size in bytes, from one to another, and how that is said.
pub(super) struct Sizes(RangeInclusive<u64>, &'static str);

const MOST_BYTES: u64 = i32::MAX as u64;

/// Below, a request with one long name would not fit; above, protobuf has no messages.
const MESSAGE_BYTES: Sizes = Sizes((4 << 10)..=MOST_BYTES, "4 KiB to 2 GiB, such as 16777216 or 16 MiB");

/// Below, there might be room for a node and no names.
const UPSTREAM_REQUEST_BYTES: Sizes = Sizes((1 << 20)..=MOST_BYTES, "1024 KiB to 2 GiB, such as 16777216 or 16 MiB");

/// Below, names would be none that clients usually have; above, none is read.
const NAME_BYTES: Sizes = Sizes((1 << 10)..=(64 << 10), "1 KiB to 64 KiB, such as 4096 or 4 KiB");

/// Below, there would hardly be room for a locality and some metadata; above, it is no description of a client.
const NODE_BYTES: Sizes = Sizes((1 << 10)..=(1 << 20), "1 KiB to 1024 KiB, such as 65536 or 64 KiB");

/// More than there can be of anything; what is larger is a slip.
const MOST: usize = 1_000_000_000;
const FASTEST: u32 = 1_000_000;

/// Of those that it does not have the default.
pub(super) fn limits(node: &yaml::Node) -> Result<Limits, Error> {
    node.expect_fields(&keys())?;
    let mut limits = Limits::default();
    for limit in LIMITS {
        node.field(limit.key, |node| limit.set(&mut limits, node))?;
    }
    Ok(limits)
}

/// What they are called, in their order.
pub(super) fn keys() -> Vec<&'static str> {
    LIMITS.iter().map(|limit| limit.key).collect()
}

impl Limit {
    /// To what a configuration says.
    fn set(&self, limits: &mut Limits, node: &yaml::Node) -> Result<(), Error> {
        match &self.field {
            Size(sizes, at) => *at(limits) = size(node, sizes)?,
            Number(at) => *at(limits) = number(node)?,
            Rate(at) => *at(limits) = rate(node)?,
            Time(at) => *at(limits) = some_time(node)?,
            Percent(at) => *at(limits) = percent(node)?,
            Count(at) => *at(limits) = Some(count(node)?),
        }
        Ok(())
    }

    /// `None` if it is left out.
    pub(super) fn amount(&self, mut limits: Limits) -> Option<Amount> {
        let limits = &mut limits;
        Some(match &self.field {
            Size(_, at) | Number(at) => Amount::Number(*at(limits) as u64),
            Rate(at) => Amount::Number((*at(limits)).into()),
            Time(at) => Amount::Time(*at(limits)),
            Percent(at) => Amount::Percent(*at(limits)),
            Count(at) => Amount::Number(at(limits).as_ref()?.get() as u64),
        })
    }
}

impl Limits {
    /// A limit that lets nobody do anything.
    pub(super) fn none_of(self) -> Option<&'static str> {
        let is_none = |limit: &&Limit| match limit.amount(self) {
            Some(Amount::Number(number)) => number == 0,
            Some(Amount::Time(time)) => time.is_zero(),
            Some(Amount::Percent(part)) => part == 0,
            None => false,
        };
        LIMITS.iter().find(is_none).map(|limit| limit.key)
    }
}

fn some_time(node: &yaml::Node) -> Result<Duration, Error> {
    match duration(node)? {
        Duration::ZERO => node.refuse("expected some time, such as 500ms, 30s or 2m"),
        time => Ok(time),
    }
}

/// Of something that there must be one of.
pub(super) fn number(node: &yaml::Node) -> Result<usize, Error> {
    let text = node.text()?;
    match text.parse() {
        Ok(number @ 1..=MOST) => Ok(number),
        _ => node.refuse(format!("`{text}`: expected a number, 1 to {MOST}")),
    }
}

fn rate(node: &yaml::Node) -> Result<u32, Error> {
    let text = node.text()?;
    match text.parse() {
        Ok(number @ 1..=FASTEST) => Ok(number),
        _ => node.refuse(format!("`{text}`: expected a number, 1 to {FASTEST}")),
    }
}

fn percent(node: &yaml::Node) -> Result<u8, Error> {
    let text = node.text()?;
    match text.strip_suffix('%').map(|number| number.trim_end().parse()) {
        Some(Ok(part @ 1..=100)) => Ok(part),
        _ => node.refuse(format!("`{text}`: expected a part, 1% to 100%")),
    }
}

fn size(node: &yaml::Node, Sizes(range, words): &Sizes) -> Result<usize, Error> {
    let text = node.text()?;
    let bytes = text.parse().ok().map(|ByteSize(bytes)| bytes).filter(|bytes| range.contains(bytes));
    match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes) => Ok(bytes),
        None => node.refuse(format!("`{text}`: expected {words}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// What each field has, by its name.
    fn fields(limits: &Limits) -> BTreeMap<String, String> {
        let text = format!("{limits:?}");
        let fields = text.trim_start_matches("Limits { ").trim_end_matches(" }").split(", ");
        fields.map(|field| field.split_once(": ").unwrap()).map(|(key, value)| (key.into(), value.into())).collect()
    }

    #[test]
    fn every_field_has_a_row_and_every_row_is_that_of_its_field() {
        let default = fields(&Limits::default());
        for key in default.keys() {
            assert!(keys().contains(&key.as_str()), "LIMITS has no row of {key}");
        }
        for limit in LIMITS {
            let value = match &limit.field {
                Size(Sizes(range, _), _) => range.start().to_string(),
                Number(_) | Rate(_) | Count(_) => "77".to_owned(),
                Time(_) => "7m".to_owned(),
                Percent(_) => "77%".to_owned(),
            };
            let root = yaml::parse(&format!("{}: {value}", limit.key)).unwrap().unwrap();
            let set = fields(&limits(&root).unwrap());
            let changed: Vec<_> = set.iter().filter(|(key, value)| default.get(*key) != Some(value)).collect();
            assert!(matches!(changed.as_slice(), [(key, _)] if *key == limit.key), "{}: {changed:?}", limit.key);
        }
    }
}
