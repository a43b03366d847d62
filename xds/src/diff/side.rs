//! One of two that are compared, and what it has.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use prost::Message;
use xds_relay::file_origin::{load, load_embedded};
use xds_transport::wire::Any;
use xdstp_uri::ResourceName;

use super::files;
use crate::ask::{Failure, Identity, Kind, Servers, Until, Verdict, Wanted, What, listen};
use crate::output::Content;
use crate::show::{complain, visible};

/// What both are asked, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides<'a> {
    pub(super) identity: &'a Identity,
    pub(super) wanted: &'a Wanted,
    pub(super) timeout: Duration,
    pub(super) content: &'a Content,
}

/// What one has.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) resources: BTreeMap<String, Any>,
    /// Why that is not all.
    pub(super) verdict: Option<Verdict>,
}

impl<'a> Sides<'a> {
    /// What exists as a file, or a directory of them, is that; anything else is a server.
    ///
    /// # Errors
    /// It is no address, or a file is not good.
    pub(super) fn open(self, text: &str) -> Result<Servers, Box<dyn Error>> {
        let path = Path::new(text);
        if !path.exists() {
            return Servers::one(text, self.identity).map_err(|error| match text.contains(':') {
                true => error,
                false => {
                    format!("{}: there is no such file or directory, and as a server: {error}", visible(text)).into()
                }
            });
        }
        let descriptors = self.content.descriptors()?;
        let resources = if path.is_dir() {
            load(path, descriptors)?
        } else {
            let content = fs::read_to_string(path).map_err(|error| format!("{text}: {error}"))?;
            load_embedded(&[(text, &content)], descriptors)?
        };
        Ok(Servers::brought(text, files::client(&resources, self.wanted, self.identity)?))
    }

    /// # Errors
    /// There is nobody to complain to.
    pub(super) async fn read(self, servers: &Servers) -> io::Result<Found> {
        let mut verdict = None;
        let until = Until::Known(self.timeout);
        let progress = listen(self.wanted, servers, until, |_, event| {
            match event.what {
                // That one does not have it is what is asked.
                What::Error(Failure { kind: Kind::Absent, .. }) => {}
                What::Error(Failure { kind, message }) => {
                    complain(visible(&message));
                    // An attempt that failed may be followed by another.
                    if event.name.is_some() {
                        verdict = verdict.max(Some(if kind.is_unknown() { Verdict::Unknown } else { Verdict::Wrong }));
                    }
                }
                _ => {}
            }
            Ok(())
        });
        let held = progress.await?.map(crate::ask::Progress::into_held).unwrap_or_default();
        let any = |(name, held): (ResourceName, crate::ask::Held)| {
            Some((name.as_str().to_owned(), Any::decode(held.any).ok()?))
        };
        Ok(Found { resources: held.into_iter().filter_map(any).collect(), verdict })
    }
}
