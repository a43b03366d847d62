//! Against a server whose streams have an age: rule 93 from end to end.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Status;
use xds_transport::Frame;
use xds_transport::grpc::server::{Accept, Accepted, Opened, Service};
use xdstp_cache::{Cache, Options};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

/// Each stream is one version further, and lacks what the one before had added.
#[derive(Default)]
struct Aging(AtomicUsize);

impl Accept for Aging {
    type Source = Cache<Frame>;

    async fn accept(&self, _: Opened) -> Result<Accepted<Cache<Frame>>, Status> {
        let stream = self.0.fetch_add(1, Ordering::SeqCst);
        let mut cache = Cache::new(Options::default());
        for (name, version) in [("kept".to_owned(), 0), ("changed".to_owned(), stream), (format!("of-{stream}"), 0)] {
            let mut payload = vec![0x0a, u8::try_from(name.len()).unwrap()];
            payload.extend(name.bytes());
            payload.extend([0x18, u8::try_from(version).unwrap()]);
            let resource = Frame::of_message(&CDS.into(), &payload).into_resource(None);
            let mut edit = cache.edit(now());
            edit.put(&CDS.into(), &name.parse().unwrap(), resource);
            let _ = edit.finish();
        }
        Ok(cache.into())
    }
}

/// Says what it is told, and when.
struct Teller {
    asked: bool,
    told: mpsc::UnboundedSender<(Instant, String)>,
}

impl Consumer for Teller {
    fn commands(&mut self, _: Instant, apply: &mut dyn FnMut(Command)) {
        if !std::mem::replace(&mut self.asked, true) {
            apply(Command::Subscribe(CDS.into(), Interest::Wildcard));
        }
    }

    fn update(&mut self, now: Instant, update: Update) -> Verdict {
        let changed = update.changed.iter().map(|changed| format!("+{}", changed.name));
        let removed = update.removed.iter().map(|name| format!("-{name}"));
        let mut said: Vec<_> = changed.chain(removed).collect();
        said.sort();
        let _ = self.told.send((now, said.join(" ")));
        Verdict::Accept
    }

    fn connection(&mut self, now: Instant, connection: Connection) {
        if let Connection::Disconnected { error, .. } = connection {
            let _ = self.told.send((now, format!("disconnected {error:?}")));
        }
    }

    fn type_ended(&mut self, _: Instant, _: &TypeUrl, _: &ResourceError) {}

    fn type_opened(&mut self, _: Instant, _: &TypeUrl) {}
}

/// The server ends its streams at their age, and the client is back at once, without an error, and is told just what
/// became another.
#[tokio::test(start_paused = true)]
async fn rule_093_a_client_whose_stream_is_ended_for_its_age_comes_back_and_misses_nothing() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let (telling, mut told) = mpsc::unbounded_channel();
        let far_ends = run_at(endpoint().with_protocol(protocol), Teller { asked: false, told: telling });
        let connections = UnboundedReceiverStream::new(far_ends).map(Ok::<_, std::io::Error>);
        let routes = Service::new(Aging::default()).max_stream_age(HOUR).into_routes();
        tokio::spawn(tonic::transport::Server::builder().add_routes(routes).serve_with_incoming(connections));

        let (mut began, first) = told.recv().await.unwrap();
        assert_eq!(first, "+changed +kept +of-0");
        for stream in 1..20 {
            let (ended, said) = told.recv().await.unwrap();
            assert_eq!(said, "disconnected None", "an end after a response is no error (rule 91)");
            let age = ended - began;
            assert!((HOUR / 4 * 3..HOUR / 4 * 5 + Duration::from_secs(1)).contains(&age), "{age:?}");
            let (back, said) = told.recv().await.unwrap();
            assert!(back - ended < Duration::from_secs(2), "{:?}", back - ended);
            assert_eq!(said, format!("+changed +of-{stream} -of-{}", stream - 1), "{protocol:?}");
            began = back;
        }
    }
}
