//! Where it is counted how long clients' sessions take.

use xds_transport::server::Took;

/// Counts how long something took: one for all sessions of a type.
pub trait Timings: Send + Sync + 'static {
    /// It took so long.
    fn took(&self, took: Took);
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use prost::Message as _;
    use xds_transport::Protocol;
    use xds_transport::server::{Settings, Stream};
    use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Status};

    use super::*;
    use crate::federation::ByNode;
    use crate::federation::lock::lock;
    use crate::federation::tests::{federation, now, resource, timed_routes};

    const T: &str = "T";

    #[derive(Default)]
    struct Recorded(Mutex<Vec<Took>>);

    impl Timings for Recorded {
        fn took(&self, took: Took) {
            lock(&self.0).push(took);
        }
    }

    fn request(protocol: Protocol, nonce: &str, error_detail: Option<Status>) -> Vec<u8> {
        let (type_url, response_nonce) = (T.to_owned(), nonce.to_owned());
        match protocol {
            Protocol::Delta => DeltaDiscoveryRequest {
                resource_names_subscribe: if nonce.is_empty() { vec!["a".to_owned()] } else { Vec::new() },
                type_url,
                response_nonce,
                error_detail,
                ..Default::default()
            }
            .encode_to_vec(),
            Protocol::Sotw => DiscoveryRequest {
                resource_names: vec!["a".to_owned()],
                type_url,
                response_nonce,
                error_detail,
                ..Default::default()
            }
            .encode_to_vec(),
        }
    }

    #[test]
    fn what_is_new_took_until_it_was_sent_and_what_was_sent_until_it_was_accepted() {
        for protocol in [Protocol::Delta, Protocol::Sotw] {
            let (federation, _) = federation(ByNode::OldStyleNames, true);
            let took = Arc::<Recorded>::default();
            let mut routes = timed_routes(&federation, took.clone());
            let mut stream = Stream::new(protocol, Settings::default());
            stream.handle_message(now(), request(protocol, "", None).into(), &mut routes).unwrap();
            while stream.poll_transmit(now(), &mut routes).unwrap().is_some() {}
            stream.handle_message(now(), request(protocol, "1", None).into(), &mut routes).unwrap();
            let [scope] = federation.scopes().try_into().unwrap_or_else(|_| panic!("one scope"));
            lock(&took.0).clear();
            // Each is sent so long after it came, and answered so long after that: the second is refused.
            for (nonce, sent, answered, refused) in
                [("2", 100, 300, false), ("3", 200, 300, true), ("4", 400, 700, false)]
            {
                let came = now() + Duration::from_secs(nonce.parse().unwrap());
                scope.replace(&[resource("a", nonce)], came);
                let sent = came + Duration::from_millis(sent);
                while stream.poll_transmit(sent, &mut routes).unwrap().is_some() {}
                let answer = request(protocol, nonce, refused.then(Status::default));
                stream.handle_message(sent + Duration::from_millis(answered), answer.into(), &mut routes).unwrap();
            }
            let told = |took: &Took| (matches!(took, Took::ToSend { .. }), took.time().as_millis());
            let expected = [(true, 100), (false, 300), (true, 200), (true, 400), (false, 700)];
            assert_eq!(lock(&took.0).iter().map(told).collect::<Vec<_>>(), expected, "{protocol:?}");
        }
    }
}
