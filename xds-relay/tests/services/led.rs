//! Origins that come and go when the configuration does, over gRPC on either side.

use xds_relay::{Config, Reloaded};

use crate::Running;
use crate::failover::{asked, client, first, page, say, told};
use crate::stream::{Origin, in_time};

/// The relay has these origins from now on.
async fn leads(relay: &Running, origins: &str) -> Reloaded {
    let mut config = relay.reloader.config();
    config.origins = Config::parse("relay.yaml", &format!("origins: {origins}")).unwrap().origins;
    let reloader = relay.reloader.clone();
    tokio::task::spawn_blocking(move || reloader.apply(config)).await.unwrap().unwrap()
}

fn applied(fields: &[&str], needs_restart: &[&str]) -> (Vec<String>, Vec<String>) {
    let [applied, needs_restart] =
        [fields, needs_restart].map(|fields| fields.iter().map(ToString::to_string).collect());
    (applied, needs_restart)
}

#[tokio::test]
async fn an_origin_comes_and_goes_and_its_clients_keep_what_they_hold() {
    let name = "xdstp://c/envoy.config.cluster.v3.Cluster/x";
    // Of an authority that nobody has.
    let stays = "xdstp://d/envoy.config.cluster.v3.Cluster/y";
    let (d, o) = (Origin::listen().await, Origin::listen().await);
    let (by_default, other) = (format!("{{ name: d, server: '{}' }}", d.address()), o.address());
    let both = format!("[{by_default}, {{ name: o, server: '{other}', authorities: [c] }}]");
    let relay = Running::start(&format!("[{by_default}]")).await;
    let mut holder = client(&relay, &[name, stays]).await;
    let mut by_d = d.accept().await;
    assert_eq!(first(&asked(&mut by_d).await), ([name, stays].into(), vec![]));
    let mut of_d = by_d.respond();
    say(&mut of_d, "1", &[(name, "1", "one")]);
    assert_eq!(told(&mut holder).await, [format!("{name}=one")]);

    let Reloaded { applied: now, needs_restart, .. } = leads(&relay, &both).await;
    assert_eq!((now, needs_restart), applied(&["origins"], &[]));
    let mut by_o = o.accept().await;
    assert_eq!(first(&asked(&mut by_o).await), ([name].into(), vec![]), "no version that the other gave");
    let mut of_o = by_o.respond();
    say(&mut of_o, "1", &[(name, "1", "two")]);
    assert_eq!(told(&mut holder).await, [format!("{name}=two")], "of the same version");
    while asked(&mut by_d).await.resource_names_unsubscribe != [name] {}

    // It needs a restart, and stays as it was.
    let files = format!("[{by_default}, {{ name: o, files: '.', authorities: [c] }}]");
    let Reloaded { applied: now, needs_restart, .. } = leads(&relay, &files).await;
    assert!(now.is_empty() && needs_restart.iter().all(|field| field.starts_with("origins[1].")), "{needs_restart:?}");

    let Reloaded { applied: now, needs_restart, .. } = leads(&relay, &format!("[{by_default}]")).await;
    assert_eq!((now, needs_restart), applied(&["origins"], &[]));
    while asked(&mut by_d).await.resource_names_subscribe != [name] {}
    let dump = page(relay.admin.unwrap(), "/config_dump").await;
    let dump: serde_json::Value = serde_json::from_str(dump.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(dump["origins"].as_array().unwrap().len(), 1);
    let mut late = client(&relay, &[name]).await;
    assert_eq!(told(&mut late).await, [format!("{name}=two")], "it is served on");
}

/// How often anything was written of what is known, once that is more than so often.
async fn written(relay: &Running, more_than: u64) -> u64 {
    let commits = "xds_relay_state_commits_total{result=\"ok\"} ";
    in_time(async {
        loop {
            let page = page(relay.admin.unwrap(), "/metrics").await;
            let count = page.lines().find_map(|line| line.strip_prefix(commits)?.parse().ok());
            if let Some(count) = count.filter(|count| *count > more_than) {
                return count;
            }
        }
    })
    .await
}

/// Nobody has asked for it in this run: no scope knows that its server was another one.
#[tokio::test]
async fn what_was_kept_of_one_server_is_asked_for_without_its_versions_of_another_that_a_reload_has() {
    let name = "xdstp://c/envoy.config.cluster.v3.Cluster/x";
    for moves in [false, true] {
        let (a, b, directory) = (Origin::listen().await, Origin::listen().await, tempfile::tempdir().unwrap());
        let by = |address| format!("[{{ name: up, server: '{address}', authorities: [c] }}]");
        let (here, there) = (a.address(), b.address());
        let state = format!("state: {{ path: '{}' }}", directory.path().display());
        let mut relay = Running::start_with(&by(here), &state).await;
        let mut holder = client(&relay, &[name]).await;
        let mut served = a.accept().await;
        asked(&mut served).await;
        let before = written(&relay, 0).await;
        let mut answers = served.respond();
        say(&mut answers, "1", &[(name, "1", "one")]);
        assert_eq!(told(&mut holder).await, [format!("{name}=one")]);
        written(&relay, before).await;
        drop(holder);
        relay.stop();
        relay.stopped().await;
        // Both are away: what is kept is served.
        drop((a, b, served, answers));

        let relay = Running::start_with(&by(here), &state).await;
        // It was read before anything is written.
        written(&relay, 0).await;
        if moves {
            assert_eq!(leads(&relay, &by(there)).await.applied, ["origins[0].server"]);
        }
        let mut asks = client(&relay, &[name]).await;
        assert_eq!(told(&mut asks).await, [format!("{name}=one")]);
        let mut served = Origin::listen_at(if moves { there } else { here }).await.accept().await;
        let versions = if moves { vec![] } else { vec!["1"] };
        assert_eq!(first(&asked(&mut served).await), ([name].into(), versions), "{moves}");
    }
}
