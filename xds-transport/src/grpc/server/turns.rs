//! Turns of what takes long: so many at a time, so that others, who have little to do, do not wait behind all of it. Who waits is in a line of
//! clients: one that asks for much, on however many streams, has its next turn when all others that wait have had one.

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// So many at a time.
#[derive(Clone)]
pub(crate) struct Turns {
    line: Arc<Mutex<Line>>,
    /// Who asks. Without one, whoever does is a client of its own.
    client: Option<u64>,
}

/// A turn that comes, and then lasts until it is dropped. Whoever has asked for it is to poll it until it has come, as others wait behind him.
pub(crate) struct Turn {
    of: Turns,
    number: u64,
}

impl Turns {
    pub(crate) fn new(at_a_time: usize) -> Self {
        let line = Line { left: at_a_time.max(1), ..Line::default() };
        Self { line: Arc::new(Mutex::new(line)), client: None }
    }

    /// The same turns, asked for by this client.
    pub(crate) fn of(&self, client: Option<u64>) -> Self {
        Self { line: self.line.clone(), client }
    }

    /// How many nobody has at the moment.
    pub(crate) fn left(&self) -> usize {
        self.lock().left
    }

    /// Whether anybody waits for one.
    pub(crate) fn are_waited_for(&self) -> bool {
        !self.lock().clients.is_empty()
    }

    pub(crate) fn next(&self) -> Turn {
        let number = self.lock().enter(self.client);
        Turn { of: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Ready once it has come.
    pub(crate) fn poll_come(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.of.lock().waker(self.of.client, self.number) {
            Some(waker) => {
                waker.clone_from(cx.waker());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }

    /// Itself, once it has come.
    pub(crate) async fn come(mut self) -> Self {
        poll_fn(|cx| self.poll_come(cx)).await;
        self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut line = self.of.lock();
        if line.leave(self.of.client, self.number) {
            return;
        }
        let next = line.pass_on();
        // Not under the lock.
        drop(line);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

/// Who waits. Who has asked and does not wait has a turn.
#[derive(Default)]
struct Line {
    /// How many turns nobody has: none while somebody waits.
    left: usize,
    /// The last number that was given.
    number: u64,
    /// The clients that wait: the first is the next.
    clients: BTreeMap<u64, Waiting>,
    /// Where in the line a client is.
    places: HashMap<u64, u64>,
}

/// Those of one client, in the order in which they came.
struct Waiting {
    client: Option<u64>,
    wakers: BTreeMap<u64, Waker>,
}

impl Line {
    /// Greater than all before.
    fn number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// The number of a turn. A client that waits already stays where it is.
    fn enter(&mut self, client: Option<u64>) -> u64 {
        let number = self.number();
        if self.left > 0 {
            self.left -= 1;
            return number;
        }
        let place = client.map_or(number, |client| *self.places.entry(client).or_insert(number));
        let waiting = self.clients.entry(place).or_insert_with(|| Waiting { client, wakers: BTreeMap::new() });
        waiting.wakers.insert(number, Waker::noop().clone());
        number
    }

    fn place(&self, client: Option<u64>, number: u64) -> Option<u64> {
        match client {
            Some(client) => self.places.get(&client).copied(),
            None => Some(number),
        }
    }

    /// Of who waits.
    fn waker(&mut self, client: Option<u64>, number: u64) -> Option<&mut Waker> {
        let place = self.place(client, number)?;
        self.clients.get_mut(&place)?.wakers.get_mut(&number)
    }

    /// Whether it has waited: it does no more.
    fn leave(&mut self, client: Option<u64>, number: u64) -> bool {
        let Some(place) = self.place(client, number) else { return false };
        let Some(waiting) = self.clients.get_mut(&place) else { return false };
        let has_waited = waiting.wakers.remove(&number).is_some();
        if waiting.wakers.is_empty() {
            self.clients.remove(&place);
            client.map(|client| self.places.remove(&client));
        }
        has_waited
    }

    /// A turn is over: the next one's has come, who is to be woken, and its client goes behind all others.
    fn pass_on(&mut self) -> Option<Waker> {
        let Some((_, mut waiting)) = self.clients.pop_first() else {
            self.left += 1;
            return None;
        };
        let next = waiting.wakers.pop_first();
        let place = (!waiting.wakers.is_empty()).then(|| self.number());
        match (waiting.client, place) {
            (Some(client), Some(place)) => _ = self.places.insert(client, place),
            (Some(client), None) => _ = self.places.remove(&client),
            (None, _) => {}
        }
        if let Some(place) = place {
            self.clients.insert(place, waiting);
        }
        next.map(|(_, waker)| waker)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use proptest::prelude::*;

    use super::*;

    /// How often it was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn has_come(turn: &mut Turn) -> bool {
        turn.poll_come(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Who has a turn and who waits, each with its client and which of that client's it is.
    struct Asked {
        turns: Turns,
        asked: Vec<(Option<u64>, usize, Turn)>,
        came: HashMap<Option<u64>, usize>,
    }

    impl Asked {
        fn new(at_a_time: usize) -> Self {
            Self { turns: Turns::new(at_a_time), asked: Vec::new(), came: HashMap::new() }
        }

        fn ask(&mut self, client: Option<u64>) {
            let which = self.came.entry(client).or_default();
            self.asked.push((client, *which, self.turns.of(client).next()));
            *which += 1;
        }

        fn have(&mut self) -> Vec<usize> {
            let come = |(at, (.., turn)): (usize, &mut (_, _, Turn))| has_come(turn).then_some(at);
            self.asked.iter_mut().enumerate().filter_map(come).collect()
        }

        /// Whose turns come, one after the other, of who waits.
        fn order(mut self) -> Vec<(Option<u64>, usize)> {
            let mut order = Vec::new();
            while !self.asked.is_empty() {
                let have = self.have();
                let [has] = have[..] else { panic!("{} have the turn", have.len()) };
                let (client, which, _turn) = self.asked.remove(has);
                order.push((client, which));
            }
            let line = self.turns.lock();
            assert_eq!((line.left, line.clients.len(), line.places.len()), (1, 0, 0));
            order
        }
    }

    #[test]
    fn who_asks_for_one_waits_for_one_of_who_asks_for_many() {
        let mut asked = Asked::new(1);
        (0..100).for_each(|_| asked.ask(Some(1)));
        asked.ask(Some(2));
        let order = asked.order();
        // One has the turn, and one was in the line.
        assert_eq!(order[..4], [(Some(1), 0), (Some(1), 1), (Some(2), 0), (Some(1), 2)]);
        assert!(order[4..].is_sorted(), "within a client, in the order in which they come");
    }

    #[test]
    fn of_many_clients_each_has_one_in_each_round() {
        let mut asked = Asked::new(1);
        asked.ask(None);
        (0..50).for_each(|client| (0..=client).for_each(|_| asked.ask(Some(client))));
        asked.ask(None);
        let mut order = asked.order().into_iter();
        assert_eq!(order.next(), Some((None, 0)));
        for round in 0..50 {
            let clients = (round..50).map(|client| (Some(client), usize::try_from(round).unwrap()));
            assert!(order.by_ref().take(50 - usize::try_from(round).unwrap()).eq(clients), "round {round}");
            if round == 0 {
                assert_eq!(order.next(), Some((None, 1)), "who is of no client is one of its own");
            }
        }
    }

    /// Else one stream would do what many do.
    #[test]
    fn who_asks_again_is_behind_all() {
        let mut asked = Asked::new(1);
        [1, 1, 2, 3].into_iter().for_each(|client| asked.ask(Some(client)));
        for client in [1, 1, 2, 3, 1, 2, 3, 1] {
            let [has] = asked.have()[..] else { panic!("not one") };
            let (whose, ..) = asked.asked.remove(has);
            assert_eq!(whose, Some(client));
            if !asked.asked.iter().any(|(waits, ..)| *waits == whose) {
                asked.ask(whose);
            }
        }
    }

    #[test]
    fn who_goes_while_it_waits_leaves_the_line_to_others() {
        for gone in 1..5 {
            let mut asked = Asked::new(1);
            [Some(1), Some(1), Some(1), Some(2), None].into_iter().for_each(|client| asked.ask(client));
            asked.asked.remove(gone);
            let mut order = vec![(Some(1), 0), (Some(1), 1), (Some(2), 0), (None, 0), (Some(1), 2)];
            // The second of a client is in the place of the first that has gone.
            match gone {
                1 => order = vec![(Some(1), 0), (Some(1), 2), (Some(2), 0), (None, 0)],
                2 => _ = order.remove(4),
                gone => _ = order.remove(gone - 1),
            }
            assert_eq!(asked.order(), order, "{gone}");
        }
    }

    /// It is woken, and does not come to look.
    #[test]
    fn who_goes_when_its_turn_has_come_passes_it_on() {
        let turns = Turns::new(1);
        let held = turns.next();
        let [mut first, mut second] = [Some(1), Some(2)].map(|client| turns.of(client).next());
        let woken = [(); 2].map(|()| Arc::<Woken>::default());
        for (turn, woken) in [&mut first, &mut second].into_iter().zip(&woken) {
            assert!(turn.poll_come(&mut Context::from_waker(&woken.clone().into())).is_pending());
        }
        let times = || [&woken[0], &woken[1]].map(|woken| woken.0.load(Ordering::Relaxed));
        drop(held);
        assert_eq!(times(), [1, 0]);
        drop(first);
        assert_eq!(times(), [1, 1]);
        assert!(has_come(&mut second));
        assert_eq!(turns.left(), 0);
        drop(second);
        assert_eq!(turns.left(), 1);
    }

    /// Who polls last is who is woken.
    #[tokio::test]
    async fn whose_turn_comes_is_woken_where_it_is() {
        let turns = Turns::new(1);
        let held = turns.next().come().await;
        let mut next = turns.next();
        assert!(!has_come(&mut next));
        let waits = tokio::spawn(next.come());
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        drop(held);
        tokio::task::yield_now().await;
        assert!(waits.is_finished());
    }

    proptest! {
        /// Whoever comes and goes.
        #[test]
        fn as_many_have_a_turn_as_may_and_nobody_has_two_while_another_waits_for_one(
            at_a_time in 1..4_usize,
            steps in proptest::collection::vec((0..4_u64, any::<bool>(), any::<prop::sample::Index>()), 0..200),
        ) {
            let mut asked = Asked::new(at_a_time);
            for (client, comes, which) in steps {
                if comes || asked.asked.is_empty() {
                    asked.ask(client.checked_sub(1));
                } else {
                    asked.asked.remove(which.index(asked.asked.len()));
                }
                prop_assert_eq!(asked.have().len(), at_a_time.min(asked.asked.len()));
                prop_assert_eq!(asked.turns.left(), at_a_time.saturating_sub(asked.asked.len()));
            }
            // Nobody comes any more.
            let mut last = None;
            while asked.asked.len() > at_a_time {
                let before = asked.have();
                asked.asked.remove(before[0]);
                let now = asked.have();
                let has = *now.iter().find(|at| !before[1..].contains(&(**at + 1))).unwrap();
                let (client, ..) = asked.asked[has];
                let others = |at: usize| asked.asked[at].0 != client && !now.contains(&at);
                let others_wait = (0..asked.asked.len()).any(others);
                prop_assert!(client.is_none() || last != Some(client) || !others_wait, "{:?} again", client);
                last = others_wait.then_some(client);
            }
        }
    }
}
