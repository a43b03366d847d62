//! The types of one stream, and how each stands in its order.

use std::time::Instant;

use xdstp_cache::TypeUrl;

use crate::server::order::Standing;
use crate::server::session::Session;
use crate::server::source::Source;
use crate::types::TypeRule;

/// Every type of a stream has versions, nonces and subscriptions of its own (rule 7). There is no list of types: any
/// type URL that was asked for has one (rule 11), and what was not asked for has none to be sent by (rule 10).
#[derive(Default)]
pub(crate) struct Types {
    /// By rank.
    types: Vec<Type>,
    /// How each of them stands.
    standings: Vec<Standing>,
}

/// One of them.
pub(crate) struct Type {
    pub(crate) url: TypeUrl,
    pub(crate) rule: TypeRule,
    pub(crate) session: Session,
}

impl Types {
    pub(crate) fn len(&self) -> usize {
        self.types.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Type> {
        self.types.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Type> {
        self.types.iter_mut()
    }

    /// Each of them with how it stands.
    pub(crate) fn standing(&self) -> impl Iterator<Item = (&Type, &Standing)> {
        self.types.iter().zip(&self.standings)
    }

    pub(crate) fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// The place in the order of the one with this type URL, which may be no text.
    pub(crate) fn position(&self, type_url: &[u8]) -> Option<usize> {
        self.types.iter().position(|of| of.url.as_str().as_bytes() == type_url)
    }

    /// The one at a place of the order.
    pub(crate) fn at(&mut self, at: usize) -> Option<(&mut Type, &mut Standing)> {
        Some((self.types.get_mut(at)?, self.standings.get_mut(at)?))
    }

    pub(crate) fn insert(&mut self, of: Type) {
        let at = self.types.partition_point(|before| before.rule.rank <= of.rule.rank);
        // A stream has few types, and a session is large: no room for those that never come.
        self.standings.reserve_exact(1);
        self.types.reserve_exact(1);
        self.standings.insert(at, Standing::new(of.rule.rank, of.rule.waits_for_lower_ranks));
        self.types.insert(at, of);
    }

    /// How each of them stands now.
    pub(crate) fn observe(&mut self, now: Instant, source: &impl Source) {
        for (of, standing) in self.types.iter().zip(&mut self.standings) {
            of.observe(standing, now, source);
            of.join(standing, now, source);
        }
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Type> {
        self.standings.clear();
        self.types.drain(..)
    }
}

impl Type {
    /// Whether its removals go last. Its first response is the whole answer, and over SotW only a full state can say that
    /// something is gone.
    pub(crate) fn defers(&self) -> bool {
        self.rule.removals_last && !self.tells_changes_alone() && self.session.has_responded()
    }

    pub(crate) fn has_additions(&self, source: &impl Source) -> bool {
        if self.defers() || self.tells_changes_alone() {
            self.session.has_additions(source)
        } else {
            self.session.has_work(source)
        }
    }

    /// Whether it cannot say that something is gone.
    fn tells_changes_alone(&self) -> bool {
        matches!(self.session, Session::Sotw(_)) && !self.rule.full_state_in_sotw
    }

    /// Each removal waits, and those that wait wait with it.
    pub(crate) fn join(&self, standing: &mut Standing, now: Instant, source: &impl Source) {
        if standing.removals.is_some() {
            standing.join(now, self.session.newest_removal(source));
        }
    }

    fn observe(&self, standing: &mut Standing, now: Instant, source: &impl Source) {
        let room = self.session.has_room();
        let work = self.session.has_work(source);
        // With room it is asked, and then it is known.
        let additions = match room {
            true => work || self.session.next_refresh().is_some_and(|due| due <= now),
            false => work && self.has_additions(source),
        };
        standing.observe(now, additions, (!work || !self.defers()).then_some(false), room);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use prost::Message;
    use xdstp_cache::{Cache, Options};

    use super::*;
    use crate::Protocol;
    use crate::frame::Frame;
    use crate::server::{Settings, Stream};
    use crate::wire::DeltaDiscoveryRequest;

    #[test]
    fn a_stream_has_no_room_for_types_that_it_does_not_have() {
        #[allow(clippy::disallowed_methods, reason = "any moment will do")]
        let now = Instant::now();
        let mut cache = Cache::<Frame>::new(Options::default());
        let mut stream = Stream::new(Protocol::Delta, Settings::default());
        for (before, type_url) in ["a", "b", "c"].into_iter().enumerate() {
            let request = DeltaDiscoveryRequest { type_url: type_url.into(), ..DeltaDiscoveryRequest::default() };
            stream.handle_message(now, request.encode_to_vec().into(), &mut cache).unwrap();
            let Types { types, standings } = &stream.types;
            assert_eq!((types.capacity(), standings.capacity()), (before + 1, before + 1));
        }
    }
}
