//! What may be wrong with a response, of each type: S85 to S108.

use super::responses::{body, response, wrapper};
use super::*;

/// What a server sends, whether it is refused, and what who watches `x` and `y` of it hears.
type Case = (&'static str, fn(&str) -> Vec<Sent>, Option<&'static str>, [&'static str; 2]);

/// A name, a version, what is said to be its type if that is another, and what is in it if that is no message of its name.
struct Sent(&'static str, &'static str, Option<&'static str>);

const NOTHING: &str = "";

fn cases() -> [Case; 6] {
    [
        ("badly marshaled", |_| vec![Sent("x", "bad", None)], Some("x: bad is bad"), ["failed x: invalid", NOTHING]),
        ("empty", |_| vec![], None, [NOTHING; 2]),
        (
            "of an unexpected type",
            |_| vec![Sent("x", "1", Some("type.googleapis.com/example.Other"))],
            Some("x: "),
            ["failed x: invalid", NOTHING],
        ),
        (
            "one bad of two",
            |_| vec![Sent("x", "bad", None), Sent("y", "1", None)],
            Some("x: bad is bad"),
            ["failed x: invalid", "put y 1"],
        ),
        ("one good", |_| vec![Sent("x", "1", None)], None, ["put x 1", NOTHING]),
        ("two when one is asked for", |_| vec![Sent("x", "1", None), Sent("z", "1", None)], None, ["put x 1", NOTHING]),
    ]
}

/// A resource of each of the types, which is read as a [`Cluster`] is.
macro_rules! of_types {
    ($($name:ident = $type_url:expr),*) => {
        $(
            struct $name;

            impl Resource for $name {
                fn type_url() -> String {
                    $type_url.into()
                }

                fn decode(message: Bytes) -> Result<Self, Reason> {
                    Cluster::decode(message).map(|_| Self)
                }
            }
        )*
        fn of_each_type(mut scenario: impl Scenario) {
            $(scenario.run::<$name>($type_url);)*
        }
    };
}

of_types!(Listener = LDS, Route = RDS, OfCds = CDS, Endpoints = EDS);

trait Scenario {
    fn run<R: Resource>(&mut self, type_url: &str);
}

struct Table(Protocol);

impl Scenario for Table {
    fn run<R: Resource>(&mut self, type_url: &str) {
        for (what, sent, refused, told) in cases() {
            let world = World::of(self.0, KEEPS);
            world.top().be_silent(true);
            let mut watches = ["x", "y"].map(|name| world.client.watch_as::<R>(name));
            world.network.settle();
            let resources: Vec<_> = sent(type_url)
                .iter()
                .map(|Sent(name, version, of)| {
                    let of = of.unwrap_or(type_url);
                    wrapper(name, version, body(of, name, version))
                })
                .collect();
            world.top().send(&response(self.0, type_url, &resources));
            world.network.settle();
            let context = format!("{what} {type_url} {:?}", self.0);
            let words = world.top().take_refused();
            assert_eq!(words.len(), usize::from(refused.is_some()), "{context}: {words:?}");
            assert!(
                words.iter().zip(refused).all(|(words, expected)| words.starts_with(expected)),
                "{context}: {words:?}"
            );
            for (watch, told) in watches.iter_mut().zip(told) {
                let heard = heard(watch);
                assert_eq!(heard.len(), usize::from(!told.is_empty()), "{context}: {heard:?}");
                assert!(heard.iter().all(|heard| heard.starts_with(told)), "{context}: {heard:?}");
            }
            assert_eq!(world.top().opened(), 1, "{context}: no stream ends for it");
            // What nobody asked for is not there for who comes now.
            assert_eq!(heard(&mut world.client.watch(type_url, "z")), [""; 0], "{context}");
        }
    }
}

#[test]
fn s085_to_s108_what_is_wrong_with_a_resource_is_its_own_and_the_rest_is_used() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        of_each_type(Table(protocol));
    }
}
