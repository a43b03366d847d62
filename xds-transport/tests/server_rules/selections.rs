//! One stream that asks with several sets of parameters, as a relay's may: whatever it asks for, leaves and is told, what it
//! holds in the end is what each set selects (TP2).

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use prost::Message;
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::parameters::Locator;
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest};
use xds_transport::{Dialect, Frame, Protocol, Response, TypeRules};
use xdstp_cache::{Selector, TypeUrl, Variant};
use xdstp_uri::ResourceName;

use crate::support::{CLUSTERS, Server, payload};

const NAMES: [&str; 4] =
    ["a", "b", "xdstp://x/envoy.config.cluster.v3.Cluster/d/1", "xdstp://x/envoy.config.cluster.v3.Cluster/d/2"];
const GLOB: &str = "xdstp://x/envoy.config.cluster.v3.Cluster/d/*";
/// What is asked for: each name, the members of the glob, and all that have no authority.
const INTERESTS: [&str; 6] = [NAMES[0], NAMES[1], NAMES[2], NAMES[3], GLOB, "*"];
const ENVS: [&str; 3] = ["prod", "test", "qa"];
/// Which variants a name may have at a time: none of them is for the same clients as another.
const SETS: [&[&str]; 6] = [
    &[],
    &["true"],
    &["exists(env)"],
    &["env=prod", "not env=prod"],
    &["env=prod", "env=test"],
    &["env=prod or env=test"],
];

#[derive(Clone, Debug)]
enum Op {
    /// A name has these variants from now on, at this version.
    Change {
        name: usize,
        set: usize,
        version: u8,
    },
    Subscribe {
        env: usize,
        interest: usize,
    },
    Leave {
        env: usize,
        interest: usize,
    },
    /// What the server has to say arrives.
    Hear,
}

fn op() -> impl Strategy<Value = Op> {
    let change = (0..NAMES.len(), 0..SETS.len(), 0..3_u8);
    let asked = || (0..ENVS.len(), 0..INTERESTS.len());
    prop_oneof![
        4 => change.prop_map(|(name, set, version)| Op::Change { name, set, version }),
        3 => asked().prop_map(|(env, interest)| Op::Subscribe { env, interest }),
        2 => asked().prop_map(|(env, interest)| Op::Leave { env, interest }),
        3 => Just(Op::Hear),
    ]
}

fn variant(text: &str) -> Variant {
    Variant::Constraints(text.parse().unwrap())
}

fn selector(env: usize) -> Selector {
    Selector::Parameters([("env", ENVS[env])].into_iter().collect())
}

struct World {
    server: Server,
    stream: Stream,
    wants: BTreeSet<(usize, usize)>,
    /// What the client has of each name, by whom it is for.
    held: BTreeMap<(String, Variant), String>,
    /// What there is of each name.
    there: BTreeMap<usize, (usize, u8)>,
    nonce: String,
}

impl World {
    fn new(protocol: Protocol) -> Self {
        Self {
            server: Server::origin(),
            stream: Stream::new(protocol, Settings::default()),
            wants: BTreeSet::new(),
            held: BTreeMap::new(),
            there: BTreeMap::new(),
            nonce: String::new(),
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Change { name, set, version } => self.change(name, set, version),
            Op::Subscribe { env, interest } => {
                if self.wants.insert((env, interest)) {
                    self.ask(&[(env, interest)], &[]);
                }
            }
            Op::Leave { env, interest } => {
                if self.wants.remove(&(env, interest)) {
                    self.ask(&[], &[(env, interest)]);
                    let Self { wants, held, .. } = self;
                    held.retain(|(name, variant), _| {
                        wants.iter().any(|(env, of)| covers(*of, name) && variant.is_for(&selector(*env)))
                    });
                }
            }
            Op::Hear => self.hear(),
        }
    }

    fn change(&mut self, name: usize, set: usize, version: u8) {
        let (of, parsed) = (TypeUrl::from(CLUSTERS), ResourceName::parse(NAMES[name]).unwrap());
        let before = self.there.insert(name, (set, version)).map_or(&[][..], |(set, _)| SETS[set]);
        let mut edit = self.server.cache.edit(self.server.now);
        for gone in before.iter().filter(|text| !SETS[set].contains(text)) {
            edit.remove_variant(&of, &parsed, &variant(gone));
        }
        for text in SETS[set] {
            let version = format!("{text}{version}");
            let frame = Frame::of_message(&of, &payload(NAMES[name], &version));
            edit.put_variant(&of, &parsed, &variant(text), frame.into_resource(Some(version.as_str().into())));
        }
        _ = edit.finish();
    }

    fn ask(&mut self, subscribe: &[(usize, usize)], leave: &[(usize, usize)]) {
        let locator = |(env, interest): &(usize, usize)| {
            Locator::new(INTERESTS[*interest], selector(*env)).encode(Dialect::Final).unwrap()
        };
        let request = match self.stream.protocol() {
            Protocol::Delta => DeltaDiscoveryRequest {
                type_url: CLUSTERS.into(),
                resource_locators_subscribe: subscribe.iter().map(locator).collect(),
                resource_locators_unsubscribe: leave.iter().map(locator).collect(),
                ..Default::default()
            }
            .encode_to_vec(),
            Protocol::Sotw => DiscoveryRequest {
                type_url: CLUSTERS.into(),
                resource_locators: self.wants.iter().map(locator).collect(),
                response_nonce: self.nonce.clone(),
                ..Default::default()
            }
            .encode_to_vec(),
        };
        self.stream.handle_message(self.server.now, request.into(), &mut self.server.cache).unwrap();
    }

    fn hear(&mut self) {
        while let Some(transmit) = self.stream.poll_transmit(self.server.now, &mut self.server.cache).unwrap() {
            let message = transmit.into_bytes();
            let response = match self.stream.protocol() {
                Protocol::Delta => Response::from_delta(message).unwrap(),
                Protocol::Sotw => Response::from_sotw(message, &TypeRules::envoy()).unwrap(),
            };
            assert_eq!(response.rejected, []);
            if self.stream.protocol() == Protocol::Sotw {
                self.held.clear();
            }
            for name in &response.removed {
                self.held.retain(|(held, _), _| held != name.as_str());
            }
            for (name, variant) in response.removed_variants {
                self.held.remove(&(name.to_string(), variant));
            }
            for resource in response.resources {
                let variant = resource.frame.unwrap().variant().map_or(Variant::plain().clone(), |of| (**of).clone());
                self.held.insert((resource.name.to_string(), variant), resource.version.unwrap().to_string());
            }
            self.nonce = response.nonce;
            let ack = match self.stream.protocol() {
                Protocol::Delta => DeltaDiscoveryRequest {
                    type_url: CLUSTERS.into(),
                    response_nonce: self.nonce.clone(),
                    ..Default::default()
                }
                .encode_to_vec(),
                Protocol::Sotw => {
                    self.ask(&[], &[]);
                    continue;
                }
            };
            self.stream.handle_message(self.server.now, ack.into(), &mut self.server.cache).unwrap();
        }
    }

    /// For each set of parameters, what the client has is what is there for it.
    fn check(&self) {
        for (env, interest) in &self.wants {
            let (selector, names) = (selector(*env), NAMES.iter().enumerate());
            for (at, name) in names.filter(|(_, name)| covers(*interest, name)) {
                let there = self.there.get(&at).and_then(|(set, version)| {
                    let text = SETS[*set].iter().find(|text| variant(text).is_for(&selector))?;
                    Some(format!("{text}{version}"))
                });
                let held = self.held.iter().filter(|((held, of), _)| held == name && of.is_for(&selector));
                let held: Vec<_> = held.map(|(_, version)| version.clone()).collect();
                assert_eq!(held, there.into_iter().collect::<Vec<_>>(), "{name} for {}", ENVS[*env]);
            }
        }
    }
}

fn covers(interest: usize, name: &str) -> bool {
    match INTERESTS[interest] {
        "*" => !name.starts_with("xdstp:"),
        GLOB => name.starts_with("xdstp:"),
        own => own == name,
    }
}

proptest! {
    #[test]
    fn what_each_set_of_parameters_selects_is_held_in_the_end(ops in prop::collection::vec(op(), 1..40)) {
        for protocol in [Protocol::Delta, Protocol::Sotw] {
            let mut world = World::new(protocol);
            ops.iter().for_each(|op| world.apply(op));
            world.hear();
            world.check();
            world.stream.close(&mut world.server.cache);
            prop_assert_eq!(world.server.cache.subscriber_count(), 0);
        }
    }
}
