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
