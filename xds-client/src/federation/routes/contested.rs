//! Names that several parts of a subscriber may have: which of them counts.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use xds_transport::Frame;
use xdstp_cache::{Pull, Removals, SubscriberId};
use xdstp_uri::ResourceName;

use super::Routes;
use crate::federation::core::Federation;
use crate::federation::denied::Screen;
use crate::federation::subscriber::{Awaiting, Counts, News, Said, Stub, Subscriber};

impl Routes {
    /// Says which of several parts counts for names that they contest: the one of the name's own authority, if it has
    /// the name, or has not answered; else another that has it (rule 152). True when there is more.
    pub(super) fn settle_contested(
        &mut self,
        id: SubscriberId,
        contested: Vec<(ResourceName, News)>,
        said: &mut Said,
        removals: Removals,
        stubs: &mut Vec<Stub>,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> bool {
        let Self { federation, client, subscribers, .. } = self;
        let Some(subscriber) = subscribers.get_mut(id.index()) else { return false };
        if contested.is_empty() && !subscriber.has_contested() {
            return false;
        }
        let (fresh, type_url) = (!contested.is_empty(), subscriber.type_url.clone());
        let has_wildcard = client.is_limited() && subscriber.has_wildcard(federation);
        let mut screen = Screen::of(&**client, &type_url, has_wildcard);
        contest_all(subscriber, federation, contested);
        let mut later = BTreeMap::new();
        let mut settled: HashSet<ResourceName> = HashSet::new();
        let (mut more, mut awaiting) = (false, Awaiting::default());
        while let Some((name, news)) = subscriber.contested.pop_first() {
            let counts = subscriber.counts(federation, &name, news, &mut awaiting);
            match turn(&counts, news, said.get(&name).copied(), removals) {
                Turn::Now => {
                    let gone = matches!(counts, Counts::Gone);
                    let Some(visited) = say(&name, counts, &mut screen, stubs, visitor) else { continue };
                    if gone {
                        tell_gone(subscriber, federation, &name);
                    }
                    settled.insert(name.clone());
                    said.insert(name, gone);
                    if visited.is_break() {
                        more = true;
                        break;
                    }
                }
                Turn::Later => _ = later.insert(name, news),
                Turn::Unanswered => _ = subscriber.unanswered.insert(name, news),
                Turn::Settled => _ = settled.insert(name),
                Turn::Never => {}
            }
        }
        more |= fresh && !subscriber.contested.is_empty();
        subscriber.contested.append(&mut later);
        if !subscriber.private.is_empty() {
            // What is gone for all, or shared, is not fetched for this client any more.
            self.drop_private(id, |name, _, _| settled.contains(name));
        }
        more
    }
}

/// What becomes of a contested name in this response.
enum Turn {
    /// It is said what counts.
    Now,
    /// That is left to another response.
    Later,
    /// The part that counts is yet to say it.
    Unanswered,
    /// It was said already.
    Settled,
    /// There is nothing to say, or a part says it as that is pulled.
    Never,
}

/// Of a name that is `said` to be gone, or not to be, in this response already.
fn turn(counts: &Counts, news: News, said: Option<bool>, removals: Removals) -> Turn {
    match (counts, said) {
        (Counts::Own | Counts::Undecided, _) | (Counts::ByAlias(..), Some(false)) => Turn::Never,
        (Counts::Unanswered, _) => Turn::Unanswered,
        // It was never told of it.
        (Counts::Gone, _) if news == News::OtherPut => Turn::Never,
        // Its own stream said so, too.
        (Counts::Gone, Some(true)) => Turn::Settled,
        (Counts::Gone, None) if removals == Removals::Include => Turn::Now,
        (Counts::Other(..) | Counts::ByAlias(..), None) => Turn::Now,
        (Counts::Gone | Counts::Other(..) | Counts::ByAlias(..), _) => Turn::Later,
    }
}

/// Notes what is new of names that several parts may have, beside what was not answered of them before.
fn contest_all(subscriber: &mut Subscriber, federation: &Federation, contested: Vec<(ResourceName, News)>) {
    let unanswered = std::mem::take(&mut subscriber.unanswered);
    unanswered.into_iter().for_each(|(name, news)| subscriber.contest(name, news));
    for (name, news) in contested {
        let news = subscriber.as_asked(federation, &name, news);
        subscriber.contest(name, news);
    }
}

/// Says what counts for a name; none if that is kept from the client, or is to be fetched for it alone.
fn say(
    name: &ResourceName,
    counts: Counts,
    screen: &mut Option<Screen<'_>>,
    stubs: &mut Vec<Stub>,
    visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
) -> Option<ControlFlow<()>> {
    match counts {
        Counts::Own | Counts::Undecided | Counts::Unanswered => None,
        Counts::Other(scope, resource) | Counts::ByAlias(scope, resource)
            if screen.as_mut().is_some_and(|screen| screen.keeps_resource(&scope, name, &resource)) =>
        {
            None
        }
        Counts::Other(scope, resource) | Counts::ByAlias(scope, resource) if resource.value.do_not_cache() => {
            stubs.push(Stub::of(name, &scope, &resource));
            None
        }
        Counts::Other(_, resource) | Counts::ByAlias(_, resource) => Some(visitor(Pull::put(name, &resource))),
        Counts::Gone => Some(visitor(Pull::removed(name))),
    }
}

/// The client is told that a name is gone, whichever part it had it from.
fn tell_gone(subscriber: &Subscriber, federation: &Federation, name: &ResourceName) {
    let place = federation.place(name.authority());
    let (own, others) = subscriber.parts.of_names_at(place, &federation.mixed(place.origin()));
    own.into_iter().chain(others).for_each(|part| part.scope.told_gone(part.id, name));
}
