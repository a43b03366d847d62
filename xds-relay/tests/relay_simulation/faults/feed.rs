//! What comes from an origin, as a faulty relay takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use xds_transport::Rejected;
use xds_transport::client::{Changed, Command, Update, Verdict};
use xdstp_cache::TypeUrl;
use xdstp_client::upstream::{Connection, Consumer};
use xdstp_uri::ResourceName;

use crate::faults::Fault;
use crate::world::{Body, origin_of};

/// What an origin sent of other origins' names.
pub(crate) type Strays = Arc<Mutex<Vec<(TypeUrl, Changed)>>>;

/// A feed that is wrong in one way.
pub(crate) struct Feed {
    pub(crate) inner: Box<dyn Consumer>,
    pub(crate) fault: Option<Fault>,
    origin: usize,
    /// Names of others that an origin brought, for the stream of those others.
    strays: Strays,
    updates: u64,
    /// The last update of each type, and every name it ever had.
    seen: BTreeMap<TypeUrl, (Update, BTreeSet<ResourceName>)>,
}

impl Feed {
    pub(crate) fn new(inner: Box<dyn Consumer>, fault: Option<Fault>, origin: usize, strays: Strays) -> Self {
        Self { inner, fault, origin, strays, updates: 0, seen: BTreeMap::new() }
    }

    /// What each origin has is believed of every name.
    fn exchange_strays(&self, update: &mut Update) {
        let mut strays = self.strays.lock().unwrap();
        let ours = |(type_url, changed): &mut (TypeUrl, Changed)| {
            *type_url == update.type_url && origin_of(&changed.name) == self.origin
        };
        let ours: Vec<_> = strays.extract_if(.., ours).map(|(_, changed)| changed).collect();
        let theirs = update.changed.extract_if(.., |changed| origin_of(&changed.name) != self.origin);
        strays.extend(theirs.map(|changed| (update.type_url.clone(), changed)));
        update.changed.extend(ours);
    }
}

impl Consumer for Feed {
    fn commands(&mut self, now: Instant, apply: &mut dyn FnMut(Command)) {
        let fault = self.fault;
        self.inner.commands(now, &mut |command| match (&command, fault) {
            (Command::Unsubscribe(..), Some(Fault::NeverUnsubscribe)) => {}
            (Command::Unsubscribe(_, interest), Some(Fault::DropUnsubscribeOfNames)) if !interest.is_collection() => {}
            _ => apply(command),
        });
    }

    fn update(&mut self, now: Instant, mut update: Update) -> Verdict {
        self.updates += 1;
        match self.fault {
            Some(Fault::LoseRemovals) => update.removed.clear(),
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
            Some(Fault::RemoveOnOutage) => {
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
        self.inner.connection(now, connection);
        if gone {
            for (_, (mut update, names)) in std::mem::take(&mut self.seen) {
                update.changed.clear();
                update.removed = names.into_iter().collect();
                self.inner.update(now, update);
            }
        }
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
