//! Which resource.

use xdstp_cache::TypeUrl;
use xdstp_client::federation::Held;
use xdstp_uri::ResourceName;

use super::shown::shown;

/// A resource, with all its variants.
pub(crate) type Name = (TypeUrl, ResourceName);

pub(super) fn name_of((type_url, name, _): &Held) -> Name {
    (type_url.clone(), name.clone())
}

/// A resource, for people.
pub(crate) fn shown_name((type_url, name): &Name) -> String {
    let message_type = type_url.as_str().rsplit('/').next().unwrap_or_default();
    shown(&format!("{message_type} `{}`", name.as_str()))
}
