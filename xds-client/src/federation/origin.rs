//! What feeds scopes.

use std::sync::Arc;

use bytes::Bytes;
use xds_transport::Frame;
use xdstp_cache::{Resource, Selector, TypeUrl};
use xdstp_uri::ResourceName;

use crate::federation::request_room::RequestRoom;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::terms::Terms;

/// A resource of an origin, ready to be served.
pub type Held = (TypeUrl, ResourceName, Resource<Frame>);

/// What an origin has something of that is of no use, such as a text that nobody can read. Others may have what it had before: it is
/// not known here whether the resource is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: ResourceName,
    /// What is wrong, for clients to be told.
    pub reason: Arc<str>,
}

/// Where resources come from: servers that are dialed, files, a test. To the core all of them are equal.
///
/// An origin says what it is, always the same, and is told of every scope of names of its own, to [feed](Self::feed) it. No lock
/// is held while any of its code runs.
pub trait Origin: Send + Sync + 'static {
    /// What kind of origin it is, in a word for people: `delta`, `sotw`, `files`.
    fn kind(&self) -> &'static str;

    /// How far what it has depends on the node that asks.
    fn by_node(&self) -> ByNode;

    /// Whether it has all there is from the start, so that a name that it does not have does not exist. Of one that does not,
    /// only what was asked for and answered is known.
    fn is_authoritative(&self) -> bool;

    /// Whether it speaks SotW: it cannot say of every type what does not exist.
    fn is_sotw(&self) -> bool {
        false
    }

    /// If all that it feeds is for one program, on which terms.
    fn terms(&self) -> Option<Terms> {
        None
    }

    /// Whether it is asked apart for who selects among variants by this (TP2). If not, all of its names are without variants,
    /// and are everybody's.
    ///
    /// # Errors
    /// Why it cannot be asked so, in a sentence.
    fn selects(&self, _selector: &Selector) -> Result<bool, String> {
        Ok(false)
    }

    /// What the requests that name what a scope wants have room for, where that is a limit.
    fn room(&self, _scope: &ScopeKey) -> Option<Arc<RequestRoom>> {
        None
    }

    /// The scopes of authorities of this origin that may have names of others.
    fn mixed(&self) -> Vec<Arc<Scope>> {
        Vec::new()
    }

    /// Whether it has what it is to have before anybody is served. That it cannot be reached is no reason not to serve.
    ///
    /// # Errors
    /// What is missing, in a sentence.
    fn ready(&self) -> Result<(), String> {
        Ok(())
    }

    /// Everything it has, if it has that whoever wants it: what people who look at it are shown.
    fn content(&self) -> Option<Arc<Vec<Held>>> {
        None
    }

    /// Of what beside its [content](Self::content) it is not known whether it is there.
    fn unreadable(&self) -> Arc<[Unreadable]> {
        Arc::default()
    }

    /// Feeds a scope from now on, before whoever was the first to want something of it goes on: it returns soon. An
    /// authoritative origin is told of it once, [fills](Scope::replace) it, and keeps it as it is for as long as it lives;
    /// until it is filled, nothing is known of what it does not have. Another gives it a [supply](Scope::feed_from), and is
    /// told again when somebody wants something of a scope that had dropped its supply. `speaker` is whom it is asked for.
    fn feed(&self, scope: &Arc<Scope>, speaker: &dyn Fn() -> Speaker);
}

impl<T: Origin + ?Sized> Origin for Arc<T> {
    fn kind(&self) -> &'static str {
        (**self).kind()
    }

    fn by_node(&self) -> ByNode {
        (**self).by_node()
    }

    fn is_authoritative(&self) -> bool {
        (**self).is_authoritative()
    }

    fn is_sotw(&self) -> bool {
        (**self).is_sotw()
    }

    fn terms(&self) -> Option<Terms> {
        (**self).terms()
    }

    fn selects(&self, selector: &Selector) -> Result<bool, String> {
        (**self).selects(selector)
    }

    fn room(&self, scope: &ScopeKey) -> Option<Arc<RequestRoom>> {
        (**self).room(scope)
    }

    fn mixed(&self) -> Vec<Arc<Scope>> {
        (**self).mixed()
    }

    fn ready(&self) -> Result<(), String> {
        (**self).ready()
    }

    fn content(&self) -> Option<Arc<Vec<Held>>> {
        (**self).content()
    }

    fn unreadable(&self) -> Arc<[Unreadable]> {
        (**self).unreadable()
    }

    fn feed(&self, scope: &Arc<Scope>, speaker: &dyn Fn() -> Speaker) {
        (**self).feed(scope, speaker);
    }
}

/// How far what an origin has depends on the node that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByNode {
    /// All nodes are answered alike.
    Nothing,
    /// Old-style names are each node group's own, `xdstp:` names are not.
    OldStyleNames,
    /// All names are.
    Everything,
}

/// Whom an origin is asked for.
#[derive(Clone, Debug)]
pub struct Speaker {
    /// A node group, or `xdstp`: for people.
    pub label: String,
    /// As the origin is told it.
    pub node: Bytes,
}
