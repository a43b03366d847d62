//! What is new to a subscriber, from all of its parts.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use xds_transport::Frame;
use xdstp_cache::{Pull, Pulled, Removals, SubscriberId};
use xdstp_uri::ResourceName;

use super::{MAX_NOTED, Routes};
use crate::federation::denied::Screen;
use crate::federation::subscriber::{News, Said, Stub, Subscriber, contests, news_of};

impl Routes {
    /// Visits what is new, the shared scopes before those of this stream alone.
    pub(super) fn pull_all(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        let view = self.view.clone();
        let visitor = &mut |pull: Pull<'_, Frame>| {
            view.served.store(true, Ordering::Relaxed);
            visitor(pull)
        };
        // Of names that several parts have, in this response.
        let mut said = Said::new();
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return Pulled::default() };
        subscriber.end_opening();
        let may_close = subscriber.may_close;
        if removals == Removals::Defer || subscriber.all_parts().count() <= 1 {
            let pulled = self.pull_parts(id, removals, &mut said, visitor);
            // Everything there is was said, but for what may be left of it if removals wait.
            if !pulled.more {
                self.give_back_brought(id);
            }
            if may_close && removals == Removals::Include && !pulled.more {
                self.close_done(id);
            }
            return pulled;
        }
        // Rule 134: no scope's removals before another's additions.
        let additions = self.pull_parts(id, Removals::Defer, &mut said, visitor);
        if additions.more {
            return additions;
        }
        let pulled = additions.and(self.pull_parts(id, Removals::Include, &mut said, visitor));
        if !pulled.more {
            self.give_back_brought(id);
            if may_close {
                self.close_done(id);
            }
        }
        pulled
    }

    /// Pulls the parts until the visitor has enough, or there is no more.
    fn pull_parts(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        said: &mut Said,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        let mut pulled = Pulled::default();
        loop {
            let (round, again) = self.pull_round(id, removals, said, visitor);
            pulled = pulled.and(round);
            (pulled.more, pulled.paused) = (round.more, round.paused);
            if !again {
                return pulled;
            }
        }
    }

    /// One round over the parts: what is visited comes from the shared scopes, but for stubs of resources that must not
    /// be shared, which are noted instead. Whether another round is due, though the visitor has not enough.
    fn pull_round(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        said: &mut Said,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> (Pulled, bool) {
        let mut pulled = Pulled::default();
        let mut stubs: Vec<Stub> = Vec::new();
        let mut served: HashSet<ResourceName> = HashSet::new();
        let mut contested: Vec<(ResourceName, News)> = Vec::new();
        let Self { federation, client, subscribers, .. } = self;
        let Some(subscriber) = subscribers.get_mut(id.index()) else { return (pulled, false) };
        let has_wildcard = client.is_limited() && subscriber.has_wildcard(federation);
        // What was left under a wildcard is settled with what that says of it, though nothing else is open any more.
        let several = subscriber.parts.len() > 1 || subscriber.looks_again();
        let Subscriber { type_url, parts, private_parts, private, .. } = subscriber;
        let mut screen = Screen::of(&**client, type_url, has_wildcard);
        for part in parts.iter_mut().chain(private_parts) {
            let shared = part.scope.shared;
            let apart = contested.len() + stubs.len();
            let mut this = part.scope.pull(part.id, removals, &mut |pull| {
                if screen.as_mut().is_some_and(|screen| screen.keeps(&part.scope, &pull)) {
                    return ControlFlow::Continue(());
                }
                let mut contest = |name: &ResourceName, news| {
                    contested.push((name.clone(), news));
                    // What waits to be looked at is bounded, too.
                    if contested.len() < MAX_NOTED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                };
                if several
                    && shared
                    && let Some((name, news)) = contests(federation, part, &pull, said)
                {
                    return contest(name, news);
                }
                let name = match &pull {
                    Pull::Put { name, resource, .. } if shared && resource.value.do_not_cache() => {
                        stubs.push(Stub::of(name, &part.scope, resource));
                        return if stubs.len() < MAX_NOTED {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        };
                    }
                    Pull::Put { name, .. } | Pull::Removed { name, .. } => name,
                    _ => return visitor(pull),
                };
                if shared && private.contains_key(*name) {
                    served.insert((*name).clone());
                    if !several && said.contains_key(*name) {
                        // What was fetched for this client went out a moment before: the rest is said in the next.
                        return contest(name, news_of(federation, part, &pull));
                    }
                } else if !shared {
                    // Rule 103: no name twice in a response.
                    if served.contains(*name) {
                        return ControlFlow::Continue(());
                    }
                    said.insert((*name).clone(), matches!(pull, Pull::Removed { .. }));
                }
                visitor(pull)
            });
            part.sets_aside |= contested.len() + stubs.len() > apart;
            this.empty |= this.answered && part.sets_aside;
            pulled = pulled.and(this);
            if pulled.more {
                break;
            }
        }
        if let Some(aliases) = screen.map(|screen| screen.aliases).filter(|aliases| !aliases.is_empty()) {
            self.deny_aliases(id, aliases);
        }
        if pulled.answered {
            self.view.served.store(true, Ordering::Relaxed);
        }
        if !served.is_empty() {
            self.drop_private(id, |name, _, _| served.contains(name));
        }
        let full = contested.len() >= MAX_NOTED || stubs.len() >= MAX_NOTED;
        let enough = self.settle_contested(id, contested, said, removals, &mut stubs, visitor);
        pulled.more |= enough;
        let fetches = !stubs.is_empty() && !pulled.more;
        for stub in stubs {
            self.fetch_privately(id, stub);
        }
        if let Some(subscriber) = self.subscribers.get_mut(id.index()) {
            subscriber.asks_again &= pulled.more || full;
        }
        // Whoever subscribes must pull, or it is not woken by the answer. An alias asked for now may stand for what was said:
        // rule 103 leaves that to the next response.
        if fetches && !said.is_empty() {
            pulled.more = true;
            self.waker.wake_by_ref();
        } else if fetches && let Some(subscriber) = self.subscribers.get(id.index()) {
            for part in &subscriber.private_parts {
                pulled = pulled.and(part.scope.pull(part.id, removals, visitor));
                if pulled.more {
                    break;
                }
            }
        }
        (pulled, full && !enough)
    }
}
