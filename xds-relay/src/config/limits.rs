//! The bounds on what others may use up.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

use bytesize::ByteSize;

use crate::config::fields::LIMIT_FIELDS;
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
            names_per_turn: 4096,
            name_bytes: 64 << 10,
            node_bytes: 64 << 10,
        }
    }
}

/// A size in bytes, from one to another, and how that is said.
struct Sizes(RangeInclusive<u64>, &'static str);

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

pub(super) fn limits(node: &yaml::Node) -> Result<Limits, Error> {
    node.expect_fields(LIMIT_FIELDS)?;
    let default = Limits::default();
    let size = |key, sizes, default| Ok(node.field(key, |node| size(node, &sizes))?.unwrap_or(default));
    let message = |key, default| size(key, MESSAGE_BYTES, default);
    let number = |key, default| Ok(node.field(key, number)?.unwrap_or(default));
    let time = |key, default| Ok(node.field(key, some_time)?.unwrap_or(default));
    let rate = |key, default| Ok(node.field(key, rate)?.unwrap_or(default));
    Ok(Limits {
        max_request_bytes: message("max_request_bytes", default.max_request_bytes)?,
        max_response_bytes: message("max_response_bytes", default.max_response_bytes)?,
        max_upstream_request_bytes: size(
            "max_upstream_request_bytes",
            UPSTREAM_REQUEST_BYTES,
            default.max_upstream_request_bytes,
        )?,
        connections: node.field("connections", count)?,
        names_per_stream: number("names_per_stream", default.names_per_stream)?,
        types_per_stream: number("types_per_stream", default.types_per_stream)?,
        parameter_sets_per_stream: number("parameter_sets_per_stream", default.parameter_sets_per_stream)?,
        authorities_per_stream: number("authorities_per_stream", default.authorities_per_stream)?,
        requests_per_second: rate("requests_per_second", default.requests_per_second)?,
        unfinished_request_bytes: message("unfinished_request_bytes", default.unfinished_request_bytes)?,
        preface: time("preface", default.preface)?,
        first_request: time("first_request", default.first_request)?,
        stream_age: time("stream_age", default.stream_age)?,
        admin_idle: time("admin_idle", default.admin_idle)?,
        streams_per_connection: rate("streams_per_connection", default.streams_per_connection)?,
        streams: number("streams", default.streams)?,
        new_streams_per_second: rate("new_streams_per_second", default.new_streams_per_second)?,
        load_report_streams: number("load_report_streams", default.load_report_streams)?,
        groups: number("groups", default.groups)?,
        authorities: number("authorities", default.authorities)?,
        names: number("names", default.names)?,
        names_per_turn: number("names_per_turn", default.names_per_turn)?,
        name_bytes: size("name_bytes", NAME_BYTES, default.name_bytes)?,
        node_bytes: size("node_bytes", NODE_BYTES, default.node_bytes)?,
    })
}

fn some_time(node: &yaml::Node) -> Result<Duration, Error> {
    match duration(node)? {
        Duration::ZERO => node.refuse("expected some time, such as 500ms, 30s or 2m"),
        time => Ok(time),
    }
}

/// Of something that there must be one of.
fn number(node: &yaml::Node) -> Result<usize, Error> {
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

fn size(node: &yaml::Node, Sizes(range, words): &Sizes) -> Result<usize, Error> {
    let text = node.text()?;
    let bytes = text.parse().ok().map(|ByteSize(bytes)| bytes).filter(|bytes| range.contains(bytes));
    match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes) => Ok(bytes),
        None => node.refuse(format!("`{text}`: expected {words}")),
    }
}
