//! The path of a stream between relays: which of them stand behind one end of it.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use tonic::metadata::{AsciiMetadataValue, MetadataMap};

/// The metadata that says it, in requests and responses.
pub(crate) const KEY: &str = "x-xds-relay-path";
/// How many relays a path tells of.
pub(crate) const MAX_TOLD: usize = 256;

const DIGITS: usize = 16;
/// Each is followed by a separator, but for the last.
const MAX_LENGTH: usize = MAX_TOLD * (DIGITS + 1) - 1;

/// A running relay: a number of its own, drawn when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instance(u64);

/// Relays by their distance, the nearest first. Several may be equally near: `a,b|c,d` is `a`, behind it `b` and `c`,
/// and behind one of these `d`, each with 16 hex digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RelayPath(pub(crate) Vec<BTreeSet<Instance>>);

impl Instance {
    pub(crate) fn draw() -> Self {
        // Every `RandomState` has keys of its own.
        Self(RandomState::new().build_hasher().finish())
    }

    fn parse(text: &str) -> Option<Self> {
        let is_number = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_number.then(|| u64::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

impl RelayPath {
    /// What a peer said; `None` if it is no relay.
    ///
    /// # Errors
    /// It said something else.
    pub(crate) fn read(metadata: &MetadataMap) -> Result<Option<Self>, Unreadable> {
        let Some(value) = metadata.get(KEY) else { return Ok(None) };
        let text = value.to_str().ok().filter(|text| text.len() <= MAX_LENGTH).ok_or(Unreadable)?;
        let hops = text.split(',').map(|hop| hop.split('|').map(Instance::parse).collect());
        hops.collect::<Option<_>>().map(|hops| Some(Self(hops))).ok_or(Unreadable)
    }

    pub(crate) fn write(&self, metadata: &mut MetadataMap) {
        if let Ok(value) = AsciiMetadataValue::try_from(self.to_string()) {
            metadata.insert(KEY, value);
        }
    }
}

/// It is not written as paths are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

impl fmt::Display for RelayPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (hop, relays) in self.0.iter().enumerate() {
            f.write_str(if hop == 0 { "" } else { "," })?;
            f.write_str(&one_of(relays))?;
        }
        Ok(())
    }
}

/// Relays that are equally near.
pub(crate) fn one_of(relays: &BTreeSet<Instance>) -> String {
    relays.iter().map(Instance::to_string).collect::<Vec<_>>().join("|")
}

#[cfg(test)]
impl Instance {
    pub(crate) fn of(number: u64) -> Self {
        Self(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &[u8]) -> Result<Option<RelayPath>, Unreadable> {
        let mut metadata = MetadataMap::new();
        metadata.insert(KEY, AsciiMetadataValue::try_from(value).unwrap());
        RelayPath::read(&metadata)
    }

    #[test]
    fn what_is_written_is_read() {
        let path =
            |hops: &[&[u64]]| RelayPath(hops.iter().map(|hop| hop.iter().copied().map(Instance).collect()).collect());
        for (path, text) in [
            (path(&[&[1]]), "0000000000000001"),
            (
                path(&[&[u64::MAX], &[2, 1], &[3]]),
                "ffffffffffffffff,0000000000000001|0000000000000002,0000000000000003",
            ),
        ] {
            assert_eq!(path.to_string(), text);
            let mut metadata = MetadataMap::new();
            path.write(&mut metadata);
            assert_eq!(RelayPath::read(&metadata), Ok(Some(path)));
        }
        assert_eq!(RelayPath::read(&MetadataMap::new()), Ok(None));
    }

    #[test]
    fn what_is_no_path_is_not_read_however_long_it_is() {
        let one = "0123456789abcdef";
        for text in ["", ",", "|", "a", "0123456789abcdeg", "+123456789abcdef", "0123456789abcdef0", " 0123456789abcde"]
        {
            assert_eq!(read(text.as_bytes()), Err(Unreadable), "{text:?}");
        }
        for text in [format!("{one},"), format!(",{one}"), format!("{one},,{one}"), format!("{one}, {one}")] {
            assert_eq!(read(text.as_bytes()), Err(Unreadable), "{text:?}");
        }
        assert_eq!(read("0123456789abcdé".as_bytes()), Err(Unreadable));
        assert_eq!(read(&[0xff; 16]), Err(Unreadable));
        for separator in [",", "|"] {
            let many = |relays: usize| vec![one; relays].join(separator);
            assert!(read(many(MAX_TOLD).as_bytes()).is_ok());
            assert_eq!(read(many(MAX_TOLD + 1).as_bytes()), Err(Unreadable));
            assert_eq!(read(many(100_000).as_bytes()), Err(Unreadable));
        }
    }

    #[test]
    fn two_relays_draw_two_numbers() {
        assert_ne!(Instance::draw(), Instance::draw());
    }
}
