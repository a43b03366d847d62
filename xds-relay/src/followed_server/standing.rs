//! How a control plane that is followed is, for people.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::Origin;
use crate::metrics::FollowedMetrics;
use crate::relay_core::{RelayCore, Trouble};

/// How often the same kind of trouble is logged, however its words change.
const LOGGED: Duration = Duration::from_secs(60);

/// What is wrong, if anything is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// Why it is not known what there is.
    pub(super) unknown: Option<Unknown>,
    /// How many names are waited for, and one of them in words.
    pub(super) waits: (usize, Option<String>),
    /// How many resources are refused, and one of them in words.
    pub(super) refused: (usize, Option<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Nobody answers.
    Away(String),
    /// Who answers has not said it.
    Unsaid(String),
}

impl Standing {
    fn wrong(&self, is_quoted: bool) -> Option<String> {
        let quoted = |words: &str| if is_quoted { format!(": {words}") } else { String::new() };
        let stays = "and what was released is served";
        let unknown = self.unknown.as_ref().map(|unknown| match unknown {
            Unknown::Away(why) => format!("the control plane is away, {stays}{}", quoted(why)),
            Unknown::Unsaid(why) => format!("the control plane has not said what there is, {stays}{}", quoted(why)),
        });
        let some = |(count, first): &(usize, Option<String>), is: &str| {
            let more = if *count > 1 { format!(", and {} more", count - 1) } else { String::new() };
            (*count > 0).then(|| format!("{is}{}", quoted(&format!("{}{more}", first.as_deref().unwrap_or("")))))
        };
        let waits = some(&self.waits, "it waits for what the control plane says nothing of");
        let refused = some(&self.refused, "what the control plane sends is refused, and is as it was");
        let all: Vec<_> = [unknown, waits, refused].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// What tells it from trouble of other kinds.
    fn kind(&self) -> Kind {
        let is_away = self.unknown.as_ref().map(|unknown| matches!(unknown, Unknown::Away(_)));
        (is_away, self.waits.0 > 0, self.refused.0 > 0)
    }
}

/// Whether nobody answers, if it is not known what there is; whether something waits; and whether something is refused.
type Kind = (Option<bool>, bool, bool);

/// Who is told: the relay.
pub(super) struct Teller {
    core: Arc<RelayCore>,
    name: String,
    position: usize,
    metrics: FollowedMetrics,
    told: Option<Standing>,
    /// When which kind was logged last.
    logged: BTreeMap<Kind, Instant>,
}

impl Teller {
    pub(super) fn new(core: &Arc<RelayCore>, (position, origin): (usize, &Origin)) -> Self {
        let metrics = core.metrics().followed(&origin.name);
        Self { core: core.clone(), name: origin.name.clone(), position, metrics, told: None, logged: BTreeMap::new() }
    }

    /// It is so from now on.
    pub(super) fn tell(&mut self, standing: Standing, now: Instant) {
        if self.told.as_ref() == Some(&standing) {
            return;
        }
        self.metrics.set(standing.unknown.is_none(), standing.waits.0, standing.refused.0);
        let words = standing.wrong(true);
        self.log(&standing, words.as_deref(), now);
        let is_away = matches!(standing.unknown, Some(Unknown::Away(_)));
        let in_brief = standing.wrong(false).unwrap_or_default();
        let trouble = words.map(|words| Trouble { is_away, words, in_brief, refused_since: None });
        self.core.set_trouble(self.position, trouble);
        self.told = Some(standing);
    }

    fn log(&mut self, standing: &Standing, words: Option<&str>, now: Instant) {
        let kind = standing.kind();
        if self.logged.get(&kind).is_some_and(|at| now.saturating_duration_since(*at) < LOGGED) {
            return;
        }
        match words {
            Some(words) => tracing::warn!(origin = %self.name, "{words}"),
            None if !self.logged.is_empty() => tracing::info!(origin = %self.name, "nothing is wrong any more"),
            None => return,
        }
        self.logged.insert(kind, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::followed_server::server::tests::teller;
    use crate::keyed_origin::logged::logged;

    #[tokio::test]
    async fn trouble_of_a_kind_is_told_at_once_and_logged_once_a_minute() {
        let (mut teller, core) = teller();
        let began = Instant::now();
        let away = |why: &str| Standing { unknown: Some(Unknown::Away(why.to_owned())), ..Standing::default() };
        let waits = |names| Standing { waits: (names, Some("`a`".to_owned())), ..Standing::default() };
        let mut lines = |standing: &Standing, seconds| {
            logged(|| teller.tell(standing.clone(), began + Duration::from_secs(seconds))).len()
        };
        for seconds in 0..59 {
            let all = [away(&seconds.to_string()), Standing::default(), waits(1 + seconds as usize)];
            let logged = all.map(|standing| lines(&standing, seconds));
            assert_eq!(logged, if seconds == 0 { [1; 3] } else { [0; 3] }, "{seconds}");
        }
        let words = "it waits for what the control plane says nothing of: `a`, and 58 more";
        assert_eq!(core.status(began).origins[0].hint.as_deref(), Some(words));
        assert_eq!(lines(&away("again"), 60), 1);
        assert_eq!(waits(1).wrong(false).unwrap(), "it waits for what the control plane says nothing of");
    }
}
