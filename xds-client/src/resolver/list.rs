//! What a list collection has (TP1): entries that stand in it, and resources elsewhere, each of which is watched.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use xds_transport::Frame;
use xdstp_cache::{Resource, TypeUrl, Version};
use xdstp_uri::{Locator, ResourceName};

use super::asked::Asked;
use super::find::{Find, Opens};
use super::parts::Parts;
use super::told::Told;
use crate::client::Inner;
#[cfg(test)]
use crate::federation::faults::{Fault, planted};
use crate::federation::{Entry, Listed};

pub(crate) struct List {
    client: Arc<Inner>,
    /// Of the members.
    type_url: TypeUrl,
    opens: Opens,
    directory: Box<dyn Find>,
    members: BTreeMap<ResourceName, Member>,
    elsewhere: Parts<ResourceName, Box<dyn Find>>,
    /// Members elsewhere that nothing was heard of yet.
    awaited: BTreeSet<ResourceName>,
    /// What the list says that is yet to be told: no more than it has, for it is looked at when this is empty.
    queue: VecDeque<Told>,
    /// The list is there, and that its members are known is yet to be told.
    answers: bool,
    /// It was.
    answered: bool,
    /// Something is wrong with the list, beside which there are members: it was told of this name. That no server can be reached is
    /// told by itself; its end is told, too, or in place of it once more what is wrong with the list.
    amiss: Option<ResourceName>,
}

/// What is known of a member.
#[cfg_attr(test, derive(Clone))]
enum Member {
    Inline(Version, u128),
    Elsewhere {
        locator: Locator<'static>,
        /// It was told.
        told: bool,
    },
}

impl List {
    pub(super) fn new(client: &Arc<Inner>, type_url: &TypeUrl, directory: Box<dyn Find>, opens: Opens) -> Self {
        Self {
            client: client.clone(),
            type_url: type_url.clone(),
            opens,
            directory,
            members: BTreeMap::new(),
            elsewhere: Parts::new(),
            awaited: BTreeSet::new(),
            queue: VecDeque::new(),
            answers: false,
            answered: false,
            amiss: None,
        }
    }

    /// What is said of the list itself.
    fn heard(&mut self, told: Told) {
        match told {
            Told::Put { name, resource } => match self.client.listed(&self.type_url, &resource) {
                Ok(listed) => {
                    // Its members may be as they were, and say nothing of it.
                    let amiss = self.amiss.take();
                    self.queue.extend(amiss.map(|name| Told::Cleared { name: Some(name) }));
                    self.look(&listed);
                }
                Err(error) => {
                    let held = self.has_any();
                    self.amiss = held.then(|| name.clone());
                    self.queue.push_back(Told::Failed { name: Some(name), error, held, keeps: true });
                }
            },
            Told::Failed { name, error, held, keeps } => {
                if !held {
                    self.members.clear();
                    self.elsewhere = Parts::new();
                    self.awaited.clear();
                    (self.answers, self.answered, self.amiss) = (false, false, None);
                } else if let Some(name) = &name {
                    self.amiss = Some(name.clone());
                }
                let held = held && self.has_any();
                self.queue.push_back(Told::Failed { name, error, held, keeps });
            }
            Told::Cleared { name } => {
                self.amiss = self.amiss.take().filter(|_| name.is_none());
                self.queue.push_back(Told::Cleared { name });
            }
            Told::Gone { .. } | Told::Answered => {}
        }
    }

    /// Whether there is anything to go on with: members, or that there are none.
    fn has_any(&self) -> bool {
        self.answered || self.members.values().any(Member::is_told)
    }

    /// The list is new: what comes is told before what goes.
    fn look(&mut self, listed: &Listed) {
        let mut gone = std::mem::take(&mut self.members);
        #[cfg(test)]
        if planted(Fault::KeepMembers) {
            self.members.clone_from(&gone);
            gone.retain(|name, _| listed.entries().iter().any(|(listed, _)| listed == name));
        }
        for (name, entry) in listed.entries() {
            let before = gone.remove(name);
            match entry {
                Entry::Inline(resource) => self.put(name, resource, before),
                Entry::Elsewhere(locator) => self.follow(name, locator, before),
            }
        }
        for (name, member) in gone {
            self.elsewhere.remove(&name);
            self.awaited.remove(&name);
            if member.is_told() {
                self.queue.push_back(Told::Gone { name });
            }
        }
        self.answers = !self.answered;
    }

    fn put(&mut self, name: &ResourceName, resource: &Resource<Frame>, before: Option<Member>) {
        self.elsewhere.remove(name);
        self.awaited.remove(name);
        let (version, digest) = (resource.version.clone(), resource.digest());
        let is_same =
            matches!(&before, Some(Member::Inline(known, content)) if *known == version && *content == digest);
        if !is_same {
            self.queue.push_back(Told::Put { name: name.clone(), resource: resource.clone() });
        }
        self.members.insert(name.clone(), Member::Inline(version, digest));
    }

    fn follow(&mut self, name: &ResourceName, locator: &Locator<'static>, before: Option<Member>) {
        let told = before.as_ref().is_some_and(Member::is_told);
        let is_same = matches!(&before, Some(Member::Elsewhere { locator: known, .. }) if known == locator);
        if !is_same {
            #[cfg(test)]
            let locator = &by_text(self.first().interest(), locator);
            match (self.opens)(&self.client, &self.type_url, locator, 0) {
                Ok(found) => {
                    self.elsewhere.insert(name.clone(), found);
                    self.awaited.insert(name.clone());
                }
                Err(error) => {
                    self.elsewhere.remove(name);
                    self.awaited.remove(name);
                    self.queue.push_back(Told::Failed { name: Some(name.clone()), error, held: told, keeps: true });
                }
            }
        }
        self.members.insert(name.clone(), Member::Elsewhere { locator: locator.clone(), told });
    }
}

impl Find for List {
    fn next(&mut self, waker: &Waker) -> Option<Told> {
        loop {
            if let Some(told) = self.queue.pop_front() {
                return Some(told);
            }
            match self.directory.next(waker) {
                Some(told) => self.heard(told),
                None => break,
            }
        }
        if self.answers && self.awaited.is_empty() {
            (self.answers, self.answered) = (false, true);
            return Some(Told::Answered);
        }
        let (name, told) = self.elsewhere.next(waker, |found, waker| found.next(waker))?;
        self.awaited.remove(&name);
        if let Some(Member::Elsewhere { told: known, .. }) = self.members.get_mut(&name) {
            match &told {
                Told::Put { .. } => *known = true,
                Told::Failed { held: false, .. } => *known = false,
                _ => {}
            }
        }
        Some(told.of(&name))
    }

    fn first(&self) -> &Asked {
        self.directory.first()
    }

    fn first_mut(&mut self) -> &mut Asked {
        self.directory.first_mut()
    }

    fn renotify(&mut self) {
        self.directory.renotify();
    }

    fn source(&self) -> &Asked {
        self.directory.source()
    }

    fn is_stale(&self) -> bool {
        self.directory.is_stale() || self.elsewhere.all().any(|found| found.is_stale())
    }

    fn is_one(&self) -> bool {
        false
    }
}

impl Member {
    fn is_told(&self) -> bool {
        match self {
            Self::Inline(..) => true,
            Self::Elsewhere { told, .. } => *told,
        }
    }
}

/// Where a member is, but for a fault that has it where the list is.
#[cfg(test)]
fn by_text(list: &xdstp_cache::Interest, to: &Locator<'static>) -> Locator<'static> {
    let authority = |text: &str| text.split('/').nth(2).map(|authority| format!("//{authority}/"));
    let text = to.to_string();
    match (authority(list.as_str()), authority(&text)) {
        (Some(of_list), Some(own)) if planted(Fault::MatchMembersByText) => {
            Locator::parse(&text.replacen(&own, &of_list, 1)).map_or_else(|_| to.clone(), Locator::into_owned)
        }
        _ => to.clone(),
    }
}
