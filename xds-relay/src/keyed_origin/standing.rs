//! How an origin is, for people.

use super::refusal::Instead;
use super::removals::said_of_removal;

/// What is known of what an origin has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing.
    #[default]
    Nothing,
    /// Some of it, from before a restart.
    Before,
    /// All but what is in values that cannot be read, of which nobody knows the names.
    Readable,
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
    /// How many values are refused, and the first of them.
    pub(crate) refused: (u64, Option<String>),
    /// What there is instead of that.
    pub(crate) instead: Option<Instead>,
    /// How many resources are gone and served all the same, until that is seen again.
    pub(crate) held_back: usize,
    pub(crate) known: Known,
}

impl Standing {
    /// Whether all that is wrong is values, of which each was logged as it was refused.
    pub(crate) fn is_of_values(&self) -> bool {
        self.away.is_none() && self.held_back == 0 && !matches!(self.known, Known::Before | Known::Readable)
    }

    /// What is wrong, in a sentence.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.wrong(true)
    }

    /// The same without what anybody else said, or has.
    pub(crate) fn trouble_in_brief(&self) -> Option<String> {
        self.wrong(false)
    }

    fn wrong(&self, is_quoted: bool) -> Option<String> {
        let quoted = |words: &String| if is_quoted { format!(": {words}") } else { String::new() };
        let away = self.away.as_ref().map(|why| {
            let stays = match self.known {
                Known::Nothing => "nothing is known",
                Known::Before => "what it had before a restart is served",
                Known::Readable | Known::All => "all stays as it is",
            };
            format!("{} is away, and {stays}{}", self.keeper, quoted(why))
        });
        let is_old = self.known == Known::Before && away.is_none();
        let old =
            is_old.then(|| format!("{} has not said all yet, and what it had before a restart is served", self.keeper));
        let held = (self.held_back > 0).then(|| said_of_removal(self.held_back));
        let is_hidden = self.known == Known::Readable;
        let hidden = is_hidden.then(|| {
            "it is not known what is in a value that cannot be read, and nothing is removed before it can be".to_owned()
        });
        let all: Vec<_> = [away, old, held, hidden, self.refusal(is_quoted)].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn refusal(&self, is_quoted: bool) -> Option<String> {
        match &self.refused {
            (0, _) | (_, None) => None,
            (1, Some(_)) if !is_quoted => Some("a value is refused".to_owned()),
            (count, Some(_)) if !is_quoted => Some(format!("{count} values are refused")),
            (1, Some(first)) => Some(format!("a value is refused: {first}{}", self.last_good())),
            (count, Some(first)) => {
                Some(format!("{count} values are refused, of {first} among them{}", self.last_good()))
            }
        }
    }

    fn last_good(&self) -> String {
        let last_good = self.instead.as_ref().and_then(|instead| instead.last_good.as_ref());
        last_good.map(|words| format!("; {words}")).unwrap_or_default()
    }
}
