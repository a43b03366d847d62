//! Types that a SotW stream cannot carry: whoever asks for one is told so in words (rule 2).

use std::collections::BTreeMap;

use xdstp_cache::TypeUrl;

use crate::Protocol;
use crate::server::transmit::Transmit;
use crate::server::weight::weight;
use crate::types;

/// What was asked for of such types on one stream, by type. The other types of the stream are none the worse for it:
/// what cannot be sent is an error of its names (TP3), not the end of the stream.
#[derive(Default)]
pub(crate) struct Refusals {
    asked: BTreeMap<TypeUrl, Asked>,
}

struct Asked {
    names: Vec<String>,
    /// How many names they count for.
    weight: usize,
    /// The client has yet to be told.
    due: bool,
}

impl Refusals {
    /// Takes in a request. One that repeats the names, as an ACK does, asks for nothing.
    pub(crate) fn ask(&mut self, type_url: TypeUrl, names: &[&str]) {
        let weight = names.iter().map(|name| weight(name)).sum();
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        match self.asked.get_mut(&type_url) {
            Some(asked) if asked.names == names => {}
            Some(asked) => *asked = Asked { due: !names.is_empty(), names, weight },
            None => _ = self.asked.insert(type_url, Asked { names, weight, due: true }),
        }
    }

    /// How many names of all types but one it keeps, as they count.
    pub(crate) fn names_but_of(&self, type_url: &str) -> usize {
        let others = self.asked.iter().filter(|(asked, _)| asked.as_str() != type_url);
        others.map(|(_, asked)| asked.weight).sum()
    }

    /// Whether it was asked for this type before.
    pub(crate) fn knows(&self, type_url: &str) -> bool {
        self.asked.keys().any(|asked| asked.as_str() == type_url)
    }

    /// How many types it keeps.
    pub(crate) fn types(&self) -> usize {
        self.asked.len()
    }

    /// The type that is to be told of next.
    #[inline]
    pub(crate) fn due(&self) -> Option<TypeUrl> {
        // Hardly a client asks for any.
        if self.asked.is_empty() {
            return None;
        }
        self.asked.iter().find(|(_, asked)| asked.due).map(|(type_url, _)| type_url.clone())
    }

    /// The response for a type: an error for each name.
    pub(crate) fn tell(&mut self, type_url: &TypeUrl, identifier: &str, nonces: &mut u64) -> Option<Transmit> {
        let asked = self.asked.get_mut(type_url)?;
        asked.due = false;
        *nonces += 1;
        let error = types::no_sotw(type_url);
        let mut transmit = Transmit::new(type_url.clone());
        for name in &asked.names {
            transmit.push_error(Protocol::Sotw, name, &error);
        }
        if asked.names.is_empty() {
            transmit.push_error(Protocol::Sotw, "*", &error);
        }
        transmit.close(Protocol::Sotw, None, *nonces, identifier);
        Some(transmit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_each_type_count_against_the_room_of_the_others() {
        let mut refusals = Refusals::default();
        refusals.ask("one".into(), &["a", "b"]);
        refusals.ask("other".into(), &["c"]);
        let each = weight("a");
        assert!(each > 0);
        assert_eq!(["one", "other", "third"].map(|of| refusals.names_but_of(of)), [each, 2 * each, 3 * each]);
    }
}
