//! What one server of a scope is told of what the scope wants. Each is told all of it, and knows nothing of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xds_transport::client::{Command, name_size};
use xdstp_cache::{Interest, TypeUrl};

use crate::federation::request_room::RequestRoom;

/// A name or collection of a type.
pub(crate) type Wish = (TypeUrl, Interest);

#[derive(Default)]
pub(crate) struct Telling {
    /// What the server was not told yet of what it knows of.
    asks: BTreeMap<Wish, Ask>,
    /// What it was never told of.
    new: BTreeSet<Wish>,
    /// That, as far as there was no room for it when it was to be told last.
    short: BTreeSet<Wish>,
    /// How much that is, in bytes.
    lacking: BTreeMap<TypeUrl, usize>,
    /// There was more to tell than was told at once.
    telling: bool,
    /// How much room was given back before the telling began.
    returns: u64,
    /// Types of which somebody brought something along that the server was not asked about.
    pub(crate) brought: BTreeSet<TypeUrl>,
    /// Types of which no version that it gave is to be named to it.
    forgets: BTreeSet<TypeUrl>,
    /// Its first request is to ask what became of what others gave: all that is held, from here on.
    pub(crate) holds: Option<usize>,
    /// What requests to it have room for, if that is not the scope's.
    pub(crate) room: Option<Arc<RequestRoom>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Unsubscribe,
    /// It was dropped, and wanted again before the server was told; or its answer must be heard again.
    Again,
}

impl Telling {
    /// A server that was told nothing of all this.
    pub(crate) fn of_all(wanted: BTreeSet<Wish>) -> Self {
        let brought = collections(&wanted);
        Self { new: wanted, brought, ..Self::default() }
    }

    /// It is wanted, and was not if it `is_new`; or its answer must be heard `again`. Whether the server must be told.
    pub(crate) fn want(&mut self, wish: Wish, is_new: bool, again: bool) -> bool {
        if is_new && !self.asks.contains_key(&wish) {
            self.new.insert(wish);
            return true;
        }
        let told = !self.asks.contains_key(&wish) && !self.is_untold(&wish);
        let again = is_new || again && told;
        if again {
            self.asks.insert(wish, Ask::Again);
        }
        again
    }

    /// Whether it was never told of what is wanted.
    pub(crate) fn is_untold(&self, wish: &Wish) -> bool {
        self.new.contains(wish) || self.short.contains(wish)
    }

    /// What it was never told of, it need not be told to forget.
    pub(crate) fn give_up(&mut self, wish: &Wish) {
        if !self.new.remove(wish) && !self.short.remove(wish) {
            self.asks.insert(wish.clone(), Ask::Unsubscribe);
        }
    }

    /// What it answered does not count any more, so that no version of that may be named to it.
    pub(crate) fn ask_anew(&mut self, wanted: &BTreeSet<Wish>) {
        for wish in wanted {
            if !self.is_untold(wish) {
                self.asks.insert(wish.clone(), Ask::Again);
            }
        }
        self.brought.extend(collections(wanted));
        self.forgets.extend(wanted.iter().map(|(type_url, _)| type_url.clone()));
    }

    /// It is not asked any more: it is to be told to forget all that it was told of.
    pub(crate) fn end(self, wanted: &BTreeSet<Wish>) -> Self {
        let told = wanted.iter().filter(|wish| !self.is_untold(wish)).cloned();
        let asks = told.chain(self.asks.keys().cloned()).map(|wish| (wish, Ask::Unsubscribe)).collect();
        Self { asks, room: self.room, ..Self::default() }
    }

    /// It need not be told: it knows of nothing any more.
    pub(crate) fn give_back(self) {
        let Some(room) = &self.room else { return };
        let gone = self.asks.iter().filter(|(_, ask)| **ask == Ask::Unsubscribe);
        gone.for_each(|((type_url, interest), _)| room.give_back(type_url, interest));
    }

    /// What it must be told, once, and its requests have room for: `most` at a time. Whether there is more.
    pub(crate) fn take_asks(&mut self, room: Option<&RequestRoom>, most: usize, tell: &mut dyn FnMut(Command)) -> bool {
        let own = self.room.clone();
        let room = own.as_deref().or(room);
        let returns = room.map_or(0, RequestRoom::returns);
        std::mem::take(&mut self.forgets).into_iter().for_each(|type_url| tell(Command::Forget(type_url)));
        if !self.telling {
            self.lacking.clear();
            self.new.append(&mut self.short);
            self.returns = returns;
        }
        for taken in 0.. {
            self.telling = taken == most && !(self.asks.is_empty() && self.new.is_empty());
            if taken == most {
                break;
            }
            // What is left makes room.
            if let Some(((type_url, interest), ask)) = self.asks.pop_first() {
                tell(Command::Unsubscribe(type_url.clone(), interest.clone()));
                if ask == Ask::Again {
                    tell(Command::Subscribe(type_url, interest));
                } else if let Some(room) = room {
                    room.give_back(&type_url, &interest);
                }
            } else if let Some((type_url, interest)) = self.new.pop_first() {
                if room.is_none_or(|room| room.take(&type_url, &interest)) {
                    tell(Command::Subscribe(type_url, interest));
                } else {
                    *self.lacking.entry(type_url.clone()).or_default() += name_size(interest.as_str());
                    self.short.insert((type_url, interest));
                }
            } else {
                break;
            }
        }
        // Meanwhile others may have made room for what had none.
        self.telling || !self.short.is_empty() && returns != self.returns
    }

    /// Whether only a part of what there is was told.
    pub(crate) fn is_telling(&self) -> bool {
        self.telling
    }

    /// How many bytes of names there was no room for, by type.
    pub(crate) fn lacking(&self) -> &BTreeMap<TypeUrl, usize> {
        &self.lacking
    }

    /// Whether it is yet to be told something of what it was asked for: it may answer still.
    pub(crate) fn has_asked(&self, wish: &Wish) -> bool {
        self.asks.contains_key(wish)
    }

    /// Whether anything of a type was given up, and it was not told yet.
    pub(crate) fn gives_up(&self, type_url: &TypeUrl) -> bool {
        let first = (type_url.clone(), Interest::Wildcard);
        let asks = self.asks.range(first..).take_while(|((of, _), _)| of == type_url);
        asks.into_iter().any(|(_, ask)| *ask == Ask::Unsubscribe)
    }

    /// Whether it was told everything.
    pub(crate) fn is_done(&self) -> bool {
        self.asks.is_empty() && self.new.is_empty() && self.short.is_empty()
    }
}

/// The types of which collections are wanted.
fn collections(wanted: &BTreeSet<Wish>) -> BTreeSet<TypeUrl> {
    let collections = wanted.iter().filter(|(_, interest)| interest.is_collection());
    collections.map(|(type_url, _)| type_url.clone()).collect()
}
