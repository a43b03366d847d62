//! Files as a client finds them: lists, redirects and variants lead where they do at a relay that serves them.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use prost::Message;
use xds_relay::file_origin::FileResource;
use xds_transport::wire::collection::{CollectionEntry, entries, redirect};
use xds_transport::{Dialect, Frame, TypeRules, wire};
use xdstp_client::Client;
use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
use xdstp_client::federation::{Held, SnapshotOrigin};
use xdstp_uri::{Locator, ResourceName};

use crate::ask::{Identity, Wanted};

/// A client that has these resources, and nobody to ask.
///
/// # Errors
/// They cannot be asked for with the parameters of the arguments.
pub(super) fn client(
    resources: &[FileResource],
    wanted: &Wanted,
    identity: &Identity,
) -> Result<Client, Box<dyn Error>> {
    let held: Vec<Held> = resources.iter().filter_map(held).collect();
    let named = wanted.names(&[]).filter_map(|(_, name)| authority(name.ok()?.name()));
    let authorities: BTreeSet<String> = named.chain(held.iter().flat_map(authorities)).collect();
    let origin = Arc::new(SnapshotOrigin::new("files", TypeRules::envoy().into()));
    origin.set(held, Instant::now());
    // A bootstrap names a server, which is not asked for what the origin has: that is everything.
    let nobody = Bootstrap::new(Server::new("127.0.0.1:1", ChannelCreds::Insecure));
    let builder = Client::builder(nobody).default_origin(origin.clone());
    let builder = authorities.into_iter().fold(builder, |builder, of| builder.origin(of, origin.clone()));
    Ok(builder.selecting(Dialect::Final, identity.selector())?.build()?)
}

fn held(resource: &FileResource) -> Option<Held> {
    let FileResource { name, type_url, value, variant, aliases, .. } = resource;
    let (type_url, name) = (type_url.as_str().into(), ResourceName::parse(name).ok()?);
    let aliases = wire::Resource { aliases: aliases.clone(), ..wire::Resource::default() }.encode_to_vec();
    let frame = Frame::of_message(&type_url, value).with_wrapper(aliases.into(), None, false);
    Some((type_url, name, frame.of_variant(variant.clone()).into_resource(None)))
}

/// That of a resource, and those of what it leads to: who is of none of them has an origin that does not have it.
fn authorities((_, name, resource): &Held) -> impl Iterator<Item = String> + use<> {
    let any = resource.value.any();
    let listed = entries(any).ok().flatten().unwrap_or_default().into_iter().filter_map(|entry| match entry {
        CollectionEntry::Locator(locator) => Some(locator),
        _ => None,
    });
    let elsewhere = listed.chain(redirect(any).ok().flatten());
    let elsewhere = elsewhere.filter(|locator| locator.to_name().is_some());
    authority(name).into_iter().chain(elsewhere.map(|locator| locator.authority().into_owned()))
}

/// As a bootstrap writes it.
fn authority(name: &ResourceName) -> Option<String> {
    name.authority()?;
    Locator::parse(name.as_str()).ok().map(|locator| locator.authority().into_owned())
}
