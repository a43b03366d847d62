//! What is new to a subscriber, from all of its parts.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Instant;

use xds_transport::Frame;
use xdstp_cache::{Pull, Pulled, Removals, SubscriberId};

use super::Routes;
use super::aside::{Aside, Round};
use crate::federation::denied::Screen;
use crate::federation::subscriber::{Said, Subscriber};

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
        self.look_anew();
        let mut pulled = self.pull_in_order(id, removals, visitor);
        let has_moved = self.subscribers.get(id.index()).is_some_and(|subscriber| subscriber.moved.is_some());
        if has_moved && removals == Removals::Include && !pulled.more {
            self.end_move(id, &mut pulled, visitor);
        }
        pulled
    }

    #[inline]
    fn pull_in_order(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        // Of names that several parts have, in this response.
        let mut said = Said::new();
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return Pulled::default() };
        subscriber.end_opening();
        let may_close = subscriber.may_close;
        if removals == Removals::Defer || subscriber.parts.len() + subscriber.private_parts.len() <= 1 {
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
        let Some((mut pulled, aside)) = self.visit_parts(id, removals, said, visitor) else {
            return (Pulled::default(), false);
        };
        if pulled.answered {
            self.view.served.store(true, Ordering::Relaxed);
        }
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return (pulled, false) };
        if aside.is_empty() && !subscriber.has_contested() {
            subscriber.asks_again &= pulled.more;
            return (pulled, false);
        }
        let again = self.settle(id, removals, said, aside, &mut pulled, visitor);
        (pulled, again)
    }

    /// Settles what a round has set aside. Whether another is due, though the visitor has not enough.
    fn settle(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        said: &mut Said,
        aside: Aside,
        pulled: &mut Pulled,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> bool {
        let full = aside.is_full();
        let Aside { contested, mut stubs, served } = aside;
        if !served.is_empty() {
            self.drop_private(id, |name, _, _| served.contains(name));
        }
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
        } else if fetches {
            *pulled = self.pull_private_parts(id, removals, *pulled, visitor);
        }
        full && !enough
    }

    /// Visits what is new of each part, but for what is to be set aside. None where there is no such subscriber.
    fn visit_parts(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        said: &mut Said,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Option<(Pulled, Aside)> {
        let mut pulled = Pulled::default();
        let Self { federation, client, subscribers, .. } = self;
        let subscriber = subscribers.get_mut(id.index())?;
        let has_wildcard = client.is_limited() && subscriber.has_wildcard(federation);
        // What was left under a wildcard is settled with what that says of it, though nothing else is open any more.
        let several = subscriber.parts.len() > 1 || subscriber.looks_again();
        let Subscriber { type_url, parts, private_parts, private, heard_at, moved, .. } = subscriber;
        let mut screen = Screen::of(&**client, type_url, has_wildcard);
        let mut round = Round { federation, private, several, said, aside: Aside::default() };
        for part in parts.iter_mut().chain(private_parts) {
            let apart = round.aside.noted();
            let (mut this, heard) = part.scope.pull(part.id, removals, &mut |pull| {
                if moved.as_mut().is_some_and(|moved| moved.knows(&pull)) {
                    return ControlFlow::Continue(());
                }
                if screen.as_mut().is_some_and(|screen| screen.keeps(&part.scope, &pull)) {
                    return ControlFlow::Continue(());
                }
                if part.scope.shared { round.of_shared(part, pull, visitor) } else { round.of_private(pull, visitor) }
            });
            *heard_at = earliest(*heard_at, heard);
            part.sets_aside |= round.aside.noted() > apart;
            this.empty |= this.answered && part.sets_aside;
            if moved.as_ref().is_some_and(|moved| moved.has_answered(part)) {
                (this.answered, this.empty) = (false, false);
            }
            pulled = pulled.and(this);
            if pulled.more {
                break;
            }
        }
        let aside = round.aside;
        if let Some(aliases) = screen.map(|screen| screen.aliases).filter(|aliases| !aliases.is_empty()) {
            self.deny_aliases(id, aliases);
        }
        Some((pulled, aside))
    }

    /// Goes on with what the parts of this stream alone have, of which something was just asked.
    fn pull_private_parts(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        mut pulled: Pulled,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        let Some(Subscriber { private_parts, heard_at, .. }) = self.subscribers.get_mut(id.index()) else {
            return pulled;
        };
        for part in private_parts {
            let (this, heard) = part.scope.pull(part.id, removals, visitor);
            *heard_at = earliest(*heard_at, heard);
            pulled = pulled.and(this);
            if pulled.more {
                break;
            }
        }
        pulled
    }
}

/// Of two moments, where there are two.
pub(super) fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}
