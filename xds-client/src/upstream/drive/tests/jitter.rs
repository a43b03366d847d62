//! That those who lose a stream, or a connection, at one moment do not come back at one.

use super::shared::{Fleet, Manner};
use super::*;

const MANY: usize = 400;
const SECOND: Duration = Duration::from_secs(1);

/// Where the first wait is up to a second long, and `longest` is the longest.
fn waiting(longest: Duration) -> Endpoint {
    endpoint().with_backoff(Backoff::new(SECOND, longest)).with_streams_per_connection(MANY.try_into().unwrap())
}

/// Many waits are uniform from nothing to `longest`: one in 10^10 of such tests finds another number in a tenth.
fn are_spread_over(longest: Duration, waits: &[Duration]) {
    assert_eq!(waits.len(), MANY);
    let mut tenths = [0_usize; 10];
    for wait in waits {
        assert!(*wait <= longest, "{wait:?}");
        tenths[((wait.as_secs_f64() / longest.as_secs_f64() * 10.0) as usize).min(9)] += 1;
    }
    assert!(tenths.iter().all(|tenth| (5..100).contains(tenth)), "{tenths:?}");
}

/// The first wait of many streams of one connection that behaves like this.
async fn waits_of_streams(endpoint: Endpoint, manner: Manner) -> Vec<Duration> {
    let mut fleet = Fleet::new(endpoint);
    let (mut told, mut drivers) = (Vec::new(), Vec::new());
    for _ in 0..MANY {
        let (mut recorder, _log) = Recorder::new(&[]);
        let (waits, wait) = mpsc::unbounded_channel();
        (recorder.waits, recorder.declines) = (Some(waits), true);
        drivers.push(fleet.driver(recorder));
        told.push(wait);
    }
    let _served = fleet.accept(Some(MANY as u32), manner).await;
    let mut waits = Vec::new();
    for wait in &mut told {
        waits.push(wait.recv().await.unwrap());
    }
    waits
}

#[tokio::test(start_paused = true)]
async fn rule_090_streams_that_end_at_one_moment_are_opened_at_any_of_the_next() {
    are_spread_over(SECOND, &waits_of_streams(waiting(30 * SECOND), Manner::Refuses).await);
}

#[tokio::test(start_paused = true)]
async fn rule_090_streams_that_were_to_oneself_are_opened_at_any_moment_of_the_longest_wait() {
    are_spread_over(30 * SECOND, &waits_of_streams(waiting(30 * SECOND), Manner::IsOneself).await);
}

/// Each of many that have a pool of their own, as many relays have.
#[tokio::test(start_paused = true)]
async fn rule_090_an_origin_that_is_away_is_dialed_by_each_at_a_moment_of_its_own() {
    let mut waits = Vec::new();
    for _ in 0..MANY {
        let fleet = Fleet::new(waiting(30 * SECOND));
        fleet.set_away(true);
        waits.push(fleet.pool.place().await.unwrap_err().retry_at - now());
    }
    are_spread_over(SECOND, &waits);
}

#[tokio::test(start_paused = true)]
async fn rule_090_a_connection_that_breaks_is_made_anew_by_each_at_a_moment_of_its_own() {
    let mut waits = Vec::new();
    for _ in 0..MANY {
        let mut fleet = Fleet::new(waiting(30 * SECOND));
        let (mut recorder, _log) = Recorder::new(&[]);
        let (sender, mut wait) = mpsc::unbounded_channel();
        recorder.waits = Some(sender);
        let _driver = fleet.driver(recorder);
        let mut served = fleet.accept(None, Manner::Answers).await;
        served.streams().await;
        served.cut();
        waits.push(wait.recv().await.unwrap());
    }
    are_spread_over(SECOND, &waits);
}

#[tokio::test(start_paused = true)]
async fn rule_090_an_origin_that_bears_no_streams_is_asked_again_by_each_at_a_moment_of_its_own() {
    let mut waits = Vec::new();
    for _ in 0..MANY {
        let mut fleet = Fleet::new(waiting(30 * SECOND));
        let pool = fleet.pool.clone();
        // Before it is known that there is no room.
        let first = tokio::spawn(async move { pool.place().await.unwrap() });
        let mut served = fleet.accept(Some(0), Manner::Answers).await;
        let _first = first.await.unwrap();
        served.streams().await;
        waits.push(fleet.pool.place().await.unwrap_err().retry_at - now());
    }
    are_spread_over(SECOND, &waits);
}

/// Who waits for an origin that is there again waits no longer, but comes with all others in a tenth of a second.
#[tokio::test(start_paused = true)]
async fn rule_090_streams_that_come_back_with_the_first_do_not_come_at_one_moment() {
    let an_hour = Backoff::new(3600 * SECOND, 3600 * SECOND);
    let mut fleet = Fleet::new(waiting(SECOND).with_backoff(an_hour));
    fleet.open(MANY);
    let mut balancer = fleet.accept(Some(MANY as u32), Manner::Refuses).await;
    assert_eq!(balancer.streams().await, MANY);
    let mut origin = fleet.accept(Some(MANY as u32), Manner::Answers).await;
    origin.streams.recv().await.unwrap();
    let back = now();
    let mut waits = vec![Duration::ZERO];
    while waits.len() < MANY {
        origin.streams.recv().await.unwrap();
        waits.push(now() - back);
    }
    are_spread_over(Duration::from_millis(101), &waits);
}
