//! One entry of a list collection (`#entry=` of TP1).

use std::sync::Arc;
use std::task::Waker;

use xds_transport::Frame;
use xdstp_cache::{Resource, TypeUrl, Version};
use xdstp_uri::ResourceName;

use super::asked::Asked;
use super::find::Find;
use super::told::Told;
use crate::client::Inner;
use crate::error::Error;

pub(crate) struct Entry {
    client: Arc<Inner>,
    type_url: TypeUrl,
    directory: Box<dyn Find>,
    entry: Box<str>,
    /// The version and the content that were told last.
    told: Option<(Version, u128)>,
    /// It is used on beside what is wrong with the list.
    amiss: bool,
}

impl Entry {
    pub(super) fn new(client: &Arc<Inner>, type_url: &TypeUrl, directory: Box<dyn Find>, entry: &str) -> Self {
        let (client, type_url, entry) = (client.clone(), type_url.clone(), entry.into());
        Self { client, type_url, directory, entry, told: None, amiss: false }
    }

    /// The list is new.
    fn look(&mut self, list: &Resource<Frame>) -> Option<Told> {
        let listed = match self.client.listed(&self.type_url, list) {
            Ok(listed) => listed,
            Err(error) => {
                let held = self.told.is_some();
                self.amiss = held;
                return Some(Told::Failed { name: self.name(), error, held, keeps: true });
            }
        };
        let Some((name, resource)) = listed.inline(&self.entry) else {
            // The list is there, and says so: nothing stands for it.
            self.told = None;
            return Some(Told::Failed { name: self.name(), error: Error::Absent, held: false, keeps: true });
        };
        let now = (resource.version.clone(), resource.digest());
        // After an error it comes again, as it was.
        let is_news = std::mem::take(&mut self.amiss) || self.told.as_ref() != Some(&now);
        self.told = Some(now);
        is_news.then(|| Told::Put { name: name.clone(), resource: resource.clone() })
    }

    fn name(&self) -> Option<ResourceName> {
        ResourceName::parse(&self.entry).ok()
    }
}

impl Find for Entry {
    fn next(&mut self, waker: &Waker) -> Option<Told> {
        while let Some(told) = self.directory.next(waker) {
            let told = match told {
                Told::Put { resource, .. } => self.look(&resource),
                Told::Failed { name, error, held, keeps } => {
                    if !held {
                        self.told = None;
                    }
                    // The list may be there, and be without it.
                    let held = self.told.is_some();
                    self.amiss = held && (self.amiss || name.is_some());
                    Some(Told::Failed { name: name.and_then(|_| self.name()), error, held, keeps })
                }
                Told::Cleared { name } => {
                    self.amiss &= name.is_none();
                    Some(Told::Cleared { name: name.and_then(|_| self.name()) })
                }
                Told::Gone { .. } | Told::Answered => None,
            };
            if told.is_some() {
                return told;
            }
        }
        None
    }

    fn first(&self) -> &Asked {
        self.directory.first()
    }

    fn first_mut(&mut self) -> &mut Asked {
        self.directory.first_mut()
    }

    fn renotify(&mut self) {
        self.directory.renotify();
    }

    fn source(&self) -> &Asked {
        self.directory.source()
    }

    fn is_stale(&self) -> bool {
        self.directory.is_stale()
    }

    fn is_one(&self) -> bool {
        true
    }
}
