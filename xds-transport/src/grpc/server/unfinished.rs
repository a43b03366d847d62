//! What is kept of requests that are not whole yet: so many bytes for all streams together. Who sends most of one loses
//! first, so that nobody who sends little is the worse for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::grpc::server::handle::Shared;
use crate::server::ProtocolError;

/// What all streams keep.
#[derive(Debug)]
pub(crate) struct Unfinished {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: usize,
    next: u64,
    streams: HashMap<u64, (usize, Weak<dyn Shared>)>,
}

/// What one stream keeps.
#[derive(Debug)]
pub(crate) struct Share {
    of: Arc<Unfinished>,
    stream: Weak<dyn Shared>,
    /// Unless it keeps nothing.
    id: Option<u64>,
}

impl Unfinished {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, kept: Mutex::default() })
    }

    pub(crate) fn share(self: &Arc<Self>, stream: Weak<dyn Shared>) -> Share {
        Share { of: self.clone(), stream, id: None }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// It keeps so many bytes now.
    ///
    /// # Errors
    /// There would be too much, and nobody keeps more than this stream.
    pub(crate) fn keep(&mut self, bytes: usize) -> Result<(), ProtocolError> {
        if bytes == 0 {
            self.give_back();
            return Ok(());
        }
        let most = self.of.most;
        let error = ProtocolError::TooMuch { limit: most };
        let mut ended = Vec::new();
        let mut kept = self.of.lock();
        let id = match self.id {
            // Another found that this stream keeps most.
            Some(id) if !kept.streams.contains_key(&id) => return Err(error),
            Some(id) => id,
            None => {
                kept.next += 1;
                kept.next
            }
        };
        self.id = Some(id);
        let before = kept.streams.insert(id, (bytes, self.stream.clone())).map_or(0, |(before, _)| before);
        kept.bytes = kept.bytes - before + bytes;
        while kept.bytes > most {
            let Some(largest) = kept.streams.iter().max_by_key(|(_, (bytes, _))| *bytes).map(|(id, _)| *id) else {
                break;
            };
            ended.extend(kept.remove(largest).filter(|_| largest != id));
        }
        let stays = kept.streams.contains_key(&id);
        drop(kept);
        // Not under the lock.
        ended.iter().filter_map(Weak::upgrade).for_each(|stream| stream.refuse(&error));
        if stays { Ok(()) } else { Err(error) }
    }

    fn give_back(&mut self) {
        if let Some(id) = self.id.take() {
            self.of.lock().remove(id);
        }
    }
}

impl Kept {
    fn remove(&mut self, id: u64) -> Option<Weak<dyn Shared>> {
        let (bytes, stream) = self.streams.remove(&id)?;
        self.bytes -= bytes;
        Some(stream)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}
