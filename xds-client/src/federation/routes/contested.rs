//! Names that several parts of a subscriber may have: which of them counts.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use xds_transport::Frame;
use xdstp_cache::{Pull, Removals, SubscriberId};
use xdstp_uri::ResourceName;

use super::Routes;
use crate::federation::denied::Screen;
use crate::federation::subscriber::{Awaiting, Counts, News, Said, Stub};

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
        let unanswered = std::mem::take(&mut subscriber.unanswered);
        unanswered.into_iter().for_each(|(name, news)| subscriber.contest(name, news));
        for (name, news) in contested {
            let news = subscriber.as_asked(federation, &name, news);
            subscriber.contest(name, news);
        }
        let mut later = BTreeMap::new();
        let mut settled: HashSet<ResourceName> = HashSet::new();
        let (mut more, mut awaiting) = (false, Awaiting::default());
        while let Some((name, news)) = subscriber.contested.pop_first() {
            let counts = subscriber.counts(federation, &name, news, &mut awaiting);
            let gone = matches!(counts, Counts::Gone);
            match said.get(&name) {
                _ if matches!(counts, Counts::Own | Counts::Undecided) => continue,
                Some(false) if matches!(counts, Counts::ByAlias(..)) => continue,
                _ if matches!(counts, Counts::Unanswered) => {
                    subscriber.unanswered.insert(name, news);
                    continue;
                }
                // It was never told of it.
                _ if gone && news == News::OtherPut => continue,
                Some(true) if gone => {
                    // Its own stream said so, too.
                    settled.insert(name);
                    continue;
                }
                None if !gone || removals == Removals::Include => {}
                _ => {
                    later.insert(name, news);
                    continue;
                }
            }
            let visited = match counts {
                Counts::Own | Counts::Undecided | Counts::Unanswered => continue,
                Counts::Other(scope, resource) | Counts::ByAlias(scope, resource)
                    if screen.as_mut().is_some_and(|screen| screen.keeps_resource(&scope, &name, &resource)) =>
                {
                    continue;
                }
                Counts::Other(scope, resource) | Counts::ByAlias(scope, resource) if resource.value.do_not_cache() => {
                    stubs.push(Stub::of(&name, &scope, &resource));
                    continue;
                }
                Counts::Other(_, resource) | Counts::ByAlias(_, resource) => visitor(Pull::put(&name, &resource)),
                Counts::Gone => visitor(Pull::removed(&name)),
            };
            if gone {
                let place = federation.place(name.authority());
                let (own, others) = subscriber.parts.of_names_at(place, &federation.mixed(place.origin()));
                own.into_iter().chain(others).for_each(|part| part.scope.told_gone(part.id, &name));
            }
            settled.insert(name.clone());
            said.insert(name, gone);
            if visited.is_break() {
                more = true;
                break;
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
