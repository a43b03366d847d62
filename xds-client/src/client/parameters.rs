//! With what names are asked for (TP2), as far as a bootstrap says it: dynamic parameters (gRFC A67), and the resource that says
//! more (DPDS of TP2's draft).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use xds_transport::wire::SelectorsByType;
use xdstp_cache::{Selector, TypeUrl};
use xdstp_uri::ResourceName;

use crate::bootstrap::{Authority, Bootstrap};
use crate::error::Error;

/// With what the names of an authority, or old-style names, are asked for.
pub(crate) struct Parameters {
    pub(super) selector: Selector,
    /// What says more, and is asked for first.
    pub(crate) dpds: Option<Dpds>,
}

/// A resource that says with what others are to be asked for.
pub(crate) struct Dpds {
    pub(crate) type_url: TypeUrl,
    pub(crate) name: ResourceName,
    /// Others are asked for without it, and that was said.
    is_missed: AtomicBool,
}

impl Parameters {
    /// Those of old-style names, if there are any.
    pub(super) fn of_old_style(bootstrap: &Bootstrap) -> Option<Arc<Self>> {
        Self::of(bootstrap.dynamic_parameters(), None)
    }

    /// Those of an authority, if there are any.
    pub(super) fn of_authority(authority: &Authority) -> Option<Arc<Self>> {
        Self::of(authority.dynamic_parameters(), authority.dpds_resource_name())
    }

    fn of(parameters: &BTreeMap<String, String>, dpds: Option<&ResourceName>) -> Option<Arc<Self>> {
        if parameters.is_empty() && dpds.is_none() {
            return None;
        }
        let parameters = parameters.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        Some(Arc::new(Self { selector: Selector::Parameters(parameters.collect()), dpds: dpds.map(Dpds::new) }))
    }
}

impl Dpds {
    fn new(name: &ResourceName) -> Self {
        // The draft calls the type by several names.
        let named = name.resource_type().map(|message| format!("type.googleapis.com/{message}").as_str().into());
        let type_url = named.unwrap_or_else(|| SelectorsByType::TYPE_URL.into());
        Self { type_url, name: name.clone(), is_missed: AtomicBool::new(false) }
    }

    /// It is there, and is followed.
    pub(crate) fn found(&self) {
        self.is_missed.store(false, Ordering::Relaxed);
    }

    /// It cannot be had, and others are asked for without it: said once, however many they are.
    pub(crate) fn missed(&self, error: &Error) {
        if !self.is_missed.swap(true, Ordering::Relaxed) {
            tracing::warn!(resource = %self.name, "what it says of dynamic parameters is not to be had, and names are asked for \
                without: {error}");
        }
    }
}
