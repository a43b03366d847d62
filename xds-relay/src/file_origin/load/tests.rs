use std::env::VarError;
use std::fs;

use super::*;

const CLUSTER: &str = "\"@type\": x/envoy.config.cluster.v3.Cluster";
const MANAGER: &str = "\"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: a";

/// What an origin of these files, and one of another authority, has.
fn origin(files: &[(&str, String)]) -> Result<LoadedOrigin, String> {
    let directory = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| fs::write(directory.path().join(name), text).unwrap());
    let text = "origins: [{ name: files, files: . }, { name: up, server: 'a:1', authorities: [theirs] }]\n\
                default_origin: files\n";
    let config = Config::parse(directory.path().join("relay.yaml"), text).unwrap();
    let (path, descriptors) = config.origins[0].kind.files().unwrap();
    let place = format!("{}/./", directory.path().display());
    load_origin(&config, &config.origins[0], path, descriptors).map_err(|error| error.to_string().replace(&place, ""))
}

fn resources(list: &[&str]) -> String {
    format!("resources:\n- {}\n", list.join("\n- "))
}

#[test]
fn all_that_is_wrong_in_all_files_is_told_at_once() {
    let cluster = |more: &str| format!("{{ {CLUSTER}, {more} }}");
    let bad = resources(&[&cluster("nmae: a"), &cluster("name: b"), &cluster("name: c, connect_timeout: soon")]);
    let files = [
        ("1.yaml", bad),
        ("2.yaml", "resources: [".to_owned()),
        (
            "3.yaml",
            resources(&[&cluster("name: b"), &cluster("name: 'xdstp://theirs/envoy.config.cluster.v3.Cluster/x'")]),
        ),
        ("4.yaml", resources(&[&cluster("name: good")])),
    ];
    let told = origin(&files).unwrap_err();
    let places: Vec<_> = told.lines().map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": ")).collect();
    assert!(places[0].starts_with("origin \"files\": 1.yaml:2:"), "{told}");
    assert_eq!(places.len(), 5, "{told}");
    assert!(places[1].starts_with("1.yaml:4:") && places[1].contains("resources[2].connect_timeout"), "{told}");
    assert!(places[2].starts_with("2.yaml:"), "{told}");
    assert_eq!(places[3..], ["3.yaml:2:3: resources[0]", "3.yaml:3:3: resources[1]"], "{told}");
}

#[test]
fn of_very_much_that_is_wrong_so_much_is_told_and_how_much_more_there_is() {
    let bad = resources(&["5"; 100]);
    let told = origin(&[("1.yaml", bad)]).unwrap_err();
    assert_eq!((told.lines().count(), told.lines().last()), (21, Some("and 80 others")), "{told}");
}

#[test]
fn what_is_referred_to_and_is_in_no_file_is_noted_with_its_place() {
    let route = "{ match: { prefix: / }, route: { cluster: there } }";
    let weighted = "{ match: { prefix: / }, route: { weighted_clusters: { clusters: [{ name: there }, { name: lost, weight: 1 }] } } }";
    let routes = |name: &str, routes: &str| {
        format!("name: {name}, virtual_hosts: [{{ name: v, domains: ['*'], routes: [{routes}] }}]")
    };
    let filter = |inside: &str| format!("{{ name: f, typed_config: {{ {MANAGER}, {inside} }} }}");
    let rds = |name: &str| filter(&format!("rds: {{ route_config_name: {name}, config_source: {{ ads: {{}} }} }}"));
    let inline =
        filter(&format!("route_config: {{ {} }}", routes("i", "{ match: { prefix: / }, route: { cluster: inline } }")));
    let tcp = "{ name: t, typed_config: { \"@type\": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: a, cluster: tcp } }";
    let listener = |name: &str, filters: &str| {
        format!(
            "{{ \"@type\": x/envoy.config.listener.v3.Listener, name: {name}, filter_chains: [{{ filters: [{filters}] }}] }}"
        )
    };
    let configuration = |inside: &str| format!("{{ \"@type\": x/envoy.config.route.v3.RouteConfiguration, {inside} }}");
    let theirs = "\"xdstp://theirs/envoy.config.route.v3.RouteConfiguration/x\"";
    let files = [
        (
            "a.yaml",
            resources(&[&listener("one", &[rds("r"), rds("gone"), rds(theirs), inline, tcp.to_owned()].join(", "))]),
        ),
        ("b.yaml", resources(&[&configuration(&routes("r", &format!("{route}, {weighted}")))])),
        (
            "c.yaml",
            resources(&[&format!(
                "{{ {CLUSTER}, name: there, type: EDS, eds_cluster_config: {{ service_name: s, eds_config: {{ ads: {{}} }} }} }}"
            )]),
        ),
        ("d.yaml", resources(&[&format!("{{ name: other, aliases: [tcp], resource: {{ {CLUSTER}, name: other }} }}")])),
    ];
    let loaded = origin(&files).unwrap();
    assert_eq!(loaded.resources.len(), 4);
    let mut told: Vec<_> = loaded
        .dangling
        .iter()
        .map(|error| format!("{}:{} {}", error.file.file_name().unwrap().display(), error.line.unwrap(), error.reason))
        .collect();
    told.sort();
    let expected = [
        "a.yaml:2 Listener `one` refers to Cluster `inline`, which no file has",
        "a.yaml:2 Listener `one` refers to RouteConfiguration `gone`, which no file has",
        "b.yaml:2 RouteConfiguration `r` refers to Cluster `lost`, which no file has",
        "c.yaml:2 Cluster `there` refers to ClusterLoadAssignment `s`, which no file has",
    ];
    assert_eq!(told, expected);
}

#[test]
fn mirrors_and_the_routes_of_an_api_listener_refer_to_clusters_too() {
    let mirror = |name: &str| format!("request_mirror_policies: [{{ cluster: {name} }}]");
    let route = |inside: &str| format!("{{ match: {{ prefix: / }}, route: {{ cluster: there, {inside} }} }}");
    let host = |of: &str| {
        let routes = route(&mirror(&format!("{of}-route")));
        format!("name: {of}, domains: ['*'], {}, routes: [{routes}]", mirror(&format!("{of}-host")))
    };
    let routes =
        |of: &str| format!("name: {of}, {}, virtual_hosts: [{{ {} }}]", mirror(&format!("{of}-all")), host(of));
    let api = format!("api_listener: {{ api_listener: {{ {MANAGER}, route_config: {{ {} }} }} }}", routes("api"));
    let files = [(
        "a.yaml",
        resources(&[
            &format!("{{ {CLUSTER}, name: there }}"),
            &format!("{{ \"@type\": x/envoy.config.route.v3.RouteConfiguration, {} }}", routes("rds")),
            &format!("{{ \"@type\": x/envoy.config.listener.v3.Listener, name: l, {api} }}"),
            &format!(
                "{{ name: rds/vhds, resource: {{ \"@type\": x/envoy.config.route.v3.VirtualHost, {} }} }}",
                host("vhds")
            ),
        ]),
    )];
    let loaded = origin(&files).unwrap();
    let told = |error: &FileError| error.reason.split('`').skip(1).step_by(2).collect::<Vec<_>>().join(" ");
    let mut told: Vec<_> = loaded.dangling.iter().map(told).collect();
    told.sort();
    let expected = [
        "l api-all",
        "l api-host",
        "l api-route",
        "rds rds-all",
        "rds rds-host",
        "rds rds-route",
        "rds/vhds vhds-host",
        "rds/vhds vhds-route",
    ];
    assert_eq!(told, expected);
}

#[test]
fn variants_that_have_not_the_same_keys_are_noted() {
    let variant = |name: &str, constraints: &str| {
        let of = format!("resource_name: {{ name: {name}, dynamic_parameter_constraints: {constraints} }}");
        format!("{{ {of}, resource: {{ {CLUSTER}, name: {name} }} }}")
    };
    let files = [
        (
            "a.yaml",
            resources(&[&variant("a", "env=prod"), &variant("b", "env=prod and v=1"), &variant("c", "env=prod")]),
        ),
        (
            "b.yaml",
            resources(&[
                &variant("a", "not env=prod"),
                &variant("b", "env=test"),
                &format!("{{ {CLUSTER}, name: d }}"),
            ]),
        ),
    ];
    let loaded = origin(&files).unwrap();
    let told: Vec<_> = loaded.other_keys.iter().map(ToString::to_string).collect();
    let [told] = &told[..] else { panic!("{told:?}") };
    let words = "b.yaml:3:3: Cluster `b` for `env=test` has the keys `env`, and that for `env=prod and v=1` has `env`, `v`: TP2 would have \
                 all variants of a name have the same";
    assert!(told.ends_with(words), "{told}");
}

/// A directory with these files and this environment.
fn of_environment(files: &[(&str, String)], variables: &'static [(&str, &str)]) -> Result<Vec<FileResource>, String> {
    let directory = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, text)| fs::write(directory.path().join(name), text).unwrap());
    let variable = |name: &str| {
        variables
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
            .ok_or(VarError::NotPresent)
    };
    let descriptors = Descriptors::built_in().unwrap().with_validation();
    let directory = Directory {
        environment: Some(Environment::new(variable)),
        ..Directory::new(directory.path().to_owned(), descriptors, Served::default())
    };
    let place = format!("{}/", directory.path.display());
    let told = |error: FileError| {
        // `expected` is a value of a test, and a word of errors.
        let values = variables.iter().map(|(_, value)| *value).filter(|value| value.len() > 6 && *value != "expected");
        values.for_each(|value| assert!(!format!("{error:?}").contains(value), "{error:?}"));
        error.to_string().replace(&place, "")
    };
    Ok(directory.read().map_err(told)?.resources)
}

const LISTENER: &str = "\"@type\": x/envoy.config.listener.v3.Listener";

#[test]
fn values_of_files_take_what_the_environment_has_where_they_may() {
    let text =
        "resources:\n- \"@type\": x/envoy.config.listener.v3.Listener\n  name: 'l-${X:-1}-$${X}'\n  address:\n    \
                socket_address:\n      address: \"${HOST}\"\n      port_value: ${PORT}\n"
            .to_owned();
    let variables = &[("HOST", "1.2.3.4\", x: [{"), ("PORT", "80")];
    let read = of_environment(&[("a.yaml", text)], variables).unwrap();
    assert_eq!(read[0].name, "l-1-${X}");
    let json = Descriptors::built_in().unwrap().to_json(&read[0].type_url, &read[0].value);
    let address = &json["address"]["socket_address"];
    assert_eq!((&address["address"], &address["port_value"]), (&"1.2.3.4\", x: [{".into(), &80.into()));

    let plain = origin(&[("a.yaml", resources(&[&format!("{{ {CLUSTER}, name: '${{X}}-$${{Y}}' }}")]))]).unwrap();
    assert_eq!(plain.resources[0].name, "${X}-$${Y}", "without the option a text is what it is");
}

#[test]
fn what_the_environment_lacks_is_told_for_all_values_with_places() {
    let cluster = |name: &str| format!("{{ {CLUSTER}, name: '{name}' }}");
    let files = [
        ("1.yaml", resources(&[&cluster("${A}"), &cluster("b"), &cluster("x${C")])),
        ("2.yaml", "resources:\n- ${KEY}: ${B}\n".to_owned()),
    ];
    let told = of_environment(&files, &[]).unwrap_err();
    let told: Vec<_> = told.lines().collect();
    assert_eq!(told[0], "1.yaml:2:55: resources[0].name: `${A}`: the environment has no A, and there is no default");
    assert!(told[1].starts_with("1.yaml:4:55: resources[2].name: `${` is never closed"), "{told:?}");
    assert!(told[2].starts_with("2.yaml:2:11: resources[0].${KEY}: `${B}`: the environment has no B"), "{told:?}");
    assert_eq!(told.len(), 3);

    let many = of_environment(&[("1.yaml", resources(&["\"${A}\""; 5000]))], &[]).unwrap_err();
    assert_eq!(many.lines().last(), Some("and 80 others"));
}

#[test]
fn what_the_environment_has_is_in_no_error() {
    let variables = &[("S", "hunter22"), ("Q", "hun\"ter\n2"), ("P", "99999"), ("T", "hu")];
    let wrapped = |name: &str| format!("{{ name: x, resource: {{ {CLUSTER}, name: {name} }} }}");
    for text in [
        format!("{{ {CLUSTER}, name: a, type: '${{S}}' }}"),
        format!("{{ {CLUSTER}, name: a, type: '${{Q}}' }}"),
        format!("{{ {CLUSTER}, name: a, connect_timeout: '${{S}}' }}"),
        format!("{{ {CLUSTER}, name: a, per_connection_buffer_limit_bytes: '${{T}}' }}"),
        format!("{{ {LISTENER}, name: a, address: {{ socket_address: {{ address: a, port_value: '${{P}}' }} }} }}"),
        format!("{{ {LISTENER}, name: a, address: {{ socket_address: {{ address: a, port_value: '${{S}}' }} }} }}"),
        "{ '@type': '${S}' }".to_owned(),
        "'${S}'".to_owned(),
        wrapped("'${S}'"),
        wrapped("'xdstp://${S}'"),
        format!("{{ {CLUSTER}, name: '${{S}}', connect_timeout: 0s }}"),
        format!("{{ name: a, ttl: '${{S}}', resource: {{ {CLUSTER}, name: a }} }}"),
        format!(
            "{{ resource_name: {{ dynamic_parameter_constraints: '${{S}} and' }}, resource: {{ {CLUSTER}, name: a }} }}"
        ),
    ] {
        let told = of_environment(&[("1.yaml", resources(&[&text]))], variables).unwrap_err();
        assert!(!told.contains("hunter") && !told.contains("ter\\n2") && !told.contains("99999"), "{text}: {told}");
        assert!(told.contains("1.yaml:2:"), "{told}");
    }
}

#[test]
fn files_of_directories_below_are_read_where_they_are_looked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir_all(path("b/c")).unwrap();
    let cluster = |name: &str| resources(&[&format!("{{ {CLUSTER}, name: {name} }}")]);
    fs::write(path("a.yaml"), cluster("a")).unwrap();
    fs::write(path("b/c/a.yaml"), cluster("c")).unwrap();
    let descriptors = Descriptors::built_in().unwrap();
    let read = |with_directories: bool| {
        let own = Directory::new(directory.path().to_owned(), descriptors.clone(), Served::default());
        let read = Directory { with_directories, ..own }.read();
        read.map(|loaded| loaded.resources.into_iter().map(|resource| resource.name).collect::<Vec<_>>())
    };
    assert_eq!(read(false).unwrap(), ["a"]);
    assert_eq!(read(true).unwrap(), ["a", "c"]);
    fs::write(path("b/c/a.yaml"), cluster("a")).unwrap();
    let error = read(true).unwrap_err();
    assert_eq!(error.file, path("b/c/a.yaml"), "{error}");
    assert!(error.reason.contains(&path("a.yaml").display().to_string()), "{error}");
}

#[test]
fn what_a_document_takes_from_the_environment_and_what_is_told_of_it_is_bounded() {
    static LONG: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "x".repeat(1 << 20));
    let environment = Environment::new(|_| Ok(LONG.clone()));
    let descriptors = Descriptors::built_in().unwrap().with_validation();
    let text = |often: usize| resources(&vec!["'${A}'"; often].iter().map(|one| &**one).collect::<Vec<_>>());
    let told = |often| match document::read(&text(often), &descriptors, Some(&environment)) {
        Ok(_) => None,
        Err(problems) => problems.iter().next().map(|error| error.reason.clone()),
    };
    assert_eq!(told(16), None);
    assert_eq!(told(17).unwrap(), "its values take more than 16777216 bytes from the environment");

    let hosts = vec!["{ name: a }"; 150].join(", ");
    let route =
        format!("{{ \"@type\": x/envoy.config.route.v3.RouteConfiguration, name: r, virtual_hosts: [{hosts}] }}");
    let read = document::read(&resources(&[&*route; 20]), &descriptors, None).unwrap_or_default();
    let told: Vec<_> =
        read.into_iter().map(|placed| placed.err().map_or(0, |problems| problems.iter().count())).collect();
    assert_eq!((told.len(), &told[..10], &told[10..]), (20, &[100; 10][..], &[1; 10][..]), "none of them is served");
}

#[test]
fn what_the_environment_has_is_in_no_error_in_any_form() {
    const VALUES: &[(&str, &str)] = &[
        ("Q", "sesame'open\"up\nnow"),
        ("X", "0xC0FFEE"),
        ("W", "expected"),
        ("T", "x/some.secret.Kind"),
        ("N", "hidden-name"),
        ("KNOWN", "x/envoy.config.cluster.v3.Cluster"),
        ("L", "xdstp://theirs/envoy.config.cluster.v3.Cluster/lair"),
    ];
    let parts =
        ["sesame", "open", "up\\nnow", "COFFEE", "C0FFEE", "12648430", "some.secret", "Kind", "hidden-name", "lair"];
    let cluster = |more: &str| format!("{{ {CLUSTER}, {more} }}");
    // Within braces `${NAME}` needs quotes.
    let plain = |more: &str| format!("{CLUSTER}\n  {more}");
    let named = |name: &str| format!("{{ name: {name}, resource: {{ {CLUSTER}, name: '${{N}}' }} }}");
    let for_some = |of: &str| {
        format!(
            "{{ resource_name: {{ name: v, dynamic_parameter_constraints: '{of}' }}, resource: {{ {CLUSTER}, name: v }} }}"
        )
    };
    for (texts, variable) in [
        (vec![cluster("name: a, respect_dns_ttl: '${Q}'")], "`${Q}`"),
        (vec![plain("name: a\n  respect_dns_ttl: ${Q}")], "`${Q}`"),
        (vec![plain("name: ${X}")], "`${X}`"),
        (vec![cluster("name: a, type: 'x${W}'")], "not a value of this field: `x${W}`"),
        (vec!["{ '@type': '${T}', name: a }".to_owned()], "`${T}`"),
        (vec![cluster("name: a, cluster_type: { name: b, typed_config: { '@type': '${T}' } }")], "`${T}`"),
        (vec![named("other")], "`${N}`"),
        (vec![cluster("name: '${N}'"), cluster("name: hidden-name")], "`${N}` is in 1.yaml:2:3 already"),
        (vec![cluster("name: '${N}', connect_timeout: 0s")], "in what is named by `${N}`"),
        (vec![for_some("a=${N}"), for_some("a=${N}")], "`${N}` is in 1.yaml:2:3 already"),
        (vec!["{ resource: { '@type': '${KNOWN}', name: '' } }".to_owned()], "`${KNOWN}`"),
    ] {
        let list: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let told = of_environment(&[("1.yaml", resources(&list))], VALUES).unwrap_err();
        assert!(parts.iter().all(|part| !told.replace("name: hidden", "").contains(part)), "{texts:?}: {told}");
        assert!(told.contains(variable), "{texts:?}: {told}");
    }
    let told = of_environment(&[("1.yaml", resources(&[&cluster("nmae: '${N}', connect_timeout: '${Q}'")]))], VALUES);
    assert!(told.unwrap_err().contains("unrecognized field name 'nmae'"), "what is wrong with a key is told");
}

#[test]
fn what_is_empty_or_reads_as_no_value_is_a_text() {
    const VALUES: &[(&str, &str)] = &[("EMPTY", ""), ("NULL", "null"), ("TILDE", "~")];
    for (name, value) in VALUES {
        let with = |field: &str| {
            let text = resources(&[&format!("{CLUSTER}\n  name: a\n  {field}: ${{{name}}}")]);
            of_environment(&[("1.yaml", text)], VALUES)
        };
        let told = with("respect_dns_ttl").unwrap_err();
        assert!(told.ends_with(&format!("not a value of this field: `${{{name}}}`")), "{told}");
        let read = with("alt_stat_name").unwrap();
        let json = Descriptors::built_in().unwrap().to_json(&read[0].type_url, &read[0].value);
        assert_eq!(json.get("alt_stat_name").and_then(|name| name.as_str()).unwrap_or_default(), *value);
    }
}

#[test]
fn what_is_no_variable_is_not_told_where_it_may_be_part_of_a_secret() {
    let secret = "\"@type\": x/envoy.extensions.transport_sockets.tls.v3.Secret";
    let places = [
        format!("{{ {secret}, name: a, generic_secret: {{ secret: {{ inline_string: 'p${{a-b}}d' }} }} }}"),
        format!("{{ {secret}, name: 'p${{a-b}}d' }}"),
        format!("{{ {CLUSTER}, name: a, metadata: {{ filter_metadata: {{ x: {{ password: 'p${{ab}}d' }} }} }} }}"),
        "{ '@type': '${UNSET}', name: 'p${a-b}d' }".to_owned(),
    ];
    for place in places {
        let told = of_environment(&[("1.yaml", resources(&[&place]))], &[]).unwrap_err();
        assert!(!told.contains("a-b") && !told.contains("ab}"), "{told}");
        assert!(told.contains("1.yaml:2:") && told.contains("it may be secret"), "{told}");
    }
    let told = of_environment(&[("1.yaml", resources(&[&format!("{{ {CLUSTER}, name: 'p${{a-b}}d' }}")]))], &[]);
    assert!(told.unwrap_err().contains("`${a-b}`: expected ${NAME}"), "of what is no secret it is told");
}

#[test]
fn a_variable_that_is_no_text_is_an_error_of_its_own() {
    let environment = Environment::new(|_| Err(VarError::NotUnicode("?".into())));
    let text = resources(&[&format!("{{ {CLUSTER}, name: '${{BYTES:-a}}' }}")]);
    let told = document::read(&text, &Descriptors::built_in().unwrap(), Some(&environment)).err().unwrap();
    let told: Vec<_> = told.into_iter().map(|error| error.to_string()).collect();
    assert_eq!(told, ["2:55: resources[0].name: `${BYTES}`: what the environment has as BYTES is not UTF-8"]);
}

#[test]
fn an_origin_is_held_to_the_rules_of_its_types_whatever_its_texts_are_in_unless_it_says_not() {
    for kind in ["files: .", "etcd: { endpoints: ['a:1'], prefix: x/ }", "kubernetes: {}"] {
        for (said, is_held) in [("", true), (", validate: true", true), (", validate: false", false)] {
            let config = Config::parse("relay.yaml", &format!("origins: [{{ name: a, {kind}{said} }}]")).unwrap();
            let types = descriptors_of(&config, &config.origins[0], None).unwrap();
            assert_eq!(types.validator.is_some(), is_held, "{kind}{said}");
        }
    }
}
