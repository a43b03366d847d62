//! One type of one downstream stream: its parts in the scopes, and which of them counts where several have a name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use xds_transport::Frame;
use xds_transport::client::name_size;
use xdstp_cache::{Interest, Pull, Resource, Selector, TypeUrl};
use xdstp_uri::ResourceName;

use crate::federation::core::Federation;
use crate::federation::denied::Denied;
use crate::federation::moved::Moved;
use crate::federation::part::Part;
use crate::federation::parts::Parts;
use crate::federation::request_room::RequestRoom;
use crate::federation::scope::stub::may_be_held;
use crate::federation::scope::{Scope, Standing};
use crate::federation::share::OverLimit;
use crate::federation::timings::Timings;

pub(crate) struct Subscriber {
    pub(crate) type_url: TypeUrl,
    /// By what it selects among variants.
    pub(crate) selector: Option<Arc<Selector>>,
    pub(crate) parts: Parts,
    /// In the scopes of this stream alone.
    pub(crate) private_parts: Vec<Part>,
    /// Names that this stream is served from those, and the shared scope that says so.
    pub(crate) private: HashMap<ResourceName, Arc<Scope>>,
    /// The client brought something along.
    pub(crate) brings: bool,
    /// It left a wildcard that had names of other scopes: of what these have not answered, it may hold any.
    pub(crate) moves: bool,
    /// It asked again for what it had asked for: what is fetched for it of that is sent again, too (rule 48).
    pub(crate) asks_again: bool,
    /// How many names it asked for, by their weight, what is kept beside them, and what it brought along until that is compared.
    pub(crate) names: usize,
    pub(crate) beside: usize,
    pub(crate) brought: usize,
    /// How many bytes names take in the requests to origins that cannot be sent in pieces.
    pub(crate) sizes: Vec<(Arc<RequestRoom>, usize)>,
    /// A part may have nothing to do once it is pulled: it was opened for what the client brought along, or all of it left.
    pub(crate) may_close: bool,
    /// When what the last pull visited came, as far as it was woken for it.
    pub(crate) heard_at: Option<Instant>,
    pub(crate) timings: Option<Arc<dyn Timings>>,
    /// Its first request is being handled.
    pub(crate) opening: bool,
    /// Names that a part has news of, and that another part may have, too: which of them counts is to be looked at.
    pub(crate) contested: BTreeMap<ResourceName, News>,
    /// Those of which the part that counts has said nothing yet. That it has no such name, it may say without naming it.
    pub(crate) unanswered: BTreeMap<ResourceName, News>,
    /// What it asks for and may not have, where there is any.
    pub(crate) denied: Option<Box<Denied>>,
    /// What it knows from where it was served before, until it was told all that is otherwise.
    pub(crate) moved: Option<Box<Moved>>,
}

/// Why a name that several parts may have is to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Another part has it, which is news.
    OtherPut,
    /// Another part said that it is gone, or the client left it.
    OtherGone,
    /// The part of its own authority said that it is gone.
    OwnGone,
    /// The same, because that part is not asked for it: it says nothing once it is.
    OwnUnasked,
    /// That part has it, and what was said of it went out a moment before: no name stands twice in a response.
    OwnPut,
}

impl News {
    pub(crate) fn is_own(self) -> bool {
        matches!(self, Self::OwnGone | Self::OwnUnasked | Self::OwnPut)
    }
}

/// What was said in one response of names that several parts may have: whether each is gone.
pub(crate) type Said = HashMap<ResourceName, bool>;

/// What counts for a name that several parts may have.
pub(crate) enum Counts {
    /// What the part of its own authority says, as that is pulled.
    Own,
    /// What that part has, and a name of another authority that the client asks for stands for (rule 105): whoever asks
    /// is answered (rule 48).
    ByAlias(Arc<Scope>, Resource<Frame>),
    /// What that part is yet to say.
    Unanswered,
    /// What another part has.
    Other(Arc<Scope>, Resource<Frame>),
    /// That no part has it.
    Gone,
    /// What another part will say of it, which the client may have it from.
    Undecided,
}

/// Whether a name is not answered that may turn out to be an alias, by origin and whether it is of an authority: each is
/// looked for once in a round, however many parts there are.
#[derive(Default)]
pub(crate) struct Awaiting(BTreeMap<(usize, bool), bool>);

impl Awaiting {
    fn any(&mut self, parts: &Parts, origin: usize, of_authorities: bool) -> bool {
        *self.0.entry((origin, of_authorities)).or_insert_with(|| {
            let may_have =
                |part: &&Part| part.scope.origin() == origin && part.scope.key.authority().is_some() == of_authorities;
            parts.iter().filter(may_have).any(|part| part.scope.awaits_names(part.id))
        })
    }
}

/// A name that a shared scope has a stub of: this stream is to fetch it for itself.
pub(crate) struct Stub {
    pub(crate) name: ResourceName,
    pub(crate) shared: Arc<Scope>,
    /// Clients may hold what was shared under its name.
    pub(crate) once_shared: bool,
}

impl Stub {
    pub(crate) fn of(name: &ResourceName, shared: &Arc<Scope>, stub: &Resource<Frame>) -> Self {
        Self { name: name.clone(), shared: shared.clone(), once_shared: may_be_held(stub) }
    }
}

impl Subscriber {
    /// It asks for one more name, of a scope whose requests have so much room.
    ///
    /// # Errors
    /// The origin could not be asked for all it wants, even if nobody else wanted anything.
    pub(crate) fn grows(&mut self, room: Arc<RequestRoom>, name: &str) -> Result<(), OverLimit> {
        let more = name_size(name);
        match self.sizes.iter_mut().find(|(other, _)| Arc::ptr_eq(other, &room)) {
            Some((room, size)) => {
                *size += more;
                room.check(*size)
            }
            None => {
                let fits = room.check(more);
                self.sizes.push((room, more));
                fits
            }
        }
    }

    pub(crate) fn shrinks(&mut self, scope: &Scope, interest: &Interest) {
        let of_room =
            |(room, _): &&mut (Arc<RequestRoom>, usize)| scope.room.as_ref().is_some_and(|own| Arc::ptr_eq(own, room));
        if let Some((_, size)) = self.sizes.iter_mut().find(of_room) {
            *size = size.saturating_sub(name_size(interest.as_str()));
        }
    }

    /// The part that serves an interest, if it is open.
    pub(crate) fn part(&self, federation: &Federation, interest: &Interest) -> Option<&Part> {
        self.part_of(federation, authority_of(interest))
    }

    /// The part that serves the names of an authority, or old-style names, if it is open.
    pub(crate) fn part_of(&self, federation: &Federation, authority: Option<&str>) -> Option<&Part> {
        self.parts.of(federation, authority)
    }

    /// Which of the parts counts for a name: the one of its own authority, if that has it or has not answered; else
    /// another that has it (rule 152). What the client brought along, and may have from another that has not answered, is
    /// not gone (rule 150).
    pub(crate) fn counts(
        &self,
        federation: &Federation,
        name: &ResourceName,
        news: News,
        awaiting: &mut Awaiting,
    ) -> Counts {
        let own = federation.place(name.authority());
        let origin = own.origin();
        let (own, mut others) = self.parts.of_names_at(own, &federation.mixed(origin));
        // Rule 153: nothing that another origin says is of the name.
        others.retain(|part| part.scope.origin() == origin);
        if own.iter().any(|part| part.scope.is_alias(part.id, name)) {
            return Counts::Own;
        }
        // By an alias its origin has it, whatever the authority of that: it counts before what a wildcard holds.
        others.sort_by_key(|part| part.scope.key.authority().is_none());
        if news == News::OwnPut
            && let Some(counts) = held_by(&own, name)
        {
            return counts;
        }
        if let Some(counts) = said_by_own(&own, &others, name, news).or_else(|| held_by(&others, name)) {
            return counts;
        }
        if others.iter().any(|part| part.scope.will_tell(part.id, name)) {
            return Counts::Undecided;
        }
        // Of a glob nobody says what is held of it (rule 100): what the wildcard is yet to say is there, may be.
        let asks_for = |part: &&Part| part.scope.wants(part.id, &Interest::Name(name.clone()));
        let may_say = |part: &&Part| match part.scope.standing(part.id, name) {
            // Over SotW not every answer has an end.
            Standing::Unknown => {
                !federation.is_sotw(origin) || !part.scope.is_known(&self.type_url, &Interest::Wildcard)
            }
            Standing::Present(_) | Standing::Absent => false,
        };
        if !own.iter().copied().any(|part| asks_for(&part)) && others.iter().copied().any(|part| may_say(&part)) {
            return Counts::Unanswered;
        }
        // It may be held by an alias, of whatever authority of its origin (rule 105).
        let is_asked_for = own.iter().any(|part| part.scope.covers(part.id, name));
        if !is_asked_for && awaiting.any(&self.parts, origin, !name.is_opaque()) {
            return Counts::Unanswered;
        }
        Counts::Gone
    }

    /// What the news of a name are, as far as its own part is asked for it.
    pub(crate) fn as_asked(&self, federation: &Federation, name: &ResourceName, news: News) -> News {
        let own = federation.place(name.authority());
        let is_asked = |part: &Part| part.scope.covers(part.id, name);
        if news == News::OwnGone && !self.parts.at(own).is_some_and(is_asked) { News::OwnUnasked } else { news }
    }

    /// A name that several parts may have is to be looked at. What its own part said last stays said, and so does that it
    /// went from another.
    pub(crate) fn contest(&mut self, name: ResourceName, news: News) {
        if news.is_own() || self.contested.get(&name).is_none_or(|known| *known == News::OtherPut) {
            self.contested.insert(name, news);
        }
    }

    /// What the part of its own authority said of a name before it was asked for, does not count any more.
    pub(crate) fn asks_anew(&mut self, interest: &Interest) {
        self.moved.iter_mut().for_each(|moved| moved.asks_anew(interest));
        let Interest::Name(name) = interest else { return };
        for names in [&mut self.contested, &mut self.unanswered] {
            if let Some(news) = names.get_mut(name)
                && *news == News::OwnGone
            {
                *news = News::OtherGone;
            }
        }
    }

    /// Whether there are names of which something is to be said although no part has news of them: one that has may be the
    /// last of several.
    pub(crate) fn looks_again(&self) -> bool {
        !self.contested.is_empty() || !self.unanswered.is_empty()
    }

    /// Whether one of those names is there by now.
    pub(crate) fn has_settled(&self, federation: &Federation) -> bool {
        let mut awaiting = Awaiting::default();
        let is_there = |(name, news): (&ResourceName, &News)| {
            matches!(self.counts(federation, name, *news, &mut awaiting), Counts::Other(..) | Counts::ByAlias(..))
        };
        self.contested.iter().chain(&self.unanswered).any(is_there)
    }

    /// Whether it asks for all of its type, and may.
    pub(crate) fn has_wildcard(&self, federation: &Federation) -> bool {
        let part = self.part(federation, &Interest::Wildcard);
        part.is_some_and(|part| part.scope.wants(part.id, &Interest::Wildcard))
    }

    /// The shared parts, then the private ones.
    pub(crate) fn all_parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().chain(&self.private_parts)
    }

    /// The names that a client may go on to hold once it leaves an interest, because another part is asked for them too:
    /// it has these names or else they are gone (rules 52, 53, 152). To the client its wildcard covers every name.
    pub(crate) fn left_to_others(
        &self,
        federation: &Federation,
        part: &Part,
        interest: &Interest,
    ) -> BTreeSet<ResourceName> {
        let is_other = |other: &&Part| !(other.id == part.id && Arc::ptr_eq(&other.scope, &part.scope));
        let others: Vec<_> = if *interest == Interest::Wildcard {
            self.parts.iter().filter(is_other).collect()
        } else {
            let wildcard = self.part(federation, &Interest::Wildcard).filter(is_other);
            wildcard.filter(|group| group.scope.wants(group.id, &Interest::Wildcard)).into_iter().collect()
        };
        if others.is_empty() {
            return BTreeSet::new();
        }
        let mut names = part.scope.may_hold(part.id, interest);
        if *interest == Interest::Wildcard {
            names.retain(|name| !name.is_opaque() && others.iter().any(|other| other.scope.covers(other.id, name)));
        }
        names
    }

    /// Whether a part has names of scopes other than its own.
    pub(crate) fn has_of_wildcard(&self, part: &Part) -> bool {
        let mut has = false;
        part.scope.visit(part.id, &mut |name, _| has |= !name.is_opaque());
        has
    }

    /// All of its first request is said: the origins may be asked.
    pub(crate) fn end_opening(&mut self) {
        if std::mem::take(&mut self.opening) {
            self.parts.iter().for_each(|part| part.scope.end_opening());
        }
    }

    /// Whether there are names of which it is still to be said who counts, or which something fetched for this stream may
    /// have settled.
    pub(crate) fn has_contested(&self) -> bool {
        !self.contested.is_empty() || !self.unanswered.is_empty() || !self.private.is_empty()
    }

    /// Whether what this stream fetches for itself of a name is not there yet.
    pub(crate) fn awaits_private(&self, name: &ResourceName) -> bool {
        let Some(shared) = self.private.get(name) else { return true };
        let part = self.private_parts.iter().find(|part| part.scope.origin() == shared.origin());
        // An error that says nothing of it leaves it to who may hold it.
        let awaits = |part: &Part| {
            matches!(part.scope.standing(part.id, name), Standing::Unknown) || part.scope.will_tell(part.id, name)
        };
        part.is_none_or(awaits)
    }

    pub(crate) fn fetches_from(&self, scope: &Arc<Scope>) -> bool {
        self.private_parts.iter().any(|part| Arc::ptr_eq(&part.scope, scope))
    }
}

/// What the first of these parts has that has a name.
fn held_by(parts: &[&Part], name: &ResourceName) -> Option<Counts> {
    parts.iter().find_map(|part| match part.scope.standing(part.id, name) {
        Standing::Present(resource) => Some(Counts::Other(part.scope.clone(), resource)),
        Standing::Absent | Standing::Unknown => None,
    })
}

/// What counts because the part of the name's own authority has it, or has not answered. Where an alias of another authority
/// stands for it and is asked for anew, the name answers that.
fn said_by_own(own: &[&Part], others: &[&Part], name: &ResourceName, news: News) -> Option<Counts> {
    own.iter().find_map(|part| match part.scope.standing(part.id, name) {
        Standing::Present(resource) => {
            let by_alias = |other: &&&Part| other.scope.key.authority().is_some();
            let is_there = |other: &Part| matches!(other.scope.standing(other.id, name), Standing::Present(_));
            let asked_anew = news == News::OtherPut && others.iter().filter(by_alias).any(|other| is_there(other));
            Some(if asked_anew { Counts::ByAlias(part.scope.clone(), resource) } else { Counts::Own })
        }
        Standing::Unknown => Some(Counts::Unanswered).filter(|_| news != News::OwnGone),
        Standing::Absent => None,
    })
}

/// The part for which a name of a scope is fetched for this stream alone: that scope's, or once that does not cover it
/// any more another that does, and that said long ago that the name is one of these.
pub(crate) fn fetched_for<'a>(parts: &'a [Part], name: &ResourceName, shared: &Arc<Scope>) -> Option<&'a Part> {
    let covers = |part: &&Part| part.scope.origin() == shared.origin() && part.scope.covers(part.id, name);
    let own = parts.iter().filter(|part| Arc::ptr_eq(&part.scope, shared)).find(covers);
    own.or_else(|| parts.iter().find(covers))
}

/// The name that a part has news of, if another part may have it, too: not what the part of the name's own authority has,
/// unless something was `said` of the name already.
pub(crate) fn contests<'a>(
    federation: &Federation,
    part: &Part,
    pull: &Pull<'a, Frame>,
    said: &mut Said,
) -> Option<(&'a ResourceName, News)> {
    let news = news_of(federation, part, pull);
    match pull {
        Pull::Put { name, .. } if news == News::OwnPut => said.insert((*name).clone(), false).map(|_| (*name, news)),
        Pull::Put { name, .. } => Some((name, news)),
        Pull::Removed { name, .. } if !name.is_glob() => Some((name, news)),
        _ => None,
    }
}

/// What the news of a part are to the others.
pub(crate) fn news_of(federation: &Federation, part: &Part, pull: &Pull<'_, Frame>) -> News {
    let own = |name: &ResourceName| part.scope.is_at(federation.place(name.authority()));
    match pull {
        Pull::Put { name, .. } if own(name) => News::OwnPut,
        Pull::Removed { name, .. } if own(name) => News::OwnGone,
        Pull::Removed { .. } => News::OtherGone,
        _ => News::OtherPut,
    }
}

/// The authority whose scope serves an interest; none for a node group's.
pub(crate) fn authority_of(interest: &Interest) -> Option<&str> {
    match interest {
        Interest::Name(name) => name.authority(),
        Interest::Wildcard => None,
    }
}
