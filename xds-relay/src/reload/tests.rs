use super::*;
use crate::serve::Relay;

/// What descriptors allow is found anew with each configuration: origins may be more, or bear more streams on a connection.
#[tokio::test]
async fn what_descriptors_allow_is_that_of_the_configuration_that_counts() {
    let text = "{ listen: 127.0.0.1:0, admin: none, origins: [{ name: up, server: 'a:1' }] }";
    let config = Config::parse("relay.yaml", text).unwrap();
    let relay = Relay::bind(config.clone()).await.unwrap();
    let (reloader, bounds) = (relay.reloader(), Bounds::of(&config));
    let Parts { core, connections, .. } = &reloader.0.parts;
    let most = || {
        let of = |key| core.quotas.used(&core.shared).find(|(of, _)| *of == key).map(|(_, (_, most))| most as usize);
        (connections.most(), of("groups"), of("load_report_streams"))
    };
    let Config { limits, .. } = &config;
    let allowed = (
        bounds.upward,
        Some(limits.groups.min(bounds.groups)),
        Some(limits.load_report_streams.min(bounds.load_report_streams)),
    );
    assert_eq!(most(), allowed, "as it starts");
    connections.bound(1);
    core.bound(1, 2);
    core.set_what_is_read_at_use(&config);
    assert_eq!(most(), (1, Some(1), Some(2)));
    reloader.apply(config).unwrap();
    assert_eq!(most(), allowed);
}

/// Names that come to an origin which moves at once would be asked for where it was, and that says that there are none.
#[tokio::test]
async fn who_is_elsewhere_is_reached_there_before_names_come_to_it() {
    let config = |origins: &str| {
        let text = format!("{{ listen: 127.0.0.1:0, admin: none, default_origin: d, origins: [{origins}] }}");
        Config::parse("relay.yaml", &text).unwrap()
    };
    let d = "{ name: d, server: 'd:1' }";
    let before = format!("{d}, {{ name: m, server: 'm:1' }}, {{ name: g, server: 'g:1', authorities: [c] }}");
    let relay = Relay::bind(config(&before)).await.unwrap();
    let (reloader, at) = (relay.reloader(), Arc::new(Mutex::new(Vec::new())));
    // That an origin is gone is said as names are led.
    let (reached, seen) = (reloader.0.parts.reached.clone(), at.clone());
    let looking = move || {
        lock(&seen).push(reached.missing(|_| false).unwrap_or_default());
        std::io::sink()
    };
    let log = tracing_subscriber::fmt().with_writer(looking).finish();
    let after = config(&format!("{d}, {{ name: m, server: 'm:2', authorities: [c] }}"));
    let reloaded = tracing::subscriber::with_default(log, || reloader.apply(after)).unwrap();
    assert_eq!((reloaded.applied, reloaded.needs_restart), (vec!["origins".to_owned()], vec![]));
    let seen = lock(&at).clone();
    assert!(seen.first().is_some_and(|first| first.contains("(m:2)")), "{seen:?}");
}
