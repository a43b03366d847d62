//! Unix sockets: what a process that died left behind is replaced, what another one listens on is not.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use tokio::net::{UnixListener, UnixSocket};
use xdstp_client::UnixAddress;

/// How long it may take until it is one's turn to begin to listen, which takes others no time.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many connections may wait to be accepted.
const WAITING: u32 = 128;
const PAUSE: Duration = Duration::from_millis(5);

/// The file of a socket, if it has one: removed with this, unless it is somebody else's by then.
pub(crate) struct SocketFile {
    address: UnixAddress,
    mine: Option<(PathBuf, u64, u64)>,
}

impl SocketFile {
    /// Listens at an address, and for this user alone, if it is private.
    ///
    /// # Errors
    /// Somebody listens there, something else is there, or the system says no.
    pub(super) fn bind(address: &UnixAddress, is_private: bool) -> io::Result<(UnixListener, Self)> {
        let socket = address.socket_addr()?;
        // Until this one listens: whoever found the same left behind would replace it.
        let _turn = address.path().map(turn_in_directory_of).transpose()?;
        if let Some(path) = address.path()
            && let Ok(there) = fs::symlink_metadata(path)
        {
            if !there.file_type().is_socket() {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there and no socket"));
            }
            match StdStream::connect_addr(&socket) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
                // Whoever has it takes connections, or does not let us ask.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                _ => return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens on it")),
            }
        }
        let bound = match address.path().filter(|_| is_private) {
            Some(path) => bind_private(path),
            None => StdListener::bind_addr(&socket).and_then(|listener| {
                listener.set_nonblocking(true)?;
                UnixListener::from_std(listener)
            }),
        };
        let listener = bound.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => io::Error::new(error.kind(), "another process listens on it"),
            _ => error,
        })?;
        let mine = address.path().map(|path| {
            let there = fs::symlink_metadata(path)?;
            Ok::<_, io::Error>((path.to_owned(), there.dev(), there.ino()))
        });
        let file = Self { address: address.clone(), mine: mine.transpose()? };
        Ok((listener, file))
    }

    pub(super) fn address(&self) -> &UnixAddress {
        &self.address
    }
}

/// Nobody connects before it is for this user alone.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    socket.listen(WAITING)
}

/// Has those that begin to listen in a directory do so one after the other: the turn ends when this is closed.
fn turn_in_directory_of(path: &Path) -> io::Result<fs::File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = fs::File::open(parent)?;
    let begun = Instant::now();
    loop {
        match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(directory),
            Err(rustix::io::Errno::WOULDBLOCK) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let words = format!("another process has had a lock on {} for {PATIENCE:?}", parent.display());
                return Err(io::Error::new(io::ErrorKind::WouldBlock, words));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let Some((path, device, inode)) = &self.mine else { return };
        if fs::symlink_metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (*device, *inode)) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
        SocketFile::bind(&UnixAddress::at(path).unwrap(), false)
    }

    #[tokio::test]
    async fn what_a_process_left_is_replaced_and_what_is_in_use_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("xds.sock");
        // As after a process that was killed: the file is there, and nobody listens.
        drop(StdListener::bind(&path).unwrap());
        let first = bind(&path).unwrap();
        let error = bind(&path).map(drop).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (io::ErrorKind::AddrInUse, "another process listens on it")
        );
        drop(first);
        assert!(!path.exists(), "it goes with the listener");
        fs::write(&path, "mine").unwrap();
        assert_eq!(bind(&path).map(drop).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert_eq!(
            bind(&directory.path().join("none/xds.sock")).map(drop).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    /// Of two that find what a third left behind, one must not replace the other.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn of_those_that_begin_at_once_one_listens() {
        for _ in 0..50 {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("xds.sock");
            drop(StdListener::bind(&path).unwrap());
            let barrier = std::sync::Arc::new(std::sync::Barrier::new(2));
            let begins = [(); 2].map(|()| {
                let (barrier, path) = (barrier.clone(), path.clone());
                tokio::task::spawn_blocking(move || {
                    barrier.wait();
                    bind(&path)
                })
            });
            let mut listening = Vec::new();
            for begin in begins {
                listening.extend(begin.await.unwrap());
            }
            assert_eq!(listening.len(), 1);
            StdStream::connect(&path).unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_of_another_process_by_now_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("xds.sock");
        let first = bind(&path).unwrap();
        let aside = directory.path().join("aside");
        fs::rename(&path, aside).unwrap();
        let _other = StdListener::bind(&path).unwrap();
        drop(first);
        assert!(path.exists());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_abstract_name_is_in_use_as_long_as_somebody_listens() {
        let address: UnixAddress = format!("unix-abstract:xds-relay-test-{}", std::process::id()).parse().unwrap();
        let first = SocketFile::bind(&address, false).unwrap();
        assert_eq!(
            SocketFile::bind(&address, false).map(drop).unwrap_err().to_string(),
            "another process listens on it"
        );
        drop(first);
        SocketFile::bind(&address, false).unwrap();
    }
}
