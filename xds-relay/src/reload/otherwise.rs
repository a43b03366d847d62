//! What is reached, and shown, in another way: the same servers over other connections, TLS by other files.

use std::sync::Arc;

use crate::config::{Config, ListenTls, Origin};
use crate::error::Error;
use crate::tls::{Downstream, Replacement, With};

/// The origins that are what they are, and are reached otherwise from now on, each at its position as the relay runs.
pub(super) fn reached_otherwise<'a>(running: &Config, config: &'a Config) -> Vec<(usize, &'a Origin)> {
    let same = |origin: &Origin| config.origins.iter().find(|other| other.name == origin.name);
    let with_other = running.origins.iter().enumerate().filter_map(|(at, origin)| Some((at, origin, same(origin)?)));
    let moved = with_other.filter(|(_, origin, other)| origin != other && is_same_but_for_the_way(origin, other));
    moved.map(|(at, _, other)| (at, other)).collect()
}

/// Whether both are the same servers, which are asked for the same: of others nothing is known by what these said, and versions
/// that these gave say nothing to them.
fn is_same_but_for_the_way(origin: &Origin, other: &Origin) -> bool {
    let mut same = origin.clone();
    same.tls.clone_from(&other.tls);
    same.token.clone_from(&other.token);
    (same.keepalive, same.streams_per_connection) = (other.keepalive, other.streams_per_connection);
    same == *other && origin.kind.servers().is_some()
}

/// What clients, and who looks at the admin pages, are spoken to with.
pub(crate) struct Spoken {
    pub(crate) clients: Option<Arc<Downstream>>,
    pub(crate) admin: Option<Arc<Downstream>>,
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
            moved.into_iter().map(|(at, origin)| (at, origin.name.clone())).collect::<Vec<_>>()
        };
        let moved = "{ name: a, server: 'a:1', authorities: [x], keepalive: 1m }";
        assert_eq!(of(a, several), []);
        assert_eq!(of(moved, several), [(0, "a".to_owned())]);
        assert_eq!(of(several, moved), [(0, "a".to_owned())], "by its name");
        assert_eq!(of(a, "{ name: s, servers: ['s:1', 's:2'], streams_per_connection: 1 }"), [(1, "s".to_owned())]);
        for more in [
            "server: 'b:1', authorities: [x]",
            "servers: ['a:1', 'b:1'], authorities: [x]",
            "server: 'a:1', authorities: [y]",
            "server: 'a:1', authorities: [x], protocol: sotw",
            "server: 'a:1', authorities: [x], xdstp: by_node",
        ] {
            assert_eq!(of(&format!("{{ name: a, keepalive: 1m, {more} }}"), several), [], "{more}");
        }
        for other in
            ["{ name: s, servers: ['s:2', 's:1'], keepalive: 1m }", "{ name: b, server: 'a:1', keepalive: 1m }"]
        {
            assert_eq!(of(a, other), [], "{other}");
        }
    }
}
