//! Who is told what an origin has, and how it is: the relay.

use std::sync::Arc;
use std::time::Instant;

use xdstp_client::federation::{Held, Unreadable};

use super::contents::Read;
use super::follower::Follower;
use super::standing::Standing;
use crate::config::Origin;
use crate::metrics::KeyedMetrics;
use crate::relay_core::{RelayCore, Trouble};

/// Whom it is told.
pub(crate) trait Told: Send + 'static {
    /// All that the origin has from now on, and of what else it is not known whether it has it.
    fn content(&mut self, held: Vec<Held>, unreadable: Vec<Unreadable>);

    /// That the origin has these, from before a restart or beside what cannot be read: what else it has is not known.
    fn remembered(&mut self, held: Vec<Held>);

    /// How it is, if otherwise than before.
    fn standing(&mut self, standing: &Standing);

    /// So many values were refused.
    fn refused(&mut self, values: u64);
}

/// Tells what is otherwise than it was told before.
pub(crate) struct Teller<T> {
    told: T,
    keeper: &'static str,
    standing: Option<Standing>,
}

impl<T: Told> Teller<T> {
    /// Of an origin whose keys somebody has.
    pub(crate) fn new(told: T, keeper: &'static str) -> Self {
        Self { told, keeper, standing: None }
    }

    /// Why he does not answer, if he does not.
    pub(crate) fn tell<R: Read>(&mut self, follower: &mut Follower<R>, away: Option<String>) {
        if away.is_some() || follower.held_back() > 0 {
            follower.fall_back();
        }
        if let Some(held) = follower.news() {
            self.told.content(held, follower.unreadable());
        }
        if let Some(held) = follower.remembered() {
            self.told.remembered(held);
        }
        match follower.newly_refused() {
            0 => {}
            refused => self.told.refused(refused),
        }
        let (refused, held_back) = (follower.refused(), follower.held_back());
        let (instead, known) = (follower.instead(), follower.known());
        let standing = Standing { keeper: self.keeper, away, refused, instead, held_back, known };
        if self.standing.as_ref() != Some(&standing) {
            self.told.standing(&standing);
            self.standing = Some(standing);
        }
    }
}

/// An origin in a relay.
pub(crate) struct Relayed {
    core: Arc<RelayCore>,
    name: String,
    position: usize,
    keeper: &'static str,
    metrics: KeyedMetrics,
    /// What was said last to be wrong.
    said: Option<String>,
    /// Nothing but values was.
    was_of_values: bool,
    is_known: bool,
    /// It was said that it is served what was known before a restart.
    is_remembered: bool,
}

impl Relayed {
    pub(crate) fn new(
        core: Arc<RelayCore>,
        (position, origin): (usize, &Origin),
        keeper: &'static str,
        metrics: KeyedMetrics,
    ) -> Self {
        metrics.set(false, 0, 0);
        let words = format!("{keeper} has not answered yet, and nothing is known");
        core.set_trouble(
            position,
            Some(Trouble { is_away: true, in_brief: words.clone(), words, refused_since: None }),
        );
        Self {
            core,
            name: origin.name.clone(),
            position,
            keeper,
            metrics,
            said: None,
            was_of_values: true,
            is_known: false,
            is_remembered: false,
        }
    }
}

impl Told for Relayed {
    fn content(&mut self, held: Vec<Held>, unreadable: Vec<Unreadable>) {
        let (resources, keeper) = (held.len(), self.keeper);
        match self.is_known {
            true => tracing::info!(origin = %self.name, resources, "what is in {keeper} changed"),
            false => tracing::info!(origin = %self.name, resources, "it is read from {keeper}"),
        }
        self.is_known = true;
        self.metrics.changes.inc();
        self.core.set_files_but(self.position, held, unreadable, Instant::now());
    }

    fn remembered(&mut self, held: Vec<Held>) {
        let (resources, keeper) = (held.len(), self.keeper);
        // It changes with each part that is listed.
        if !std::mem::replace(&mut self.is_remembered, true) {
            tracing::warn!(origin = %self.name, resources, "it is served what was in {keeper} before a restart");
        }
        self.core.remember_files(self.position, held, Instant::now());
    }

    fn standing(&mut self, standing: &Standing) {
        let Standing { away, refused: (refused, _), held_back, .. } = standing;
        self.metrics.set(away.is_none(), *refused, *held_back);
        let words = standing.trouble();
        let is_said = std::mem::replace(&mut self.was_of_values, standing.is_of_values()) && standing.is_of_values();
        match (&words, &self.said) {
            (Some(words), said) if said.as_ref() != Some(words) && !is_said => {
                tracing::error!(origin = %self.name, "{words}");
            }
            (None, Some(_)) => tracing::info!(origin = %self.name, "nothing is wrong any more"),
            _ => {}
        }
        self.said.clone_from(&words);
        let in_brief = standing.trouble_in_brief().unwrap_or_default();
        let (is_away, refused_since) = (away.is_some(), standing.instead.as_ref().map(|instead| instead.since));
        let trouble = words.map(|words| Trouble { is_away, words, in_brief, refused_since });
        self.core.set_trouble(self.position, trouble);
    }

    fn refused(&mut self, values: u64) {
        self.core.metrics().upstream_refused(&self.name, values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::keyed_origin::logged::logged;
    use crate::keyed_origin::refusal::Instead;
    use crate::metrics::Metrics;
    use crate::relay_core::EveryNode;

    #[tokio::test]
    async fn what_was_logged_as_it_was_refused_is_not_logged_again_and_all_else_that_is_wrong_is() {
        let config = Config::parse("relay.yaml", "origins: [{ name: kv, server: 'a:1' }]").unwrap();
        let dialer = Box::new(crate::origins::Connections::new(&config).unwrap());
        let core = RelayCore::new(&config, Box::new(EveryNode), dialer, Arc::new(Metrics::new([])));
        let metrics = core.metrics().etcd("kv");
        let mut relayed = Relayed::new(core.clone(), (0, &config.origins[0]), "etcd", metrics);
        let refused = |away: Option<&str>, values: u64| Standing {
            keeper: "etcd",
            away: away.map(str::to_owned),
            refused: (values, Some(format!("k{values}: no"))),
            known: crate::keyed_origin::standing::Known::All,
            ..Standing::default()
        };
        for (standing, words) in [
            (refused(None, 1), None),
            (refused(None, 2), None),
            (refused(Some("nobody there"), 2), Some("etcd is away, and all stays as it is: nobody there; 2 values")),
            (refused(None, 2), Some("2 values are refused, of k2: no among them")),
            (refused(None, 1), None),
            (refused(None, 0), Some("nothing is wrong any more")),
        ] {
            let lines = logged(|| relayed.standing(&standing));
            assert_eq!(lines.len(), usize::from(words.is_some()), "{lines:?}");
            assert!(lines.iter().all(|line| line.contains(words.unwrap_or_default())), "{lines:?}");
            let told = core.status(Instant::now()).origins[0].clone();
            let told = told.last_error.or(told.hint);
            assert_eq!(told, standing.trouble());
        }
        let since = Instant::now();
        let instead = Instead { since, last_good: Some("its last good value counts".to_owned()) };
        relayed.standing(&Standing { instead: Some(instead), ..refused(None, 1) });
        let told = core.status(since + std::time::Duration::from_secs(300)).origins[0].hint.clone();
        let words = "a value is refused: k1: no; its last good value counts (refused for 5m)";
        assert_eq!(told.as_deref(), Some(words));
    }
}
