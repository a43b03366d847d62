//! The path of a stream between relays: which of them stand behind one end of it.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use sha2::{Digest, Sha256};
use tonic::metadata::{AsciiMetadataValue, MetadataMap};

/// The metadata that says it, in requests and responses.
pub(crate) const KEY: &str = "x-xds-relay-path";
/// How many relays a path tells of.
pub(crate) const MAX_TOLD: usize = 128;

/// How a relay is called on a path, by who may know that.
pub(crate) trait Call: Copy + Ord {
    /// How many hex digits it is written with.
    const DIGITS: usize;

    fn of(number: u128) -> Self;

    fn number(self) -> u128;

    /// What everybody calls it.
    fn instance(self) -> Instance;
}

/// What a running relay is called by everybody, and by what is told downstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instance(u64);

impl Instance {
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

/// What a running relay is called by what is told upstream: drawn when it starts. Its [`Instance`] follows from it, and
/// not the other way round, so that nobody can claim to have a relay before it that it has not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token(u128);

/// Relays by their distance, the nearest first. Several may be equally near: `a,b|c,d` is `a`, behind it `b` and `c`,
/// and behind one of these `d`, each with 16 or 32 hex digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelayPath<T>(pub(crate) Vec<BTreeSet<T>>);

impl Token {
    pub(crate) fn draw() -> Self {
        // Every `RandomState` has keys of its own.
        let [high, low] = [(); 2].map(|()| u128::from(RandomState::new().build_hasher().finish()));
        Self(high << 64 | low)
    }
}

impl Call for Instance {
    const DIGITS: usize = 16;

    fn of(number: u128) -> Self {
        // It is read from no more digits.
        Self(number as u64)
    }

    fn number(self) -> u128 {
        self.0.into()
    }

    fn instance(self) -> Instance {
        self
    }
}

impl Call for Token {
    const DIGITS: usize = 32;

    fn of(number: u128) -> Self {
        Self(number)
    }

    fn number(self) -> u128 {
        self.0
    }

    fn instance(self) -> Instance {
        let digest = Sha256::digest(self.0.to_be_bytes());
        Instance(digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

impl<T: Call> RelayPath<T> {
    /// What a peer said; `None` if it is no relay.
    ///
    /// # Errors
    /// It said something else.
    pub(crate) fn read(metadata: &MetadataMap) -> Result<Option<Self>, Unreadable> {
        let Some(value) = metadata.get(KEY) else { return Ok(None) };
        // Each is followed by a separator, but for the last.
        let most = MAX_TOLD * (T::DIGITS + 1) - 1;
        let text = value.to_str().ok().filter(|text| text.len() <= most).ok_or(Unreadable)?;
        let hops = text.split(',').map(|hop| hop.split('|').map(parse).collect());
        hops.collect::<Option<_>>().map(|hops| Some(Self(hops))).ok_or(Unreadable)
    }

    pub(crate) fn write(&self, metadata: &mut MetadataMap) {
        if let Ok(value) = AsciiMetadataValue::try_from(self.to_string()) {
            metadata.insert(KEY, value);
        }
    }

    /// As everybody may know it.
    pub(crate) fn instances(&self) -> RelayPath<Instance> {
        RelayPath(self.0.iter().map(|relays| relays.iter().map(|relay| relay.instance()).collect()).collect())
    }
}

fn parse<T: Call>(text: &str) -> Option<T> {
    let is_number = text.len() == T::DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u128::from_str_radix(text, 16).ok().map(T::of)).flatten()
}

/// It is not written as paths are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&written(*self))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the token of {}", self.instance())
    }
}

impl<T> Default for RelayPath<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Call> fmt::Display for RelayPath<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (hop, relays) in self.0.iter().enumerate() {
            f.write_str(if hop == 0 { "" } else { "," })?;
            f.write_str(&one_of(relays))?;
        }
        Ok(())
    }
}

/// Relays that are equally near.
pub(crate) fn one_of<T: Call>(relays: &BTreeSet<T>) -> String {
    relays.iter().map(|relay| written(*relay)).collect::<Vec<_>>().join("|")
}

fn written<T: Call>(relay: T) -> String {
    format!("{:0digits$x}", relay.number(), digits = T::DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: Call>(value: &[u8]) -> Result<Option<RelayPath<T>>, Unreadable> {
        let mut metadata = MetadataMap::new();
        metadata.insert(KEY, AsciiMetadataValue::try_from(value).unwrap());
        RelayPath::read(&metadata)
    }

    fn is_read_as_written<T: Call + fmt::Debug>(hops: &[&[u128]], text: &str) {
        let path = RelayPath::<T>(hops.iter().map(|hop| hop.iter().copied().map(T::of).collect()).collect());
        assert_eq!(path.to_string(), text);
        let mut metadata = MetadataMap::new();
        path.write(&mut metadata);
        assert_eq!(RelayPath::read(&metadata), Ok(Some(path)));
    }

    #[test]
    fn what_is_written_is_read() {
        is_read_as_written::<Instance>(&[&[1]], "0000000000000001");
        is_read_as_written::<Instance>(
            &[&[u64::MAX.into()], &[2, 1], &[3]],
            "ffffffffffffffff,0000000000000001|0000000000000002,0000000000000003",
        );
        is_read_as_written::<Token>(
            &[&[u128::MAX], &[2, 1]],
            "ffffffffffffffffffffffffffffffff,00000000000000000000000000000001|00000000000000000000000000000002",
        );
        assert_eq!(RelayPath::<Token>::read(&MetadataMap::new()), Ok(None));
    }

    fn is_not_read<T: Call + fmt::Debug>(one: &str) {
        for text in ["", ",", "|", "a", &one.replace('0', "g"), &one.replace('0', "+"), &format!("{one}0")] {
            assert_eq!(read::<T>(text.as_bytes()), Err(Unreadable), "{text:?}");
        }
        let short = one.get(1..).unwrap();
        for text in [format!(" {short}"), format!("{short}é"), format!("{one},"), format!(",{one}")] {
            assert_eq!(read::<T>(text.as_bytes()), Err(Unreadable), "{text:?}");
        }
        for text in [format!("{one},,{one}"), format!("{one}, {one}")] {
            assert_eq!(read::<T>(text.as_bytes()), Err(Unreadable), "{text:?}");
        }
        assert_eq!(read::<T>(&[0xff; 16]), Err(Unreadable));
        for separator in [",", "|"] {
            let many = |relays: usize| vec![one; relays].join(separator);
            assert!(read::<T>(many(MAX_TOLD).as_bytes()).is_ok());
            assert_eq!(read::<T>(many(MAX_TOLD + 1).as_bytes()), Err(Unreadable));
            assert_eq!(read::<T>(many(100_000).as_bytes()), Err(Unreadable));
        }
    }

    #[test]
    fn what_is_no_path_is_not_read_however_long_it_is() {
        is_not_read::<Instance>("0123456789abcdef");
        is_not_read::<Token>("0123456789abcdef0123456789abcdef");
        // What is told in one direction is nothing in the other.
        assert_eq!(read::<Token>(b"0123456789abcdef"), Err(Unreadable));
    }

    #[test]
    fn two_relays_draw_two_tokens_and_what_they_are_called_by_others_does_not_tell_these() {
        let [one, other] = [Token::draw(), Token::draw()];
        assert_ne!(one, other);
        assert_ne!(one.instance(), other.instance());
        let told = format!("{one:?}");
        assert_eq!(told, format!("the token of {}", one.instance()));
        assert!(!told.contains(&written(one)) && !written(one).contains(&written(one.instance())));
    }
}
