//! What several clients are sent alike is written once, and says what is written for each.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xds_transport::server::{Answer, Image, Images, Settings, Source, Stream, Tally};
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use xds_transport::{Frame, Protocol};
use xdstp_cache::{
    Cache, Failed, Interest, Options, Place, Pull, Pulled, Removals, Resource, SubscriberId, TypeUrl, Unanswered,
    Version,
};
use xdstp_uri::ResourceName;

use crate::support::{CLUSTERS, ENDPOINTS, any_moment};

/// The fields of a response, beside its resources, are no more.
const SHORT: usize = 512;

/// A cache of which several streams are served, that keeps images.
struct Alike {
    cache: Cache<Frame>,
    images: Images,
    /// How often somebody was sent one that was written for another.
    passed: usize,
    /// The resources of the last answer.
    answered: Vec<ResourceName>,
    now: Instant,
    type_url: TypeUrl,
}

impl Alike {
    /// With so many resources of a kilobyte.
    fn serving(type_url: &str, count: usize) -> Self {
        let (cache, images) = (Cache::new(Options::default()), Images::default());
        let mut this =
            Self { cache, images, passed: 0, answered: Vec::new(), now: any_moment(), type_url: type_url.into() };
        (0..count).for_each(|number| this.put(&format!("{number:04}"), "1", None));
        this
    }

    fn put(&mut self, name: &str, version: &str, ttl: Option<Duration>) {
        let body = [&vec![name.len() as u8; 1000][..], name.as_bytes(), version.as_bytes()].concat();
        let frame = Frame::of_message(&self.type_url, &body).with_wrapper(Bytes::new(), ttl, false);
        let mut edit = self.cache.edit(self.now);
        edit.put(&self.type_url, &name.parse().unwrap(), frame.into_resource(Some(version.into())));
        drop(edit.finish());
    }

    fn remove(&mut self, name: &str) {
        let mut edit = self.cache.edit(self.now);
        edit.remove(&self.type_url, &name.parse().unwrap());
        drop(edit.finish());
    }

    /// A stream that asks for these.
    fn stream(&mut self, names: &[&str]) -> Stream {
        let mut stream = Stream::new(Protocol::Delta, Settings::default());
        let resource_names_subscribe = names.iter().map(|&name| name.to_owned()).collect();
        self.say(&mut stream, DeltaDiscoveryRequest { resource_names_subscribe, ..Default::default() });
        stream
    }

    fn say(&mut self, stream: &mut Stream, request: DeltaDiscoveryRequest) {
        let request = DeltaDiscoveryRequest { type_url: self.type_url.to_string(), ..request };
        stream.handle_message(self.now, request.encode_to_vec().into(), self).unwrap();
    }

    /// The next response, in chunks behind a prefix as gRPC has it.
    fn next(&mut self, stream: &mut Stream) -> Option<DeltaDiscoveryResponse> {
        let mut transmit = stream.poll_transmit(self.now, self).unwrap()?;
        let (length, resources) = (transmit.remaining(), transmit.resources);
        let mut chunk = transmit.chunk_after(&[7; 5]);
        let first = chunk.as_ref().unwrap().len();
        assert!(
            first == length + 5 || first < SHORT,
            "what is short is in one frame, and nothing of what all share is copied into it"
        );
        let mut all = Vec::new();
        while let Some(bytes) = chunk {
            assert!(!bytes.is_empty());
            all.extend_from_slice(&bytes);
            chunk = transmit.next_chunk();
        }
        assert_eq!((all.len(), transmit.remaining()), (length + 5, 0));
        let response = DeltaDiscoveryResponse::decode(&all[5..]).unwrap();
        assert_eq!(response.resources.len(), resources as usize);
        Some(response)
    }

    /// All that there is to say, ACKed.
    fn all(&mut self, stream: &mut Stream) -> Vec<DeltaDiscoveryResponse> {
        let mut all = Vec::new();
        while let Some(response) = self.next(stream) {
            let ack = DeltaDiscoveryRequest { response_nonce: response.nonce.clone(), ..Default::default() };
            self.say(stream, ack);
            all.push(response);
        }
        all
    }
}

impl Source for Alike {
    fn image(&mut self, id: SubscriberId) -> Option<(Place, Option<Arc<Image>>)> {
        let place = self.cache.place(id)?;
        Some((place, self.images.at(&place)))
    }

    fn pass(&mut self, id: SubscriberId, image: &Image) -> Option<bool> {
        self.passed += 1;
        self.cache.pass(id, image.from(), image.to())
    }

    fn keep(&mut self, _: SubscriberId, image: &Arc<Image>) {
        self.images.keep(image);
    }

    fn answered(&mut self, _: SubscriberId, answer: &Answer<'_>) {
        self.answered = answer.resources.to_vec();
    }

    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        self.cache.open(type_url)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        Source::close(&mut self.cache, id, tally);
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        Source::subscribe(&mut self.cache, id, interest)
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        Source::unsubscribe(&mut self.cache, id, interest)
    }

    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        Source::resume(&mut self.cache, id, held);
    }

    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        Source::pull(&mut self.cache, id, removals, visitor)
    }

    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        Source::pull_errors(&mut self.cache, id, removals, visitor)
    }

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        Source::visit(&mut self.cache, id, visitor)
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        Source::has_work(&self.cache, id)
    }

    fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
        Source::look_up(&self.cache, id, name, look);
    }

    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        Source::resend(&mut self.cache, id, name)
    }
}

#[test]
fn who_comes_while_another_is_sent_everything_is_sent_the_same() {
    for (count, of) in [(4, 1), (10, 1), (1000, 6)] {
        let mut source = Alike::serving(ENDPOINTS, count);
        let [mut one, mut other] = [(); 2].map(|()| source.stream(&["*"]));
        let (mut sent, mut parts) = (0, 0);
        while let Some(first) = source.next(&mut one) {
            let second = source.next(&mut other).unwrap();
            assert_eq!(first, second);
            sent += first.resources.len();
            parts += 1;
            assert_eq!(source.passed, parts, "each part is written once");
        }
        assert!(source.next(&mut other).is_none());
        assert_eq!((sent, parts), (count, of));
        // And what is new since, for each.
        source.put("0001", "2", None);
        source.remove("0002");
        for stream in [&mut one, &mut other] {
            let new = source.all(stream);
            assert_eq!(new.iter().map(|new| new.resources.len()).sum::<usize>(), 1);
            assert_eq!(new.last().unwrap().removed_resources, ["0002"]);
        }
    }
}

#[test]
fn the_answer_to_what_others_are_sent_too_is_of_all_that_is_in_it_but_for_what_was_left() {
    let mut source = Alike::serving(ENDPOINTS, 10);
    let [mut one, mut other] = [(); 2].map(|()| source.stream(&["*"]));
    source.next(&mut one).unwrap();
    let response = source.next(&mut other).unwrap();
    assert_eq!(source.passed, 1);
    let names = |range: std::ops::Range<u32>| range.map(|number| format!("{number:04}")).collect::<Vec<_>>();
    let nack = xds_transport::wire::Status { message: "no".into(), ..Default::default() };
    let mut refusal = DeltaDiscoveryRequest { response_nonce: response.nonce.clone(), ..Default::default() };
    refusal.error_detail = Some(nack);
    source.say(&mut other, refusal);
    assert_eq!(source.answered.iter().map(ToString::to_string).collect::<Vec<_>>(), names(0..10));
    let left = DeltaDiscoveryRequest { resource_names_unsubscribe: vec!["*".to_owned()], ..Default::default() };
    source.say(&mut one, left);
    source.say(&mut one, DeltaDiscoveryRequest { response_nonce: response.nonce, ..Default::default() });
    assert!(source.answered.is_empty(), "it left all of it");
}

#[test]
fn what_changes_between_two_parts_is_in_what_each_is_sent_next() {
    let mut source = Alike::serving(ENDPOINTS, 1000);
    let [mut one, mut other] = [(); 2].map(|()| source.stream(&["*"]));
    source.next(&mut one).unwrap();
    source.next(&mut other).unwrap();
    source.next(&mut one).unwrap();
    source.put("0999", "2", None);
    let before = source.passed;
    let parts = source.all(&mut other);
    assert_eq!(source.passed, before, "of what was written before it changed, nothing is sent");
    let last = parts.iter().flat_map(|part| &part.resources).find(|resource| resource.name == "0999").unwrap();
    assert_eq!(last.version, "2");
}

#[test]
fn what_is_its_own_of_how_a_client_is_told_is_written_for_it() {
    let cases: [(&str, &[&str]); 2] = [(ENDPOINTS, &["*", "0001"]), (ENDPOINTS, &["0001", "0002", "0003", "0004"])];
    for (type_url, names) in cases {
        let mut source = Alike::serving(type_url, 10);
        for _ in 0..2 {
            let mut stream = source.stream(names);
            source.next(&mut stream).unwrap();
        }
        assert_eq!(source.passed, 0, "{names:?}");
    }
    // How long something lives goes on being told to each.
    let mut source = Alike::serving(CLUSTERS, 10);
    source.put("0003", "2", Some(Duration::from_secs(9)));
    let streams = [(); 2].map(|()| {
        let mut stream = source.stream(&["*"]);
        source.next(&mut stream).unwrap();
        stream
    });
    assert_eq!((source.passed, streams.len()), (0, 2));
}

#[test]
fn what_nobody_is_being_sent_is_kept_by_nobody() {
    let mut source = Alike::serving(ENDPOINTS, 10);
    let mut one = source.stream(&["*"]);
    let response = source.next(&mut one).unwrap();
    let mut other = source.stream(&["*"]);
    let held = source.next(&mut other).unwrap();
    assert_eq!(source.passed, 1);
    for (stream, nonce) in [(&mut one, response.nonce), (&mut other, held.nonce)] {
        source.say(stream, DeltaDiscoveryRequest { response_nonce: nonce, ..Default::default() });
    }
    let mut late = source.stream(&["*"]);
    source.next(&mut late).unwrap();
    assert_eq!(source.passed, 1);
}
