//! How far a collection is answered.

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{ListKey, Target, TypeKey};
use crate::moments::NEVER;
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
        let Some(glob) = self.store[list].glob.clone() else {
            let all = ResourceName::parse(Interest::Wildcard.as_str()).ok();
            return all.is_some_and(|all| self.store.clear_error(self.store[list].type_key, &all).is_some());
        };
        if !self.store[self.store[list].type_key].errors.contains_key(&glob) {
            return false;
        }
        if let Some(at) = self.store.now
            && self.store.may_be_empty(list)
        {
            let seq = self.store.next_seq();
            self.bury(list, Gone { name: glob.clone(), seq, at, born: NEVER, unseen: false, plain: false }, woken);
        }
        self.store.clear_error(self.store[list].type_key, &glob).is_some()
    }

    /// Ends the error of a glob that a member came to. The member says so, or if it goes before it is told, that the glob
    /// is empty.
    pub(crate) fn recover(&mut self, type_key: TypeKey, glob: ResourceName, woken: &mut Vec<SubscriberId>) {
        if self.store.clear_error(type_key, &glob).is_some()
            && let Some(at) = self.store.now
            && let Some(list) = self.store.list_of(type_key, &Interest::Name(glob.clone()))
            && self.store[list].watchers.count > 0
        {
            let seq = self.store.next_seq();
            self.bury(list, Gone { name: glob, seq, at, born: NEVER, unseen: false, plain: false }, woken);
        }
    }
}
