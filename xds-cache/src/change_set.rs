//! What a change set is made of.

use std::sync::Arc;

use xdstp_uri::ResourceName;

use crate::resource::Resource;
use crate::variant::Variant;

/// One entry of a change set.
#[derive(Debug)]
#[non_exhaustive]
pub enum Pull<'a, V> {
    /// A resource the subscriber has not been sent at this version.
    Put {
        /// Its name.
        name: &'a ResourceName,
        /// Which of the name's variants it is; `None` for the [plain](Variant::plain) one, which may be the only one.
        variant: Option<&'a Arc<Variant>>,
        /// The variants of the name that this one takes the place of: they are gone for the subscriber, with this. A client
        /// that hears of one without the other would have both, or for a moment none. It is the one that it was sent; if
        /// that was before it came back, those that it may have been sent then.
        replaces: &'a [Arc<Variant>],
        /// The resource.
        resource: &'a Resource<V>,
    },
    /// A name that is gone, or that never was; or a glob without members (rule 99). It is there, but has no variant for
    /// the subscriber: that is the same.
    Removed {
        /// The name.
        name: &'a ResourceName,
        /// The variants that the subscriber may hold, like those that a put replaces; it has nothing of the name any more,
        /// though, whether they are known or not.
        variants: &'a [Arc<Variant>],
    },
}

impl<'a, V> Pull<'a, V> {
    /// A resource without variants, as a source of one's own visits it.
    pub fn put(name: &'a ResourceName, resource: &'a Resource<V>) -> Self {
        Self::Put { name, variant: None, replaces: &[], resource }
    }

    /// A name that is gone, whatever the subscriber had of it.
    pub fn removed(name: &'a ResourceName) -> Self {
        Self::Removed { name, variants: &[] }
    }
}

/// One resource of a full state.
#[derive(Debug)]
#[non_exhaustive]
pub struct Visited<'a, V> {
    /// Its name.
    pub name: &'a ResourceName,
    /// Which of the name's variants it is; `None` for the [plain](Variant::plain) one.
    pub variant: Option<&'a Arc<Variant>>,
    /// The resource.
    pub resource: &'a Resource<V>,
}

impl<'a, V> Visited<'a, V> {
    /// A resource without variants, as a source of one's own visits it.
    pub fn plain(name: &'a ResourceName, resource: &'a Resource<V>) -> Self {
        Self { name, variant: None, resource }
    }
}

/// Whether a pull visits removals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removals {
    /// Once every addition is visited (rule 134).
    Include,
    /// They wait for a later pull: other types go first (rule 122). Not those of what the subscriber cannot have (rule
    /// 158): a name that was not there when it first asked for it, and that a glob is empty.
    Defer,
}

/// What a pull left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pulled {
    /// The visitor stopped it, or it has paused: there is more.
    pub more: bool,
    /// It has looked at [many](crate::Options::looks) names of which there is nothing to visit, and lets others have their
    /// turn: another pull goes on, whether this one visited anything or not. What is to come after it has to wait for that.
    pub paused: bool,
    /// A wildcard or glob was answered for the first time.
    pub answered: bool,
    /// And there was nothing to visit of it: an empty change set is owed (rule 86).
    pub empty: bool,
    /// The wildcard or a glob of the type is not sent, and the subscriber asks for such: why is to be
    /// [told again](crate::Cache::pull_refusals) beside what is visited of it.
    pub refused: bool,
}

impl Pulled {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            more: self.more || other.more,
            paused: self.paused || other.paused,
            answered: self.answered || other.answered,
            empty: self.empty || other.empty,
            refused: self.refused || other.refused,
        }
    }
}

/// What a [`visit`](crate::Cache::visit) could not visit, because it was not answered yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unanswered {
    /// Names.
    pub names: usize,
    /// Globs, and the wildcard, of which nothing came.
    pub collections: usize,
    /// Globs, and the wildcard, of which it was said why they are not sent, whatever came of them before.
    pub refused: usize,
    /// Globs, and the wildcard, of which something came, and more may be there.
    pub incomplete: usize,
    /// Of the names, those that the subscriber may have been sent before: a cache has what it sent, but what is asked for
    /// anew for one subscriber is not there meanwhile.
    pub held: usize,
}

impl Unanswered {
    /// Whether there is any.
    pub fn any(self) -> bool {
        self != Self::default()
    }

    /// All together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            names: self.names + other.names,
            collections: self.collections + other.collections,
            refused: self.refused + other.refused,
            incomplete: self.incomplete + other.incomplete,
            held: self.held + other.held,
        }
    }
}
