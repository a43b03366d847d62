//! What a SotW client wants: each of its requests lists it all.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use xdstp_cache::{Interest, SubscriberId};
use xdstp_uri::ResourceName;

use crate::server::error::ProtocolError;
use crate::server::session::odd::{Odd, kept, name_of};
use crate::server::session::room::Room;
use crate::server::session::sotw::listed::Listed;
use crate::server::session::spelling::Spelling;
use crate::server::source::Source;

/// The names of one request.
pub(crate) enum Names<'a> {
    /// Those of the last one.
    Repeated,
    /// These, and how they were encoded where they stood together.
    Listed(&'a [&'a str], Option<&'a [u8]>),
}

/// What a request changed.
#[derive(Default)]
pub(crate) struct Change {
    /// Something is wanted no more.
    pub(crate) less: bool,
    /// The names before it, in their order.
    pub(crate) before: Vec<ResourceName>,
}

/// The subscription of one session.
#[derive(Default)]
pub(crate) struct Wanted {
    /// In their order.
    pub(crate) names: Vec<ResourceName>,
    pub(crate) wildcard: bool,
    pub(crate) spelling: Spelling,
    /// Texts that are no names, and that the client has not been told so of.
    pub(crate) untold: Odd,
    /// The hashes of all such texts, in their order, to know them again: each request lists them.
    malformed: Vec<u64>,
    /// How many names all that counts for.
    weight: usize,
    /// Rule 40: a type that was ever asked for by name has no legacy wildcard any more.
    ever_named: bool,
    last: Fingerprint,
}

/// An encoded list of names, to know it again by: an ACK repeats it, and costs no more than reading it once.
#[derive(Default)]
struct Fingerprint {
    hasher: RandomState,
    /// Its length and hash.
    list: Option<(usize, u64)>,
}

impl Wanted {
    /// Rule 43: the list is what is wanted from now on, and `*` in it is everything. Rule 46: of the types without a
    /// legacy wildcard an empty list is nothing, from the first request on.
    ///
    /// # Errors
    /// When there is no room for as many names: the stream is over then.
    pub(crate) fn change(
        &mut self,
        id: SubscriberId,
        requested: &Names<'_>,
        room: Room,
        has_legacy_wildcard: bool,
        source: &mut impl Source,
    ) -> Result<Change, ProtocolError> {
        let Names::Listed(requested, encoded) = requested else { return Ok(Change::default()) };
        self.last.note(*encoded);
        self.ever_named |= !requested.is_empty();
        let legacy = requested.is_empty() && has_legacy_wildcard && !self.ever_named;
        let wildcard = legacy || requested.contains(&"*");
        if wildcard && !self.wildcard {
            source.subscribe(id, &Interest::Wildcard);
        }
        let Listed { names, malformed, weight, has_spellings } =
            Listed::read(id, requested, &self.names, room, source)?;
        if has_spellings {
            for (text, name) in requested.iter().filter_map(|text| Some((text, name_of(text, room.name_bytes).ok()?))) {
                self.spelling.note(&name, text);
            }
        } else {
            self.spelling = Spelling::default();
        }
        let mut less = false;
        // First, or a name that leaves with it would be told as not in it.
        if self.wildcard && !wildcard {
            source.unsubscribe(id, &Interest::Wildcard);
            less = true;
        }
        let mut kept = names.iter().peekable();
        for name in &self.names {
            while kept.next_if(|kept| *kept < name).is_some() {}
            if kept.next_if_eq(&name).is_none() {
                source.unsubscribe(id, &Interest::Name(name.clone()));
                self.spelling.forget(name);
                less = true;
            }
        }
        self.lists_no_names(&malformed, room.name_bytes, source);
        (self.wildcard, self.weight) = (wildcard, weight);
        Ok(Change { less, before: std::mem::replace(&mut self.names, names) })
    }

    /// These are all that are no names: those that are new are yet to be told.
    fn lists_no_names(&mut self, texts: &[&str], longest: usize, source: &mut impl Source) {
        // Those that are told by one text are told once.
        let mut texts: Vec<_> =
            texts.iter().map(|text| (self.last.hasher.hash_one(&*kept(text, longest)), *text)).collect();
        texts.sort_unstable();
        texts.dedup_by_key(|(hash, _)| *hash);
        let malformed: Vec<u64> = texts.iter().map(|(hash, _)| *hash).collect();
        let is_listed = |text: &str| malformed.binary_search(&self.last.hasher.hash_one(text)).is_ok();
        self.untold.retain(is_listed);
        for (_, text) in texts.iter().filter(|(hash, _)| self.malformed.binary_search(hash).is_err()) {
            if name_of(text, longest).is_err_and(|reason| reason.is_too_long()) {
                source.too_long_name();
            }
            self.untold.insert(&kept(text, longest));
        }
        self.malformed = malformed;
    }

    /// For how many names what is kept beside them counts.
    pub(crate) fn beside(&self) -> usize {
        self.untold.weight() + self.malformed.len() + self.spelling.weight()
    }

    /// Whether a list of names is the last one again.
    pub(crate) fn repeats(&self, encoded: &[u8]) -> bool {
        self.last.is(encoded)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.wildcard
    }

    /// Whether it asks for just this name.
    pub(crate) fn lists(&self, name: &ResourceName) -> bool {
        self.names.binary_search(name).is_ok()
    }

    /// How many names it keeps, as they count.
    pub(crate) fn len(&self) -> usize {
        self.weight
    }
}

impl Fingerprint {
    fn note(&mut self, encoded: Option<&[u8]>) {
        self.list = encoded.map(|encoded| (encoded.len(), self.hasher.hash_one(encoded)));
    }

    fn is(&self, encoded: &[u8]) -> bool {
        // Two lists in 2^64 of one length would be taken for one, and no client can tell which.
        self.list.is_some_and(|(len, hash)| len == encoded.len() && hash == self.hasher.hash_one(encoded))
    }
}

#[cfg(test)]
mod tests {
    use xdstp_cache::{Cache, Options, TypeUrl};

    use super::*;
    use crate::frame::Frame;

    #[test]
    fn the_names_of_two_clients_are_one_text() {
        let mut cache = Cache::<Frame>::new(Options::default());
        let endpoints = TypeUrl::from("endpoints");
        let room = Room { names: 2, limit: 2, name_bytes: 1, ..Room::default() };
        let mut texts = Vec::new();
        for _ in 0..2 {
            let id = cache.open(&endpoints);
            let mut wanted = Wanted::default();
            // The second request is to keep what the first one found.
            for requested in [&["a"][..], &["a", "b"]] {
                let names = Names::Listed(requested, None);
                wanted.change(id, &names, room, false, &mut cache).unwrap();
            }
            texts.push(wanted.names.iter().map(|name| name.as_str().as_ptr()).collect::<Vec<_>>());
            assert_eq!(wanted.len(), 2);
        }
        assert_eq!(texts[0], texts[1]);
    }
}
