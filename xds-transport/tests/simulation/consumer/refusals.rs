//! Globs that are refused: until they are answered, what else comes of them says nothing.

use xdstp_cache::{Interest, ResourceError};
use xdstp_uri::ResourceName;

use super::{Cause, Kind};

impl Kind {
    /// Whether a glob fails, and not because it has nothing.
    pub(super) fn is_refused(&self, glob: &ResourceName) -> bool {
        self.errors.get(glob).is_some_and(|(code, _)| *code != ResourceError::NOT_FOUND)
    }

    /// An error was told: one of a glob that is asked for holds on this stream until the glob is answered.
    pub(super) fn note_refusal(&mut self, cause: &Cause, name: &ResourceName, error: &ResourceError) {
        let interest = Interest::Name(name.clone());
        let was_asked = self.since.get(&interest).is_some_and(|since| *since < cause.sent_at);
        if name.is_glob() && error.code != ResourceError::NOT_FOUND && was_asked && cause.asked.contains(&interest) {
            self.refused_on.insert(name.clone(), cause.stream);
        } else {
            self.refused_on.remove(name);
        }
    }

    /// A member of a glob that is refused came. Where more asks for it than the glob, it may be over, and nothing says so.
    pub(super) fn note_unsaid(&mut self, cause: &Cause, member: &ResourceName, glob: ResourceName) {
        let by = [Interest::Name(member.clone()), Interest::Wildcard];
        if by.iter().any(|one| self.wants.contains(one) || cause.asked.contains(one)) {
            self.over_unsaid.insert(glob);
        }
    }

    /// What is answered is not refused any more. That it is, only what nothing else asks for can say.
    pub(super) fn take_answers(&mut self, cause: &Cause, answered: &[Interest]) -> Result<(), String> {
        for interest in answered {
            let Interest::Name(glob) = interest else { continue };
            let refused_on = self.refused_on.remove(glob);
            if refused_on == Some(cause.stream) && !self.says(cause, glob) {
                return Err(format!("{glob} is refused, and told as answered"));
            }
            if self.errors.remove(glob).is_some() {
                self.recovered.insert(glob.clone(), cause.moment);
            }
        }
        Ok(())
    }

    /// Whether what caused an update says what a glob has.
    fn says(&self, cause: &Cause, glob: &ResourceName) -> bool {
        let Some((response, _)) = &cause.response else { return false };
        if cause.removed.contains(glob) || response.errors.iter().any(|failed| failed.name == glob.as_str()) {
            return true;
        }
        let asked: Vec<_> = cause.asked_for(self).collect();
        let mut members = response.resources.iter().filter(|sent| !sent.heartbeat);
        let mut members = members.by_ref().filter_map(|sent| ResourceName::parse(&sent.name).ok());
        !asked.contains(&&Interest::Wildcard)
            && members.any(|name| name.answers(glob) && !asked.contains(&&Interest::Name(name.clone())))
    }
}
