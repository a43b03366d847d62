//! Origins that a program brings itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use xdstp_uri::Scheme;

use super::on_terms::OnTerms;
use crate::federation::{DocumentOrigin, Documents, Origin, Rules, ServerTerms, Terms, Validators};

/// Those of a client. They come before its servers: their positions are from 0.
#[derive(Default)]
pub(super) struct Brought {
    pub(super) by_authority: BTreeMap<String, Arc<dyn Origin>>,
    /// In place of the servers at the top of the bootstrap.
    pub(super) default: Option<Arc<dyn Origin>>,
    /// What is at locators that are no names.
    pub(super) documents: BTreeMap<Scheme, Arc<dyn Documents>>,
}

impl Brought {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.by_authority.len() + usize::from(self.default.is_some()) + self.documents.len()
    }

    /// The authorities that have one, and its position.
    pub(super) fn authorities(&self) -> impl Iterator<Item = (&String, usize)> {
        self.by_authority.keys().enumerate().map(|(at, authority)| (authority, at))
    }

    /// The position of the one of old-style names, and of authorities without servers of their own.
    pub(super) fn default_position(&self) -> Option<usize> {
        self.default.as_ref().map(|_| self.by_authority.len())
    }

    /// The positions of those of documents.
    pub(super) fn documents(&self) -> BTreeMap<Scheme, usize> {
        let before = self.by_authority.len() + usize::from(self.default.is_some());
        self.documents.keys().copied().zip(before..).collect()
    }

    /// By position, each with what the program makes of resources.
    pub(super) fn origins(&self, validators: &Arc<Validators>) -> Vec<Arc<dyn Origin>> {
        let of_documents = self.documents.iter().map(|(scheme, documents)| {
            Arc::new(DocumentOrigin::new(scheme.as_str(), documents.clone())) as Arc<dyn Origin>
        });
        let all = self.by_authority.values().chain(&self.default).cloned().chain(of_documents);
        all.map(|origin| {
            let terms = terms(origin.kind(), validators);
            Arc::new(OnTerms { origin, terms }) as Arc<dyn Origin>
        })
        .collect()
    }
}

/// What the program says itself may set what concerns security.
fn terms(kind: &'static str, validators: &Arc<Validators>) -> Terms {
    let (rules, patience) = (Rules::default(), Duration::ZERO);
    let of_it = ServerTerms { name: kind.into(), rules, patience, trusted: true };
    Terms { of_servers: vec![of_it], validators: validators.clone() }
}
