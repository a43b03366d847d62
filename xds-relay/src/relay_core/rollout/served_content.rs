//! What is in a release that is served, or was taken last.

use std::collections::HashMap;

use bytes::Bytes;
use xdstp_client::federation::Held;

use crate::releases::{BodyHash, Manifest};

/// A release as it is kept, and as it is served.
#[derive(Clone)]
pub(crate) struct Content {
    pub(crate) manifest: Manifest,
    pub(crate) held: Vec<Held>,
}

impl Content {
    /// Its bodies, by their hashes: what is in two releases is read once.
    pub(super) fn bodies(&self) -> impl Iterator<Item = (BodyHash, Bytes)> {
        let key = |(type_url, name, resource): &Held| {
            let variant = resource.value.variant().map(ToString::to_string).unwrap_or_default();
            (type_url.clone(), name.to_string(), variant)
        };
        let held: HashMap<_, _> = self.held.iter().map(|held| (key(held), held.2.value.any().clone())).collect();
        let body = move |(of, hash)| held.get(&of).map(|body| (hash, body.clone()));
        let items = self.manifest.items().iter();
        items.map(|item| ((item.type_url.clone(), item.name.clone(), item.variant.clone()), item.body)).filter_map(body)
    }
}
