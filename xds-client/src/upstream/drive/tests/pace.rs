//! A consumer that wants something more every millisecond.

use super::*;

const NAMES: u64 = 1000;

struct Busy {
    wanted: u64,
    next: Instant,
}

impl Consumer for Busy {
    fn commands(&mut self, now: Instant, apply: &mut dyn FnMut(Command)) {
        while self.next <= now && self.wanted < NAMES {
            let name: xdstp_uri::ResourceName = format!("{}", self.wanted).parse().unwrap();
            apply(Command::Subscribe(CDS.into(), Interest::Name(name)));
            self.wanted += 1;
            self.next += Duration::from_millis(1);
        }
    }

    fn update(&mut self, _: Instant, _: Update) -> Verdict {
        Verdict::Accept
    }

    fn connection(&mut self, _: Instant, _: Connection) {}

    fn type_ended(&mut self, _: Instant, _: &TypeUrl, _: &ResourceError) {}

    fn type_opened(&mut self, _: Instant, _: &TypeUrl) {}

    fn poll_timeout(&self) -> Option<Instant> {
        (self.wanted < NAMES).then_some(self.next)
    }
}

#[tokio::test(start_paused = true)]
async fn rule_135_what_is_wanted_meanwhile_is_one_request() {
    for (limit, expected) in
        [(Some(RateLimit { burst: 10, every: Duration::from_millis(100) }), 15..=25), (None, 500..=1000)]
    {
        let endpoint = match limit {
            Some(limit) => endpoint().with_request_limit(limit),
            None => endpoint(),
        };
        let mut connections = run_at(endpoint, Busy { wanted: 0, next: now() });
        let (mut request, _to) = accept(connections.recv().await.unwrap()).await;
        let mut buffer = bytes::BytesMut::new();
        let (mut requests, mut names) = (0, 0);
        while names < NAMES as usize {
            let data = request.body_mut().data().await.unwrap().unwrap();
            let _ = request.body_mut().flow_control().release_capacity(data.len());
            buffer.extend_from_slice(&data);
            while let Some(prefix) = buffer.first_chunk::<5>() {
                let length = 5 + u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
                if buffer.len() < length {
                    break;
                }
                let message = DeltaDiscoveryRequest::decode(&buffer.split_to(length)[5..]).unwrap();
                requests += 1;
                names += message.resource_names_subscribe.len();
            }
        }
        assert!(expected.contains(&requests), "{requests} requests");
    }
}
