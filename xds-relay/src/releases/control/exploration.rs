//! All that can be ordered, in every order, of a small scope: each state that can be reached is looked at, and each step from it.
//!
//! There are three releases, two stages, three relays' worth of terms, and three clients: one in the first stage, one in the second
//! only, one in none. What each of them is served is looked at in every state, whatever it was served before.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use super::*;
use crate::releases::act::{Instance, OnHalt};
use crate::releases::stage::{Stage, Who};

const HOLD: Duration = Duration::from_secs(60);
const RELEASES: [Release; 3] = [Release::of_bytes([1; 16]), Release::of_bytes([2; 16]), Release::of_bytes([3; 16])];
/// In which stage each client is; the last one in none.
const CLIENTS: [usize; 3] = [0, 1, 2];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    control: Control,
    /// How many stages the candidate was in for as long as it is to be, or a person let it skip: counted apart from the control.
    passed: usize,
}

/// Something is ordered, that long after the stage began.
#[derive(Clone, Debug)]
struct Step {
    act: Act,
    by: By,
    when: Duration,
}

fn stages() -> Stages {
    let of = |id: &str| Who::Match([("id".parse().unwrap(), id.to_owned())].into());
    Stages::new([of("0"), of("1")].map(|who| Stage { who, hold: HOLD }))
}

fn node(client: usize) -> Node {
    Node { id: CLIENTS[client].to_string(), ..Node::default() }
}

/// The same state with its times and terms at their beginning: nothing depends on when that is.
fn normal(mut state: State) -> State {
    let begin = SystemTime::UNIX_EPOCH + HOLD;
    let said = |said: &mut Said| (said.at, said.by) = (begin, "somebody".to_owned());
    if let Some(candidate) = &mut state.control.candidate {
        candidate.since = begin;
        match &mut candidate.progress {
            Progress::Open => {}
            Progress::Held(by) | Progress::Halted(by) => said(by),
        }
    }
    state.control.frozen.as_mut().map(said);
    if let Some(publisher) = &mut state.control.publisher {
        publisher.term = 2;
    }
    // It is told, and nothing goes by it.
    state.control.not_taken = None;
    // Their order counts where there are 256.
    state.control.refused.sort();
    state
}

/// Every order there is: by whoever publishes, by who does not any more or never did, and by people; early and late.
fn orders(control: &Control) -> Vec<Step> {
    let publisher = control.publisher.unwrap_or(Publisher::new(Instance(1), 2));
    let others = [Publisher { term: publisher.term - 1, ..publisher }, Publisher::new(Instance(9), publisher.term)];
    let relays = [publisher, others[0], others[1]].map(By::Publisher);
    let mut acts = Vec::new();
    for release in RELEASES {
        for then in [OnHalt::Hold, OnHalt::Rollback] {
            acts.push(Act::Halt { release, then });
        }
        acts.extend([false, true].map(|removes_much| Act::Publish { release, removes_much }));
        acts.extend([Act::Advance { release }, Act::Rollback { to: Some(release) }]);
    }
    acts.extend((0..4).map(|at| Act::Stage { at }));
    acts.extend([Act::Hold, Act::Rollback { to: None }, Act::Freeze, Act::Unfreeze, Act::TakeOver]);
    let who = relays.into_iter().chain([1, 2].map(|instance| By::Instance(Instance(instance))));
    let who: Vec<_> = who.chain([By::Person("somebody".to_owned())]).collect();
    let each = |act: &Act, by: &By| {
        let steps = [Duration::ZERO, HOLD - Duration::from_millis(1), HOLD];
        let steps = steps.map(|when| Step { act: act.clone(), by: by.clone(), when });
        // Of the others none asks how late it is.
        steps.into_iter().skip(if matches!(act, Act::Advance { .. }) { 0 } else { 2 })
    };
    acts.iter().flat_map(|act| who.iter().flat_map(move |by| each(act, by))).collect()
}

/// What a client is served may be served to it.
fn check_served(control: &Control, client: usize, has: Option<Release>, served: Option<Release>) {
    assert!(served.is_none_or(|served| !control.refused.contains(&served)), "{control:?}");
    if served == control.stable {
        return;
    }
    let candidate = control.candidate.as_ref().unwrap();
    assert_eq!(served, Some(candidate.release), "there is no third: {control:?}");
    assert!(CLIENTS[client] <= candidate.stage, "client {client} is outside: {control:?}");
    assert!(control.frozen.is_none(), "it is frozen: {control:?}");
    assert!(control.stable.is_some(), "{control:?}");
    let is_halted = matches!(candidate.progress, Progress::Halted(_));
    assert!(!is_halted || has == served, "client {client} did not have what halted: {control:?}");
}

/// Whoever is to be served the candidate is: a control that serves everybody what is stable would keep all the rest.
fn is_to_have(control: &Control, client: usize, has: Option<Release>) -> bool {
    control.candidate.as_ref().is_some_and(|candidate| {
        let is_halted = matches!(candidate.progress, Progress::Halted(_));
        let is_served = control.frozen.is_none() && CLIENTS[client] <= candidate.stage;
        let is_served = is_served && control.stable.is_some();
        is_served && (!is_halted || has == Some(candidate.release))
    })
}

/// What an order made of a state is what it may make of it.
fn check_order(before: &State, after: &Control, (act, by): (&Act, &By), done: &Result<Transition, ControlError>) {
    let control = &before.control;
    let context = || format!("{act:?} by {by:?} of {before:?} made {after:?}");
    if done.is_err() {
        assert_eq!(control, after, "{}", context());
    }
    if *done == Ok(Transition::Unchanged) {
        assert_eq!(control, after, "{}", context());
    }
    // One publisher: who is none changes nothing, and who becomes one is told apart from all before.
    if let By::Publisher(by) = by {
        assert!(control.publisher == Some(*by) || control == after, "{}", context());
    }
    let terms = [control, after].map(|control| control.publisher.map_or(0, |publisher| publisher.term));
    assert_eq!(terms[1] > terms[0], matches!(act, Act::TakeOver) && done.is_ok(), "{}", context());
    assert!(terms[1] > terms[0] || control.publisher == after.publisher, "{}", context());
    // No lost freeze.
    let (is_unfreeze, is_rollback) = (matches!(act, Act::Unfreeze), matches!(act, Act::Rollback { .. }));
    if control.frozen.is_some() {
        assert!(is_unfreeze || after.frozen == control.frozen, "{}", context());
        assert!(is_rollback || after.stable == control.stable, "{}", context());
    } else {
        assert!(after.frozen.is_none() || matches!(act, Act::Freeze), "{}", context());
    }
    // What is stable was the first, or passed its stages, or a person said so.
    if after.stable != control.stable {
        let is_first = control.stable.is_none();
        let has_passed = before.passed >= 1 && matches!(act, Act::Advance { .. });
        let person = is_rollback || matches!(act, Act::Stage { at: 2 });
        assert!(is_first || has_passed || person, "{}", context());
        assert!(after.stable.is_some() && after.candidate.is_none(), "{}", context());
    }
    let is_refused = |release: Option<Release>| release.is_some_and(|release| after.refused.contains(&release));
    let candidate = after.candidate.as_ref().map(|candidate| candidate.release);
    assert!(!is_refused(after.stable) && !is_refused(candidate), "{}", context());
    assert!(candidate.is_none() || candidate != after.stable, "{}", context());
    // What is refused is forgotten only when a person asks for it by name.
    let asked = if let Act::Rollback { to } = act { *to } else { None };
    assert!(
        control.refused.iter().all(|refused| is_refused(Some(*refused)) || asked == Some(*refused)),
        "{}",
        context()
    );
}

/// How far the candidate got, by what was ordered and when.
fn passed(before: &State, after: &Control, act: &Act, when: Duration) -> usize {
    let release = |control: &Control| control.candidate.as_ref().map(|candidate| candidate.release);
    match act {
        _ if release(after).is_none() || release(after) != release(&before.control) => 0,
        Act::Advance { .. } if stage(after) != stage(&before.control) => {
            assert!(when >= HOLD, "a stage was cut short: {before:?}");
            assert_eq!(stage(after), stage(&before.control).map(|stage| stage + 1), "one after the other");
            before.passed + 1
        }
        Act::Stage { .. } | Act::Unfreeze => {
            assert!(stage(after) == stage(&before.control) || before.control != *after);
            stage(after).unwrap_or_default()
        }
        _ => {
            assert_eq!(stage(after), stage(&before.control), "only these change a stage: {act:?} {before:?}");
            before.passed
        }
    }
}

fn stage(control: &Control) -> Option<usize> {
    control.candidate.as_ref().map(|candidate| candidate.stage)
}

fn take(state: &State, Step { act, by, when }: &Step, stages: &Stages) -> State {
    let mut next = state.clone();
    let began = state.control.candidate.as_ref().map_or(SystemTime::UNIX_EPOCH + HOLD, |candidate| candidate.since);
    let order = Order::new(act.clone(), by.clone(), "", began + *when);
    // The third release is not kept.
    let done = next.control.apply(&order, stages, &|release| release != RELEASES[2]);
    check_order(state, &next.control, (act, by), &done);
    next.passed = passed(state, &next.control, act, *when);
    normal(next)
}

fn look(control: &Control, stages: &Stages) {
    for client in 0..CLIENTS.len() {
        for has in RELEASES.map(Some).into_iter().chain([None]) {
            let served = control.release_for(stages, &node(client), has);
            check_served(control, client, has, served);
            assert_eq!(served != control.stable, is_to_have(control, client, has), "client {client}: {control:?}");
        }
    }
}

#[test]
fn whatever_is_ordered_no_client_is_outside_its_stage_no_freeze_is_lost_and_one_publishes() {
    let stages = stages();
    let start = State { control: Control::default(), passed: 0 };
    let mut seen = HashSet::from([start.clone()]);
    let mut queue = VecDeque::from([start]);
    while let Some(state) = queue.pop_front() {
        look(&state.control, &stages);
        for step in orders(&state.control) {
            let next = take(&state, &step, &stages);
            if seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    let control = |is: fn(&Control) -> bool| seen.iter().any(|state| is(&state.control));
    let progress = |control: &Control| control.candidate.as_ref().map(|candidate| candidate.progress.clone());
    // It went everywhere: an exploration that stops early would show nothing.
    assert!(control(|control| control.frozen.is_some() && stage(control) == Some(1)));
    assert!(seen.iter().any(|state| matches!(progress(&state.control), Some(Progress::Held(_)))));
    assert!(seen.iter().any(|state| matches!(progress(&state.control), Some(Progress::Halted(_)))));
    assert!(control(|control| control.refused.len() == 2 && control.stable == Some(RELEASES[1])));
    assert!(seen.len() > 300, "{}", seen.len());
}
