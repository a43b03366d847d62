//! How an origin is, for people.

use super::removals::said_of_removal;

/// What is known of what an origin has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing.
    #[default]
    Nothing,
    /// Some of it, from before a restart or of what was said since.
    Before,
    /// All.
    All,
}

/// How an origin is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Who has the keys, such as `etcd`.
    pub(crate) keeper: &'static str,
    /// Why he does not answer, if he does not.
    pub(crate) away: Option<String>,
    /// What he has not said, if he answers and that is remarkable.
    pub(crate) late: Option<String>,
    /// How many values are refused, and the first of them.
    pub(crate) refused: (u64, Option<String>),
    /// How many resources are gone and served all the same, until that is seen again.
    pub(crate) held_back: usize,
    pub(crate) known: Known,
}

impl Standing {
    /// Whether all that is wrong is values, of which each was logged as it was refused.
    pub(crate) fn is_of_values(&self) -> bool {
        self.away.is_none() && self.late.is_none() && self.held_back == 0 && self.known != Known::Before
    }

    /// What is wrong, in a sentence.
    pub(crate) fn trouble(&self) -> Option<String> {
        let away = self.away.as_ref().map(|why| {
            let stays = match self.known {
                Known::Nothing => "nothing is known",
                Known::Before => "what it had before a restart is served",
                Known::All => "all stays as it is",
            };
            format!("{} is away, and {stays}: {why}", self.keeper)
        });
        let late = self.late.as_ref().filter(|_| away.is_none()).map(|late| {
            let stays = match self.known {
                Known::Nothing => "nothing is served",
                Known::Before => "what is known is served",
                Known::All => "what that is needed for stays as it is",
            };
            format!("{}: {late}, and {stays}", self.keeper)
        });
        let is_old = self.known == Known::Before && away.is_none() && late.is_none();
        let old =
            is_old.then(|| format!("{} has not said all yet, and what it had before a restart is served", self.keeper));
        let held = (self.held_back > 0).then(|| said_of_removal(self.held_back));
        let all: Vec<_> = [away, late, old, held, self.refusal()].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn refusal(&self) -> Option<String> {
        match &self.refused {
            (0, _) | (_, None) => None,
            (1, Some(first)) => Some(format!("a value is refused: {first}")),
            (count, Some(first)) => Some(format!("{count} values are refused, of {first} among them")),
        }
    }
}
