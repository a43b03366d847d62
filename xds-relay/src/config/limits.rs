//! Reading the bounds on what others may use up.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytesize::ByteSize;

use crate::config::Limits;
use crate::config::fields::LIMIT_FIELDS;
use crate::config::values::{count, duration};
use crate::yaml::{self, Error};

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
