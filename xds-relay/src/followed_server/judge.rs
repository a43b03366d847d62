//! What comes from a control plane that nobody could use: it is told so, and the last good one stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use prost::Message as _;
use tonic::metadata::MetadataMap;
use xds_transport::client::{Changed, Command, Update, Verdict};
use xds_transport::{Frame, Rejected, TypeRules, wire};
use xdstp_cache::{Resource, ResourceError, Selector, TypeUrl};
use xdstp_client::federation::{Dial, Dialed, Position, is_marker};
use xdstp_client::upstream::{Connection, Consumer};
use xdstp_uri::ResourceName;

use super::lapsed::Lapsed;
use super::streams::{OneStream, Streams};
use crate::etcd_origin::{Key, Reader};
use crate::keyed_origin::{Name, Read as _, shown, shown_name};
use crate::lock::lock;

/// Of how many resources it is known that they are refused. With more nothing of the control plane counts.
const MOST: usize = 10_000;

/// Who reads what comes.
pub(super) struct Judge {
    reader: Reader,
    rules: TypeRules,
    judged: Mutex<Judged>,
}

#[derive(Default)]
struct Judged {
    /// Of these what came last was refused.
    refused: BTreeMap<Name, Refused>,
    /// The streams on which there were more: what these are is not known before they say all anew.
    over: BTreeSet<usize>,
    is_news: bool,
    streams: usize,
}

struct Refused {
    /// On which stream.
    stream: usize,
    digest: u128,
    why: String,
}

/// What is refused.
#[derive(Debug, Default)]
pub(super) struct AllRefused {
    pub(super) names: BTreeSet<Name>,
    /// One of them, and why.
    pub(super) first: Option<String>,
    /// There are more.
    pub(super) is_over: bool,
}

impl Judge {
    pub(super) fn new(reader: Reader) -> Arc<Self> {
        Arc::new(Self { reader, rules: TypeRules::envoy(), judged: Mutex::default() })
    }

    /// What is refused, if that is otherwise than at the last call.
    pub(super) fn news(&self) -> Option<AllRefused> {
        let judged = &mut *lock(&self.judged);
        let first = judged.refused.iter().next();
        std::mem::take(&mut judged.is_news).then(|| AllRefused {
            names: judged.refused.keys().cloned().collect(),
            first: first.map(|(name, of)| format!("{}: {}", shown_name(name), of.why)),
            is_over: !judged.over.is_empty(),
        })
    }

    /// Nobody asks for it any more.
    pub(super) fn forget(&self, name: &Name) {
        self.are_over([name]);
    }

    /// # Errors
    /// Why nobody could use it.
    fn look(&self, stream: usize, type_url: &TypeUrl, changed: &Changed) -> Result<(), Rejected> {
        // Whoever asked for it takes it out.
        if is_marker(&changed.name) {
            return Ok(());
        }
        let (name, digest) = ((type_url.clone(), changed.name.clone()), changed.resource.value.digest());
        let rejected = |why: &str| Rejected::new(changed.name.as_str(), why);
        // The same again is refused as it was.
        if let Some(of) = lock(&self.judged).refused.get_mut(&name).filter(|of| of.digest == digest) {
            of.stream = stream;
            return Err(rejected(&of.why));
        }
        self.read(type_url, changed).map_err(|why| {
            self.refuse(name, Refused { stream, digest, why: shown(&why) });
            rejected(&why)
        })
    }

    fn refuse(&self, name: Name, refused: Refused) {
        let judged = &mut *lock(&self.judged);
        let stream = refused.stream;
        if judged
            .refused
            .get(&name)
            .is_some_and(|of| (of.digest, of.stream, &of.why) == (refused.digest, stream, &refused.why))
        {
            return;
        }
        let has_room = judged.refused.len() < MOST || judged.refused.contains_key(&name);
        match has_room {
            true => _ = judged.refused.insert(name, refused),
            false => _ = judged.over.insert(stream),
        }
        judged.is_news = true;
    }

    /// Others refused these, who could not read them or may not have them. What has no name is nobody's.
    fn are_refused(&self, stream: usize, type_url: &TypeUrl, all: &[Rejected]) {
        for of in all {
            if let Ok(name) = of.name.parse::<ResourceName>()
                && !is_marker(&name)
                && !of.name.starts_with('#')
            {
                // Not by its content: what comes is read anew.
                self.refuse((type_url.clone(), name), Refused { stream, digest: 0, why: shown(&of.reason) });
            }
        }
    }

    fn read(&self, type_url: &TypeUrl, changed: &Changed) -> Result<(), String> {
        let key = Key::new(type_url.as_str(), changed.name.clone()).map_err(|error| error.to_string())?;
        let value = encoded(&changed.name, &changed.resource).ok_or("it cannot be read")?;
        self.reader.read(&key.to_string(), &value).map(drop)
    }

    /// Nothing of these names is refused any more.
    fn are_over<'a>(&self, names: impl IntoIterator<Item = &'a Name>) {
        let judged = &mut *lock(&self.judged);
        for name in names {
            judged.is_news |= judged.refused.remove(name).is_some();
        }
    }

    /// A stream begins, and says anew what there is; or it is there no more, and another says that.
    fn begin(&self, stream: usize) {
        let judged = &mut *lock(&self.judged);
        let before = judged.refused.len();
        judged.refused.retain(|_, of| of.stream != stream);
        let was_over = judged.over.remove(&stream);
        judged.is_news |= judged.refused.len() != before || was_over;
    }

    fn another_stream(&self) -> usize {
        let judged = &mut *lock(&self.judged);
        judged.streams += 1;
        judged.streams
    }
}

/// A resource as the value that is under its key.
fn encoded(name: &ResourceName, resource: &Resource<Frame>) -> Option<Bytes> {
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
    pub(super) is_sotw: bool,
}

impl Dial for Judging {
    fn dial(&self, server: Position, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        let reading = Reading::new(consumer, self.judge.clone(), self.streams.another(), self.is_sotw);
        self.dial.dial(server, node, Box::new(reading))
    }
}

/// Who takes what comes, if it is good.
struct Reading {
    consumer: Box<dyn Consumer>,
    judge: Arc<Judge>,
    stream: OneStream,
    number: usize,
    is_sotw: bool,
    lapsed: Lapsed,
}

impl Reading {
    fn new(consumer: Box<dyn Consumer>, judge: Arc<Judge>, stream: OneStream, is_sotw: bool) -> Self {
        let number = judge.another_stream();
        Self { consumer, judge, stream, number, is_sotw, lapsed: Lapsed::default() }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.judge.begin(self.number);
    }
}

impl Consumer for Reading {
    fn update(&mut self, now: Instant, mut update: Update) -> Verdict {
        let (type_url, mut refused, mut good) = (update.type_url.clone(), Vec::new(), Vec::new());
        let is_full_state = self.judge.rules.of(&type_url).full_state_in_sotw;
        self.lapsed.keep(&mut update, self.is_sotw && is_full_state);
        // Where absence is no answer, silence is none either: who waits for the name goes on to wait.
        if !is_full_state {
            update.missing.clear();
        }
        for came in [&mut update.changed, &mut update.repeated] {
            came.retain(|changed| match self.judge.look(self.number, &type_url, changed) {
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
        self.judge.are_refused(self.number, &type_url, &update.rejected);
        let verdict = self.consumer.update(now, update);
        let mut reasons = match verdict {
            Verdict::Accept => Vec::new(),
            Verdict::Reject { reasons } => reasons,
        };
        // Whoever hears of it finds the good one there.
        let is_taken = |(_, name): &&Name| !reasons.iter().any(|of| of.name == name.as_str());
        self.judge.are_over(good.iter().filter(is_taken));
        self.judge.are_refused(self.number, &type_url, &reasons);
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
        if matches!(connection, Connection::Connected) {
            self.judge.begin(self.number);
            self.lapsed.clear();
        }
        self.stream.hears(now, &connection);
        self.consumer.connection(now, connection);
    }

    /// [Never](crate::config::InvalidConfig): what is followed comes on one stream.
    fn type_ended(&mut self, now: Instant, type_url: &TypeUrl, error: &ResourceError) {
        self.consumer.type_ended(now, type_url, error);
    }

    fn type_opened(&mut self, now: Instant, type_url: &TypeUrl) {
        self.consumer.type_opened(now, type_url);
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

    /// Who takes all, and notes the names.
    #[derive(Default)]
    struct All(Arc<Mutex<Vec<String>>>);

    impl Consumer for All {
        fn commands(&mut self, _: Instant, _: &mut dyn FnMut(Command)) {}

        fn update(&mut self, _: Instant, update: Update) -> Verdict {
            lock(&self.0).extend(update.changed.iter().map(|changed| changed.name.as_str().to_owned()));
            Verdict::Accept
        }

        fn connection(&mut self, _: Instant, _: Connection) {}

        fn type_ended(&mut self, _: Instant, _: &TypeUrl, _: &ResourceError) {}

        fn type_opened(&mut self, _: Instant, _: &TypeUrl) {}
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

    fn reading() -> (Reading, Arc<Judge>, Arc<Mutex<Vec<String>>>) {
        let reader = Reader::new(Descriptors::built_in().unwrap(), Served::default());
        let (judge, taken) = (Judge::new(reader), Arc::<Mutex<Vec<_>>>::default());
        let reading =
            Reading::new(Box::new(All(taken.clone())), judge.clone(), Arc::<Streams>::default().another(), false);
        (reading, judge, taken)
    }

    fn refused(judge: &Judge) -> Option<usize> {
        judge.news().map(|news| news.names.len())
    }

    #[test]
    fn each_that_is_not_good_is_refused_with_its_reason_and_what_is_beside_it_is_taken() {
        let (mut reading, judge, taken) = reading();
        let (good, other, broken) = (b"\x0a\x01a", b"\x0a\x01z", b"\x0a\x01c\x12");
        let verdict = reading.update(Instant::now(), update(&[("a", good), ("b", other), ("c", broken)]));
        let Verdict::Reject { reasons } = verdict else { panic!("{verdict:?}") };
        let mut reasons: Vec<_> = reasons.iter().map(|of| format!("{}: {}", of.name, of.reason)).collect();
        reasons.sort();
        assert!(reasons[0].starts_with("b: a resource with the name `z` inside"), "{reasons:?}");
        assert!(reasons[1].starts_with("c: value: what is in it is no envoy.config.cluster.v3.Cluster"), "{reasons:?}");
        assert_eq!((reasons.len(), std::mem::take(&mut *lock(&taken))), (2, vec!["a".to_owned()]));
        assert_eq!(refused(&judge), Some(2));
        let verdict = reading.update(Instant::now(), update(&[("c", b"\x0a\x01c")]));
        assert_eq!((verdict, std::mem::take(&mut *lock(&taken))), (Verdict::Accept, vec!["c".to_owned()]));
        assert_eq!(refused(&judge), Some(1), "it is not refused any more");
    }

    #[test]
    fn the_same_that_is_refused_again_and_again_is_refused_each_time_and_news_once() {
        let (mut reading, judge, _) = reading();
        let refuse = |reading: &mut Reading, body: &[u8]| {
            let verdict = reading.update(Instant::now(), update(&[("c", body)]));
            assert!(
                matches!(verdict, Verdict::Reject { reasons } if reasons[0].reason.contains("no envoy.config.cluster"))
            );
        };
        refuse(&mut reading, b"\x0a\x01c\x12");
        assert_eq!(refused(&judge), Some(1));
        for _ in 0..3 {
            refuse(&mut reading, b"\x0a\x01c\x12");
            assert_eq!(refused(&judge), None);
        }
        refuse(&mut reading, b"\x0a\x01c\x12\x70");
        assert_eq!(refused(&judge), Some(1));
    }

    #[test]
    fn a_stream_that_begins_says_anew_what_is_refused_and_more_than_is_known_is_said_to_be() {
        let (mut reading, judge, _) = reading();
        let names: Vec<_> = (0..=MOST).map(|number| format!("n{number}")).collect();
        let all: Vec<_> = names.iter().map(|name| (name.as_str(), &b"\x12"[..])).collect();
        reading.update(Instant::now(), update(&all));
        let news = judge.news().unwrap();
        assert_eq!((news.names.len(), news.is_over), (MOST, true));
        reading.connection(Instant::now(), Connection::Connected);
        let news = judge.news().unwrap();
        assert_eq!((news.names.len(), news.is_over), (0, false));
        // One that is there no more says nothing anew: another does, of another number.
        reading.update(Instant::now(), update(&all));
        assert!(judge.news().unwrap().is_over);
        drop(reading);
        let news = judge.news().unwrap();
        assert_eq!((news.names.len(), news.is_over), (0, false));
    }

    #[test]
    fn what_could_not_be_read_at_all_is_refused_by_its_name_until_it_is_good() {
        let (mut reading, judge, _) = reading();
        let mut came = update(&[("a", b"\x0a\x01a")]);
        came.rejected = vec![Rejected::new("b", "without content"), Rejected::new("#2", "without a name")];
        reading.update(Instant::now(), came.clone());
        let news = judge.news().unwrap();
        let why = "envoy.config.cluster.v3.Cluster `b`: without content";
        assert_eq!((news.names.len(), news.first.as_deref()), (1, Some(why)));
        reading.update(Instant::now(), came);
        assert_eq!(refused(&judge), None, "it is no news again");
        reading.update(Instant::now(), update(&[("b", b"\x0a\x01b")]));
        assert_eq!(refused(&judge), Some(0));
    }

    #[test]
    fn what_an_origin_makes_of_a_marker_is_left_to_who_asked_for_it() {
        let (mut reading, judge, taken) = reading();
        let marker = "xds-relay.7.end-of-answer";
        let verdict = reading.update(Instant::now(), update(&[(marker, b"\x0a\x01z")]));
        assert_eq!((verdict, refused(&judge)), (Verdict::Accept, None));
        assert_eq!(*lock(&taken), [marker]);
    }
}
