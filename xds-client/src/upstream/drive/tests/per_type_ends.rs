//! How streams of types end, and what is asked for meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use tonic::metadata::MetadataMap;
use xdstp_cache::ResourceError;
use xdstp_uri::ResourceName;

use super::per_type::{BOTH, Call, Connections, EDS, Origin, methods};
use super::*;

/// How many metadata were asked for before is what each call carries.
const WHO: &str = "x-who";
/// So many names of a type that one request is more than a stream has room for.
const LONG: &str = "many";
/// No wait is shorter.
const SHORTEST: Duration = Duration::from_millis(800);

#[derive(Debug, PartialEq, Eq)]
enum Told {
    Came(String),
    TypeEnded(String),
    TooLong,
    Ended,
}

/// Wants these from the beginning, and those when there is no stream any more.
struct Wants {
    wants: Vec<&'static str>,
    then: Vec<&'static str>,
    /// Whether there is more to tell, to no end.
    more: Arc<AtomicBool>,
    /// From the first response on, and then another type is wanted.
    wants_more: bool,
    read: usize,
    told: mpsc::UnboundedSender<Told>,
}

impl Wants {
    fn tell(&self, told: Told) {
        let _ = self.told.send(told);
    }
}

impl Consumer for Wants {
    fn commands(&mut self, _: Instant, apply: &mut dyn FnMut(Command)) {
        let name = |name: &str| ResourceName::parse(name).unwrap().into();
        for of in self.wants.drain(..) {
            match of {
                LONG => (0..20_000)
                    .for_each(|number| apply(Command::Subscribe(CDS.into(), name(&format!("{number:0>60}"))))),
                of => apply(Command::Subscribe(of.into(), name("a"))),
            }
        }
    }

    fn has_more_commands(&self) -> bool {
        self.more.load(Ordering::Relaxed)
    }

    fn update(&mut self, _: Instant, update: Update) -> Verdict {
        if self.wants_more {
            self.more.store(true, Ordering::Relaxed);
            self.wants.push(EDS);
        }
        self.tell(Told::Came(update.type_url.as_str().to_owned()));
        Verdict::Accept
    }

    fn connection(&mut self, _: Instant, connection: Connection) {
        if matches!(connection, Connection::Disconnected { .. }) {
            self.wants.append(&mut self.then);
            self.tell(Told::Ended);
        }
    }

    fn type_opened(&mut self, _: Instant, _: &TypeUrl) {}

    fn type_ended(&mut self, _: Instant, type_url: &TypeUrl, _: &ResourceError) {
        self.tell(Told::TypeEnded(type_url.as_str().to_owned()));
    }

    fn too_long(&mut self) {
        self.tell(Told::TooLong);
    }

    fn metadata(&mut self) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        metadata.insert("authorization", "Bearer x".parse().unwrap());
        metadata.insert(WHO, self.read.to_string().parse().unwrap());
        self.read += 1;
        metadata
    }
}

fn came(of: &str) -> Told {
    Told::Came(of.to_owned())
}

fn ended(of: &str) -> Told {
    Told::TypeEnded(of.to_owned())
}

/// Who asks for these at once, and for those once there is no stream any more.
fn wanting(
    protocol: Protocol,
    wants: &[&'static str],
    then: &[&'static str],
) -> (Connections, mpsc::UnboundedReceiver<Told>) {
    let (told, tells) = mpsc::unbounded_channel();
    let endpoint = endpoint().with_protocol(protocol).with_per_type_methods().with_encoded_node(encoded_node("n"));
    let endpoint = endpoint.with_max_message_size(1 << 10).with_backoff(Backoff::grpc());
    let wants =
        Wants { wants: wants.to_vec(), then: then.to_vec(), more: Arc::default(), wants_more: false, read: 0, told };
    (run_at(endpoint, wants), tells)
}

/// Both types are asked for, and the first has its answer: the stream of the other.
async fn answered(protocol: Protocol, origin: &mut Origin) -> (Call, Call) {
    let [clusters, endpoints] = methods(protocol);
    let mut calls = origin.calls(2).await;
    let (mut kept, mut other) = (calls.remove(clusters).unwrap(), calls.remove(endpoints).unwrap());
    kept.asked(protocol).await;
    other.asked(protocol).await;
    kept.says(protocol, CDS, "n1", "a");
    (kept, other)
}

/// The next stream to be opened, in the time that any wait may take, and after how long.
async fn next_call(origin: &mut Origin) -> (Call, Duration) {
    let began = now();
    let call = tokio::time::timeout(Duration::from_secs(60), origin.0.recv()).await.expect("another stream").unwrap();
    (call, now() - began)
}

#[tokio::test(start_paused = true)]
async fn who_is_turned_away_with_an_old_token_alone_has_all_streams_opened_anew_with_another_one() {
    for protocol in BOTH {
        for is_old in [false, true] {
            let (mut connections, mut told) = wanting(protocol, &[CDS, EDS], &[]);
            let mut origin = Origin::accept(&mut connections).await;
            let (kept, other) = answered(protocol, &mut origin).await;
            assert_eq!(told.recv().await.unwrap(), came(CDS));
            assert_eq!([kept.who.as_str(), other.who.as_str()], ["0"; 2]);
            // Before any silence is a word.
            pass(if is_old { 301 } else { 10 }).await;
            other.ends("16");
            let mut first = told.recv().await.unwrap();
            while first == came(EDS) {
                first = told.recv().await.unwrap();
            }
            assert_eq!(first, if is_old { Told::Ended } else { ended(EDS) }, "{protocol:?}");
            if is_old {
                let mut origin = Origin::accept(&mut connections).await;
                let all = origin.calls(2).await;
                assert!(all.values().all(|call| call.who == "1"), "{protocol:?}: it was read anew");
            } else {
                let mut again = next_call(&mut origin).await.0;
                assert_eq!(again.who, "0");
                again.asked(protocol).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_too_long_ends_the_stream_of_its_type_and_is_said() {
    for protocol in BOTH {
        let (mut connections, mut told) = wanting(protocol, &[CDS, EDS], &[]);
        let mut origin = Origin::accept(&mut connections).await;
        let (mut kept, mut other) = answered(protocol, &mut origin).await;
        assert_eq!(told.recv().await.unwrap(), came(CDS));
        other.says(protocol, EDS, &"n".repeat(1 << 11), "a");
        assert_eq!([told.recv().await.unwrap(), told.recv().await.unwrap()], [Told::TooLong, ended(EDS)]);
        kept.says(protocol, CDS, "n2", "b");
        let (again, _) = next_call(&mut origin).await;
        assert!(again.path.ends_with(methods(protocol)[1]), "{protocol:?}");
        while let Ok(told) = told.try_recv() {
            assert_eq!(told, came(CDS), "{protocol:?}: nothing else ended");
        }
    }
}

/// Who has no method for what one client asks for may have those of all others.
#[tokio::test(start_paused = true)]
async fn a_type_that_is_asked_for_while_the_origin_lacks_the_method_of_another_waits_for_no_backoff() {
    for protocol in BOTH {
        for (then, waits) in [(EDS, false), (CDS, true)] {
            let (mut connections, mut told) = wanting(protocol, &[CDS], &[then]);
            let mut origin = Origin::accept(&mut connections).await;
            origin.calls(1).await.into_values().for_each(|call| call.ends("12"));
            assert_eq!(told.recv().await.unwrap(), Told::Ended);
            let began = now();
            let mut origin = Origin::accept(&mut connections).await;
            let types = if then == CDS { 1 } else { 2 };
            let calls = origin.calls(types).await;
            assert_eq!(now() - began >= SHORTEST, waits, "{protocol:?} {then}");
            // It has neither, and what was asked for is no news.
            calls.into_values().for_each(|call| call.ends("12"));
            while told.recv().await.unwrap() != Told::Ended {}
            let began = now();
            Origin::accept(&mut connections).await.calls(types).await;
            assert!(now() - began >= SHORTEST, "{protocol:?} {then}");
        }
    }
}

/// Of none it is known that there is an origin behind it.
#[tokio::test(start_paused = true)]
async fn where_each_type_ends_by_turns_and_none_is_answered_all_are_over() {
    for protocol in BOTH {
        for is_answered in [false, true] {
            let (mut connections, mut told) = wanting(protocol, &[CDS, EDS], &[]);
            let mut origin = Origin::accept(&mut connections).await;
            let mut calls = origin.calls(2).await;
            let [mut clusters, endpoints] = methods(protocol).map(|method| calls.remove(method).unwrap());
            if is_answered {
                clusters.asked(protocol).await;
                clusters.says(protocol, CDS, "n1", "a");
                assert_eq!(told.recv().await.unwrap(), came(CDS));
            }
            endpoints.ends("14");
            assert_eq!(told.recv().await.unwrap(), ended(EDS));
            let _endpoints = next_call(&mut origin).await;
            clusters.ends("14");
            assert_eq!(told.recv().await.unwrap(), ended(CDS));
            pass(10).await;
            assert_eq!(told.try_recv().ok(), (!is_answered).then_some(Told::Ended), "{protocol:?}");
        }
    }
}

/// Has an answer for which there is no room, as the request before waits to be read; and more to tell since, to no end.
#[tokio::test(start_paused = true)]
async fn what_waits_until_all_is_told_does_not_pass_an_answer_that_has_no_room() {
    let (told, mut tells) = mpsc::unbounded_channel();
    let more = Arc::<AtomicBool>::default();
    let wants = Wants { wants: vec![LONG, CDS], then: Vec::new(), more: more.clone(), wants_more: true, read: 0, told };
    let endpoint = endpoint().with_per_type_methods().with_encoded_node(encoded_node("n"));
    let mut connections = run_at(endpoint, wants);
    let mut origin = Origin::accept(&mut connections).await;
    let mut call = origin.calls(1).await.pop_first().unwrap().1;
    call.says(Protocol::Delta, CDS, "n1", "a");
    assert_eq!(tells.recv().await.unwrap(), came(CDS));
    turns().await;
    assert!(more.load(Ordering::Relaxed) && origin.0.try_recv().is_err(), "no other type is asked for");
    more.store(false, Ordering::Relaxed);
    assert!(next_call(&mut origin).await.0.path.ends_with("DeltaEndpoints"));
}

/// So many that all that can happen has.
async fn turns() {
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
}
