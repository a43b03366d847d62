//! What a delta session asks for: at first with the versions of all that is held, then piece by piece.

use std::collections::BTreeMap;
use std::time::Instant;

use xdstp_cache::{Interest, Version};
use xdstp_uri::ResourceName;

use super::{Ack, Delta};
use crate::client::room::Room;
use crate::client::session::absence::Silence;
use crate::client::session::delta::opening::Opening;
use crate::client::session::held::Entry;
use crate::wire::DeltaDiscoveryRequest;

impl Delta {
    /// The next request but for its node. Only answers carry a nonce (rule 20).
    pub(crate) fn poll_transmit(&mut self, now: Instant, mut room: Room) -> Option<DeltaDiscoveryRequest> {
        let mut request = DeltaDiscoveryRequest { type_url: self.common.type_url(), ..Default::default() };
        if let Some(Ack { nonce, error }) = self.acks.pop_front() {
            (request.response_nonce, request.error_detail) = (nonce, error);
            return Some(request);
        }
        if !self.common.opened {
            // A first request without names would ask for everything (rule 61).
            if self.common.wanted.is_empty() {
                return None;
            }
            self.common.opened = true;
            let only_wildcard = self.common.wanted.only_wildcard();
            let versions = self.initial_versions();
            self.undecided.clear();
            let Opening { asked, versions, left_out } = Opening::new(&mut self.common.wanted, versions, room);
            // The wildcard alone is an empty request, beside names it is one of them (rule 60).
            let selects = self.common.selecting.is_some();
            if selects || !(self.common.legacy_wildcard && only_wildcard && left_out.is_empty()) {
                self.subscribe_in(&mut request, asked.iter().map(Interest::as_str));
            }
            self.wildcards.asked(&asked);
            (request.initial_resource_versions, self.unasked) = (versions, left_out);
            self.await_answers(now, asked);
            return Some(request);
        }
        if self.common.wanted.is_told() && self.unasked.is_empty() {
            return None;
        }
        room = room.of_part();
        let left = self.common.wanted.give_up(&mut room);
        self.wildcards.left(&left);
        self.unsubscribe_in(&mut request, &left);
        while self.unasked.first().is_some_and(|member| room.take_name(member.as_str())) {
            let member = self.unasked.pop_first();
            self.subscribe_in(&mut request, member.iter().map(ResourceName::as_str));
            self.asked.extend(member);
        }
        let asked = self.common.wanted.ask(|interest| room.take_name(interest.as_str()));
        self.wildcards.asked(&asked);
        self.subscribe_in(&mut request, asked.iter().map(Interest::as_str));
        self.await_answers(now, asked);
        Some(request)
    }

    fn subscribe_in<'a>(&self, request: &mut DeltaDiscoveryRequest, names: impl Iterator<Item = &'a str>) {
        match &self.common.selecting {
            Some(selecting) => request.resource_locators_subscribe.extend(names.map(|name| selecting.locator(name))),
            None => request.resource_names_subscribe.extend(names.map(str::to_owned)),
        }
    }

    fn unsubscribe_in(&self, request: &mut DeltaDiscoveryRequest, left: &[Interest]) {
        let names = left.iter().map(Interest::as_str);
        match &self.common.selecting {
            Some(selecting) => request.resource_locators_unsubscribe.extend(names.map(|name| selecting.locator(name))),
            None => request.resource_names_unsubscribe.extend(names.map(str::to_owned)),
        }
    }

    /// A relay waits for what delta has to say of every name; collections are answered, if need be empty.
    fn await_answers(&mut self, now: Instant, asked: Vec<Interest>) {
        if self.common.silence == Silence::IsNoAnswer {
            return;
        }
        for interest in asked {
            if let Interest::Name(name) = &interest
                && !name.is_glob()
                && self.common.held.get(name).is_none()
            {
                self.common.absences.asked(now, interest, &mut self.common.wanted);
            }
        }
    }

    /// All that is held, glob and wildcard members included (rules 83, 101), as entries of a map field: what is gone by
    /// now is told as removed (rule 84). What was removed is not held, and only subscribed (rule 73).
    ///
    /// What came with a response that was refused, or has no verdict yet, goes without its version (rule 30), and so
    /// does what a name or glob that was never answered asks for, because only that answers it: these are sent again. Not
    /// to name them at all would be never to hear that they are gone. And so does what lives for a time, or has an
    /// error, itself or its glob: that the origin has taken either back meanwhile, only the resource says (rules 111, 118). Of the
    /// wildcard any one does.
    fn initial_versions(&self) -> BTreeMap<ResourceName, Version> {
        let awaits_names = self.common.wanted.awaits_names();
        let within = |name: &ResourceName| name.glob_parent().is_some_and(|glob| self.common.failed.contains(&glob));
        let fails =
            |name: &ResourceName| !self.common.failed.is_empty() && (self.common.failed.contains(name) || within(name));
        let version = |name: &ResourceName, entry: &'_ Entry| {
            // A name that was not answered may be one of its aliases.
            let awaited = self.common.wanted.awaits(name) || awaits_names && entry.has_aliases;
            let told_again = self.common.held.expires(name) || fails(name);
            if entry.accepted && !awaited && !told_again { entry.version.clone() } else { "".into() }
        };
        let held = self.common.held.iter().map(|(name, entry)| (name.clone(), version(name, entry)));
        let mut versions: BTreeMap<_, _> = held.collect();
        if self.common.failed_unsaid && self.common.wanted.wish(&Interest::Wildcard).is_some() {
            let by_wildcard =
                |name: &&ResourceName| self.common.wanted.wish(&Interest::Name((*name).clone())).is_none();
            let any = self.common.held.iter().map(|(name, _)| name).find(by_wildcard);
            versions.extend(any.map(|name| (name.clone(), Version::from(""))));
        }
        versions.extend(self.common.unfinished.names().map(|name| (name.clone(), Version::from(""))));
        for name in self.undecided.iter().chain(&self.common.failed) {
            // What is asked for itself is answered anyway.
            if self.common.wanted.wish(&Interest::Name(name.clone())).is_none() && self.common.wanted.covers(name) {
                versions.entry(name.clone()).or_insert_with(|| Version::from(""));
            }
        }
        versions
    }
}
