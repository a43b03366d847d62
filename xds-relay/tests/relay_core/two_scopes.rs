//! Names that more than one scope may have: rules 105, 152 and 153.

use prost::Message;
use xds_transport::wire::{DeltaDiscoveryResponse, DiscoveryResponse, Resource};

use crate::support::*;

const NAME: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/x";
const GLOB_MATE: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/mate";
const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";

/// An origin whose wildcard holds `xdstp:` names, and that has another body for who asks for them by name.
fn world() -> World {
    let mut world = World::new(DELTA);
    world.origins[0].wildcard_sends_xdstp_to("n");
    world.put(0, CLUSTERS, NAME, "named");
    let now = world.now;
    world.origins[0].put_frame(now, "n", CLUSTERS, NAME, "wild", frame(CLUSTERS, NAME, "wild"));
    world
}

#[test]
fn rule_152_a_name_in_two_scopes_is_told_once_from_the_more_specific_one() {
    for downstream in [DELTA, SOTW] {
        for specific in [NAME, GLOB] {
            for order in [["*", specific], [specific, "*"]] {
                let mut world = world();
                let client = world.client(downstream, "n");
                for interest in order {
                    world.subscribe(client, CLUSTERS, &[interest]);
                }
                world.advance(20 * SECOND);
                let case = format!("{downstream:?} {order:?}");
                assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@named")], "{case}");
                world.told(client);
                // The wildcard's changes are not its business, nor is it that it goes there.
                let now = world.now;
                world.origins[0].put_frame(now, "n", CLUSTERS, NAME, "wild2", frame(CLUSTERS, NAME, "wild2"));
                world.settle();
                assert_eq!(world.told(client), [""; 0], "nor is it told anew what it has: {case}");
                // When the specific one drops it, the other's is told.
                world.origins[0].remove_from(now, "", CLUSTERS, NAME);
                world.advance(20 * SECOND);
                assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@wild2")], "{case}");
                assert!(!world.told(client).join(" ").contains(" -"), "{case}");
                world.put(0, CLUSTERS, NAME, "again");
                assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@again")], "{case}");
                // And when the other drops it, nothing is.
                world.told(client);
                world.origins[0].remove_from(now, "n", CLUSTERS, NAME);
                world.advance(20 * SECOND);
                assert_eq!(world.told(client), [""; 0], "{case}");
                world.remove(0, CLUSTERS, NAME);
                world.advance(20 * SECOND);
                assert_eq!(world.clients[client].held(CLUSTERS), [""; 0], "{case}");
            }
        }
    }
}

#[test]
fn rule_152_an_error_of_one_scope_takes_nothing_away_that_another_has() {
    const UNAVAILABLE: i32 = 14;
    const NOT_FOUND: i32 = 5;
    for downstream in [DELTA, SOTW] {
        for specific in [NAME, GLOB] {
            let mut world = world();
            world.remove(0, CLUSTERS, NAME);
            let client = world.client(downstream, "n");
            world.subscribe(client, CLUSTERS, &["*", specific]);
            let now = world.now;
            let error = |code| xdstp_cache::ResourceError::new(code, "not today");
            world.origins[0].fail_for(now, "", CLUSTERS, NAME, &error(UNAVAILABLE));
            world.advance(20 * SECOND);
            world.told(client);
            world.origins[0].put_frame(now, "n", CLUSTERS, NAME, "wild", frame(CLUSTERS, NAME, "wild"));
            world.advance(20 * SECOND);
            let case = format!("{downstream:?} {specific}");
            assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@wild")], "{case}");
            // Said anew, and to who asks for it anew.
            for code in [NOT_FOUND, UNAVAILABLE] {
                world.told(client);
                world.clients[client].chunks.clear();
                world.origins[0].fail_for(now, "", CLUSTERS, NAME, &error(code));
                world.advance(20 * SECOND);
                assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@wild")], "{case}");
                assert!(!world.told(client).join(" ").contains(&format!("-{NAME}")), "for a moment: {case}");
                // Nor to who knows no errors, and looks at what stands beside one.
                let responses = world.clients[client].chunks.iter().filter(|_| downstream == DELTA);
                let responses = responses.map(|chunks| DeltaDiscoveryResponse::decode(&*chunks.concat()).unwrap());
                assert_eq!(responses.map(|response| response.removed_resources.len()).sum::<usize>(), 0, "{case}");
            }
            let later = world.client(downstream, "n");
            world.subscribe(later, CLUSTERS, &["*", specific]);
            world.advance(20 * SECOND);
            assert_eq!(world.clients[later].held(CLUSTERS), [format!("{NAME}@wild")], "{case}");
            // What the specific one had, the other has when it goes with an error.
            world.put(0, CLUSTERS, NAME, "named");
            assert_eq!(world.clients[later].held(CLUSTERS), [format!("{NAME}@named")], "{case}");
            world.origins[0].fail_for(now, "", CLUSTERS, NAME, &error(NOT_FOUND));
            world.advance(20 * SECOND);
            for client in [client, later] {
                assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@wild")], "{case}");
            }
        }
    }
}

/// What the more specific one has must not be shared: it is fetched, and the wildcard's is told only until then.
#[test]
fn rule_069_what_is_fetched_for_one_client_and_is_in_the_wildcard_is_named_once() {
    for downstream in [DELTA, SOTW] {
        for specific in [NAME, GLOB] {
            let mut world = world();
            let client = world.client(downstream, "n");
            world.subscribe(client, CLUSTERS, &["*", specific]);
            let now = world.now;
            world.origins[0].put_uncached(now, "", CLUSTERS, NAME, "named2");
            world.advance(20 * SECOND);
            let case = format!("{downstream:?} {specific}");
            world.told(client);
            // The client's own stream has it from what its node has.
            world.origins[0].put_frame(now, "n", CLUSTERS, NAME, "own", frame(CLUSTERS, NAME, "own"));
            world.advance(20 * SECOND);
            assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@own")], "{case}");
            assert_eq!(world.told(client).join(" ").matches("@own").count(), 1, "{case}");
        }
    }
}

/// However many names are in both: 2501 of them were once told to nobody.
#[test]
fn rule_152_many_names_in_two_scopes_are_told_once() {
    for downstream in [DELTA, SOTW] {
        for order in [["*", GLOB], [GLOB, "*"]] {
            let mut world = World::new(DELTA);
            world.origins[0].wildcard_sends_xdstp();
            let names: Vec<_> = (0..1000).map(|at| GLOB.replace('*', &format!("c{at}"))).collect();
            let now = world.now;
            for name in &names {
                world.origins[0].put(now, CLUSTERS, name, "1");
            }
            let client = world.client(downstream, "n");
            world.subscribe(client, CLUSTERS, &order);
            world.advance(20 * SECOND);
            assert_eq!(world.clients[client].held(CLUSTERS).len(), names.len(), "{downstream:?} {order:?}");
            world.told(client);
            for name in &names[1..] {
                world.origins[0].remove(now, CLUSTERS, name);
            }
            world.advance(20 * SECOND);
            let told = world.told(client).join(" ");
            assert_eq!(told.matches(" -").count(), names.len() - 1, "{downstream:?} {order:?}");
            assert_eq!(world.clients[client].held(CLUSTERS).len(), 1, "{downstream:?} {order:?}");
        }
    }
}

/// One scope's removals fill a response: those of the other followed in the next, of the same names.
#[test]
fn rule_152_what_went_from_two_scopes_is_told_once_however_many_responses_that_takes() {
    for order in [["*", GLOB], [GLOB, "*"]] {
        for wait in [SECOND / 100, 20 * SECOND] {
            let mut world = World::new(DELTA);
            world.origins[0].wildcard_sends_xdstp();
            let long = "x".repeat(1000);
            let names: Vec<_> = (0..900).map(|at| GLOB.replace('*', &format!("{long}{at}"))).collect();
            let now = world.now;
            for name in &names {
                world.origins[0].put(now, CLUSTERS, name, "1");
            }
            let client = world.client(DELTA, "n");
            world.subscribe(client, CLUSTERS, &order);
            world.advance(wait);
            world.told(client);
            for name in &names {
                world.origins[0].remove(now, CLUSTERS, name);
            }
            world.advance(40 * SECOND);
            let told = world.told(client);
            assert!(told.len() > 1, "{order:?}: in one response");
            let removed = told.join(" ").matches(&format!(" -{}", GLOB.replace('*', "x"))).count();
            assert_eq!(removed, names.len(), "{order:?} {wait:?}");
        }
    }
}

#[test]
fn rule_152_who_leaves_the_name_is_told_what_the_wildcard_has() {
    for specific in [NAME, GLOB] {
        let mut world = world();
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &["*", specific]);
        world.told(client);
        world.unsubscribe(client, CLUSTERS, &[specific]);
        assert_eq!(world.told(client), [format!("Cluster {NAME}@wild")]);
    }
}

/// No name stands twice in one response, over either protocol.
#[test]
fn rule_152_no_name_is_told_twice_to_who_resumes() {
    for downstream in [DELTA, SOTW] {
        let mut world = world();
        let client = world.client(downstream, "n");
        world.subscribe(client, CLUSTERS, &["*", NAME]);
        world.advance(20 * SECOND);
        world.told(client);
        world.disconnect(client);
        world.connect(client, 0);
        world.advance(20 * SECOND);
        let told = world.told(client).join(" ");
        assert!(!told.contains(" -") && told.matches(NAME).count() <= 1, "{downstream:?}: {told}");
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@named")]);
    }
}

/// What the name's own authority does not have is the wildcard's, whose origin answers later.
#[test]
fn rule_150_what_a_client_may_have_from_the_wildcard_is_not_gone_before_that_is_answered() {
    // The more specific one says that it has no such name, or why.
    for (there, code) in [true, false].into_iter().flat_map(|there| [(there, None), (there, Some(5)), (there, Some(7))])
    {
        let mut world = world();
        let now = world.now;
        world.origins[0].remove_from(now, "", CLUSTERS, NAME);
        if let Some(code) = code {
            world.origins[0].fail_for(now, "", CLUSTERS, NAME, &xdstp_cache::ResourceError::new(code, "not today"));
        }
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &["*", NAME]);
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@wild")]);
        let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
        let other = world.client_of(cold, DELTA, "m");
        world.subscribe(other, CLUSTERS, &[NAME]);
        world.disconnect(client);
        if !there {
            world.origins[0].remove_from(now, "n", CLUSTERS, NAME);
        }
        world.told(client);
        world.connect(client, cold);
        world.advance(20 * SECOND);
        assert_eq!(world.told(client).join(" ").contains(" -"), !there, "{code:?}");
        assert_eq!(world.clients[client].held(CLUSTERS).len(), usize::from(there), "{code:?}");
    }
}

/// Who leaves the wildcard for names of their own authorities, holds what it was sent until these have answered.
#[test]
fn rule_150_what_the_wildcard_had_stays_with_who_asks_for_it_by_its_name_instead() {
    for there in [true, false] {
        for specific in [NAME, GLOB] {
            let mut world = world();
            world.put(0, CLUSTERS, "c", "1");
            let now = world.now;
            world.origins[0].put_frame(now, "n", CLUSTERS, "c", "1", cluster("c", "1"));
            if !there {
                world.origins[0].remove_from(now, "", CLUSTERS, NAME);
            }
            let client = world.client(SOTW, "n");
            world.subscribe(client, CLUSTERS, &["*"]);
            world.advance(20 * SECOND);
            assert_eq!(world.clients[client].held(CLUSTERS).len(), 2);
            world.origins[0].silent = true;
            // In one request.
            world.clients[client].subscribe(CLUSTERS, &["c", specific]);
            world.clients[client].unsubscribe(CLUSTERS, &["*"]);
            world.advance(60 * SECOND);
            // Over SotW, what is not in it is gone.
            let has_name = |chunks: &Vec<bytes::Bytes>| {
                let response = DiscoveryResponse::decode(&*chunks.concat()).unwrap();
                response.resources.iter().any(|any| any.value.windows(NAME.len()).any(|part| part == NAME.as_bytes()))
            };
            assert!(world.clients[client].chunks.iter().all(has_name), "{specific}");
            world.origins[0].silent = false;
            world.advance(60 * SECOND);
            let held = if there { vec!["c@1".to_owned(), format!("{NAME}@named")] } else { vec!["c@1".to_owned()] };
            assert_eq!(world.clients[client].held(CLUSTERS), held, "{specific}");
        }
    }
}

/// What a wildcard without names of other scopes had says nothing of these: no answer of theirs is waited for.
#[test]
fn rule_037_who_leaves_a_wildcard_of_old_style_names_is_told_of_them_while_the_origin_of_others_is_silent() {
    for also in [None, Some(NAME)] {
        let mut world = World::of(&[DELTA, DELTA], &[&[], &["b"]], "");
        world.origins[0].wildcard_sends_xdstp();
        world.put(0, CLUSTERS, "c", "1");
        if let Some(name) = also {
            world.put(0, CLUSTERS, name, "1");
        }
        let client = world.client(SOTW, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(20 * SECOND);
        world.told(client);
        world.origins[1].silent = true;
        // In one request.
        world.clients[client].subscribe(CLUSTERS, &["c", &GLOB.replace("//a/", "//b/")]);
        world.clients[client].unsubscribe(CLUSTERS, &["*"]);
        world.advance(20 * SECOND);
        world.put(0, CLUSTERS, "c", "2");
        world.advance(60 * SECOND);
        // Such a wildcard might have had what the other origin is to say.
        assert_eq!(world.told(client).join(" ").contains("c@2"), also.is_none(), "{also:?}");
    }
}

/// A type that is sent again to who resumes (rule 49) is held all the same.
#[test]
fn rule_150_nor_is_what_is_asked_for_anew_by_its_name() {
    let name = endpoints("a", "g/x");
    let mut world = World::new(DELTA);
    world.origins[0].wildcard_sends_xdstp_to("n");
    let now = world.now;
    world.origins[0].put_frame(now, "n", ENDPOINTS, &name, "wild", frame(ENDPOINTS, &name, "wild"));
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["*", &name]);
    world.advance(20 * SECOND);
    let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
    let other = world.client_of(cold, DELTA, "m");
    world.subscribe(other, ENDPOINTS, &[&name]);
    world.disconnect(client);
    world.told(client);
    world.connect(client, cold);
    world.advance(20 * SECOND);
    assert!(!world.told(client).join(" ").contains(" -"));
    assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{name}@wild")]);
}

/// That the specific one has not answered all of it says nothing of a name that the client has from the other.
#[test]
fn rule_152_what_was_told_from_the_wildcard_is_told_as_gone_before_the_glob_is_answered_too() {
    for upstream in [DELTA, SOTW] {
        for reconnects in [false, true] {
            let mut world = World::new(upstream);
            world.origins[0].wildcard_sends_xdstp_to("n");
            world.put(0, CLUSTERS, GLOB_MATE, "named");
            world.put(0, CLUSTERS, NAME, "named");
            let now = world.now;
            world.origins[0].put_frame(now, "n", CLUSTERS, NAME, "wild", frame(CLUSTERS, NAME, "wild"));
            let client = world.client(DELTA, "n");
            world.subscribe(client, CLUSTERS, &["*", GLOB]);
            if reconnects {
                world.advance(20 * SECOND);
            }
            let case = format!("{upstream:?} {reconnects}");
            world.origins[0].remove_from(now, "", CLUSTERS, NAME);
            world.settle();
            let [mate, wild] = [format!("{GLOB_MATE}@named"), format!("{NAME}@wild")];
            assert_eq!(world.clients[client].held(CLUSTERS), [mate.clone(), wild], "{case}");
            if reconnects {
                world.set_up(0, false);
                world.settle();
            }
            world.origins[0].remove_from(now, "n", CLUSTERS, NAME);
            world.set_up(0, true);
            world.advance(60 * SECOND);
            assert_eq!(world.clients[client].held(CLUSTERS), [mate], "{case}");
        }
    }
}

/// The more specific one is asked first, and says of its glob that all is as it was: nothing.
#[test]
fn rule_152_what_the_wildcard_has_is_told_once_the_more_specific_one_has_answered_without_it() {
    for upstream in [DELTA, SOTW] {
        let mut world = World::new(upstream);
        world.origins[0].wildcard_sends_xdstp_to("n");
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &[GLOB]);
        world.advance(20 * SECOND);
        world.set_up(0, false);
        let other = world.client(DELTA, "n");
        world.subscribe(other, CLUSTERS, &["*"]);
        world.subscribe(client, CLUSTERS, &["*"]);
        world.advance(SECOND);
        let now = world.now;
        world.origins[0].put_frame(now, "n", CLUSTERS, NAME, "wild", frame(CLUSTERS, NAME, "wild"));
        world.set_up(0, true);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@wild")], "{upstream:?}");
    }
}

/// Its origin says nothing of it, and so nothing happens but that it is left.
#[test]
fn rule_152_who_leaves_what_was_not_answered_is_told_what_the_wildcard_has() {
    const NAME: &str = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/g/x";
    for downstream in [DELTA, SOTW] {
        for specific in [NAME, "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/g/*"] {
            let mut world = World::new(SOTW);
            world.origins[0].wildcard_sends_xdstp_to("n");
            let client = world.client(downstream, "n");
            world.subscribe(client, ENDPOINTS, &["*"]);
            world.subscribe(client, ENDPOINTS, &[specific]);
            let now = world.now;
            world.origins[0].put_frame(now, "n", ENDPOINTS, NAME, "wild", frame(ENDPOINTS, NAME, "wild"));
            world.settle();
            let case = format!("{downstream:?} {specific}");
            assert_eq!(world.clients[client].held(ENDPOINTS), [""; 0], "{case}");
            world.unsubscribe(client, ENDPOINTS, &[specific]);
            assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{NAME}@wild")], "{case}");
        }
    }
}

/// What it had from the wildcard, and asks for by name still, is gone with the wildcard if nobody else has it.
#[test]
fn rule_152_who_leaves_the_wildcard_is_told_what_the_more_specific_one_has() {
    for (named, told) in [(true, format!("{NAME}@named")), (false, format!("-{NAME}"))] {
        for specific in [NAME, GLOB] {
            let mut world = world();
            let now = world.now;
            world.origins[0].remove_from(now, "", CLUSTERS, NAME);
            let client = world.client(DELTA, "n");
            world.subscribe(client, CLUSTERS, &[specific]);
            world.subscribe(client, CLUSTERS, &["*"]);
            world.advance(20 * SECOND);
            assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@wild")]);
            world.told(client);
            if named {
                world.put(0, CLUSTERS, NAME, "named");
            }
            world.unsubscribe(client, CLUSTERS, &["*"]);
            assert_eq!(world.told(client), [format!("Cluster {told}")], "{specific}");
        }
    }
}

/// A SotW client that has one of two interests in a name left hears of it once.
#[test]
fn rule_152_a_name_that_changes_as_its_more_specific_interest_goes_is_told_once() {
    let name = endpoints("a", "g/x");
    let mut world = World::new(DELTA);
    world.origins[0].wildcard_sends_xdstp_to("n");
    world.put(0, ENDPOINTS, &name, "named");
    let client = world.client(SOTW, "n");
    world.subscribe(client, ENDPOINTS, &["*", &name]);
    world.advance(20 * SECOND);
    world.told(client);
    let now = world.now;
    world.clients[client].unsubscribe(ENDPOINTS, &[&name]);
    world.origins[0].put_frame(now, "n", ENDPOINTS, &name, "wild", frame(ENDPOINTS, &name, "wild"));
    world.advance(20 * SECOND);
    assert_eq!(world.told(client), [format!("ClusterLoadAssignment {name}@wild")]);
}

#[test]
fn rule_153_an_origin_does_not_set_names_of_another_origins_authorities() {
    for upstream in [DELTA, SOTW] {
        for downstream in [DELTA, SOTW] {
            let mut world = World::of(&[upstream, DELTA], &[&["mine"], &["a"]], "");
            world.origins[0].wildcard_sends_xdstp();
            let [mine, nobodys] = ["mine", "b"].map(|authority| NAME.replace("//a/", &format!("//{authority}/")));
            for name in ["old", &mine, &nobodys, NAME] {
                world.put(0, CLUSTERS, name, "o0");
            }
            let client = world.client(downstream, "n");
            world.subscribe(client, CLUSTERS, &["*"]);
            world.advance(20 * SECOND);
            let held = ["old@o0".to_owned(), format!("{nobodys}@o0"), format!("{mine}@o0")];
            assert_eq!(world.clients[client].held(CLUSTERS), held, "{upstream:?} {downstream:?}");
            world.put(1, CLUSTERS, NAME, "o1");
            world.subscribe(client, CLUSTERS, &[NAME]);
            world.advance(20 * SECOND);
            assert!(world.clients[client].held(CLUSTERS).contains(&format!("{NAME}@o1")));
            // Nor does it remove them.
            world.remove(0, CLUSTERS, NAME);
            world.advance(20 * SECOND);
            assert!(world.clients[client].held(CLUSTERS).contains(&format!("{NAME}@o1")));
            assert!(world.metrics_of(0).contains("xds_relay_upstream_refused_total{origin=\"o0\"}"));
            assert!(world.asked(0).iter().any(|line| line.contains("NACK") && line.contains(NAME)));
        }
    }
}

#[test]
fn rule_105_an_alias_of_another_authority_is_followed() {
    let mut world = World::of(&[DELTA], &[&["a", "b"]], "");
    let alias = NAME.replace("//a/", "//b/");
    let put = |world: &mut World, version: &str, aliases: &[&str]| {
        let wrapper =
            Resource { aliases: aliases.iter().map(|alias| (*alias).into()).collect(), ..Resource::default() };
        let frame = frame(CLUSTERS, NAME, version).with_wrapper(wrapper.encode_to_vec().into(), None, false);
        let now = world.now;
        world.origins[0].put_frame(now, "", CLUSTERS, NAME, version, frame);
        world.settle();
    };
    put(&mut world, "1", &[&alias]);
    let [by_alias, by_both, by_name] = ["n1", "n2", "n3"].map(|node| world.client(DELTA, node));
    world.subscribe(by_alias, CLUSTERS, &[&alias]);
    assert_eq!(world.told(by_alias), [format!("Cluster {NAME}@1")]);
    world.subscribe(by_both, CLUSTERS, &[&alias, NAME]);
    world.subscribe(by_name, CLUSTERS, &[NAME]);
    for client in [by_both, by_name] {
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@1")]);
        world.told(client);
    }
    put(&mut world, "2", &[&alias]);
    for client in [by_alias, by_both, by_name] {
        assert_eq!(world.told(client), [format!("Cluster {NAME}@2")]);
    }
    // Without the alias it is nothing to who asked for that.
    put(&mut world, "3", &[]);
    assert_eq!(world.clients[by_alias].held(CLUSTERS), [""; 0]);
    for client in [by_both, by_name] {
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{NAME}@3")]);
    }
    put(&mut world, "4", &[&alias]);
    assert_eq!(world.clients[by_alias].held(CLUSTERS), [format!("{NAME}@4")]);
    world.remove(0, CLUSTERS, NAME);
    for client in [by_alias, by_both, by_name] {
        assert_eq!(world.clients[client].held(CLUSTERS), [""; 0]);
    }
}
