//! What holds of any text that is read as a bootstrap. Shared with the fuzzer.

use xdstp_client::bootstrap::{Bootstrap, BootstrapError};

/// A bootstrap names a server, wherever one looks; and an error says where, within the text.
pub(crate) fn bootstrap(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    match Bootstrap::from_json(text) {
        Ok(bootstrap) => {
            assert!(!bootstrap.servers().is_empty());
            assert!(bootstrap.servers().iter().all(|server| !server.uri().is_empty()));
            for name in bootstrap.authorities().keys() {
                assert!(bootstrap.servers_of(Some(name)).is_some_and(|servers| !servers.is_empty()), "{name:?}");
            }
        }
        Err(BootstrapError::Wrong { wrong, .. }) => {
            let line = text.split('\n').nth(wrong.line - 1).unwrap_or_else(|| panic!("no such line: {wrong}"));
            assert!(wrong.column <= line.chars().count() + 1, "no such column: {wrong}");
            assert!(!wrong.reason.is_empty());
        }
        Err(error) => panic!("{error}"),
    }
}
