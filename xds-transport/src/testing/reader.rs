//! A subscriber that pulls, and believes nothing.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use xdstp_cache::{Interest, Pull, Removals, SubscriberId, TypeUrl, Version};
use xdstp_uri::{CanonicalText, ResourceName};

use crate::server::Source;
use crate::server::Tally;
use crate::testing::model::{Content, Model};

/// A pull that visits nothing so often never ends.
const PATIENCE: usize = 10_000;

pub(crate) struct Reader {
    pub(crate) id: SubscriberId,
    pub(crate) type_url: TypeUrl,
    pub(crate) model: Model,
    /// What the change set that is pulled has visited.
    seen: BTreeSet<ResourceName>,
    /// It is at what is gone.
    is_at_removals: bool,
}

/// What a pull visited.
enum Visit {
    Put(ResourceName, Version),
    Removed(ResourceName),
}

impl Reader {
    /// A subscriber, with its first interests and what it has from before.
    pub(crate) fn open(
        source: &mut impl Source,
        type_url: &TypeUrl,
        interests: &[Interest],
        held: Vec<(ResourceName, Version)>,
        content: &Content,
    ) -> Result<Self, String> {
        let id = source.open(type_url);
        let (seen, model) = (BTreeSet::new(), Model::default());
        let mut reader = Self { id, type_url: type_url.clone(), model, seen, is_at_removals: false };
        for interest in interests {
            reader.subscribe(source, interest, content)?;
        }
        reader.model.resume(&held, content);
        source.resume(id, held);
        Ok(reader)
    }

    pub(crate) fn subscribe(
        &mut self,
        source: &mut impl Source,
        interest: &Interest,
        content: &Content,
    ) -> Result<(), String> {
        self.interrupt();
        let new = self.model.subscribe(interest, content);
        // As a session does: where the source knows the name, that is all.
        let known = match interest {
            Interest::Name(name) if !name.is_glob() => {
                source.subscribe_known(self.id, &CanonicalText::new(name.as_str()))
            }
            _ => None,
        };
        let said = known.map_or_else(|| source.subscribe(self.id, interest), |(_, new)| new);
        if said == new {
            Ok(())
        } else {
            Err(format!("a subscription to {} is said to be new: {said}", interest.as_str()))
        }
    }

    pub(crate) fn unsubscribe(
        &mut self,
        source: &mut impl Source,
        interest: &Interest,
        content: &Content,
    ) -> Result<(), String> {
        self.interrupt();
        let held = self.model.unsubscribe(interest, content);
        let said = source.unsubscribe(self.id, interest);
        if said == held {
            Ok(())
        } else {
            Err(format!("a subscription to {} is said to have been: {said}", interest.as_str()))
        }
    }

    /// Something changed: what is pulled from here on is another change set.
    pub(crate) fn interrupt(&mut self) {
        self.seen.clear();
        self.is_at_removals = false;
    }

    /// Pulls all there is, in parts, and holds it against what it must be.
    pub(crate) fn settle(&mut self, source: &mut impl Source, part: usize, content: &Content) -> Result<(), String> {
        self.pull_all(source, Removals::Include, part, content)?;
        self.check_errors_are_none(source)?;
        if source.has_work(self.id) {
            return Err("there is work when all is told".into());
        }
        self.model.check_at_rest(content)?;
        self.check_content(source, content)
    }

    /// The same, but for what takes anything from its client.
    pub(crate) fn settle_additions(
        &mut self,
        source: &mut impl Source,
        part: usize,
        content: &Content,
    ) -> Result<(), String> {
        self.pull_all(source, Removals::Defer, part, content)?;
        self.model.check_additions()
    }

    fn pull_all(
        &mut self,
        source: &mut impl Source,
        removals: Removals,
        part: usize,
        content: &Content,
    ) -> Result<(), String> {
        for _ in 0..PATIENCE {
            if !self.pull(source, removals, part, content)? {
                self.interrupt();
                return Ok(());
            }
        }
        Err("a pull that never ends".into())
    }

    /// Pulls once. Whether there is more.
    pub(crate) fn pull(
        &mut self,
        source: &mut impl Source,
        removals: Removals,
        part: usize,
        content: &Content,
    ) -> Result<bool, String> {
        let (work, additions) = (source.has_work(self.id), source.has_additions(self.id));
        let (mut visits, mut after) = (Vec::new(), false);
        let pulled = source.pull(self.id, removals, &mut |pull| {
            after |= visits.len() >= part;
            match pull {
                Pull::Put { name, resource, .. } => visits.push(Visit::Put(name.clone(), resource.version.clone())),
                Pull::Removed { name, .. } => visits.push(Visit::Removed(name.clone())),
                _ => {}
            }
            if visits.len() < part { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if after {
            return Err("a pull goes on after it was stopped (rule 133)".into());
        }
        if !work && !visits.is_empty() {
            return Err("a pull visits something, and there was no work".into());
        }
        if removals == Removals::Defer && !additions && !visits.is_empty() {
            return Err("a pull without removals visits something, and there were no additions".into());
        }
        for visit in visits {
            self.is_told(visit, removals, content)?;
        }
        Ok(pulled.more)
    }

    fn is_told(&mut self, visit: Visit, removals: Removals, content: &Content) -> Result<(), String> {
        let (Visit::Put(name, _) | Visit::Removed(name)) = &visit;
        if !self.seen.insert(name.clone()) {
            return Err(format!("{name} is in one change set twice (rule 103)"));
        }
        match visit {
            Visit::Put(name, _) if self.is_at_removals => Err(format!("{name} comes after what is gone (rule 134)")),
            Visit::Put(name, version) => self.model.is_told(&name, &version, content),
            Visit::Removed(name) if removals == Removals::Defer && self.model.has_been_told(&name) => {
                Err(format!("{name} is told as gone, and that was to wait (rule 122)"))
            }
            Visit::Removed(name) => {
                self.is_at_removals = true;
                self.model.is_told_gone(&name, content)
            }
        }
    }

    /// What a full state and a refresh are made of.
    fn check_content(&self, source: &mut impl Source, content: &Content) -> Result<(), String> {
        let wanted = self.model.wanted(content);
        let mut visited = Vec::new();
        source.visit(self.id, &mut |name, resource| visited.push((name.clone(), resource.version.clone())));
        visited.sort();
        if visited != wanted.clone().into_iter().collect::<Vec<_>>() {
            return Err(format!("{visited:?} is all that is visited (rule 66)"));
        }
        for name in content.keys() {
            let mut looks = Vec::new();
            source.look_up(self.id, name, &mut |resource| looks.push(resource.version.clone()));
            if looks != wanted.get(name).cloned().into_iter().collect::<Vec<_>>() {
                return Err(format!("{name} is looked up as {looks:?} (rule 112)"));
            }
        }
        Ok(())
    }

    fn check_errors_are_none(&self, source: &mut impl Source) -> Result<(), String> {
        let mut told = None;
        source.pull_errors(self.id, Removals::Include, &mut |failed| {
            told = Some(format!("{} is told as failing: {}", failed.name, failed.error));
            ControlFlow::Continue(())
        });
        told.map_or(Ok(()), Err)
    }

    pub(crate) fn close(self, source: &mut impl Source) {
        source.close(self.id, &Tally::default());
    }
}
