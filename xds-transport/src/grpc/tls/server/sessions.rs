//! Whose sessions may be resumed: those of clients that showed no certificate.
//!
//! Who resumes a session is who he was: rustls verifies nothing again, and a session has no age but that of what keeps it. A
//! certificate that was good once would be good for ever.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::server::{NoServerSessionStorage, StoresServerSessions};
use rustls::{ServerConfig, ServerConnection};

/// Has every client verified: none is promised a session, and none is kept.
pub(super) fn without_sessions(config: &mut ServerConfig) {
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
}

/// What one handshake would have kept for later, until it is known with whom it was.
#[derive(Debug)]
pub(super) struct Withheld {
    kept: Arc<dyn StoresServerSessions>,
    /// As many as one handshake gives tickets.
    new: Mutex<Vec<(Vec<u8>, Vec<u8>)>>,
}

impl Withheld {
    /// The same configuration for one handshake, of which it [is told](Self::release) how it ended.
    pub(super) fn of_one(config: &ServerConfig) -> (Arc<ServerConfig>, Arc<Self>) {
        let withheld = Arc::new(Self { kept: config.session_storage.clone(), new: Mutex::default() });
        let mut config = config.clone();
        config.session_storage = withheld.clone();
        (Arc::new(config), withheld)
    }

    /// Keeps the session of who showed no certificate.
    pub(super) fn release(&self, with: &ServerConnection) {
        let new = std::mem::take(&mut *self.new.lock().unwrap_or_else(PoisonError::into_inner));
        if with.peer_certificates().is_none() {
            new.into_iter().for_each(|(key, session)| _ = self.kept.put(key, session));
        }
    }
}

impl StoresServerSessions for Withheld {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.new.lock().unwrap_or_else(PoisonError::into_inner).push((key, value));
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kept.get(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kept.take(key)
    }

    fn can_cache(&self) -> bool {
        self.kept.can_cache()
    }
}
