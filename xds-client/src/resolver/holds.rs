//! What who watches something holds of it, so that it can be asked for in another way: nothing is taken away before the new answer,
//! and what is as it was is no news.

use std::collections::{HashMap, VecDeque};

use xds_transport::Frame;
use xdstp_uri::ResourceName;

use super::told::Told;

#[derive(Default)]
pub(super) struct Holds {
    /// Most hold one: a tree would have room for eleven.
    resources: HashMap<ResourceName, Held>,
    /// Not all of them came in the newest way yet.
    turning: bool,
    /// That a collection is known was told.
    answered: bool,
    /// That no server can be reached was told last.
    lost: bool,
    /// What is yet to be told: no more than is held, and two.
    queue: VecDeque<Told>,
}

struct Held {
    content: Frame,
    /// It came as it is asked for now.
    newest: bool,
    /// Something is wrong with it, and was told.
    wrong: bool,
}

impl Holds {
    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// What is to be told without asking anybody.
    pub(super) fn take(&mut self) -> Option<Told> {
        self.queue.pop_front()
    }

    /// It is asked for in another way from now on.
    pub(super) fn turn(&mut self) {
        self.turning = true;
        self.resources.values_mut().for_each(|held| held.newest = false);
    }

    /// What is held is told to be wrong.
    pub(super) fn spoil(&mut self) {
        self.resources.values_mut().for_each(|held| held.wrong = true);
    }

    /// It was answered as it is asked for now, and is not asked for as before any more.
    pub(super) fn turned(&mut self) {
        if std::mem::take(&mut self.lost) {
            self.queue.push_back(Told::Cleared { name: None });
        }
    }

    /// What is told, as it is asked for now (`newest`) or was before: what of that is news.
    pub(super) fn hear(&mut self, told: Told, newest: bool) -> Option<Told> {
        let of = match &told {
            Told::Put { name, .. } | Told::Gone { name } | Told::Failed { name: Some(name), .. } => Some(name),
            Told::Failed { name: None, .. } | Told::Cleared { .. } | Told::Answered => None,
        };
        // What is said of it as it is asked for now counts.
        if !newest && of.and_then(|name| self.resources.get(name)).is_some_and(|held| held.newest) {
            return None;
        }
        match told {
            Told::Put { name, resource } => {
                let now = Held { content: resource.value.clone(), newest, wrong: false };
                let before = self.resources.insert(name.clone(), now).filter(|held| !held.newest && !held.wrong);
                // Which variant it is, a program does not see.
                let is_same = before.is_some_and(|held| held.content.any() == resource.value.any());
                (!(newest && is_same)).then_some(Told::Put { name, resource })
            }
            Told::Gone { name } => {
                self.resources.remove(&name);
                Some(Told::Gone { name })
            }
            Told::Failed { name, error, held, keeps } => {
                let held = held || newest && keeps && self.has_older(name.as_ref());
                self.fail(name.as_ref(), held);
                Some(Told::Failed { name, error, held, keeps })
            }
            Told::Cleared { name } => {
                self.lost = false;
                Some(Told::Cleared { name })
            }
            Told::Answered => self.answer(newest),
        }
    }

    /// Whether what is held of a resource, or of all, came before it was asked for as it is now.
    fn has_older(&self, name: Option<&ResourceName>) -> bool {
        match name.filter(|name| !name.is_glob()) {
            Some(name) => self.resources.get(name).is_some_and(|held| !held.newest),
            None => self.resources.values().any(|held| !held.newest),
        }
    }

    fn fail(&mut self, name: Option<&ResourceName>, held: bool) {
        match name.filter(|name| !name.is_glob()) {
            Some(name) if held => self.resources.get_mut(name).into_iter().for_each(|held| held.wrong = true),
            Some(name) => _ = self.resources.remove(name),
            None => {
                self.lost = name.is_none();
                if !held {
                    self.resources.clear();
                }
            }
        }
    }

    /// All that a collection has came: what did not is gone.
    fn answer(&mut self, newest: bool) -> Option<Told> {
        let is_news = !std::mem::replace(&mut self.answered, true) || newest && !self.turning;
        if newest && std::mem::take(&mut self.turning) {
            let mut gone: Vec<_> =
                self.resources.iter().filter(|(_, held)| !held.newest).map(|(name, _)| name.clone()).collect();
            gone.sort_unstable();
            gone.iter().for_each(|name| _ = self.resources.remove(name));
            self.queue.extend(gone.into_iter().map(|name| Told::Gone { name }));
        }
        if is_news {
            self.queue.push_back(Told::Answered);
        }
        self.take()
    }
}
