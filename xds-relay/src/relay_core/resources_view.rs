//! The resources that a relay holds, as the admin API tells of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use xds_transport::Frame;
use xdstp_cache::{Resource, Stored, TypeUrl};
use xdstp_client::federation::{Held, Look, Scope};
use xdstp_uri::ResourceName;

use crate::api::{self, HeldResource, NameQuery, PAGE, ResourceQuery, ResourceRow, Resources, Wanting};
use crate::relay_core::client_look::parts;
use crate::relay_core::clients_view::as_asked;
use crate::relay_core::core::RelayCore;

/// How many names are looked at for one page, whatever is found; and, of what an origin has, at a time.
const LOOKS: usize = 100_000;
const SLICE: usize = 256;

/// One name in one scope, with its body, which is not for everybody's eyes.
pub struct Found {
    /// What is told of it.
    pub held: HeldResource,
    /// An encoded `google.protobuf.Any`.
    pub body: Option<Bytes>,
}

/// Some of those who want a name, and how many others do.
type Wanted = (Vec<Wanting>, usize);

/// What holds resources.
enum Holder {
    /// What an origin has, whoever wants it.
    Content(usize, Arc<Vec<Held>>),
    Scope(Arc<Scope>),
}

impl RelayCore {
    /// Some of the resources, and of the names that do not exist.
    pub fn resources(&self, query: &ResourceQuery, now: Instant) -> Resources {
        let (most, mut looks) = (api::page(query.limit), 0);
        let mut found = Resources::default();
        let (first, mut from, mut skip) = query.after.as_deref().and_then(position).unwrap_or_default();
        for (at, holder) in self.holders().iter().enumerate().skip(first) {
            loop {
                let (rows, next) = self.rows(holder, from, now);
                for (place, row) in rows.into_iter().enumerate().skip(skip) {
                    if !is_meant(&row, query) {
                        continue;
                    }
                    if found.resources.len() == most {
                        found.next = Some(format!("{at}.{from}.{place}"));
                        return found;
                    }
                    found.resources.push(row);
                }
                (looks, skip) = (looks + SLICE, 0);
                let Some(next) = next else { break };
                from = next;
                if looks >= LOOKS {
                    found.next = Some(format!("{at}.{from}.0"));
                    return found;
                }
            }
            from = 0;
        }
        found
    }

    /// One name, in the scopes that hold it: [`PAGE`] of them at most.
    pub fn resource(&self, query: &NameQuery) -> Vec<Found> {
        let Ok(name) = ResourceName::parse(&query.name) else { return Vec::new() };
        let type_url = TypeUrl::from(query.type_url.as_str());
        let mut wanting = self.wanting(&type_url, &name);
        let found = self.all_scopes().into_iter().filter_map(|scope| {
            let look = scope.look_at(&type_url, &name, None);
            let wanting = wanting.remove(&Arc::as_ptr(&scope));
            let is_there = look.resource.is_some() || wanting.is_some();
            is_there.then(|| self.found(&scope, &type_url, look, wanting.unwrap_or_default()))
        });
        let mut found: Vec<Found> = found.take(PAGE).collect();
        for (at, content) in self.contents() {
            let origin = self.names.of(at).unwrap_or_default();
            if found.iter().any(|found| found.held.row.origin == origin) {
                continue;
            }
            let held = content.iter().filter(|(of, own, _)| *of == type_url && *own == name);
            found.extend(held.take(PAGE).map(|(_, _, resource)| {
                let variant = resource.value.variant().map(ToString::to_string);
                let row = self.content_row(at, &type_url, &name, resource);
                let held = HeldResource { row, variant, ..HeldResource::default() };
                Found { held, body: Some(resource.value.any().clone()) }
            }));
        }
        found
    }

    fn found(&self, scope: &Scope, type_url: &TypeUrl, look: Look, (wanted_by, more_wanting): Wanted) -> Found {
        let row = ResourceRow {
            type_url: type_url.to_string(),
            name: look.name.to_string(),
            scope: scope.key.to_string(),
            origin: self.names.of(scope.origin()).unwrap_or_default(),
            version: look.resource.as_ref().map(|resource| resource.version.to_string()),
            bytes: look.resource.as_ref().map_or(0, |resource| resource.value.any().len()),
            changed_seconds_ago: None,
            stale: look.stale,
        };
        let body = look.resource.map(|resource| resource.value.any().clone());
        let parameters = scope.key.selector().map(ToString::to_string);
        let held =
            HeldResource { row, parameters, variant: look.variant, wanted_by, more_wanting, ..HeldResource::default() };
        Found { held, body }
    }

    /// Who wants a name, by the scope that it is wanted of.
    fn wanting(&self, type_url: &TypeUrl, name: &ResourceName) -> HashMap<*const Scope, Wanted> {
        let mut wanting: HashMap<*const Scope, Wanted> = HashMap::new();
        self.visit_streams(None, |id, stream| {
            for (of, scope, part) in parts(stream) {
                let Some(wanted_as) = (of == *type_url).then(|| scope.asked_for_as(part, name)).flatten() else {
                    continue;
                };
                let (some, more) = wanting.entry(Arc::as_ptr(&scope)).or_default();
                if some.len() == PAGE {
                    *more += 1;
                    continue;
                }
                let (sent, node) = (scope.look_at(type_url, name, Some(part)).is_sent, stream.node().id);
                some.push(Wanting { id, node, wanted_as: as_asked(&wanted_as), sent });
            }
            true
        });
        wanting
    }

    /// What holds resources: origins that have them whoever wants them, and the scopes of the others, and of those of which all is not
    /// known.
    fn holders(&self) -> Vec<Holder> {
        let contents = self.contents();
        let has_all = |at| contents.contains_key(&at) && !self.followed.contains_key(&at);
        let scopes = self.all_scopes().into_iter().filter(|scope| !has_all(scope.origin()));
        let scopes: Vec<_> = scopes.map(Holder::Scope).collect();
        contents.into_iter().map(|(at, content)| Holder::Content(at, content)).chain(scopes).collect()
    }

    /// A slice of what one holds, and where the next begins.
    fn rows(&self, holder: &Holder, from: usize, now: Instant) -> (Vec<ResourceRow>, Option<usize>) {
        match holder {
            Holder::Content(at, resources) => {
                let slice = resources.iter().skip(from).take(SLICE);
                let rows = slice.map(|(type_url, name, resource)| self.content_row(*at, type_url, name, resource));
                let next = from.saturating_add(SLICE);
                (rows.collect(), (next < resources.len()).then_some(next))
            }
            Holder::Scope(scope) => {
                let origin = self.names.of(scope.origin()).unwrap_or_default();
                let label = scope.key.to_string();
                let row = |stored: Stored<'_, Frame>| ResourceRow {
                    type_url: stored.type_url.to_string(),
                    name: stored.name.to_string(),
                    scope: label.clone(),
                    origin: origin.clone(),
                    version: stored.resource.map(|resource| resource.version.to_string()),
                    bytes: stored.resource.map_or(0, |resource| resource.value.any().len()),
                    changed_seconds_ago: stored.changed_at.map(|at| now.saturating_duration_since(at).as_secs()),
                    stale: stored.stale,
                };
                scope.stored_from(from, row)
            }
        }
    }

    fn content_row(&self, origin: usize, type_url: &TypeUrl, name: &ResourceName, of: &Resource<Frame>) -> ResourceRow {
        ResourceRow {
            type_url: type_url.to_string(),
            name: name.to_string(),
            scope: self.federation.origins().get(origin).map_or("", |origin| origin.kind()).to_owned(),
            origin: self.names.of(origin).unwrap_or_default(),
            version: Some(of.version.to_string()),
            bytes: of.value.any().len(),
            ..ResourceRow::default()
        }
    }
}

/// Among what holds resources, in that, and in a slice of that.
fn position(text: &str) -> Option<(usize, usize, usize)> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn is_meant(row: &ResourceRow, query: &ResourceQuery) -> bool {
    query.type_url.as_ref().is_none_or(|end| api::is_type(&row.type_url, end))
        && query.search.as_ref().is_none_or(|text| row.name.contains(text))
}
