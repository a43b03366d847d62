//! Which origins there are, and whose names are whose.

use xds_transport::Protocol;

use super::otherwise::may_be_reached_otherwise;
use crate::config::{Config, Origin, OriginKind, XdstpStreams, canonical_authority};

/// The configuration that runs, with the origins and authorities of another one, if these may count while it does. What else is said of
/// an origin that stays is as it runs; one that names come from or go to may differ in that only by what counts without a restart. Where what they said is `kept`, it is kept by who said it.
pub(super) fn with_other_origins(running: &Config, config: &Config, kept: bool) -> Option<Config> {
    let with_its_authorities = |origin: &Origin| {
        let before = running.origin(&origin.name).unwrap_or(origin);
        Origin { authorities: origin.authorities.clone(), ..before.clone() }
    };
    let next = Config { origins: config.origins.iter().map(with_its_authorities).collect(), ..running.clone() };
    if running.origins.iter().map(whose).eq(next.origins.iter().map(whose)) {
        return None;
    }
    let stays = config.default_origin == running.default_origin && next.origin(&next.default_origin).is_some();
    let others = other_origins(running, &next).chain(other_origins(&next, running));
    let all = others.chain(concerned(running, &next)).chain(concerned(&next, running));
    let dialect = running.origin(&running.default_origin).map(|origin| origin.dynamic_parameters);
    // One that is to be another after a restart is not who its new authorities are meant for.
    let is_itself = |origin: &Origin| match (next.origin(&origin.name), config.origin(&origin.name)) {
        (Some(led), Some(meant)) => led == meant || may_be_reached_otherwise(led, meant),
        _ => true,
    };
    let may_be_led =
        |origin: &Origin| is_led(origin) && Some(origin.dynamic_parameters) == dialect && is_itself(origin);
    let all_may = all.into_iter().all(may_be_led);
    (stays && !kept && all_may).then_some(next)
}

fn whose(origin: &Origin) -> (&str, Vec<String>) {
    (&origin.name, origin.authorities.iter().map(|authority| canonical_authority(authority)).collect())
}

/// Those of one that the other does not have.
fn other_origins<'a>(one: &'a Config, other: &'a Config) -> impl Iterator<Item = &'a Origin> {
    one.origins.iter().filter(|origin| other.origin(&origin.name).is_none())
}

/// Those of one whose names are another's in the other.
fn concerned<'a>(one: &'a Config, other: &'a Config) -> impl Iterator<Item = &'a Origin> {
    let all = [one, other].into_iter().flat_map(|config| &config.origins).flat_map(|origin| &origin.authorities);
    all.filter_map(move |authority| {
        let (before, after) = (origin_of(one, authority)?, origin_of(other, authority)?);
        (before.name != after.name).then_some(before)
    })
}

fn origin_of<'a>(config: &'a Config, authority: &str) -> Option<&'a Origin> {
    let authority = canonical_authority(authority);
    let of = config.origins.iter().find(|origin| whose(origin).1.contains(&authority));
    of.or_else(|| config.origin(&config.default_origin))
}

/// Whether names may come to it, or go from it, while they are asked for.
fn is_led(origin: &Origin) -> bool {
    let is_one = |kind: &OriginKind| match kind {
        OriginKind::Server { servers, protocol } => servers.len() == 1 && *protocol == Protocol::Delta,
        OriginKind::Files { .. } | OriginKind::Etcd { .. } | OriginKind::Kubernetes { .. } | OriginKind::Embedded => {
            false
        }
    };
    is_one(&origin.kind) && origin.xdstp == XdstpStreams::Shared && origin.follow.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(origins: &str) -> Config {
        Config::parse("relay.yaml", &format!("default_origin: d\norigins: [{origins}]")).unwrap()
    }

    #[test]
    fn origins_come_go_and_move_where_they_are_asked_alike() {
        let d = "{ name: d, server: 'd:1' }";
        let (a, a_of_y) =
            ("{ name: a, server: 'a:1', authorities: [x] }", "{ name: a, server: 'a:1', authorities: [y] }");
        let before = config(&format!("{d}, {a}"));
        let names = |origins: &str| {
            let next = with_other_origins(&before, &config(origins), false)?;
            Some(
                next.origins
                    .iter()
                    .map(|origin| format!("{}{:?}", origin.name, origin.authorities))
                    .collect::<Vec<_>>(),
            )
        };
        let said = |origins: &[&str]| Some(origins.iter().map(|origin| (*origin).to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&format!("{d}, {a}")), None, "nothing is new");
        assert_eq!(names(d), said(&["d[]"]));
        assert_eq!(names(&format!("{a}, {d}")), said(&["a[\"x\"]", "d[]"]));
        assert_eq!(names(&format!("{d}, {a_of_y}")), said(&["d[]", "a[\"y\"]"]));
        let b = "{ name: b, server: 'b:1', authorities: [z] }";
        assert_eq!(names(&format!("{d}, {a}, {b}")), said(&["d[]", "a[\"x\"]", "b[\"z\"]"]));
        assert_eq!(with_other_origins(&before, &config(d), true), None, "what is kept is another's");
        // What else is new of one that stays, counts or not by itself.
        let elsewhere = a_of_y.replace("a:1", "c:1");
        let next = with_other_origins(&before, &config(&format!("{d}, {elsewhere}")), false).unwrap();
        assert_eq!(next.origins[1].kind, before.origins[1].kind);
        for more in ["protocol: sotw", "xdstp: by_node", "dynamic_parameters: draft"] {
            let b = b.replace("server", &format!("{more}, server"));
            assert_eq!(names(&format!("{d}, {a}, {b}")), None, "{more}");
        }
        assert_eq!(names(&format!("{d}, {a}, {{ name: b, servers: ['b:1', 'b:2'] }}")), None);
        assert_eq!(names(&format!("{d}, {a}, {{ name: b, files: '.' }}")), None);
        let of_sotw = config(&format!("{{ name: d, server: 'd:1', protocol: sotw }}, {a}"));
        assert_eq!(with_other_origins(&of_sotw, &config("{ name: d, server: 'd:1', protocol: sotw }"), false), None);
        let other = Config::parse("relay.yaml", &format!("default_origin: a\norigins: [{d}, {a}, {b}]")).unwrap();
        assert_eq!(with_other_origins(&before, &other, false), None, "of another default origin");
    }

    /// Its new authorities are asked of it as it is meant to be: as it runs, it would say of all that is in them that it has none.
    #[test]
    fn names_neither_come_to_nor_go_from_an_origin_that_is_another_after_a_restart_only() {
        let d = "{ name: d, server: 'd:1' }";
        let m = |is: &str, of: &str| format!("{{ name: m, {is}, authorities: [{of}] }}");
        let running = "server: 'm:1', keepalive: 1m";
        let before = config(&format!("{d}, {}", m(running, "b")));
        let is_led = |d: &str, m: &str| with_other_origins(&before, &config(&format!("{d}, {m}")), false).is_some();
        for now in [running, "server: 'm:2', keepalive: 1m", "server: 'm:1', streams_per_connection: 1"] {
            assert!(is_led(d, &m(now, "b, c")) && is_led(d, &m(now, "c")), "{now}");
        }
        for later in [
            "etcd: { endpoints: ['e:1'], prefix: x/ }",
            "files: '.'",
            "servers: ['m:1', 'm:2']",
            "server: 'm:1', protocol: sotw",
            "server: 'm:1', xdstp: by_node",
            "server: 'm:1', dynamic_parameters: draft",
        ] {
            assert!(!is_led(d, &m(later, "b, c")) && !is_led(d, &m(later, "c")), "they come: {later}");
            let other_d = format!("{{ name: d, {later} }}").replace("m:", "d:");
            assert!(!is_led(&other_d, &m(running, "")), "they go to the default origin: {later}");
            // Of an origin beside them that is another later, no name comes or goes.
            let with = |n: &str, of: &str| config(&format!("{d}, {}, {{ name: n, {n} }}", m(running, of)));
            let led = with_other_origins(&with("server: 'n:1'", "b"), &with(&later.replace("m:", "n:"), "b, c"), false);
            assert!(led.is_some(), "{later}");
        }
    }
}
