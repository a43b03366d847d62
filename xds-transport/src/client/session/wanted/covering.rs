//! By what of all that is wanted a name is.

use xdstp_cache::{Interest, ResourceError};
use xdstp_uri::{NameKey, ResourceName};

use super::{Wanted, Wish};

impl Wanted {
    pub(crate) fn covers(&self, name: &ResourceName) -> bool {
        self.covering(name).next().is_some()
    }

    /// Whether `name` is wanted by more than a wildcard, whose members have no errors of their own (TP3).
    pub(crate) fn hears_errors(&self, name: &ResourceName) -> bool {
        self.covering_names(name).next().is_some()
    }

    /// Whether an error is about a resource that is there, and that was asked for by a name or glob which is left meanwhile:
    /// to the wildcard that still covers it, the resource is one like others. What is gone is told as removed beside.
    pub(crate) fn was_left_before(&self, name: &ResourceName, error: &ResourceError) -> bool {
        error.code == ResourceError::PERMISSION_DENIED && !self.hears_errors(name)
    }

    /// Whether the error of a name or glob is worth knowing still.
    pub(crate) fn keeps_error(&self, name: &ResourceName) -> bool {
        if name.is_glob() { self.names.contains_key(name) } else { self.covers(name) }
    }

    /// Whether `name` is wanted by more than the glob it is a member of.
    pub(crate) fn covers_otherwise(&self, name: &ResourceName) -> bool {
        self.wildcard.is_some() || self.names.contains_key(name) || !self.aliases.of(name).is_empty()
    }

    /// Whether `name` is asked for itself, or by an alias.
    pub(crate) fn is_named(&self, name: &ResourceName) -> bool {
        self.naming(name).next().is_some()
    }

    /// Whether `name` is wanted by more than such collections.
    pub(crate) fn covers_without(&self, name: &ResourceName, is_such: impl Fn(&Interest) -> bool) -> bool {
        let glob = self.glob_of(name).and_then(|_| name.glob_parent().map(Interest::Name));
        let wildcard = self.wildcard.map(|_| Interest::Wildcard);
        self.is_named(name) || glob.into_iter().chain(wildcard).any(|collection| !is_such(&collection))
    }

    /// Whether `name` is asked for itself, or a member of a glob, that no stream has answered yet.
    pub(crate) fn awaits(&self, name: &ResourceName) -> bool {
        self.names.get(name).into_iter().chain(self.glob_of(name)).any(|wish| !wish.known)
    }

    /// Whether a name is asked for that no stream has answered yet.
    pub(crate) fn awaits_names(&self) -> bool {
        self.names.iter().any(|(name, wish)| !wish.known && !name.is_glob())
    }

    /// Whether something that covers `name` was asked for after request number `seen`.
    pub(crate) fn asked_since(&self, name: &ResourceName, seen: u64) -> bool {
        self.covering(name).any(|wish| wish.asked > seen)
    }

    /// Whether nothing but collections covers `name`, and none of them was asked for on this stream.
    pub(crate) fn is_asked_for_later(&self, name: &ResourceName) -> bool {
        let mut collections = self.glob_of(name).into_iter().chain(&self.wildcard).peekable();
        let later = collections.peek().is_some() && collections.all(|wish| wish.asked == 0);
        later && self.naming(name).next().is_none()
    }

    fn covering(&self, name: &ResourceName) -> impl Iterator<Item = &Wish> {
        self.covering_names(name).chain(&self.wildcard)
    }

    /// The same, but for the wildcard.
    fn covering_names(&self, name: &ResourceName) -> impl Iterator<Item = &Wish> {
        let glob = self.glob_of(name);
        self.naming(name).chain(glob)
    }

    /// What asks for `name` by itself, or by an alias.
    fn naming(&self, name: &ResourceName) -> impl Iterator<Item = &Wish> {
        let aliases = self.aliases.of(name).iter().filter_map(|alias| self.names.get(alias));
        self.named(name).into_iter().chain(aliases)
    }

    fn glob_of(&self, name: &ResourceName) -> Option<&Wish> {
        let parent = if self.globs == 0 { None } else { name.glob_parent_key() };
        parent.and_then(|parent| self.names.get(&parent as &dyn NameKey))
    }

    /// What is asked for by `name` itself.
    fn named(&self, name: &ResourceName) -> Option<&Wish> {
        if self.may_be_named(name) { self.names.get(name) } else { None }
    }

    /// Where all that is wanted are globs, a resource is not looked for among them.
    pub(super) fn may_be_named(&self, name: &ResourceName) -> bool {
        self.globs < self.names.len() || name.is_glob()
    }
}
