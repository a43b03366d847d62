//! How far a collection is answered.

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{ListKey, Target, TypeKey};
use crate::moments::NEVER;
use crate::resource_error::{Failure, ResourceError};
use crate::store::{Answer, Gone};
use crate::text::TypeUrl;

impl<V> Cache<V> {
    /// A collection holds all there is.
    pub(crate) fn answered(&mut self, type_url: &TypeUrl, collection: &Interest, woken: &mut Vec<SubscriberId>) {
        let type_key = self.store.type_key(type_url);
        let Some(list) = self.store.answered_list(type_key, collection) else { return };
        // First, for it may be all that keeps the list when its error is over.
        let before = std::mem::replace(&mut self.store[list].answer, Answer::Complete);
        if before != Answer::Complete {
            self.store.note_list(list);
        }
        let failed = self.end_collection_error(list, woken);
        if !self.store.lists().contains(list) {
            return self.store.drop_type_if_unused(type_key);
        }
        if before != Answer::Complete {
            self.store.renew_list(list);
        } else if !failed {
            return;
        }
        self.mark(Target::List(list), woken);
    }

    /// The answer to a collection has begun.
    pub(crate) fn begin_answer(&mut self, type_url: &TypeUrl, collection: &Interest, woken: &mut Vec<SubscriberId>) {
        let type_key = self.store.type_key(type_url);
        let Some(list) = self.store.answered_list(type_key, collection) else { return };
        if self.store[list].answer == Answer::None {
            self.store[list].answer = Answer::Begun;
            self.store.note_list(list);
            self.store.renew_list(list);
            self.mark(Target::List(list), woken);
        }
    }

    /// A collection is sent after all. That it is empty, only a complete answer says.
    pub(crate) fn recover_collection(
        &mut self,
        type_url: &TypeUrl,
        collection: &Interest,
        woken: &mut Vec<SubscriberId>,
    ) {
        let Some(type_key) = self.store.type_keys.get(type_url).copied() else { return };
        let Some(list) = self.store.list_of(type_key, collection) else { return };
        match self.store[list].answer {
            // Of an authoritative cache, or that there is no such glob.
            Answer::Complete => _ = self.end_collection_error(list, woken),
            _ => _ = self.clear_collection_error(list),
        }
        self.store.drop_type_if_unused(type_key);
    }

    /// The origin is away: what is there is still served, but what is not may be there by now (rule 150). Until a
    /// collection is [answered](crate::Edit::answered) anew, nothing that a subscriber brings along is told to be gone.
    pub fn origin_lost(&mut self) {
        if self.store.options.authoritative {
            return;
        }
        self.store.lose_answers();
    }

    /// The same of one type only.
    pub fn type_lost(&mut self, type_url: &TypeUrl) {
        if !self.store.options.authoritative {
            self.store.lose_answers_of(type_url);
        }
    }

    /// Ends the error of a collection that is answered: who was told of it is told that it is empty, if it is and has a name to
    /// say so by.
    pub(crate) fn end_collection_error(&mut self, list: ListKey, woken: &mut Vec<SubscriberId>) -> bool {
        if let Some(glob) = self.store[list].glob.clone()
            && let Some(at) = self.store.now
            && self.store.is_refused(list)
            && self.store.may_be_empty(list)
        {
            let seq = self.store.next_seq();
            self.bury(list, Gone { name: glob, seq, at, born: NEVER, unseen: false, plain: false }, woken);
        }
        self.clear_collection_error(list)
    }

    fn clear_collection_error(&mut self, list: ListKey) -> bool {
        let name = self.store.refusal(list).map(|(name, _)| name.clone());
        name.is_some_and(|name| self.store.clear_error(self.store[list].type_key, &name).is_some())
    }

    /// Ends the error of a glob that a member came to. The member says so, or if it goes before it is told, that the glob
    /// is empty. In a relay's cache it may be there because somebody asked for its name: that ends only that there is no such glob.
    pub(crate) fn recover(&mut self, type_key: TypeKey, glob: ResourceName, woken: &mut Vec<SubscriberId>) {
        let errors = &self.store[type_key].errors;
        let is_over =
            |failure: &Failure| self.store.options.authoritative || failure.error.code == ResourceError::NOT_FOUND;
        if errors.get(&glob).is_some_and(is_over)
            && self.store.clear_error(type_key, &glob).is_some()
            && let Some(at) = self.store.now
            && let Some(list) = self.store.list_of(type_key, &Interest::Name(glob.clone()))
            && self.store[list].watchers.count > 0
        {
            let seq = self.store.next_seq();
            self.bury(list, Gone { name: glob, seq, at, born: NEVER, unseen: false, plain: false }, woken);
        }
    }
}
