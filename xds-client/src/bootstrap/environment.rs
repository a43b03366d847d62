//! Where the environment says that a bootstrap is.

use std::ffi::OsString;

use super::{Bootstrap, BootstrapError};

/// The variable that names a file; it goes before [`BOOTSTRAP_CONFIG`].
pub const BOOTSTRAP: &str = "GRPC_XDS_BOOTSTRAP";

/// The variable that has the content of such a file.
pub const BOOTSTRAP_CONFIG: &str = "GRPC_XDS_BOOTSTRAP_CONFIG";

pub(super) fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Bootstrap, BootstrapError> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(file) = set(BOOTSTRAP) {
        return Bootstrap::from_file(file);
    }
    let Some(text) = set(BOOTSTRAP_CONFIG) else { return Err(BootstrapError::NotConfigured) };
    // What is no Unicode is no JSON either, and the parser says where.
    Bootstrap::named(BOOTSTRAP_CONFIG, &text.to_string_lossy())
}
