//! What the adapter for the `metrics` crate records: the names and labels of gRFC A78.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ::metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, with_local_recorder};

use super::*;
use crate::{Metrics, Recorded};

/// A recorder that has one number for each key.
#[derive(Clone, Default)]
struct Numbers(Arc<Mutex<BTreeMap<String, f64>>>);

struct Number(Numbers, String);

impl Number {
    fn set_to(&self, change: impl FnOnce(f64) -> f64) {
        let number = &mut *self.0.0.lock().unwrap();
        let number = number.entry(self.1.clone()).or_default();
        *number = change(*number);
    }
}

impl ::metrics::CounterFn for Number {
    fn increment(&self, by: u64) {
        self.set_to(|was| was + by as f64);
    }

    fn absolute(&self, value: u64) {
        self.set_to(|_| value as f64);
    }
}

impl ::metrics::GaugeFn for Number {
    fn increment(&self, by: f64) {
        self.set_to(|was| was + by);
    }

    fn decrement(&self, by: f64) {
        self.set_to(|was| was - by);
    }

    fn set(&self, value: f64) {
        self.set_to(|_| value);
    }
}

impl Numbers {
    fn of(&self, key: &Key) -> Arc<Number> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Number(self.clone(), format!("{} {}", key.name(), labels.join(" "))))
    }

    fn all(&self) -> Vec<(String, f64)> {
        self.0.lock().unwrap().clone().into_iter().collect()
    }
}

impl Recorder for Numbers {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.of(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.of(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

fn is(key: &str, number: f64) -> (String, f64) {
    (key.to_owned(), number)
}

#[test]
fn what_a_client_does_is_recorded_by_the_names_and_labels_of_a78() {
    let numbers = Numbers::default();
    let _world = with_local_recorder(&numbers, || {
        let network = Network::new(now());
        let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure));
        let recorded = Arc::new(Recorded::new("mine"));
        let client = Client::builder(bootstrap).transport(network.clone()).metrics(recorded.clone()).build().unwrap();
        let world = World { network, client };
        world.put(CDS, "x", "1");
        let watch = world.watch("x");
        world.put(CDS, "x", "bad");
        recorded.record(&world.client.resource_counts());
        drop(watch);
        recorded.record(&[]);
        world
    });
    let resources = |state| {
        let labels = format!("grpc.xds.cache_state={state} grpc.xds.resource_type={CDS}");
        format!("grpc.xds_client.resources grpc.target=mine grpc.xds.authority=#old {labels}")
    };
    let updates = |which| {
        let labels = format!("grpc.target=mine grpc.xds.server={TOP} grpc.xds.resource_type={CDS}");
        format!("grpc.xds_client.resource_updates_{which} {labels}")
    };
    let expected = [
        is(&format!("grpc.xds_client.connected grpc.target=mine grpc.xds.server={TOP}"), 1.0),
        is(&updates("invalid"), 1.0),
        is(&updates("valid"), 1.0),
        is(&resources("nacked_but_cached"), 0.0),
    ];
    assert_eq!(numbers.all(), expected);
}

#[test]
fn a_state_that_no_resource_is_in_any_more_is_0_and_others_have_their_number() {
    let numbers = Numbers::default();
    let count =
        |state: &'static str, count| crate::ResourceCount { authority: "a".into(), type_url: "t".into(), state, count };
    let key = |state| {
        format!(
            "grpc.xds_client.resources grpc.target= grpc.xds.authority=a grpc.xds.cache_state={state} grpc.xds.resource_type=t"
        )
    };
    let recorded = Recorded::new("");
    with_local_recorder(&numbers, || recorded.record(&[count("requested", 2), count("acked", 1)]));
    assert_eq!(numbers.all(), [is(&key("acked"), 1.0), is(&key("requested"), 2.0)]);
    with_local_recorder(&numbers, || recorded.record(&[count("acked", 3)]));
    assert_eq!(numbers.all(), [is(&key("acked"), 3.0), is(&key("requested"), 0.0)]);
}

#[test]
fn a_server_that_fails_is_counted_and_what_is_not_wanted_is_not_connected() {
    let numbers = Numbers::default();
    with_local_recorder(&numbers, || {
        let recorded = Recorded::new("mine");
        recorded.connected("s", Some(true));
        recorded.server_failure("s");
        recorded.server_failure("s");
        recorded.connected("s", None);
        recorded.load_left_out("s", "calls", 3);
    });
    let of = "grpc.target=mine grpc.xds.server=s";
    let expected = [
        is(&format!("grpc.xds_client.connected {of}"), 0.0),
        is(&format!("grpc.xds_client.server_failure {of}"), 2.0),
        is(&format!("xdstp_client.load_left_out {of} what=calls"), 3.0),
    ];
    assert_eq!(numbers.all(), expected);
}
