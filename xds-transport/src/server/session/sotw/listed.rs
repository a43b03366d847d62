//! The names that one SotW request lists, beside those of the one before it.

use std::collections::BTreeMap;

use xdstp_cache::{Interest, SubscriberId};
use xdstp_uri::{CanonicalText, ResourceName};

use crate::server::error::ProtocolError;
use crate::server::session::odd::name_of;
use crate::server::session::room::Room;
use crate::server::source::Source;
use crate::server::weight::weight;

/// What a list says, but for `*`.
#[derive(Default)]
pub(crate) struct Listed<'a> {
    /// In their order.
    pub(crate) names: Vec<ResourceName>,
    /// Texts that are no names, in their order.
    pub(crate) malformed: Vec<&'a str>,
    /// How many names all that counts for.
    pub(crate) weight: usize,
    /// Not all names are written canonically.
    pub(crate) has_spellings: bool,
}

impl<'a> Listed<'a> {
    /// Reads a list, and subscribes to the names that were not in the list `before`, which is in order: they are new,
    /// however often they were sent (rules 55, 56).
    ///
    /// # Errors
    /// When there is no room for as many names: some of them are subscribed to by then.
    pub(crate) fn read(
        id: SubscriberId,
        requested: &[&'a str],
        before: &[ResourceName],
        room: Room,
        source: &mut impl Source,
    ) -> Result<Self, ProtocolError> {
        let mut texts = requested.to_vec();
        texts.sort();
        texts.dedup();
        let mut listed = Self { names: Vec::with_capacity(texts.len()), ..Self::default() };
        // What is written may be far longer than what it means: it counts for the longer one.
        let mut spelled: BTreeMap<ResourceName, usize> = BTreeMap::new();
        let mut kept = before.iter().peekable();
        for text in texts.into_iter().filter(|text| *text != "*") {
            while kept.next_if(|name| name.as_str() < text).is_some() {}
            if let Some(name) = kept.next_if(|name| name.as_str() == text) {
                listed.push(name.clone(), weight(text));
            } else if let Some(name) = known(id, text, room, source) {
                listed.push(name, weight(text));
            } else {
                match name_of(text, room.name_bytes) {
                    Ok(name) if name.as_str() == text => {
                        source.subscribe(id, &Interest::Name(name.clone()));
                        listed.push(name, weight(text));
                    }
                    Ok(name) => {
                        let longer = weight(text).max(weight(name.as_str()));
                        spelled.entry(name).or_insert(longer);
                    }
                    Err(_) => {
                        listed.weight += weight(text);
                        listed.malformed.push(text);
                    }
                }
            }
            room.check(listed.weight)?;
        }
        listed.has_spellings = !spelled.is_empty();
        let canonical = listed.names.len();
        for (name, weight) in spelled {
            // It may be written canonically, too: the other spelling is kept as well.
            if listed.names.get(..canonical).is_some_and(|names| names.binary_search(&name).is_ok()) {
                listed.weight += weight;
                room.check(listed.weight)?;
                continue;
            }
            let kept = before.binary_search(&name).ok().and_then(|at| before.get(at)).cloned();
            listed.push(kept.unwrap_or_else(|| subscribe(id, name, source)), weight);
            room.check(listed.weight)?;
        }
        if listed.has_spellings {
            listed.names.sort();
        }
        Ok(listed)
    }

    fn push(&mut self, name: ResourceName, weight: usize) {
        self.names.push(name);
        self.weight += weight;
    }
}

/// Subscribes to the name that a text is the canonical form of, if the source knows it.
fn known(id: SubscriberId, text: &str, room: Room, source: &mut impl Source) -> Option<ResourceName> {
    let fits = text.len() <= room.name_bytes;
    fits.then(|| source.subscribe_known(id, &CanonicalText::new(text))).flatten().map(|(name, _)| name)
}

/// The name as the source keeps it, if that does.
fn subscribe(id: SubscriberId, name: ResourceName, source: &mut impl Source) -> ResourceName {
    if let Some((known, _)) = source.subscribe_known(id, &CanonicalText::new(name.as_str())) {
        return known;
    }
    source.subscribe(id, &Interest::Name(name.clone()));
    name
}
