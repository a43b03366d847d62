//! Files of a disk as documents: what is at `file:` locators.

mod decode;
mod look;
mod open;
mod reading;

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xdstp_uri::Locator;

pub use self::decode::{Decode, DiscoveryResponse};
use self::look::Roots;
use self::open::{Open, Which};
use crate::federation::{Documents, OpenDocument};

/// How often files are looked at: network mounts and link swaps are seen so, which tell nobody that they happen.
const EVERY: Duration = Duration::from_millis(500);

/// The files in some directories, for [`Builder::files`](crate::Builder::files).
///
/// A file is read if, all links followed, it is one within one of the directories, or in any directory below: whoever writes
/// locators has nothing else read. It is looked at twice a second, for as long as it is watched, and read again once it has changed
/// and then stayed as it is for one look: who writes it in several steps is waited for, a file that is gone for a moment is not
/// missed, and a link that is swapped, as in volumes of Kubernetes, is a change. It may have 64 MiB. All files that are open are
/// looked at by one thread, which is there as long as there are any.
///
/// ```
/// use std::time::Instant;
///
/// use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server};
/// use xdstp_client::test::Network;
/// use xdstp_client::{Client, DiscoveryResponse, Event, Files};
///
/// let directory = tempfile::tempdir()?;
/// let file = directory.path().join("clusters.pb");
/// // A `DiscoveryResponse` with nothing in it but its type.
/// let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
/// std::fs::write(&file, [&[0x22, u8::try_from(type_url.len())?], type_url.as_bytes()].concat())?;
///
/// let files = Files::within([directory.path()], DiscoveryResponse::default()).by_hand();
/// let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
/// let client = Client::builder(bootstrap).transport(Network::new(Instant::now())).files(files.clone()).build()?;
/// let mut watch = client.watch(type_url, &format!("file://{}", file.display()));
/// files.look(Instant::now());
/// assert_eq!(watch.try_next(), Some(Event::Answered), "it has no cluster");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Files {
    open: Arc<Open>,
    by_hand: bool,
}

impl Files {
    /// Those in these directories, which need not be there yet, each with all below it; read by this.
    pub fn within(roots: impl IntoIterator<Item = impl Into<PathBuf>>, decode: impl Decode) -> Self {
        let roots = Roots(roots.into_iter().map(Into::into).collect());
        Self { open: Arc::new(Open::new(roots, Box::new(decode))), by_hand: false }
    }

    /// The same files, which are looked at only by [`look`](Self::look).
    #[must_use]
    pub fn by_hand(self) -> Self {
        Self { by_hand: true, ..self }
    }

    /// Looks at the files that are open; that happens by itself, but for who does it [by hand](Self::by_hand). What is read is told
    /// before it returns.
    pub fn look(&self, now: Instant) {
        self.open.look(Which::All, now);
    }
}

impl Documents for Files {
    fn open(&self, locator: &Locator<'_>, document: OpenDocument) -> Box<dyn Any + Send + Sync> {
        let opened = self.open.add(PathBuf::from(format!("/{}", locator.id())), document);
        if !self.by_hand {
            self.open.look_every(EVERY);
        }
        Box::new(opened)
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("roots", &self.open.roots())
            .field("by_hand", &self.by_hand)
            .finish_non_exhaustive()
    }
}
