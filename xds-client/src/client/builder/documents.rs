//! Who reads what is at locators that are no names.

use std::sync::Arc;

use xdstp_uri::Scheme;

use super::Builder;
use crate::federation::Documents;

impl Builder {
    /// Reads files at `file:` locators (TP1) by this: where a redirect, an `alt=` or an entry of a list leads, and what is watched by
    /// its locator (`file:///etc/xds/clusters.yaml`), which is all resources of the type that the file has. Otherwise such locators
    /// lead nowhere, and their watches say so: which files whoever writes a locator has a program read, is for that to say.
    /// [`Files`](crate::Files) are of a disk.
    ///
    /// A file that has not what is looked for does not have it. One that cannot be read, or is of no use, is an error beside
    /// what was there: nothing is taken away by it. Several watches have one file open, which is closed about as long after the last
    /// of them as [idle](Self::idle) streams are.
    #[must_use]
    pub fn files(self, files: impl Documents) -> Self {
        self.documents(Scheme::File, files)
    }

    /// Fetches what is at `http:` locators by this, in the same way: `Http`, with the feature `http`, has what some servers have. What
    /// is not there any more is gone.
    #[must_use]
    pub fn http(self, http: impl Documents) -> Self {
        self.documents(Scheme::Http, http)
    }

    fn documents(mut self, scheme: Scheme, documents: impl Documents) -> Self {
        self.brought.documents.insert(scheme, Arc::new(documents));
        self
    }
}
