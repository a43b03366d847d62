//! What the origin has something of that cannot be read: a release has it as what is stable does.

use std::sync::Arc;

use xdstp_client::federation::{Held, Unreadable};

use super::served_content::Content;
use super::{Releases, State};
use crate::releases::{Release, StoredError};

impl Releases {
    /// What is to be released of what the origin has: with what is stable of what cannot be read.
    ///
    /// # Errors
    /// A candidate has something that cannot be read, or all that is served is not released yet: what others serve of it would be
    /// taken away.
    pub(super) fn completed(
        &self,
        state: &mut State,
        content: &[Held],
        unreadable: &[Unreadable],
    ) -> Result<Vec<Held>, StoredError> {
        let mut held: Vec<Held> = content.to_vec();
        let mut own = unreadable.iter().filter(|of| self.releases_unreadable(of)).peekable();
        if own.peek().is_none() {
            return Ok(held);
        }
        let [stable, candidate] = self.named_contents(state)?;
        for of in own {
            let is_of_it = |(type_url, name, _): &&Held| *type_url == of.type_url && *name == of.name;
            let before = held.len();
            held.extend(stable.iter().flat_map(|stable| &stable.held).filter(is_of_it).cloned());
            // Where neither has it, nobody is served it by a release.
            let is_known = stable.is_some() && !candidate.iter().flat_map(|of| &of.held).any(|held| is_of_it(&held));
            if held.len() == before && !is_known {
                return Err(StoredError::Unreadable {
                    type_url: of.type_url.to_string(),
                    name: of.name.to_string(),
                    reason: of.reason.to_string(),
                });
            }
        }
        Ok(held)
    }

    /// Whether all that the origin has can be released: who cannot leaves it to another relay, that may know more.
    pub(super) fn can_complete(&self, state: &mut State) -> bool {
        let unreadable = self.origin.unreadable();
        unreadable.is_empty() || self.completed(state, &[], &unreadable).is_ok()
    }

    /// Whether what cannot be read is in releases.
    fn releases_unreadable(&self, of: &Unreadable) -> bool {
        of.name.authority() == self.rollout.authority.as_deref() && self.rollout.types.contains(&of.type_url)
    }

    /// Whether the same cannot be read of what is released, whatever the words.
    pub(super) fn leaves_the_same(&self, one: &[Unreadable], other: &[Unreadable]) -> bool {
        let names = |of: &[Unreadable]| -> Vec<_> {
            let own = of.iter().filter(|of| self.releases_unreadable(of));
            own.map(|of| (of.type_url.clone(), of.name.clone())).collect()
        };
        names(one) == names(other)
    }

    /// What is in what is stable, and in the candidate.
    fn named_contents(&self, state: &mut State) -> Result<[Option<Arc<Content>>; 2], StoredError> {
        let control = state.stored.control();
        let (stable, candidate) = (control.stable(), control.candidate().map(|candidate| candidate.release));
        Ok([self.named_content(state, stable)?, self.named_content(state, candidate)?])
    }

    fn named_content(&self, state: &mut State, named: Option<Release>) -> Result<Option<Arc<Content>>, StoredError> {
        let Some(release) = named else { return Ok(None) };
        if let Some(content) = state.contents.get(&release) {
            return Ok(Some(content.clone()));
        }
        let content = Arc::new(self.read(state, release)?);
        state.contents.insert(release, content.clone());
        Ok(Some(content))
    }
}
