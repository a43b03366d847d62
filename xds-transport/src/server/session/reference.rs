//! What resources refer to: who is sent a cluster anew is sent its endpoints too (rule 124).

use xdstp_cache::TypeUrl;

use crate::frame::Frame;
use crate::types::TypeRule;

/// A name that a resource refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) type_url: TypeUrl,
    pub(crate) name: String,
}

impl Reference {
    pub(crate) fn collect(rule: &TypeRule, frame: &Frame, into: &mut Vec<Self>) {
        for dependent in &rule.dependents {
            if let Some(name) = rule.reference_of(dependent, frame.any()) {
                into.push(Self { type_url: dependent.type_url.clone(), name: name.to_owned() });
            }
        }
    }
}
