//! What is reached, and shown, in another way: servers over other connections, or others in their place; TLS by other files.

use std::sync::Arc;

use crate::config::{Config, ListenTls, Origin, OriginKind};
use crate::error::Error;
use crate::tls::{Downstream, Replacement, With};

/// An origin that is reached otherwise from now on.
pub(super) struct Otherwise<'a> {
    /// Its position as the relay runs.
    pub(super) at: usize,
    pub(super) origin: &'a Origin,
    /// At another server than before, of which nothing is known by what that said.
    pub(super) elsewhere: bool,
}

/// The origins that are what they are but for how they are reached.
pub(super) fn reached_otherwise<'a>(running: &Config, config: &'a Config) -> Vec<Otherwise<'a>> {
    let otherwise = |(at, before): (usize, &Origin)| {
        let origin = config.origins.iter().find(|other| other.name == before.name).filter(|other| *other != before)?;
        let elsewhere = before.kind != origin.kind;
        may_be_reached_otherwise(before, origin).then_some(Otherwise { at, origin, elsewhere })
    };
    running.origins.iter().enumerate().filter_map(otherwise).collect()
}

/// Whether an origin can become this one while it is asked.
pub(super) fn may_be_reached_otherwise(before: &Origin, origin: &Origin) -> bool {
    is_same_but_for_the_way(before, origin)
        && (before.kind == origin.kind || is_another_server(&before.kind, &origin.kind))
}

/// Whether both are servers that are asked for the same.
fn is_same_but_for_the_way(origin: &Origin, other: &Origin) -> bool {
    let mut same = origin.clone();
    same.kind.clone_from(&other.kind);
    same.tls.clone_from(&other.tls);
    same.token.clone_from(&other.token);
    (same.keepalive, same.streams_per_connection) = (other.keepalive, other.streams_per_connection);
    same == *other && origin.kind.servers().is_some()
}

/// Whether one server took the place of another, which is spoken to alike. Of several it is said, and counted, which is which.
fn is_another_server(before: &OriginKind, after: &OriginKind) -> bool {
    match (before, after) {
        (OriginKind::Server { servers: before, protocol }, OriginKind::Server { servers: after, protocol: spoken }) => {
            before.len() == 1 && after.len() == 1 && protocol == spoken
        }
        _ => false,
    }
}

/// What clients, who looks at the admin pages, and who orders, are spoken to with.
#[derive(Clone, Default)]
pub(crate) struct Spoken {
    pub(crate) clients: Option<Arc<Downstream>>,
    pub(crate) admin: Option<Arc<Downstream>>,
    pub(crate) orders: Option<Arc<Downstream>>,
}

/// Other files of either.
pub(super) struct Files {
    clients: Option<Replacement>,
    admin: Option<Replacement>,
}

impl Spoken {
    /// The files of a configuration that can count while the relay runs, if they are others.
    ///
    /// # Errors
    /// One is not good.
    pub(super) fn read(&self, running: &Config, config: &Config) -> Result<Files, Error> {
        let read = |spoken: &Option<Arc<Downstream>>, [one, other]: [&Option<ListenTls>; 2], with| {
            let other = other.as_ref().filter(|_| spoken.as_ref().is_some_and(|spoken| spoken.is_of_files()));
            let other = other.filter(|other| one.as_ref().is_some_and(|one| are_other_files_of_the_same(one, other)));
            other.map(|files| Downstream::read(files, with)).transpose()
        };
        Ok(Files {
            clients: read(&self.clients, [&running.tls, &config.tls], With::Clients)?,
            admin: read(&self.admin, [&running.admin_tls, &config.admin_tls], With::Admin)?,
        })
    }

    /// They count from now on.
    pub(super) fn replace(&self, files: Files, running: &mut Config, config: &Config) {
        if let (Some(spoken), Some(files)) = (&self.clients, files.clients) {
            spoken.replace(files);
            running.tls.clone_from(&config.tls);
        }
        if let (Some(spoken), Some(files)) = (&self.admin, files.admin) {
            spoken.replace(files);
            running.admin_tls.clone_from(&config.admin_tls);
        }
    }
}

/// Rules for clients go by whether they are asked for certificates: that they are is no matter of files.
fn are_other_files_of_the_same(one: &ListenTls, other: &ListenTls) -> bool {
    one != other && one.client_ca.is_some() == other.client_ca.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(origins: &str) -> Config {
        Config::parse("relay.yaml", &format!("origins: {origins}")).unwrap()
    }

    #[test]
    fn an_origin_is_reached_otherwise_if_it_is_the_same_but_for_the_way() {
        let a = "{ name: a, server: 'a:1', authorities: [x] }";
        let several = "{ name: s, servers: ['s:1', 's:2'] }";
        let before = config(&format!("[{a}, {several}]"));
        let of = |first: &str, second: &str| {
            let after = config(&format!("[{first}, {second}]"));
            let moved = reached_otherwise(&before, &after);
            moved.into_iter().map(|of| (of.at, of.origin.name.clone(), of.elsewhere)).collect::<Vec<_>>()
        };
        let moved = "{ name: a, server: 'a:1', authorities: [x], keepalive: 1m }";
        assert_eq!(of(a, several), []);
        assert_eq!(of(moved, several), [(0, "a".to_owned(), false)]);
        assert_eq!(of(several, moved), [(0, "a".to_owned(), false)], "by its name");
        assert_eq!(
            of(a, "{ name: s, servers: ['s:1', 's:2'], streams_per_connection: 1 }"),
            [(1, "s".to_owned(), false)]
        );
        let elsewhere = "{ name: a, server: 'b:1', authorities: [x], keepalive: 1m }";
        assert_eq!(of(elsewhere, several), [(0, "a".to_owned(), true)]);
        for more in [
            "servers: ['a:1', 'b:1'], authorities: [x]",
            "server: 'b:1', authorities: [x], protocol: sotw",
            "server: 'a:1', authorities: [y]",
            "server: 'a:1', authorities: [x], protocol: sotw",
            "server: 'a:1', authorities: [x], methods: per_type",
            "server: 'a:1', authorities: [x], xdstp: by_node",
        ] {
            assert_eq!(of(&format!("{{ name: a, keepalive: 1m, {more} }}"), several), [], "{more}");
        }
        for other in
            ["{ name: s, servers: ['s:1', 's:3'], keepalive: 1m }", "{ name: b, server: 'a:1', keepalive: 1m }"]
        {
            assert_eq!(of(a, other), [], "{other}");
        }
    }
}
