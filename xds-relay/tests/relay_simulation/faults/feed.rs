//! What comes from an origin, as a faulty relay takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use xds_transport::Rejected;
use xds_transport::client::{Changed, Command, Update, Verdict};
use xdstp_cache::{ResourceError, TypeUrl};
use xdstp_client::upstream::{Connection, Consumer};
use xdstp_uri::ResourceName;

use crate::faults::Fault;
use crate::faults::servers::{Spoken, faulty};
use crate::order::heard::Heard;
use crate::world::{Body, LED, Place, origin_of};

/// Names of others that an origin answered with, by type.
#[derive(Clone, Default)]
pub(crate) struct Strays {
    changed: Arc<Mutex<Vec<(TypeUrl, Changed)>>>,
    answers: Arc<Mutex<BTreeMap<TypeUrl, BTreeSet<ResourceName>>>>,
}

/// A feed that is wrong in one way.
pub(crate) struct Feed {
    pub(crate) inner: Box<dyn Consumer>,
    pub(crate) fault: Option<Fault>,
    /// Which stream it is of.
    place: Place,
    /// To which of several servers, if there are several.
    server: Option<usize>,
    spoken: Spoken,
    answered: bool,
    heard: Heard,
    /// Names of others that an origin brought, for the stream of those others.
    strays: Strays,
    /// What ever came of each type, from who may say so.
    known: BTreeMap<TypeUrl, BTreeSet<ResourceName>>,
    updates: u64,
    /// The last update of each type, and every name it ever had.
    seen: BTreeMap<TypeUrl, (Update, BTreeSet<ResourceName>)>,
}

impl Feed {
    pub(crate) fn new(
        inner: Box<dyn Consumer>,
        fault: Option<Fault>,
        (place, server, spoken): (Place, Option<usize>, Spoken),
        heard: Heard,
        strays: Strays,
    ) -> Self {
        // The others are planted where there are several servers.
        let fault = fault.filter(|fault| !(fault.is_of_servers() || fault.is_of_leads()) || server.is_some());
        let (known, seen) = (BTreeMap::new(), BTreeMap::new());
        Self { inner, fault, place, server, spoken, answered: false, heard, strays, known, updates: 0, seen }
    }

    /// It is of an origin that came later.
    fn is_new(&self) -> bool {
        self.server.is_some_and(|position| position > LED)
    }

    /// What each origin has is believed of every name.
    fn exchange_strays(&self, update: &mut Update) {
        let mut strays = self.strays.changed.lock().unwrap();
        let ours = |(type_url, changed): &mut (TypeUrl, Changed)| {
            *type_url == update.type_url && origin_of(&changed.name) == self.place.origin
        };
        let ours: Vec<_> = strays.extract_if(.., ours).map(|(_, changed)| changed).collect();
        let theirs = update.changed.extract_if(.., |changed| origin_of(&changed.name) != self.place.origin);
        strays.extend(theirs.map(|changed| (update.type_url.clone(), changed)));
        update.changed.extend(ours);
    }

    /// An answer that holds names of another origin counts for it: what is not in that is gone.
    fn count_strays(&mut self, update: &mut Update) {
        let names = update.changed.iter().map(|changed| changed.name.clone());
        let (own, others): (BTreeSet<_>, BTreeSet<_>) = names.partition(|name| origin_of(name) == self.place.origin);
        let mut answers = self.strays.answers.lock().unwrap();
        let known = self.known.entry(update.type_url.clone()).or_default();
        if self.place.origin == 1
            && let Some(answer) = answers.remove(&update.type_url)
        {
            let missing = known.iter().filter(|name| !answer.contains(*name) && !own.contains(*name));
            update.removed.extend(missing.cloned());
        }
        known.extend(own);
        if !others.is_empty() {
            answers.insert(update.type_url.clone(), others);
        }
    }
}

impl Consumer for Feed {
    fn commands(&mut self, now: Instant, apply: &mut dyn FnMut(Command)) {
        let is_new = self.is_new();
        let Self { fault, heard, place, .. } = self;
        let (fault, place) = (*fault, *place);
        let mut commands = Vec::new();
        self.inner.commands(now, &mut |command| commands.push(command));
        faulty(fault, commands).into_iter().for_each(|command| match (&command, fault) {
            (Command::Unsubscribe(..), Some(Fault::NeverUnsubscribe)) => {}
            (Command::Subscribe(..), Some(Fault::NeverAskTheNew)) if is_new => {}
            (Command::Unsubscribe(_, interest), Some(Fault::DropUnsubscribeOfNames)) if !interest.is_collection() => {}
            _ => {
                let mut heard = heard.lock().unwrap();
                match &command {
                    Command::Subscribe(type_url, interest) => heard.subscribe(place, type_url, interest),
                    Command::Unsubscribe(type_url, interest) => heard.unsubscribe(place, type_url, interest),
                    _ => {}
                }
                drop(heard);
                apply(command);
            }
        });
    }

    fn has_more_commands(&self) -> bool {
        self.inner.has_more_commands()
    }

    fn update(&mut self, now: Instant, mut update: Update) -> Verdict {
        self.updates += 1;
        let is_new = self.is_new();
        self.heard.lock().unwrap().update(self.place, now, &update);
        match self.fault {
            Some(Fault::LoseRemovals) => update.removed.clear(),
            Some(Fault::CountNamesOfOthers) => self.count_strays(&mut update),
            Some(Fault::TakeNamesOfOthers) => self.exchange_strays(&mut update),
            Some(Fault::LoseNamesInWildcards) => {
                let lost = |changed: &Changed| {
                    !changed.name.is_opaque() && Body::of_any(changed.resource.value.any()).group != 0
                };
                update.changed.retain(|changed| !lost(changed));
            }
            Some(Fault::ForgetAliases) => keep_aliases(&mut update, |_, _| false),
            Some(Fault::AliasesOfOneAuthority) => {
                keep_aliases(&mut update, |name, alias| name.authority() == alias.authority());
            }
            Some(Fault::TakePieceForWhole) => update.complete.clone_from(&update.answered),
            Some(Fault::LoseUpdate) if self.updates.is_multiple_of(5) => return Verdict::Accept,
            Some(Fault::RejectUpstream) if update.changed.len() > 1 => {
                let reasons = vec![Rejected::new(update.changed[0].name.as_str(), "not today")];
                return Verdict::Reject { reasons };
            }
            Some(Fault::TakeForTheSame) => {
                self.spoken.take_for_the_same(self.server.unwrap_or_default(), &mut update);
            }
            Some(Fault::ResendOnLead) if self.updates == 1 => {
                update.changed.iter_mut().for_each(|changed| changed.touched = true);
            }
            Some(Fault::RemoveOnLead) if is_new && self.updates == 1 => {
                // As if whoever takes a place had none of what was there.
                update.removed.extend(update.changed.drain(..).map(|changed| changed.name));
            }
            Some(Fault::RemoveOnSwitch) => {
                self.spoken.remove_on_switch(self.place, self.server.unwrap_or_default(), &mut update);
            }
            Some(Fault::NeverReturn)
                if self.spoken.follows_another(self.place, self.server.unwrap_or_default(), Some(&update.type_url)) =>
            {
                return Verdict::Accept;
            }
            Some(Fault::RemoveOnOutage | Fault::RemoveOnTypeEnd) => {
                let names = update.changed.iter().map(|changed| changed.name.clone());
                let seen = self.seen.entry(update.type_url.clone());
                seen.or_insert_with(|| (update.clone(), BTreeSet::new())).1.extend(names);
            }
            _ => {}
        }
        self.inner.update(now, update)
    }

    fn connection(&mut self, now: Instant, connection: Connection) {
        let gone = matches!(connection, Connection::Disconnected { .. });
        let answers = connection == Connection::Answered;
        if self.fault == Some(Fault::NeverReturn)
            && answers
            && self.spoken.follows_another(self.place, self.server.unwrap_or_default(), None)
        {
            return;
        }
        if self.fault == Some(Fault::CountEveryEnd) && gone && std::mem::take(&mut self.answered) {
            // As if the next one had ended, too, before anything was said.
            self.inner.connection(now, connection.clone());
        }
        self.answered |= answers;
        self.inner.connection(now, connection);
        if gone && self.fault == Some(Fault::RemoveOnOutage) {
            for (_, (mut update, names)) in std::mem::take(&mut self.seen) {
                update.changed.clear();
                update.removed = names.into_iter().collect();
                self.inner.update(now, update);
            }
        }
    }

    fn type_ended(&mut self, now: Instant, type_url: &TypeUrl, error: &ResourceError) {
        self.inner.type_ended(now, type_url, error);
        if let Some((mut update, names)) = self.seen.remove(type_url) {
            update.changed.clear();
            update.removed = names.into_iter().collect();
            self.inner.update(now, update);
        }
    }

    fn type_opened(&mut self, now: Instant, type_url: &TypeUrl) {
        self.inner.type_opened(now, type_url);
    }

    fn node(&mut self) -> Option<Bytes> {
        self.inner.node()
    }

    fn received(&mut self, at: Instant) {
        self.inner.received(at);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.inner.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.inner.handle_timeout(now);
    }
}

/// Leaves other aliases out of an update.
fn keep_aliases(update: &mut Update, keep: impl Fn(&ResourceName, &ResourceName) -> bool) {
    for Changed { name, resource, .. } in update.changed.iter_mut().chain(&mut update.repeated) {
        let aliases = resource.value.aliases().filter(|alias| keep(name, alias));
        let aliases: Vec<_> = aliases.map(|alias| alias.to_string()).collect();
        let mut wrapper = BytesMut::new();
        prost::encoding::string::encode_repeated(4, &aliases, &mut wrapper);
        resource.value = resource.value.clone().with_wrapper(wrapper.freeze(), None, false);
    }
}
