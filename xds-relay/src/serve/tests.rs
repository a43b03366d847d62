//! What is said as a relay begins.

use super::*;

#[test]
fn that_nothing_is_shared_is_said_where_it_matters() {
    let directory = tempfile::tempdir().unwrap();
    for (origins, expected) in [
        ("{ name: a, files: . }", false),
        ("{ name: a, server: a:1 }", true),
        ("{ name: a, files: . }, { name: b, server: a:1, authorities: [b] }", false),
        ("{ name: a, files: . }, { name: b, server: a:1, authorities: [b], xdstp: by_node }", true),
        ("{ name: a, server: a:1 }, { name: b, files: ., authorities: [b] }", true),
    ] {
        let config = Config::parse(directory.path().join("relay.yaml"), &format!("origins: [{origins}]")).unwrap();
        assert_eq!(asks_for_nodes(&config), expected, "{origins}");
    }
}
