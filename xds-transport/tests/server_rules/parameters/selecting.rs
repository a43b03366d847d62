//! Which variant a client is sent, and how it goes.

use super::*;

#[test]
fn rule_119_each_client_is_sent_the_variant_that_its_parameters_satisfy() {
    let (mut server, ..) = with_two_variants();
    let mut client = Client::new(Dialect::Final);
    // A parameter that no variant is about is ignored.
    assert_eq!(client.locate(&mut server, &[("cart", "env=prod,zone=a")]), ["cart{env=prod}@1"]);
    let mut other = Client::new(Dialect::Final);
    assert_eq!(other.locate(&mut server, &[("cart", "env=test")]), ["cart{env=test}@2"]);
    let mut none = Client::new(Dialect::Final);
    assert_eq!(none.locate(&mut server, &[("cart", "env=qa")]), ["-cart"]);
}

#[test]
fn rule_119_a_swap_is_one_response_with_what_comes_and_what_goes() {
    let (mut server, prod, _) = with_two_variants();
    let mut client = Client::new(Dialect::Final);
    client.locate(&mut server, &[("cart", "env=prod,v=1")]);
    let (first, second) = (constraints("env=prod and v=1"), constraints("env=prod and v=2"));
    change(&mut server, "cart", &[(&first, "3"), (&second, "4")], &[&prod]);
    assert_eq!(client.poll(&mut server), ["-cart{env=prod} cart{env=prod and v=1}@3"]);
    change(&mut server, "cart", &[(&second, "5")], &[]);
    assert_eq!(client.poll(&mut server), [""; 0], "what changed is for others");
    change(&mut server, "cart", &[], &[&first]);
    assert_eq!(client.poll(&mut server), ["-cart{env=prod and v=1}"]);
}

#[test]
fn rule_119_who_sends_no_parameters_is_sent_names() {
    let mut server = Server::origin();
    let everybody = constraints("not exists(env)");
    let prod = constraints("env=prod");
    change(&mut server, "cart", &[(&everybody, "1"), (&prod, "2")], &[]);
    let mut client = Client::new(Dialect::Final);
    assert_eq!(client.ask(&mut server, &Ask { names: &["cart"], ..Ask::default() }), ["cart@1"]);
    change(&mut server, "cart", &[], &[&everybody]);
    assert_eq!(client.poll(&mut server), ["-cart"]);
}

#[test]
fn rule_120_names_and_locators_may_be_mixed() {
    let (mut server, ..) = with_two_variants();
    server.put(CLUSTERS, "plain", "7");
    let mut client = Client::new(Dialect::Final);
    let ask = Ask { names: &["plain"], locators: &[("cart", "env=prod")], ..Ask::default() };
    assert_eq!(client.ask(&mut server, &ask), ["cart{env=prod}@1 plain@7"]);
    server.put(CLUSTERS, "plain", "8");
    assert_eq!(client.poll(&mut server), ["plain@8"]);
}

#[test]
fn a_locator_alone_is_no_wildcard() {
    let (mut server, ..) = with_two_variants();
    server.put(CLUSTERS, "other", "1");
    let mut client = Client::new(Dialect::Final);
    assert_eq!(client.locate(&mut server, &[("cart", "env=prod")]), ["cart{env=prod}@1"]);
}

#[test]
fn a_glob_with_parameters_selects_of_each_member() {
    let mut server = Server::origin();
    let (one, two) = (constraints("shard=1"), constraints("shard=2"));
    let prefix = "xdstp://x/envoy.config.cluster.v3.Cluster/d";
    let (a, b) = (format!("{prefix}/a"), format!("{prefix}/b"));
    change(&mut server, &a, &[(&one, "1")], &[]);
    change(&mut server, &b, &[(&two, "2")], &[]);
    let mut client = Client::new(Dialect::Final);
    let glob = format!("{prefix}/*");
    assert_eq!(client.locate(&mut server, &[(&glob, "shard=1")]), [format!("{a}{{shard=1}}@1")]);
    // The member moves to the shard of the client.
    change(&mut server, &b, &[(&one, "3")], &[&two]);
    assert_eq!(client.poll(&mut server), [format!("{b}{{shard=1}}@3")]);
    change(&mut server, &a, &[(&two, "4")], &[&one]);
    assert_eq!(client.poll(&mut server), [format!("-{a}{{shard=1}}")]);
}

#[test]
fn a_locator_without_parameters_is_a_name_like_others() {
    let mut server = Server::origin();
    server.put(CLUSTERS, "plain", "7");
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let mut client = Client::over(protocol, Dialect::Final, Settings::default());
        let told = match protocol {
            Protocol::Delta => {
                let ask = Ask { names: &["plain"], locators: &[("plain", "")], ..Ask::default() };
                let told = client.ask(&mut server, &ask);
                server.put(CLUSTERS, "plain", "8");
                assert_eq!(client.poll(&mut server), ["plain@8"], "once");
                assert_eq!(client.ask(&mut server, &Ask { leaves: &[("plain", "")], ..Ask::default() }), [""; 0]);
                server.put(CLUSTERS, "plain", "7");
                assert_eq!(client.poll(&mut server), [""; 0], "left");
                told
            }
            Protocol::Sotw => {
                let told = client.want(&mut server, CLUSTERS, &["plain"], &[("plain", "")]);
                assert_eq!(client.want(&mut server, CLUSTERS, &[], &[]), [""; 0]);
                server.put(CLUSTERS, "plain", "8");
                assert_eq!(client.poll(&mut server), [""; 0], "an empty list is nothing");
                server.put(CLUSTERS, "plain", "7");
                told
            }
        };
        assert_eq!(told, ["plain@7"], "{protocol:?}");
    }
}

#[test]
fn an_error_names_what_was_located_in_the_spelling_of_the_client() {
    let (spelled, canonical) = ("xdstp://a/T/x?b=1&a=2", "xdstp://a/T/x?a=2&b=1");
    let mut server = Server::origin();
    let mut client = Client::new(Dialect::Final);
    client.locate(&mut server, &[(spelled, "env=prod")]);
    server.fail(CLUSTERS, canonical, 7);
    let told = client.poll(&mut server).join(" ");
    assert!(told.contains(&format!("!{spelled}:7")), "{told}");
}
