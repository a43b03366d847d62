//! What stands at a locator that is no name of an xDS server (`file:` and `http:` of TP1).

use std::sync::Arc;

use xdstp_cache::TypeUrl;
use xdstp_uri::{Locator, Scheme, member_type};

use super::asked::Asked;
use super::find::Opens;
use super::followed::Followed;
use super::subscription::message_of;
use crate::client::Inner;
use crate::error::Error;

/// What is looked for at a locator.
pub(super) enum Wanted {
    /// Resources of the type, however many there are.
    List,
    One,
}

/// Whether a locator leads to one resource, or to all of a type; to which of both a file, its name does not say.
///
/// # Errors
/// It is the locator of another type, in a sentence.
pub(super) fn wanted(to: &Locator<'_>, type_url: &TypeUrl, otherwise: Wanted) -> Result<Wanted, String> {
    let (message, named) = (message_of(type_url), to.resource_type());
    let is_list = match to.scheme() {
        Scheme::File => to.entry().is_some() || matches!(otherwise, Wanted::List),
        _ if named == message => false,
        _ if member_type(&named) == Some(message) => true,
        _ => return Err(format!("it is the locator of a {named}, not of a {message}")),
    };
    match (is_list, otherwise) {
        (false, _) if to.entry().is_some() => Err("only a list of the type has entries of it".to_owned()),
        (true, Wanted::One) if to.entry().is_none() => Err("it is a list, where a resource is expected".to_owned()),
        (true, _) => Ok(Wanted::List),
        (false, _) => Ok(Wanted::One),
    }
}

/// What the document at a locator has of a type, and where that leads.
pub(super) fn open(
    client: &Arc<Inner>,
    type_url: &TypeUrl,
    to: &Locator<'_>,
    hops: (usize, Opens),
) -> Result<Followed, Error> {
    Ok(Followed::of(Asked::document(client, type_url, to)?, hops))
}
