//! Watches made of watches: what TP1 has a client look for in several places. No I/O, and no time of its own.
//!
//! ```text
//! Asked         a subscription, by the parameters that are for it, which change
//! Followed      that, or a document, and what its redirects lead to
//! Alternative   one resource, and `#alt=` in its place
//! Entry         one resource, `#entry=` of a list
//! List          all that a list collection has, here or elsewhere
//! ```

mod alternative;
mod asked;
mod by_dpds;
mod document;
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
use xdstp_uri::{Locator, ParseError, ResourceName, Scheme, collection_type, member_type};

use self::alternative::Alternative;
use self::document::{Wanted, wanted};
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
    // To who does not read documents, what begins so is an old-style name.
    let is_document =
        || [Scheme::File, Scheme::Http].iter().any(|scheme| is_of(text, *scheme) && client.reads(*scheme));
    let is_name = text.starts_with("xdstp:");
    if is_name && (text.contains('#') || client.has_attributes()) {
        let to = client.attributed(&Locator::parse(text).map_err(bad)?)?;
        return locate(client, type_url, &to, Wanted::List, 0);
    }
    if is_document() {
        return locate(client, type_url, &Locator::parse(text).map_err(bad)?, Wanted::List, 0);
    }
    if client.has_attributes() {
        return Err(Error::BadName { reason: "only xdstp: names have attributes".into() });
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
        Some(name) if name.is_glob() => bad("it is a collection, where a resource is expected"),
        Some(name) if is_list_of(&name, type_url) && to.entry().is_none() => {
            bad("it is a list, where a resource is expected")
        }
        _ => locate(client, type_url, to, Wanted::One, hops).map_err(|error| match error {
            Error::BadName { reason } => unresolved(to, &reason),
            error => error,
        }),
    }
}

fn locate(
    client: &Arc<Inner>,
    type_url: &TypeUrl,
    to: &Locator<'_>,
    otherwise: Wanted,
    hops: usize,
) -> Result<Box<dyn Find>, Error> {
    let bad = |reason: &str| Error::BadName { reason: format!("{to}: {reason}").into() };
    let is_watched = matches!(otherwise, Wanted::List);
    let name = to.to_name();
    let is_list = match &name {
        Some(name) => is_list_of(name, type_url),
        None => {
            client.documents_at(to)?;
            matches!(wanted(to, type_url, otherwise).map_err(|reason| bad(&reason))?, Wanted::List)
        }
    };
    if to.entry().is_some() && !is_list {
        return Err(bad("only a list of the type has entries of it"));
    }
    let of = if is_list { lists(client, type_url) } else { type_url.clone() };
    let mut found: Box<dyn Find> = match name {
        Some(name) => Box::new(Followed::open(client, &of, name.into(), (hops, member))?),
        None => Box::new(document::open(client, &of, to, (hops, member))?),
    };
    if let Some(other) = to.alt() {
        if !is_alike(to, &other) {
            return Err(bad("its alternative is not one resource of its type"));
        }
        // What leads to others says itself what they are asked for with.
        let other = if hops == 0 && is_watched { client.attributed(&other)? } else { other.into_owned() };
        found = Box::new(Alternative::new(client, &of, found, other, (hops, member)));
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

/// An alternative of one resource is one resource of the same type: what is in a file, that says.
fn is_alike(to: &Locator<'_>, other: &Locator<'_>) -> bool {
    let is_glob = |of: &Locator<'_>| of.to_name().is_some_and(|name| name.is_glob());
    let is_file = |of: &Locator<'_>| of.scheme() == Scheme::File;
    let of_type = is_file(to) || is_file(other) || to.resource_type() == other.resource_type();
    of_type && !is_glob(to) && !is_glob(other) && other.entry().is_none()
}

fn is_of(text: &str, scheme: Scheme) -> bool {
    text.strip_prefix(scheme.as_str()).is_some_and(|rest| rest.starts_with(':'))
}

fn unresolved(to: &Locator<'_>, reason: &str) -> Error {
    Error::Unresolved { locator: to.to_string().into(), reason: reason.into() }
}
