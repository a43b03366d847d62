//! Where an answer in pieces ends, on a stream that is never quiet (rule 151).
//!
//! A name that cannot exist is asked for beside the wildcard or glob. An origin sends additions before removals (rule
//! 134), so that nothing of the answer is on its way any more once it says that there is no such name. One that says
//! nothing of missing names leaves the end to its silence.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;

use xds_transport::client::{Command, Update};
use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::ResourceName;

use crate::federation::demand::Wish;

const PREFIX: &str = "xds-relay.";
const SUFFIX: &str = ".end-of-answer";

/// The markers that the origin of one stream is asked for.
pub(crate) struct Markers {
    /// The last part of their names: no other relay's, which may ask this one for it.
    marker: String,
    awaited: BTreeMap<(TypeUrl, ResourceName), Interest>,
    commands: Vec<Command>,
    /// Any was asked for: the origin may speak of it at any time.
    asks: bool,
    /// How long an answer may stay without an end before a marker is asked for.
    wait: Duration,
}

/// At first; so long does rule 74 wait.
const WAIT: Duration = Duration::from_secs(15);
/// With each stream that ends before a marker is answered it is twice as long, up to this: an origin may be one that ends its
/// streams for a marker, and that must not cost it one after the other.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// Whether a name is the marker of some relay. Nobody but an origin that says so can tell that there is no such name: to
/// conclude it would end an answer. An origin that makes a resource of every name makes one of this, which is nobody's.
///
/// ```
/// use xdstp_client::federation::is_marker;
///
/// assert!(is_marker(&"xdstp://a/envoy.config.cluster.v3.Cluster/g/xds-relay.7.end-of-answer".parse()?));
/// assert!(!is_marker(&"cart".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn is_marker(name: &ResourceName) -> bool {
    let last = name.as_str().split_once('?').map_or(name.as_str(), |(path, _)| path).rsplit('/').next();
    last.is_some_and(|last| last.starts_with(PREFIX) && last.ends_with(SUFFIX))
}

impl Markers {
    pub(crate) fn new(relay: impl Display) -> Self {
        let marker = format!("{PREFIX}{relay}{SUFFIX}");
        Self { marker, awaited: BTreeMap::new(), commands: Vec::new(), asks: false, wait: WAIT }
    }

    /// How long an answer may stay without an end on a stream that begins now.
    pub(crate) fn wait(&self) -> Duration {
        self.wait
    }

    pub(crate) fn ask(&mut self, (type_url, collection): Wish) {
        let Some(marker) = self.beside(&collection) else { return };
        self.asks = true;
        self.commands.push(Command::Subscribe(type_url.clone(), Interest::Name(marker.clone())));
        self.awaited.insert((type_url, marker), collection);
    }

    /// The collections that have come as a whole with this update, or before. Nobody else is told of their markers.
    pub(crate) fn answered(&mut self, update: &mut Update) -> Vec<Interest> {
        if !self.asks {
            return Vec::new();
        }
        // An error comes at any time, whether or not it removes (rule 118), and so does a resource that an origin makes of
        // every name: they say nothing.
        let (mut others, mut gone) = (BTreeSet::new(), BTreeSet::new());
        let is_other = |name: &ResourceName, markers: &mut BTreeSet<ResourceName>| {
            let is_marker = name.as_str().contains(&self.marker);
            if is_marker {
                markers.insert(name.clone());
            }
            !is_marker
        };
        update.changed.retain(|changed| is_other(&changed.name, &mut others));
        update.repeated.retain(|changed| is_other(&changed.name, &mut others));
        update.errors.retain(|(name, _)| is_other(name, &mut others));
        update.missing.retain(|name| is_other(name, &mut others));
        update.removed.retain(|name| is_other(name, &mut gone));
        if !gone.is_empty() {
            self.wait = WAIT;
        }
        others.into_iter().for_each(|name| drop(self.leave((update.type_url.clone(), name))));
        gone.into_iter().filter_map(|name| self.leave((update.type_url.clone(), name))).collect()
    }

    /// The collection is not subscribed any more, or has come as a whole.
    pub(crate) fn forget(&mut self, type_url: &TypeUrl, collection: &Interest) {
        if let Some(marker) = self.beside(collection).filter(|_| self.asks) {
            self.leave((type_url.clone(), marker));
        }
    }

    /// The stream is over: the next one answers anew.
    pub(crate) fn forget_all(&mut self) {
        if !self.awaited.is_empty() {
            self.wait = LONGEST_WAIT.min(self.wait * 2);
        }
        for key in self.awaited.keys().cloned().collect::<Vec<_>>() {
            self.leave(key);
        }
    }

    /// The stream of one type is.
    pub(crate) fn forget_type(&mut self, type_url: &TypeUrl) {
        let awaited: Vec<_> = self.awaited.keys().filter(|(of, _)| of == type_url).cloned().collect();
        if !awaited.is_empty() {
            self.wait = LONGEST_WAIT.min(self.wait * 2);
        }
        for key in awaited {
            self.leave(key);
        }
    }

    /// What the origin is to be told.
    pub(crate) fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    fn leave(&mut self, key: (TypeUrl, ResourceName)) -> Option<Interest> {
        let collection = self.awaited.remove(&key)?;
        let (type_url, marker) = key;
        self.commands.push(Command::Unsubscribe(type_url, Interest::Name(marker)));
        Some(collection)
    }

    /// The name that is asked for beside a collection, and that would be in it.
    fn beside(&self, collection: &Interest) -> Option<ResourceName> {
        let Interest::Name(glob) = collection else { return ResourceName::parse(&self.marker).ok() };
        let (path, params) = glob.as_str().split_once('?').map_or((glob.as_str(), None), |(path, of)| (path, Some(of)));
        let mut name = path.strip_suffix('*')?.to_owned() + &self.marker;
        if let Some(params) = params {
            name.extend(["?", params]);
        }
        ResourceName::parse(&name).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use bytes::Bytes;
    use prost::Message;
    use xds_transport::client::{Event, Stream};
    use xds_transport::wire::{Any, DeltaDiscoveryResponse, Resource, ResourceError, Status, WireResourceName};
    use xds_transport::{Protocol, TypeRules};

    use super::*;

    #[test]
    fn a_marker_is_a_name_that_its_collection_would_have() {
        let markers = Markers::new(7);
        let beside = |text: &str| {
            let collection = Interest::from(text.parse::<ResourceName>().unwrap());
            let marker = markers.beside(&collection).unwrap();
            assert!(is_marker(&marker) && !is_marker(&collection.as_str().parse().unwrap()));
            assert!(collection == Interest::Wildcard || Some(collection) == marker.glob_parent().map(Interest::Name));
            marker.to_string()
        };
        assert_eq!(beside("*"), "xds-relay.7.end-of-answer");
        assert_eq!(beside("xdstp://a/T/d/*?k=1&l=*"), "xdstp://a/T/d/xds-relay.7.end-of-answer?k=1&l=*");
        assert_eq!(beside("xdstp://a/T/*"), "xdstp://a/T/xds-relay.7.end-of-answer");
    }

    #[test]
    fn an_origin_that_ends_its_streams_for_a_marker_loses_ever_fewer() {
        let mut markers = Markers::new(7);
        let mut waits = Vec::new();
        for _ in 0..9 {
            waits.push(markers.wait().as_secs());
            markers.ask(("T".into(), Interest::Wildcard));
            markers.forget_all();
        }
        assert_eq!(waits, [15, 30, 60, 120, 240, 480, 900, 900, 900]);
        // So does one of the type.
        let mut markers = Markers::new(7);
        markers.ask(("T".into(), Interest::Wildcard));
        markers.forget_type(&"U".into());
        assert_eq!(markers.wait().as_secs(), 15);
        markers.forget_type(&"T".into());
        assert_eq!(markers.wait().as_secs(), 30);
        markers.wait = LONGEST_WAIT;
        // A stream that ends with none says nothing of them.
        markers.forget_all();
        assert_eq!(markers.wait(), LONGEST_WAIT);
    }

    /// What a response says of the marker of a glob that is asked for, and what is left of that for others.
    fn told(respond: impl FnOnce(&mut DeltaDiscoveryResponse, String)) -> (Vec<Interest>, Update, Interest) {
        let glob = Interest::from("xdstp://a/T/d/*".parse::<ResourceName>().unwrap());
        let (mut markers, type_url) = (Markers::new(7), TypeUrl::from("T"));
        markers.ask((type_url.clone(), glob.clone()));
        let marker = markers.beside(&glob).unwrap().to_string();
        let mut stream = Stream::new(Protocol::Delta, Bytes::new(), Arc::new(TypeRules::envoy()));
        stream.apply(Command::Subscribe(type_url, glob.clone()));
        markers.take_commands().into_iter().for_each(|command| stream.apply(command));
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let now = Instant::now();
        stream.connected(now);
        stream.poll_transmit(now).unwrap();
        let mut response = DeltaDiscoveryResponse { type_url: "T".into(), ..Default::default() };
        respond(&mut response, marker);
        stream.handle_message(now, response.encode_to_vec().into()).unwrap();
        let Some(Event::Update(mut update)) = stream.poll_event() else { panic!("no update") };
        (markers.answered(&mut update), update, glob)
    }

    #[test]
    fn rule_151_only_that_there_is_no_marker_ends_an_answer() {
        let (ended, update, glob) = told(|response, name| response.removed_resources = vec![name]);
        assert_eq!((ended, update.removed.len()), (vec![glob], 0));
        let (ended, update, _) = told(|response, name| {
            let resource_name = Some(WireResourceName { name, ..Default::default() });
            let error_detail = Some(Status { code: 5, message: "no such name".into() });
            response.resource_errors = vec![ResourceError { resource_name, error_detail }];
        });
        assert_eq!((ended, update.errors.len(), update.removed.len()), (vec![], 0, 0));
        let (ended, update, _) = told(|response, name| {
            let resource = Some(Any { type_url: "T".into(), ..Default::default() });
            response.resources = vec![Resource { name, resource, ..Default::default() }];
        });
        assert_eq!((ended, update.changed.len()), (vec![], 0));
    }
}
