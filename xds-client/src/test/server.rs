//! A server that has what a test puts there.

use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::parameters::Locator;
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Resource};
use xds_transport::{Dialect, Frame, Protocol};
use xdstp_cache::{Cache, Edit, Options, ResourceError, TypeUrl, Variant};
use xdstp_uri::ResourceName;

use super::Network;
use super::link::Link;

const REDIRECT: &str = "type.googleapis.com/xds.core.v3.ResourceLocator";

/// A server of a [`Network`].
pub struct Server {
    pub(super) network: Network,
    pub(super) uri: String,
}

pub(super) struct State {
    pub(super) up: bool,
    pub(super) silent: bool,
    /// What streams end with.
    pub(super) reason: String,
    pub(super) cache: Cache<Frame>,
    pub(super) streams: usize,
    pub(super) opened: usize,
    asked: Vec<String>,
    refused: Vec<String>,
    requests: Vec<Bytes>,
    #[cfg(feature = "lrs")]
    pub(super) load: super::load::Taken,
}

impl State {
    pub(super) fn new() -> Self {
        let cache = Cache::new(Options::default());
        let reason = "nobody is there".to_owned();
        let (asked, refused, requests) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            up: true,
            silent: false,
            reason,
            cache,
            streams: 0,
            opened: 0,
            asked,
            refused,
            requests,
            #[cfg(feature = "lrs")]
            load: Default::default(),
        }
    }

    pub(super) fn note(&mut self, (protocol, dialect): (Protocol, Dialect), request: &Bytes) {
        self.requests.push(request.clone());
        let located = |locators: Vec<Bytes>| -> Vec<String> {
            let located = locators.iter().filter_map(|locator| Locator::decode(dialect, locator).ok());
            located.map(|Locator { name, selector, .. }| format!("{name} {selector}")).collect()
        };
        let (names, error) = match protocol {
            Protocol::Delta => {
                let request = DeltaDiscoveryRequest::decode(request.as_ref()).unwrap_or_default();
                let left =
                    [request.resource_names_unsubscribe, located(request.resource_locators_unsubscribe)].concat();
                let names = [request.resource_names_subscribe, located(request.resource_locators_subscribe)].concat();
                let left = left.into_iter().map(|name| format!("-{name}"));
                let names = names.into_iter().map(|name| format!("+{name}"));
                (names.chain(left).collect::<Vec<_>>(), request.error_detail)
            }
            Protocol::Sotw => {
                let request = DiscoveryRequest::decode(request.as_ref()).unwrap_or_default();
                let names = [request.resource_names, located(request.resource_locators)].concat();
                (vec![names.join(" ")], request.error_detail)
            }
        };
        self.asked.extend(names);
        self.refused.extend(error.map(|error| error.message));
    }
}

impl Server {
    /// It has a resource from now on, of this version: an encoded message.
    ///
    /// # Panics
    /// When the name is none.
    pub fn put(&self, type_url: &str, name: &str, version: &str, message: &[u8]) {
        self.store(type_url, name, version, Frame::of_message(&type_url.into(), message));
    }

    /// It has a resource that is of another type than its name is asked for as: what a server must not send.
    ///
    /// # Panics
    /// When the name is none.
    pub fn put_as(&self, type_url: &str, name: &str, version: &str, (of, message): (&str, &[u8])) {
        self.store(type_url, name, version, Frame::of_message(&of.into(), message));
    }

    /// It says where to look in place of a resource: a redirect of TP1, to a locator.
    ///
    /// # Panics
    /// When the name is none.
    pub fn redirect(&self, type_url: &str, name: &str, version: &str, to: &str) {
        let mut message = Vec::new();
        prost::encoding::string::encode(1, &to.to_owned(), &mut message);
        self.store(type_url, name, version, Frame::of_message(&REDIRECT.into(), &message));
    }

    /// The same of a resource that may be asked for by another name, too (over delta).
    ///
    /// # Panics
    /// When a name is none.
    pub fn put_by_alias(&self, type_url: &str, (name, alias): (&str, &str), version: &str, message: &[u8]) {
        let wrapper = Resource { aliases: vec![alias.to_owned()], ..Resource::default() }.encode_to_vec();
        let frame = Frame::of_message(&type_url.into(), message).with_wrapper(wrapper.into(), None, false);
        self.store(type_url, name, version, frame);
    }

    /// The same for a time, unless it is [silent](Self::be_silent), when it does not refresh it.
    ///
    /// # Panics
    /// When the name is none.
    pub fn put_for(&self, type_url: &str, name: &str, version: &str, message: &[u8], time: Duration) {
        let frame = Frame::of_message(&type_url.into(), message).with_wrapper(Bytes::new(), Some(time), false);
        self.store(type_url, name, version, frame);
    }

    fn store(&self, type_url: &str, name: &str, version: &str, frame: Frame) {
        let (type_url, name) = (TypeUrl::from(type_url), parsed(name));
        let resource = frame.into_resource(Some(version.into()));
        let aliases: Vec<_> = resource.value.aliases().collect();
        self.edit(|edit| _ = edit.put_with_aliases(&type_url, &name, aliases, resource));
    }

    /// It has a variant of a resource from now on (TP2).
    ///
    /// # Panics
    /// When the name is none.
    pub fn put_variant(&self, type_url: &str, (name, variant): (&str, &Variant), version: &str, message: &[u8]) {
        let (type_url, name) = (TypeUrl::from(type_url), parsed(name));
        let resource = Frame::of_message(&type_url, message).into_resource(Some(version.into()));
        self.edit(|edit| _ = edit.put_variant(&type_url, &name, variant, resource));
    }

    /// It does not have a variant of a resource any more.
    ///
    /// # Panics
    /// When the name is none.
    pub fn remove_variant(&self, type_url: &str, (name, variant): (&str, &Variant)) {
        let (type_url, name) = (TypeUrl::from(type_url), parsed(name));
        self.edit(|edit| edit.remove_variant(&type_url, &name, variant));
    }

    /// It does not have a resource any more.
    ///
    /// # Panics
    /// When the name is none.
    pub fn remove(&self, type_url: &str, name: &str) {
        let name = parsed(name);
        self.edit(|edit| edit.remove(&type_url.into(), &name));
    }

    /// It does not send a resource, and says why (TP3), with a code of `google.rpc.Code`.
    ///
    /// # Panics
    /// When the name is none.
    pub fn fail(&self, type_url: &str, name: &str, code: i32, message: &str) {
        let (name, error) = (parsed(name), ResourceError::new(code, message));
        self.edit(|edit| edit.fail(&type_url.into(), &name, error));
    }

    /// It has streams and requests, and says nothing; or speaks again.
    pub fn be_silent(&self, silent: bool) {
        self.change(|state, _| state.silent = silent);
    }

    /// Nobody can reach it from now on, for this reason. What it has, it keeps.
    pub fn go_down(&self, reason: &str) {
        self.change(|state, _| (state.up, state.reason) = (false, reason.to_owned()));
    }

    /// It can be reached again.
    pub fn come_up(&self) {
        self.change(|state, _| state.up = true);
    }

    /// Ends the streams that there are.
    pub fn end_streams(&self) {
        self.on_streams(|link, now, state| _ = link.cut(now, state));
    }

    /// Sends this on the streams that there are, as it is: what a server may say that has nothing of what it says.
    pub fn send(&self, response: &[u8]) {
        self.on_streams(|link, now, state| link.receive(now, state, Bytes::copy_from_slice(response)));
    }

    fn on_streams(&self, mut on: impl FnMut(&mut Link, Instant, &mut State)) {
        let mut world = self.network.lock();
        let now = world.now;
        let world = &mut *world;
        let Some(state) = world.servers.get_mut(&self.uri) else { return };
        for link in world.links.iter_mut().filter(|link| link.server == self.uri) {
            on(link, now, state);
        }
        #[cfg(feature = "lrs")]
        for link in world.load.iter_mut().filter(|link| link.server == self.uri) {
            link.cut(now, state);
        }
    }

    /// How many streams it has.
    pub fn streams(&self) -> usize {
        self.change(|state, _| state.streams)
    }

    /// How many it ever had.
    pub fn opened(&self) -> usize {
        self.change(|state, _| state.opened)
    }

    /// What it was asked for since this was looked at last: over delta what was subscribed, each with a `+`, and what was left,
    /// with a `-`; over SotW the names of each request. A name that was asked for with dynamic parameters has these after it.
    pub fn take_asked(&self) -> Vec<String> {
        self.change(|state, _| std::mem::take(&mut state.asked))
    }

    /// The words of the NACKs since this was looked at last.
    pub fn take_refused(&self) -> Vec<String> {
        self.change(|state, _| std::mem::take(&mut state.refused))
    }

    /// The requests since this was looked at last, as they came.
    pub fn take_requests(&self) -> Vec<Bytes> {
        self.change(|state, _| std::mem::take(&mut state.requests))
    }

    fn edit(&self, change: impl FnOnce(&mut Edit<'_, Frame>)) {
        self.change(|state, now| {
            let mut edit = state.cache.edit(now);
            change(&mut edit);
            let _ = edit.finish();
        });
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State, Instant) -> T) -> T {
        let mut world = self.network.lock();
        let now = world.now;
        change(world.servers.entry(self.uri.clone()).or_insert_with(State::new), now)
    }
}

#[allow(clippy::panic, reason = "a test fails by panicking")]
fn parsed(name: &str) -> ResourceName {
    ResourceName::parse(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}
