//! What comes from a control plane that nobody could use: it is told so, and the last good one stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use prost::Message as _;
use tonic::metadata::MetadataMap;
use xds_transport::client::{Changed, Command, Update, Verdict};
use xds_transport::{Frame, Rejected, TypeRules, wire};
use xdstp_cache::{Resource, Selector, TypeUrl};
use xdstp_client::federation::{Dial, Dialed, Position, is_marker};
use xdstp_client::upstream::{Connection, Consumer};
use xdstp_uri::ResourceName;

use super::references::rules;
use super::streams::{OneStream, Streams};
use crate::etcd_origin::{Key, Reader};
use crate::keyed_origin::{Name, Read as _};
use crate::lock::lock;

/// Who reads what comes.
pub(super) struct Judge {
    reader: Reader,
    rules: TypeRules,
    judged: Mutex<Judged>,
}

#[derive(Default)]
struct Judged {
    /// Of these what came last was refused.
    refused: BTreeSet<Name>,
    /// What is new of that: the value, or that it is not so any more.
    news: BTreeMap<Name, Option<Bytes>>,
}

impl Judge {
    pub(super) fn new(reader: Reader) -> Arc<Self> {
        Arc::new(Self { reader, rules: rules(), judged: Mutex::default() })
    }

    /// What was refused since the last call, and what of it was not refused any more.
    pub(super) fn news(&self) -> BTreeMap<Name, Option<Bytes>> {
        std::mem::take(&mut lock(&self.judged).news)
    }

    /// Nobody asks for it any more.
    pub(super) fn forget(&self, name: &Name) {
        lock(&self.judged).refused.remove(name);
    }

    pub(super) fn has_news(&self) -> bool {
        !lock(&self.judged).news.is_empty()
    }

    /// # Errors
    /// Why nobody could use it.
    fn look(&self, type_url: &TypeUrl, changed: &Changed) -> Result<(), Rejected> {
        // Whoever asked for it takes it out.
        if is_marker(&changed.name) {
            return Ok(());
        }
        let rejected = |why: String| Rejected::new(changed.name.as_str(), why);
        let key = Key::new(type_url.as_str(), changed.name.clone()).map_err(|error| rejected(error.to_string()))?;
        let name = (type_url.clone(), changed.name.clone());
        let value =
            encoded(&changed.name, &changed.resource).ok_or_else(|| rejected("it cannot be read".to_owned()))?;
        self.reader.read(&key.to_string(), &value).map(drop).map_err(|why| {
            let mut judged = lock(&self.judged);
            judged.refused.insert(name.clone());
            judged.news.insert(name, Some(value));
            rejected(why)
        })
    }

    /// Nothing of these names is refused any more.
    fn are_over<'a>(&self, names: impl Iterator<Item = &'a Name>) {
        let judged = &mut *lock(&self.judged);
        for name in names.filter(|name| judged.refused.remove(*name)) {
            judged.news.insert(name.clone(), None);
        }
    }
}

/// A resource as the value that is under its key: its version is that of its content, for the control plane's may change without it, and
/// would be a release.
pub(super) fn encoded(name: &ResourceName, resource: &Resource<Frame>) -> Option<Bytes> {
    let frame = &resource.value;
    let ttl = frame.ttl().map(|ttl| wire::Duration {
        seconds: i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(ttl.subsec_nanos()).unwrap_or_default(),
    });
    let resource = Some(wire::Any::decode(frame.any().clone()).ok()?);
    let name = name.as_str().to_owned();
    let mut value = wire::Resource { name, resource, ttl, ..wire::Resource::default() }.encode_to_vec();
    value.extend_from_slice(frame.wrapper());
    Some(value.into())
}

/// Streams to the control plane, on which what is not good is refused.
pub(super) struct Judging {
    pub(super) dial: Arc<dyn Dial>,
    pub(super) judge: Arc<Judge>,
    pub(super) streams: Arc<Streams>,
}

impl Dial for Judging {
    fn dial(&self, server: Position, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        let reading = Reading { consumer, judge: self.judge.clone(), stream: self.streams.another() };
        self.dial.dial(server, node, Box::new(reading))
    }
}

/// Who takes what comes, if it is good.
struct Reading {
    consumer: Box<dyn Consumer>,
    judge: Arc<Judge>,
    stream: OneStream,
}

impl Consumer for Reading {
    fn update(&mut self, now: Instant, mut update: Update) -> Verdict {
        let (type_url, mut refused, mut good) = (update.type_url.clone(), Vec::new(), Vec::new());
        // Where absence is no answer, silence is none either: who waits for the name goes on to wait.
        if !self.judge.rules.of(&type_url).full_state_in_sotw {
            update.missing.clear();
        }
        for came in [&mut update.changed, &mut update.repeated] {
            came.retain(|changed| match self.judge.look(&type_url, changed) {
                Ok(()) => {
                    good.push((type_url.clone(), changed.name.clone()));
                    true
                }
                Err(reason) => {
                    refused.push(reason);
                    false
                }
            });
        }
        good.extend(update.removed.iter().map(|name| (type_url.clone(), name.clone())));
        let verdict = self.consumer.update(now, update);
        let mut reasons = match verdict {
            Verdict::Accept => Vec::new(),
            Verdict::Reject { reasons } => reasons,
        };
        // Whoever hears of it finds the good one there.
        let is_taken = |(_, name): &&Name| !reasons.iter().any(|of| of.name == name.as_str());
        self.judge.are_over(good.iter().filter(is_taken));
        reasons.append(&mut refused);
        if reasons.is_empty() { Verdict::Accept } else { Verdict::Reject { reasons } }
    }

    fn commands(&mut self, now: Instant, apply: &mut dyn FnMut(Command)) {
        self.consumer.commands(now, apply);
    }

    fn has_more_commands(&self) -> bool {
        self.consumer.has_more_commands()
    }

    fn connection(&mut self, now: Instant, connection: Connection) {
        self.stream.hears(now, &connection);
        self.consumer.connection(now, connection);
    }

    fn another_server(&mut self, now: Instant) {
        self.consumer.another_server(now);
    }

    fn node(&mut self) -> Option<Bytes> {
        self.consumer.node()
    }

    fn selector(&self) -> Selector {
        self.consumer.selector()
    }

    fn metadata(&mut self) -> MetadataMap {
        self.consumer.metadata()
    }

    fn opened(&mut self, metadata: &MetadataMap) -> Result<(), String> {
        self.consumer.opened(metadata)
    }

    fn received(&mut self, at: Instant) {
        self.consumer.received(at);
    }

    fn too_long(&mut self) {
        self.consumer.too_long();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.consumer.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.consumer.handle_timeout(now);
    }
}

#[cfg(test)]
mod tests {
    use xds_transport::Protocol;
    use xds_transport::client::{Event, Interest, Stream};

    use super::*;
    use crate::file_origin::{Descriptors, Served};

    const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

    /// Who takes all, and notes the names; and whether there is news while it does not have them.
    #[derive(Default)]
    struct All(Arc<Mutex<Vec<String>>>, Option<Arc<Judge>>);

    impl Consumer for All {
        fn commands(&mut self, _: Instant, _: &mut dyn FnMut(Command)) {}

        fn update(&mut self, _: Instant, update: Update) -> Verdict {
            let is_early = self.1.as_ref().is_some_and(|judge| judge.has_news());
            lock(&self.0).extend(is_early.then(|| "early".to_owned()));
            lock(&self.0).extend(update.changed.iter().map(|changed| changed.name.as_str().to_owned()));
            Verdict::Accept
        }

        fn connection(&mut self, _: Instant, _: Connection) {}
    }

    fn update(resources: &[(&str, &[u8])]) -> Update {
        let (mut stream, now) =
            (Stream::new(Protocol::Delta, Bytes::new(), Arc::new(TypeRules::envoy())), Instant::now());
        stream.apply(Command::Subscribe(CLUSTERS.into(), Interest::Wildcard));
        stream.connected(now);
        stream.poll_transmit(now).unwrap();
        let resource = |(name, value): &(&str, &[u8])| {
            let any = wire::Any { type_url: CLUSTERS.into(), value: value.to_vec().into() };
            wire::Resource { name: (*name).into(), resource: Some(any), ..wire::Resource::default() }
        };
        let resources = resources.iter().map(resource).collect();
        let response = wire::DeltaDiscoveryResponse { type_url: CLUSTERS.into(), resources, ..Default::default() };
        stream.handle_message(now, response.encode_to_vec().into()).unwrap();
        let Some(Event::Update(update)) = stream.poll_event() else { panic!("no update") };
        update
    }

    #[test]
    fn each_that_is_not_good_is_refused_with_its_reason_and_what_is_beside_it_is_taken() {
        let reader = Reader::new(Descriptors::built_in().unwrap(), Served::default());
        let (judge, taken) = (Judge::new(reader), Arc::<Mutex<Vec<_>>>::default());
        let stream = Arc::<Streams>::default().another();
        let mut reading = Reading { consumer: Box::new(All(taken.clone(), None)), judge: judge.clone(), stream };
        let (good, other, broken) = (b"\x0a\x01a", b"\x0a\x01z", b"\x0a\x01c\x12");
        let verdict = reading.update(Instant::now(), update(&[("a", good), ("b", other), ("c", broken)]));
        let Verdict::Reject { reasons } = verdict else { panic!("{verdict:?}") };
        let mut reasons: Vec<_> = reasons.iter().map(|of| format!("{}: {}", of.name, of.reason)).collect();
        reasons.sort();
        assert!(reasons[0].starts_with("b: a resource with the name `z` inside"), "{reasons:?}");
        assert!(reasons[1].starts_with("c: value: what is in it is no envoy.config.cluster.v3.Cluster"), "{reasons:?}");
        assert_eq!((reasons.len(), std::mem::take(&mut *lock(&taken))), (2, vec!["a".to_owned()]));
        assert_eq!(judge.news().values().filter(|value| value.is_some()).count(), 2);
        let verdict = reading.update(Instant::now(), update(&[("c", b"\x0a\x01c")]));
        assert_eq!((verdict, std::mem::take(&mut *lock(&taken))), (Verdict::Accept, vec!["c".to_owned()]));
        assert_eq!(judge.news().into_values().collect::<Vec<_>>(), [None], "it is not refused any more");
    }

    fn reading() -> (Reading, Arc<Judge>, Arc<Mutex<Vec<String>>>) {
        let reader = Reader::new(Descriptors::built_in().unwrap(), Served::default());
        let (judge, taken) = (Judge::new(reader), Arc::<Mutex<Vec<_>>>::default());
        let stream = Arc::<Streams>::default().another();
        let consumer = Box::new(All(taken.clone(), Some(judge.clone())));
        (Reading { consumer, judge: judge.clone(), stream }, judge, taken)
    }

    #[test]
    fn that_it_is_not_refused_any_more_is_told_once_the_good_one_is_there() {
        let (mut reading, judge, taken) = reading();
        reading.update(Instant::now(), update(&[("c", b"\x0a\x01c\x12")]));
        assert_eq!(judge.news().len(), 1);
        lock(&taken).clear();
        reading.update(Instant::now(), update(&[("c", b"\x0a\x01c")]));
        assert_eq!((lock(&taken).clone(), judge.news().len()), (vec!["c".to_owned()], 1));
    }

    #[test]
    fn what_an_origin_makes_of_a_marker_is_left_to_who_asked_for_it() {
        let (mut reading, judge, taken) = reading();
        let marker = "xds-relay.7.end-of-answer";
        let verdict = reading.update(Instant::now(), update(&[(marker, b"\x0a\x01z")]));
        assert_eq!((verdict, judge.news().len()), (Verdict::Accept, 0));
        assert_eq!(*lock(&taken), [marker]);
    }
}
