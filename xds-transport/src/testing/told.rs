//! What a pull says beside names and versions: that there is nothing, how long something lives, and why it is not there.

use std::ops::ControlFlow;
use std::time::Duration;

use xdstp_cache::{Interest, Pull, Removals, ResourceError, SubscriberId};
use xdstp_uri::ResourceName;

use crate::server::{Source, Tally};
use crate::testing::Edit;
use crate::testing::history::{History, PLAIN, Step};

/// `google.rpc.Code.UNAVAILABLE`: it passes.
const UNAVAILABLE: i32 = 14;

/// Rule 86: a wildcard is answered although there is nothing, once.
pub(crate) fn expect_empty_answer<S: Edit>(history: &mut History<S>) -> Step {
    let source = &mut history.source;
    let id = source.open(&PLAIN.into());
    source.subscribe(id, &Interest::Wildcard);
    source.resume(id, Vec::new());
    let mut none = |_: Pull<'_, _>| ControlFlow::Continue(());
    let answers: Vec<_> = (0..2).map(|_| source.pull(id, Removals::Include, &mut none).empty).collect();
    source.close(id, &Tally::default());
    match answers == [true, false] {
        true => Ok(()),
        false => Err(format!("a wildcard of nothing is answered as {answers:?} (rule 86)")),
    }
}

/// What lives for a time is told with it, and is looked up with it (rules 111, 112).
pub(crate) fn lives<S: Edit>(history: &mut History<S>) -> Step {
    let ttl = Some(Duration::from_secs(30));
    history.put_for(PLAIN, "short", "1", ttl)?;
    history.put(PLAIN, "ever", "1")?;
    let source = &mut history.source;
    let id = source.open(&PLAIN.into());
    source.subscribe(id, &Interest::Wildcard);
    source.resume(id, Vec::new());
    let (mut told, mut looked_up) = (Vec::new(), Vec::new());
    source.pull(id, Removals::Include, &mut |pull| {
        if let Pull::Put { name, resource, .. } = pull {
            told.push((name.to_string(), resource.value.ttl()));
        }
        ControlFlow::Continue(())
    });
    for text in ["ever", "short"] {
        let name = ResourceName::parse(text).map_err(|error| error.to_string())?;
        source.look_up(id, &name, &mut |resource| looked_up.push((text.to_owned(), resource.value.ttl())));
    }
    source.close(id, &Tally::default());
    told.sort();
    let expected = [("ever".to_owned(), None), ("short".to_owned(), ttl)];
    match (told == expected, looked_up == expected) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("{told:?} is told of what lives for 30 s, and for ever (rule 111)")),
        (true, false) => Err(format!("{looked_up:?} is looked up of what lives for 30 s, and for ever (rule 112)")),
    }
}

/// Why something is not there is told once, to who asked for it, apart from what changed (rules 117, 118).
pub(crate) fn errors<S: Edit>(history: &mut History<S>) -> Step {
    history.put(PLAIN, "there", "1")?;
    for name in ["there", "missing"] {
        if !history.fail(PLAIN, name, UNAVAILABLE)? {
            return Ok(());
        }
    }
    history.fail(PLAIN, "unasked", UNAVAILABLE)?;
    let id = history.source.open(&PLAIN.into());
    for name in ["missing", "there"] {
        let name = ResourceName::parse(name).map_err(|error| error.to_string())?;
        history.source.subscribe(id, &Interest::Name(name));
    }
    history.source.resume(id, Vec::new());
    let told = tell(&mut history.source, id, history.part);
    if told != ["+there", "!missing 14 gone", "!there 14"] {
        return Err(format!("{told:?} is told of one name that is there and fails, and of one that is not (rule 117)"));
    }
    history.fail(PLAIN, "there", UNAVAILABLE)?;
    let told = tell(&mut history.source, id, history.part);
    if !told.is_empty() {
        return Err(format!("{told:?} is told, and nothing changed (rule 118)"));
    }
    history.put(PLAIN, "missing", "1")?;
    history.fail(PLAIN, "there", ResourceError::NOT_FOUND)?;
    let told = tell(&mut history.source, id, history.part);
    let gone = [["+missing", "-there"].as_slice(), &["+missing", "!there 5 gone"], &["+missing", "-there", "!there 5"]];
    if !gone.iter().any(|gone| told == *gone) {
        return Err(format!("{told:?} is told of a name that came, and of one that is not found (rule 117)"));
    }
    history.source.close(id, &Tally::default());
    history.remove(PLAIN, "there")
}

/// All that is told, errors last: `+a`, `-a`, `!a 14`, and `gone` where it is told as removed beside.
fn tell(source: &mut impl Source, id: SubscriberId, part: usize) -> Vec<String> {
    let (mut changes, mut errors) = (Vec::new(), Vec::new());
    let mut more = true;
    while more {
        let most = changes.len().saturating_add(part);
        let pulled = source.pull(id, Removals::Include, &mut |pull| {
            match pull {
                Pull::Put { name, .. } => changes.push(format!("+{name}")),
                Pull::Removed { name, .. } => changes.push(format!("-{name}")),
                _ => {}
            }
            if changes.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        more = pulled.more;
    }
    more = true;
    while more {
        let most = errors.len().saturating_add(part);
        more = source.pull_errors(id, Removals::Include, &mut |failed| {
            let gone = if failed.removed { " gone" } else { "" };
            errors.push(format!("!{} {}{gone}", failed.name, failed.error.code));
            if errors.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }
    errors.sort();
    changes.into_iter().chain(errors).collect()
}
