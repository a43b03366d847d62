//! The examples of gRFC A47, today's and those of January 2022: what a bootstrap makes of a target or an address.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use xdstp_uri::{
    ResourceName,
    a47::{
        AuthorityEntry, Bootstrap, DataPlaneAuthority, ListenerError, Servers, Target, check_template_prefix,
        client_listener_name, default_template, eds_resource_name, expand_template, look_up_authority,
        server_listener_name,
    },
};

/// Authorities with their template and whether they have servers.
#[derive(Default)]
struct Example {
    client: Option<&'static str>,
    server: Option<&'static str>,
    authorities: &'static [(&'static str, Option<&'static str>, bool)],
}

impl Bootstrap for Example {
    fn client_default_listener_resource_name_template(&self) -> Option<&str> {
        self.client
    }

    fn server_listener_resource_name_template(&self) -> Option<&str> {
        self.server
    }

    fn authority(&self, name: &str) -> Option<AuthorityEntry<'_>> {
        let (_, template, has_servers) = *self.authorities.iter().find(|(key, ..)| *key == name)?;
        Some(AuthorityEntry::new(template, has_servers))
    }
}

#[track_caller]
fn client(bootstrap: &Example, target: &str, name: &str, authority: Option<&str>, servers: Servers) {
    let target = Target::parse(target).unwrap();
    assert_eq!(client_listener_name(bootstrap, &target).unwrap(), name);
    lookup(bootstrap, name, authority, servers);
}

#[track_caller]
fn lookup(bootstrap: &Example, name: &str, authority: Option<&str>, servers: Servers) {
    let lookup = look_up_authority(bootstrap, &name.parse().unwrap()).unwrap();
    assert_eq!((lookup.authority.as_deref(), lookup.servers), (authority, servers));
}

#[test]
fn bootstrap_without_new_fields() {
    let old = Example { server: Some("grpc/server?addr=%s"), ..Example::default() };
    client(&old, "xds:server.example.com", "server.example.com", None, Servers::TopLevel);
    client(&old, "xds:///server.example.com", "server.example.com", None, Servers::TopLevel);
    let target = Target::parse("xds://xds.authority.com/server.example.com").unwrap();
    let error = client_listener_name(&old, &target).unwrap_err();
    assert_eq!(error.as_str(), "unknown_authority");
    assert_eq!(server_listener_name(&old, "0.0.0.0:8080").unwrap(), "grpc/server?addr=0.0.0.0:8080");
    assert_eq!(server_listener_name(&Example::default(), "a"), Err(ListenerError::MissingServerTemplate));
}

#[test]
fn new_style_names_on_the_client() {
    let example = Example {
        client: Some("xdstp://xds.authority.com/envoy.config.listener.v3.Listener/%s"),
        authorities: &[("xds.authority.com", None, false)],
        ..Example::default()
    };
    let name = "xdstp://xds.authority.com/envoy.config.listener.v3.Listener/server.example.com";
    for target in ["xds:server.example.com", "xds://xds.authority.com/server.example.com"] {
        client(&example, target, name, Some("xds.authority.com"), Servers::TopLevel);
    }
}

#[test]
fn new_style_names_on_the_server() {
    let example = Example {
        server: Some("xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/server/%s"),
        authorities: &[("xds.authority.com", None, false)],
        ..Example::default()
    };
    let name = server_listener_name(&example, "[::1]:8080").unwrap();
    assert_eq!(name, "xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/server/%5B::1%5D:8080");
    lookup(&example, &name, Some("xds.authority.com"), Servers::TopLevel);
}

#[test]
fn several_authorities() {
    const CLIENT: &str = "xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/client/%s?project_id=1234";
    let example = Example {
        client: Some(CLIENT),
        server: Some("xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/server/%s?project_id=1234"),
        authorities: &[("xds.authority.com", Some(CLIENT), false), ("xds.other.com", None, true)],
    };
    let name =
        "xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/client/server.example.com?project_id=1234";
    for target in ["xds:server.example.com", "xds://xds.authority.com/server.example.com"] {
        client(&example, target, name, Some("xds.authority.com"), Servers::TopLevel);
    }
    let other = "xdstp://xds.other.com/envoy.config.listener.v3.Listener/server.other.com";
    client(&example, "xds://xds.other.com/server.other.com", other, Some("xds.other.com"), Servers::Authority);
    assert_eq!(
        server_listener_name(&example, "0.0.0.0:8080").unwrap(),
        "xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/server/0.0.0.0:8080?project_id=1234"
    );
}

#[test]
fn the_authority_of_a_name_must_be_in_the_bootstrap() {
    let example = Example { authorities: &[("", None, true), ("#.com", None, false)], ..Example::default() };
    lookup(&example, "xdstp:/T/x", Some(""), Servers::Authority);
    lookup(&example, "xdstp://%23.com/T/x", Some("#.com"), Servers::TopLevel);
    lookup(&example, "old", None, Servers::TopLevel);
    let name: ResourceName = "xdstp://xds.example.com/T/x".parse().unwrap();
    assert_eq!(look_up_authority(&example, &name).unwrap_err().authority(), "xds.example.com");
}

#[test]
fn a_template_starts_with_its_authority_and_a_slash() {
    let foreign = "xdstp://xds.td.com.evil/envoy.config.listener.v3.Listener/%s";
    assert!(check_template_prefix("xds.td.com", foreign).is_err());
    assert!(check_template_prefix("xds.td.com", "xdstp://xds.td.com").is_err());
    assert!(check_template_prefix("a", "/a/%s").is_err());
    assert!(check_template_prefix("", "a/%s").is_err());
    assert!(check_template_prefix("", "xdstp:///T/%s").is_ok());
    assert!(check_template_prefix("#.com", &default_template("#.com")).is_ok());
    assert!(check_template_prefix("a?b", "xdstp://a?b/T/%s").is_ok());
}

#[test]
fn a_template_is_expanded_once_everywhere() {
    assert_eq!(expand_template("%s/%s", "a%s"), "a%s/a%s");
    assert_eq!(expand_template("xdstp://a/T/%s", "%s"), "xdstp://a/T/%25s");
    assert_eq!(expand_template("no placeholder", "x"), "no placeholder");
}

#[test]
fn targets() {
    for (text, authority, path) in [
        ("xds:a", None, "a"),
        ("xds:/a", None, "a"),
        ("xds:///a/b", None, "a/b"),
        ("xds:////a", None, "/a"),
        ("xds://%23.com/%5B::1%5D:80?ignored#too", Some("#.com"), "[::1]:80"),
        ("xds://xds.example.com/whee%/x", Some("xds.example.com"), "whee%/x"),
    ] {
        let target = Target::parse(text).unwrap();
        assert_eq!((target.authority(), target.path()), (authority, path), "{text}");
    }
    for text in ["", "a", "dns:a", "xds:", "xds:///", "xds://a", "xds://a/", "xds:%FF"] {
        assert!(Target::parse(text).is_err(), "{text}");
    }
}

#[test]
fn the_data_plane_authority_is_the_path() {
    let target = Target::parse("xds:///a/[::1]:80").unwrap();
    assert_eq!(target.data_plane_authority(DataPlaneAuthority::WholePath), "a%2F[::1]:80");
    assert_eq!(target.data_plane_authority(DataPlaneAuthority::LastSegment), "[::1]:80");
}

#[test]
fn an_xdstp_cluster_names_its_endpoints() {
    let cluster = "xdstp://a/envoy.config.cluster.v3.Cluster/web";
    assert_eq!(eds_resource_name(cluster, Some("web")), Ok("web"));
    assert!(eds_resource_name(cluster, Some("")).is_err());
    assert_eq!(eds_resource_name("web", None), Ok("web"));
}
