//! An origin of documents, each of which is at a locator that is no name (`file:` and `http:` of TP1).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use crate::federation::document::{Document, Documents};
use crate::federation::lock::lock;
use crate::federation::origin::{ByNode, Origin, Speaker};
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;

/// Each document is open for as long as a scope has something of it, however many scopes: one for each type.
pub(crate) struct DocumentOrigin {
    kind: &'static str,
    documents: Arc<dyn Documents>,
    open: Mutex<HashMap<String, Weak<Document>>>,
}

impl DocumentOrigin {
    /// `kind` is what it is in a word for people.
    pub(crate) fn new(kind: &'static str, documents: Arc<dyn Documents>) -> Self {
        Self { kind, documents, open: Mutex::default() }
    }

    fn document(&self, locator: &str) -> Arc<Document> {
        let open = &mut *lock(&self.open);
        if let Some(known) = open.get(locator).and_then(Weak::upgrade) {
            return known;
        }
        if open.len() == open.capacity() {
            open.retain(|_, document| document.strong_count() > 0);
        }
        let document = Arc::new(Document::new(locator));
        open.insert(locator.to_owned(), Arc::downgrade(&document));
        document
    }
}

impl Origin for DocumentOrigin {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn by_node(&self) -> ByNode {
        ByNode::Nothing
    }

    /// What a document does not have is not at its locator.
    fn is_authoritative(&self) -> bool {
        true
    }

    fn feed(&self, scope: &Arc<Scope>, _: &dyn Fn() -> Speaker) {
        if let ScopeKey::Document(_, locator) = scope.key.of_all() {
            self.document(locator).feed(scope, &*self.documents);
        }
    }
}
