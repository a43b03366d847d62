//! What may be done to the releases of a scope, by whom, and what comes of it.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::releases::manifest::millis;
use crate::releases::release::Release;

/// How much of a person's name is remembered, and of a reason, in bytes.
const NAME: usize = 512;
const REASON: usize = 1024;

/// Which relay, among relays: a number that it draws when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instance(pub u64);

/// Who publishes, and the how-manieth publisher of the scope that is: whoever did before cannot any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Publisher {
    /// The relay.
    pub instance: Instance,
    /// It grows with each [`Act::TakeOver`].
    pub term: u64,
}

impl Publisher {
    /// This relay, in this term.
    pub fn new(instance: Instance, term: u64) -> Self {
        Self { instance, term }
    }
}

/// Who wants something done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum By {
    /// A relay, as the one that publishes: by itself.
    Publisher(Publisher),
    /// A relay that wants to be the one.
    Instance(Instance),
    /// Somebody, by whatever name they showed.
    Person(String),
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Publisher(Publisher { instance, .. }) | Self::Instance(instance) => {
                write!(f, "relay {:016x}", instance.0)
            }
            Self::Person(name) => f.write_str(name),
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Act {
    /// The scope has settled, and this is what it has. By the publisher.
    Publish {
        /// The release.
        release: Release,
        /// [`Difference::removes_much`](super::Difference::removes_much), against what is stable; of a first release, whether it may
        /// lack what clients hold.
        removes_much: bool,
    },
    /// The candidate was in its stage for long enough, and all is well. By the publisher.
    Advance {
        /// The candidate that is meant.
        release: Release,
    },
    /// All is not well with the candidate. By the publisher.
    Halt {
        /// The candidate that is meant.
        release: Release,
        /// And then.
        then: OnHalt,
    },
    /// The candidate is to be in that stage (from 0), whatever it waits for; with the number of stages, it becomes stable. By a
    /// person.
    Stage {
        /// Which.
        at: usize,
    },
    /// The candidate is to stay in its stage. By a person.
    Hold,
    /// There is to be no candidate, and that release is stable: the one that is, if none is named. What is left is
    /// [refused](super::Control::refused) from then on. By a person.
    Rollback {
        /// One that is kept.
        to: Option<Release>,
    },
    /// Everybody has what is stable, and what is new waits. By a person.
    Freeze,
    /// What waits goes on, from the first stage. By a person.
    Unfreeze,
    /// Whoever publishes is gone: this relay does from now on. By an instance, which must know.
    TakeOver,
}

impl Act {
    /// Whether it only takes something back: that is done though nobody else can be told.
    pub(crate) fn takes_back(&self) -> bool {
        match self {
            Self::Freeze | Self::Rollback { .. } | Self::Hold | Self::Halt { .. } => true,
            Self::Publish { .. } | Self::Advance { .. } | Self::Stage { .. } | Self::Unfreeze | Self::TakeOver => false,
        }
    }
}

/// What becomes of a candidate with which all is not well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnHalt {
    /// Who has it keeps it, nobody else gets it, and somebody is to look at it.
    #[default]
    Hold,
    /// Everybody has what is stable.
    Rollback,
}

/// Something to be done, who wants it, when, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Order {
    /// What.
    pub act: Act,
    /// Who.
    pub by: By,
    /// In their words.
    pub why: String,
    /// Whole milliseconds.
    pub at: SystemTime,
}

impl Order {
    /// What somebody wants done. Of a reason 1 KiB is remembered, of a name 512 bytes.
    pub fn new(act: Act, by: By, why: impl Into<String>, at: SystemTime) -> Self {
        let by = match by {
            By::Person(name) => By::Person(cut(name, NAME)),
            relay => relay,
        };
        Self { act, by, why: cut(why.into(), REASON), at: time_of(millis_of(at)) }
    }

    pub(crate) fn said(&self) -> Said {
        Said { by: self.by.to_string(), why: self.why.clone(), at: self.at }
    }
}

/// Who did something, when, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Said {
    /// A person's name, or a relay.
    pub by: String,
    /// In their words.
    pub why: String,
    /// Whole milliseconds.
    pub at: SystemTime,
}

/// What came of an [`Order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transition {
    /// Nothing: it was so already.
    Unchanged,
    /// The release is not taken: it is one that was left by a rollback.
    NotTaken,
    /// It is the candidate, in the first stage.
    Opened,
    /// It is the candidate, and nobody gets it before what is frozen is not any more.
    Waits,
    /// It is the candidate, and nobody gets it before somebody says so: it removes much.
    RemovesMuch,
    /// What was the candidate is none any more: its origin has what is stable.
    Withdrawn,
    /// The candidate is in that stage.
    InStage(usize),
    /// The release is stable.
    Promoted,
    /// The candidate halted.
    Halted,
    /// The candidate stays in its stage.
    Held,
    /// There is no candidate, and what is stable is what was asked for.
    RolledBack,
    /// Everybody has what is stable.
    Frozen,
    /// What is new goes on.
    Unfrozen,
    /// Another relay publishes.
    TookOver,
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "unchanged",
            Self::NotTaken => "not taken",
            Self::Opened => "opened",
            Self::Waits => "waits",
            Self::RemovesMuch => "removes much",
            Self::Withdrawn => "withdrawn",
            // People count from 1.
            Self::InStage(stage) => return write!(f, "in stage {}", stage.saturating_add(1)),
            Self::Promoted => "promoted",
            Self::Halted => "halted",
            Self::Held => "held",
            Self::RolledBack => "rolled back",
            Self::Frozen => "frozen",
            Self::Unfrozen => "unfrozen",
            Self::TookOver => "took over",
        })
    }
}

/// In milliseconds since 1970; a time before is that.
pub(crate) fn millis_of(time: SystemTime) -> u64 {
    millis(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// What cannot be reckoned is long ago.
pub(crate) fn time_of(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis)).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn cut(mut text: String, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_say_is_cut_between_letters() {
        let order = Order::new(Act::Freeze, By::Person("ä".repeat(100)), "€".repeat(1000), SystemTime::now());
        let said = order.said();
        assert_eq!((said.by.len(), said.why.len()), (200, 1023));
        assert_eq!(time_of(millis_of(said.at)), said.at);
        assert_eq!(Order::new(Act::Freeze, By::Person("a".to_owned()), "b", said.at).said().why, "b");
    }
}
