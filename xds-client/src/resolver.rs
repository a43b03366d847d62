//! Watches made of watches: what TP1 has a client look for in several places. No I/O, and no time of its own.
//!
//! ```text
//! Asked         a subscription, by the parameters that are for it, which change
//! Followed      that, and what its redirects lead to
//! Alternative   one resource, and `#alt=` in its place
//! Entry         one resource, `#entry=` of a list
//! List          all that a list collection has, here or elsewhere
//! ```

mod alternative;
mod asked;
mod by_dpds;
mod entry;
mod find;
mod followed;
mod holds;
mod list;
mod parts;
mod subscription;
mod told;

use std::sync::Arc;

use xdstp_cache::TypeUrl;
use xdstp_uri::{Locator, ParseError, ResourceName, collection_type, member_type};

use self::alternative::Alternative;
use self::entry::Entry;
pub(crate) use self::find::Find;
use self::followed::Followed;
use self::list::List;
use self::subscription::message_of;
pub(crate) use self::told::Told;
use crate::client::Inner;
use crate::error::Error;

/// How many redirects are followed, one after the other: more go round in circles.
const MAX_REDIRECTS: usize = 8;

/// By a name, a glob, `*`, or a locator with directives.
///
/// # Errors
/// It cannot be asked for.
pub(crate) fn resolve(client: &Arc<Inner>, type_url: &TypeUrl, text: &str) -> Result<Box<dyn Find>, Error> {
    let bad = |error: ParseError| Error::BadName { reason: error.to_string().into() };
    // A server may take either for a reason to end a stream, which is that of others, too.
    if text.is_empty() || type_url.as_str().is_empty() {
        return Err(Error::BadName { reason: "a name and a type have a letter at least".into() });
    }
    if text.starts_with("xdstp:") && text.contains('#') {
        return locate(client, type_url, &Locator::parse(text).map_err(bad)?, 0);
    }
    find(client, type_url, ResourceName::parse(text).map_err(bad)?, 0)
}

/// The one resource that a redirect leads to, or an entry of a list, after so many redirects.
fn member(client: &Arc<Inner>, type_url: &TypeUrl, to: &Locator<'_>, hops: usize) -> Result<Box<dyn Find>, Error> {
    let bad = |reason: &str| Err(unresolved(to, reason));
    if hops > MAX_REDIRECTS {
        return bad("it is the last of more redirects than are followed");
    }
    match to.to_name() {
        None => bad("only xdstp: is asked for"),
        Some(name) if name.is_glob() => bad("it is a collection, where a resource is expected"),
        Some(name) if is_list_of(&name, type_url) && to.entry().is_none() => {
            bad("it is a list, where a resource is expected")
        }
        Some(_) => locate(client, type_url, to, hops).map_err(|error| match error {
            Error::BadName { reason } => unresolved(to, &reason),
            error => error,
        }),
    }
}

fn locate(client: &Arc<Inner>, type_url: &TypeUrl, to: &Locator<'_>, hops: usize) -> Result<Box<dyn Find>, Error> {
    let bad = |reason: &str| Err(Error::BadName { reason: format!("{to}: {reason}").into() });
    let Some(name) = to.to_name() else { return bad("it is no name of an xDS server") };
    let is_list = is_list_of(&name, type_url);
    if to.entry().is_some() && !is_list {
        return bad("only a list of the type has entries of it");
    }
    let wanted = if is_list { lists(client, type_url) } else { type_url.clone() };
    let mut found: Box<dyn Find> = Box::new(Followed::open(client, &wanted, name.clone().into(), (hops, member))?);
    if let Some(other) = to.alt() {
        if !is_alike(&name, &other) {
            return bad("its alternative is not one resource of its type");
        }
        let to = other.into_owned();
        found = Box::new(Alternative::new(client, &wanted, (name, found), to, (hops, member)));
    }
    Ok(match to.entry() {
        Some(entry) => Box::new(Entry::new(client, type_url, found, &entry)),
        None if is_list => Box::new(List::new(client, type_url, found, member)),
        None => found,
    })
}

fn find(client: &Arc<Inner>, type_url: &TypeUrl, name: ResourceName, hops: usize) -> Result<Box<dyn Find>, Error> {
    if is_list_of(&name, type_url) {
        let directory = Followed::open(client, &lists(client, type_url), name.into(), (hops, member))?;
        return Ok(Box::new(List::new(client, type_url, Box::new(directory), member)));
    }
    Ok(Box::new(Followed::open(client, type_url, name.into(), (hops, member))?))
}

/// The type of the lists of a type, which are read from now on.
fn lists(client: &Inner, type_url: &TypeUrl) -> TypeUrl {
    let lists = TypeUrl::from(collection_type(type_url.as_str()).as_str());
    client.read_lists(&lists, type_url);
    lists
}

/// Whether a name is that of a list of the resources of a type.
fn is_list_of(name: &ResourceName, type_url: &TypeUrl) -> bool {
    name.resource_type().and_then(member_type).is_some_and(|members| members == message_of(type_url))
}

/// An alternative of one resource is one resource of the same type.
fn is_alike(name: &ResourceName, other: &Locator<'_>) -> bool {
    let of_type =
        other.to_name().is_some_and(|other| !other.is_glob() && other.resource_type() == name.resource_type());
    of_type && !name.is_glob() && other.entry().is_none()
}

fn unresolved(to: &Locator<'_>, reason: &str) -> Error {
    Error::Unresolved { locator: to.to_string().into(), reason: reason.into() }
}
