//! The end of a relay's streams: not all at once, so that those who take their clients do not have them all at once.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use crate::lock::lock;
use crate::relay_core::ServedStream;

/// What clients are told.
const REASON: &str = "the relay is shutting down";
/// How long there is from one stream to the next at the most: few streams need no time to spread over.
const LONGEST_STEP: Duration = Duration::from_millis(100);
/// What is left of the time, at the most, for clients to read that their stream is over.
const LONGEST_READING: Duration = Duration::from_secs(2);
/// How often it is looked for streams that were opened by clients that had not heard yet.
const LATE: Duration = Duration::from_millis(100);

/// Ends the streams there are one after the other, so that their clients have read it before `within` is over.
pub(crate) async fn end_streams(streams: &impl Fn() -> Vec<Arc<dyn ServedStream>>, within: Duration) {
    let (begun, streams) = (Instant::now(), streams());
    let spread = spread(within);
    tracing::info!(streams = streams.len(), ?spread, "the streams are ended");
    for (at, stream) in ends(streams.len(), spread, random).zip(streams) {
        sleep_until(begun + at).await;
        stream.end(REASON);
    }
}

/// When streams end that see to it themselves: one after the other, as those that are [ended](end_streams).
pub(crate) struct Moments {
    begun: Instant,
    left: Mutex<Box<dyn Iterator<Item = Duration> + Send>>,
}

impl Moments {
    /// Of so many, from now on.
    pub(crate) fn of(streams: usize, within: Duration) -> Arc<Self> {
        Arc::new(Self { begun: Instant::now(), left: Mutex::new(Box::new(ends(streams, spread(within), random))) })
    }

    /// Until it is the turn of one more. Who comes beyond those that there were has none to wait for.
    pub(crate) async fn turn(&self) {
        let at = lock(&self.left).next();
        if let Some(at) = at {
            sleep_until(self.begun + at).await;
        }
    }
}

/// Ends those that are there nevertheless, for as long as it is awaited.
pub(crate) async fn end_late_streams(streams: &impl Fn() -> Vec<Arc<dyn ServedStream>>) {
    loop {
        sleep(LATE).await;
        streams().iter().for_each(|stream| stream.end(REASON));
    }
}

/// What of the time is not for clients to read that their streams are over.
fn spread(within: Duration) -> Duration {
    within - LONGEST_READING.min(within / 2)
}

/// When each of so many is to end: each within its own part of the time, anywhere there.
fn ends<R: FnMut() -> u64>(streams: usize, within: Duration, mut random: R) -> impl Iterator<Item = Duration> + use<R> {
    let count = u32::try_from(streams).unwrap_or(u32::MAX).max(1);
    let step = LONGEST_STEP.min(within / count);
    (0..count).map(move |number| step * number + step.mul_f64(random() as f64 / u64::MAX as f64))
}

/// Enough for jitter: every `RandomState` has keys of its own.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;
    use xds_transport::server::Stream;

    use super::*;

    type Ended = Arc<Mutex<Vec<Duration>>>;

    /// Notes when it is ended.
    struct Noted {
        begun: Instant,
        ended: Ended,
    }

    impl ServedStream for Noted {
        fn peer(&self) -> &'static str {
            "somebody"
        }

        fn inspect(&self, _: &mut dyn FnMut(&Stream)) {}

        fn end(&self, reason: &str) {
            assert_eq!(reason, REASON);
            self.ended.lock().unwrap().push(self.begun.elapsed());
        }
    }

    fn open(many: usize, ended: &Ended) -> Vec<Arc<dyn ServedStream>> {
        let begun = Instant::now();
        (0..many).map(|_| Arc::new(Noted { begun, ended: ended.clone() }) as Arc<dyn ServedStream>).collect()
    }

    /// When so many streams are ended.
    async fn ended(many: usize, within: Duration) -> Vec<Duration> {
        let ended = Ended::default();
        let streams = open(many, &ended);
        end_streams(&|| streams.clone(), within).await;
        std::mem::take(&mut *ended.lock().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn eight_thousand_streams_end_evenly_and_their_clients_have_time_to_read_it() {
        let ended = ended(8000, Duration::from_secs(10)).await;
        assert_eq!(ended.len(), 8000);
        let mut tenths = [0; 80];
        ended.iter().for_each(|at| tenths[(at.as_millis() as usize / 100).min(79)] += 1);
        assert!(ended.iter().all(|at| *at <= Duration::from_millis(8001)), "{:?}", ended.last());
        // A timer fires up to a millisecond late, and each has its place anywhere in its own.
        assert!(tenths.iter().all(|many| (98..=102).contains(many)), "{tenths:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn whatever_their_number_they_end_in_time_and_few_in_little() {
        for (many, within, at_most) in
            [(0, 10_000, 0), (1, 0, 0), (500, 100, 51), (3, 3_600_000, 300), (100, 1000, 501)]
        {
            let ended = ended(many, Duration::from_millis(within)).await;
            assert_eq!(ended.len(), many);
            let last = ended.last().copied().unwrap_or_default();
            assert!(last <= Duration::from_millis(at_most), "{many} within {within} ms: {last:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_ends_by_itself_has_a_turn_as_evenly_and_who_comes_late_does_not_wait() {
        let (moments, begun) = (Moments::of(800, Duration::from_secs(10)), Instant::now());
        let turns = (0..800).map(|_| {
            let moments = moments.clone();
            tokio::spawn(async move {
                moments.turn().await;
                begun.elapsed()
            })
        });
        let mut tenths = [0; 80];
        for turn in turns.collect::<Vec<_>>() {
            tenths[(turn.await.unwrap().as_millis() as usize / 100).min(79)] += 1;
        }
        assert!(tenths.iter().all(|many| (8..=12).contains(many)), "{tenths:?}");
        let late = Instant::now();
        moments.turn().await;
        assert_eq!(late.elapsed(), Duration::ZERO);
    }

    #[test]
    fn each_has_its_own_part_of_the_time_and_a_place_anywhere_there() {
        let second = Duration::from_secs(1);
        let first: Vec<_> = ends(20, second, || 0).collect();
        let last: Vec<_> = ends(20, second, || u64::MAX).collect();
        assert_eq!((first.len(), first[0], first[19]), (20, Duration::ZERO, Duration::from_millis(950)));
        assert_eq!((last[0], last[19]), (Duration::from_millis(50), second));
        assert!(
            ends(20, second, random).zip(first.iter().zip(&last)).all(|(at, (from, to))| (*from..=*to).contains(&at))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_had_not_heard_and_came_is_ended_too() {
        let ended = Ended::default();
        let streams = open(1, &ended);
        assert!(timeout(LATE * 3 / 2, end_late_streams(&|| streams.clone())).await.is_err());
        assert_eq!(*ended.lock().unwrap(), [LATE]);
    }
}
