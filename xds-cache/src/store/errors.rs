//! The errors of names and of globs.

use xdstp_uri::ResourceName;

use crate::interest::Interest;
use crate::keys::{ListKey, TypeKey};
use crate::resource_error::{Cause, Failure, ResourceError};
use crate::store::list::{Answer, List};
use crate::store::tables::Store;

/// The collection whose subscribers are told of an error.
pub(crate) fn collection_of(name: &ResourceName) -> Option<Interest> {
    let interest = Interest::from(name.clone());
    if interest.is_collection() { Some(interest) } else { name.glob_parent().map(Interest::Name) }
}

/// Whether an error is why a collection is not sent. That there is no such glob is the answer to who asks for it; that the origin
/// was not asked is none.
pub(crate) fn refuses(name: &ResourceName, error: &ResourceError) -> bool {
    if error.cause == Cause::Unasked {
        return false;
    }
    match Interest::from(name.clone()) {
        Interest::Wildcard => true,
        Interest::Name(name) => name.is_glob() && error.code != ResourceError::NOT_FOUND,
    }
}

impl<V> Store<V> {
    /// Whether those who want the glob of a name are told of an error that is the answer to who asked for just this name:
    /// who asks for names that are not there decides how many these are.
    pub(crate) fn lists_error(&self, type_key: TypeKey, name: &ResourceName) -> bool {
        let Some(glob) = name.glob_parent() else { return true };
        let list = self.list_of(type_key, &Interest::Name(glob));
        let listed = list.map_or(0, |list| self.lists[list].failed.len());
        listed < self.options.tombstones || self.is_here(type_key, name)
    }

    /// A name or collection has this error from now on. The one before is returned.
    pub(crate) fn set_error(&mut self, type_key: TypeKey, name: ResourceName, failure: Failure) -> Option<Failure> {
        let of = &mut self.types[type_key];
        of.refused += usize::from(refuses(&name, &failure.error));
        let was_refused = of.errors.get(&name).is_some_and(|before| refuses(&name, &before.error));
        of.refused -= usize::from(was_refused);
        of.unreadable += usize::from(failure.error.leaves_unknown());
        let before = of.errors.insert(name, failure);
        of.unreadable -= usize::from(before.as_ref().is_some_and(|before| before.error.leaves_unknown()));
        before
    }

    /// Ends the error of a name, if there is one.
    pub(crate) fn clear_error(&mut self, type_key: TypeKey, name: &ResourceName) -> Option<Failure> {
        let of = &mut self.types[type_key];
        if of.errors.is_empty() {
            return None;
        }
        let failure = of.errors.remove(name)?;
        of.refused -= usize::from(refuses(name, &failure.error));
        of.unreadable -= usize::from(failure.error.leaves_unknown());
        if let Some(list) = collection_of(name).and_then(|collection| self.list_of(type_key, &collection)) {
            self.lists[list].failed.remove(&failure.seq);
            self.drop_list_if_unused(list);
        }
        Some(failure)
    }

    /// Whether it is not known if a name is there, of all that the origin said.
    pub(crate) fn is_unreadable(&self, type_key: TypeKey, name: &ResourceName) -> bool {
        let of = &self.types[type_key];
        of.unreadable > 0 && of.errors.get(name).is_some_and(|failure| failure.error.leaves_unknown())
    }

    /// Whether that is so of a name that would be in a collection, and is not.
    pub(crate) fn lacks_unreadable(&self, list: ListKey) -> bool {
        let type_key = self.lists[list].type_key;
        let of = &self.types[type_key];
        let lacks = |name: &ResourceName| {
            self.collections_of(type_key, name).contains(&Some(list)) && !self.is_here(type_key, name)
        };
        of.unreadable > 0 && of.errors.iter().any(|(name, failure)| failure.error.leaves_unknown() && lacks(name))
    }

    /// Whether a collection as a whole has an error that is an answer.
    pub(crate) fn is_refused(&self, list: ListKey) -> bool {
        self.refusal(list).is_some_and(|(_, failure)| failure.error.cause != Cause::Unasked)
    }

    /// It is not sent any more, if it is refused: what comes to it from then on, nobody says. Of an authoritative cache all there is
    /// is here.
    pub(crate) fn doubt(&mut self, list: ListKey) {
        let is_refused = self.refusal(list).is_some_and(|(name, failure)| refuses(name, &failure.error));
        if is_refused && !self.options.authoritative && self.lists[list].answer == Answer::Complete {
            self.lists[list].answer = Answer::Stale;
            self.note_list(list);
        }
    }

    /// The error of a collection as a whole, and by which name.
    pub(crate) fn refusal(&self, list: ListKey) -> Option<(&ResourceName, &Failure)> {
        let List { failed, glob, type_key, .. } = &self.lists[list];
        // Of the wildcard's list there is no other.
        let name = glob.as_ref().or_else(|| failed.values().next())?;
        self.types[*type_key].errors.get(name).map(|failure| (name, failure))
    }

    /// Whether a relay has a reason to know about a name: somebody asked for it, or it is there.
    pub(crate) fn is_of_interest(&self, type_key: TypeKey, name: &ResourceName) -> bool {
        let interest = Interest::from(name.clone());
        let directory = match interest.is_collection() {
            true => self.list_of(type_key, &interest),
            false => self.collections_of(type_key, name)[1],
        };
        self.slot_of(type_key, name).is_some()
            || directory.is_some_and(|list| {
                let list = &self.lists[list];
                list.watchers.count > 0 || list.answer != Answer::None
            })
    }
}
