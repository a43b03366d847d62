//! An answer that is long on its way.

use xds_transport::client::Silence;
use xds_transport::wire::{DiscoveryRequest, DiscoveryResponse};

use super::*;

/// Wants one name over SotW, and says when it is told that it is missing.
struct Asking {
    start: Instant,
    asked: bool,
    missing: mpsc::UnboundedSender<u64>,
}

impl Consumer for Asking {
    fn commands(&mut self, _: Instant, apply: &mut dyn FnMut(Command)) {
        if !std::mem::replace(&mut self.asked, true) {
            apply(Command::Subscribe(CDS.into(), Interest::Name("a".parse().unwrap())));
        }
    }

    fn update(&mut self, now: Instant, update: Update) -> Verdict {
        if !update.missing.is_empty() {
            self.missing.send((now - self.start).as_secs()).unwrap();
        }
        Verdict::Accept
    }

    fn connection(&mut self, _: Instant, _: Connection) {}

    fn type_ended(&mut self, _: Instant, _: &TypeUrl, _: &ResourceError) {}

    fn type_opened(&mut self, _: Instant, _: &TypeUrl) {}
}

#[tokio::test(start_paused = true)]
async fn rule_150_a_name_is_not_missing_while_a_response_comes() {
    let (told, mut missing) = mpsc::unbounded_channel();
    let endpoint = endpoint().with_protocol(Protocol::Sotw).with_silence(Silence::IsNoAnswer);
    let mut connections = run_at(endpoint, Asking { start: now(), asked: false, missing: told });
    let (mut request, to) = accept(connections.recv().await.unwrap()).await;
    let first = request.body_mut().data().await.unwrap().unwrap();
    assert_eq!(DiscoveryRequest::decode(&first[5..]).unwrap().resource_names, ["a"]);
    let response =
        |nonce: &str| framed(&DiscoveryResponse { type_url: CDS.into(), nonce: nonce.into(), ..Default::default() });
    let mut body = respond(to);
    body.send_data(response("1"), false).unwrap();
    let mut next = response("2");
    for _ in 0..3 {
        pass(10).await;
        body.send_data(next.split_to(3), false).unwrap();
    }
    assert_eq!(missing.recv().await, Some(45));
}
