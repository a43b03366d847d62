//! What a client asks for with parameters, and what it leaves.

use std::hash::BuildHasher;

use xdstp_cache::{Interest, ResourceError, Selector, SubscriberId, TypeUrl, Variant, Version};
use xdstp_uri::ResourceName;

use super::{Located, Selection, weight_of};
use crate::server::error::ProtocolError;
use crate::server::session::located::held::Which;
use crate::server::session::refreshes::Refreshes;
use crate::server::session::room::Room;
use crate::server::source::Source;
use crate::server::tally::Tally;
use crate::server::weight::weight;

/// What there may be only so many of.
const SETS: &str = "sets of dynamic parameters";

impl Located {
    /// An interest with this selector. Whether it is new, and by which subscriber.
    ///
    /// # Errors
    /// When there are as many selectors already as there may be.
    pub(crate) fn subscribe(
        &mut self,
        type_url: &TypeUrl,
        selector: &Selector,
        interest: &Interest,
        room: Room,
        source: &mut impl Source,
    ) -> Result<(SubscriberId, bool), ProtocolError> {
        let hash = self.hasher.hash_one(selector);
        let at = self.position(hash, selector);
        if at.is_none() {
            let Room { selectors, selectors_limit: limit, name_bytes, .. } = room;
            if self.selections.len() >= selectors {
                return Err(ProtocolError::TooMany { what: SETS, limit });
            }
            let text = selector.to_string();
            if text.len() > name_bytes {
                let what = "set of dynamic parameters";
                return Err(ProtocolError::TooLong { what, length: text.len(), limit: name_bytes });
            }
            let weight = weight(&text);
            self.weight += weight;
            self.selections.push(Selection {
                id: source.open_selecting(type_url, selector),
                hash,
                selector: selector.clone(),
                interests: 0,
                weight,
                refreshes: Refreshes::default(),
                first: Some(Vec::new()),
            });
        }
        let selection = match at {
            Some(at) => self.selections.get_mut(at),
            None => self.selections.last_mut(),
        };
        // There is one.
        let Some(selection) = selection else { return Err(ProtocolError::MissingType) };
        let new = source.subscribe(selection.id, interest);
        selection.first.iter_mut().for_each(|first| first.push(interest.clone()));
        if new {
            selection.interests += 1;
            self.weight += weight(interest.as_str());
        }
        Ok((selection.id, new))
    }

    /// Ends an interest. Whether there was one.
    pub(crate) fn unsubscribe(&mut self, selector: &Selector, interest: &Interest, source: &mut impl Source) -> bool {
        let hash = self.hasher.hash_one(selector);
        let Some(at) = self.position(hash, selector) else { return false };
        let Some(selection) = self.selections.get_mut(at) else { return false };
        if !source.unsubscribe(selection.id, interest) {
            return false;
        }
        self.weight -= weight(interest.as_str()).min(self.weight);
        selection.interests -= 1;
        let (id, ends) = (selection.id, selection.interests == 0);
        let left = match interest {
            _ if ends => self.held.leave_all(id, |_| false),
            Interest::Name(name) if !name.is_glob() && source.covers(id, name) => Vec::new(),
            Interest::Name(name) if !name.is_glob() => self.held.leave(id, name),
            _ => self.held.leave_all(id, |name| source.covers(id, name)),
        };
        if ends {
            source.close(id, &Tally::default());
            let ended = self.selections.remove(at);
            self.weight -= ended.weight.min(self.weight);
        }
        self.keep_for_others(left, source);
        true
    }

    /// What the client had by what it left it lets go itself, unless it is for others that ask for the name, too: those may
    /// have it from then on, whatever they were sent.
    fn keep_for_others(&mut self, left: Vec<(ResourceName, Which)>, source: &mut impl Source) {
        if self.is_sotw {
            return;
        }
        for (name, variant) in left {
            let of = variant.as_deref().unwrap_or(Variant::plain());
            for other in &self.selections {
                if of.is_for(&other.selector)
                    && source.covers(other.id, &name)
                    && self.held.may_have(other.id, &name, &variant)
                {
                    source.resume(other.id, vec![(name.clone(), Version::from(""))]);
                }
            }
        }
    }

    /// The subscribers of which it was not said yet what the client holds, and what each was opened with.
    pub(crate) fn take_new(&mut self) -> Vec<(SubscriberId, Vec<Interest>)> {
        let new = self.selections.iter_mut().filter_map(|selection| Some((selection.id, selection.first.take()?)));
        new.collect()
    }

    /// How many sets of parameters there are.
    pub(crate) fn selectors(&self) -> usize {
        self.selections.len()
    }

    /// A subscription that there cannot be.
    pub(crate) fn refuse(&mut self, name: &str, error: ResourceError) {
        let more = weight_of(name, &error);
        let before = self.refused.insert(name.to_owned(), error);
        let less = before.map_or(0, |before| weight_of(name, &before));
        for weight in [&mut self.weight, &mut self.refused_weight] {
            *weight = (*weight + more).saturating_sub(less);
        }
    }

    fn position(&self, hash: u64, selector: &Selector) -> Option<usize> {
        self.selections.iter().position(|selection| selection.hash == hash && selection.selector == *selector)
    }
}
