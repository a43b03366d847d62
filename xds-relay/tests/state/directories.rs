//! The directory of a configuration, and what may be wrong with it: a relay runs all the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use xds_relay::state::{Op, Redb, Store, StoreError};
use xds_relay::{Config, Relay};

/// A relay that keeps what it knows below a directory.
async fn relay(directory: &Path) -> Relay {
    let text = "listen: 127.0.0.1:0\nadmin: none\nstate: { path: kept }\norigins: [{ name: a, server: 127.0.0.1:1 }]\n";
    Relay::bind(Config::parse(directory.join("relay.yaml"), text).unwrap()).await.unwrap()
}

fn file(directory: &Path) -> PathBuf {
    directory.join("kept").join("state.redb")
}

fn has_it(directory: &Path) -> bool {
    matches!(Redb::open(file(directory)), Err(StoreError::Locked))
}

#[tokio::test]
async fn a_directory_is_made_for_the_relays_user_alone() {
    let directory = tempfile::tempdir().unwrap();
    let relay = relay(directory.path()).await;
    assert!(has_it(directory.path()));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&directory.path().join("kept")), mode(&file(directory.path()))), (0o700, 0o600));
    }
    drop(relay);
    assert!(!has_it(directory.path()));
}

#[tokio::test]
async fn a_file_that_is_damaged_or_of_another_format_is_put_aside() {
    let directory = tempfile::tempdir().unwrap();
    let (path, aside) = (file(directory.path()), directory.path().join("kept/state.redb.aside"));
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, "not a database").unwrap();
    drop(relay(directory.path()).await);
    assert_eq!(fs::read_to_string(&aside).unwrap(), "not a database");
    // One of a later version.
    fs::remove_file(&path).unwrap();
    let _ = Redb::open(&path).unwrap().commit(&[Op::put("xds-relay/v1/format", "2")], &[]).unwrap();
    let relay = relay(directory.path()).await;
    assert!(has_it(directory.path()));
    assert_eq!(Redb::open(&aside).unwrap().list("").unwrap().entries[0].value, "2");
    drop(relay);
}

#[tokio::test]
async fn a_file_that_a_process_has_that_is_ending_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("kept")).unwrap();
    let other = Redb::open(file(directory.path())).unwrap();
    let mut binding = Box::pin(relay(directory.path()));
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut binding).await.is_err(), "it waits");
    drop(other);
    let relay = binding.await;
    assert!(has_it(directory.path()));
    drop(relay);
}

#[tokio::test]
async fn what_cannot_be_used_is_done_without() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(file(directory.path())).unwrap();
    assert!(relay(directory.path()).await.listen_address().is_ok());
}
