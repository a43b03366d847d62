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

    /// How much that is.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tonic::Status;

    use super::*;
    use crate::server::Stream;

    /// One that counts how often it was refused.
    #[derive(Debug, Default)]
    struct Refused(AtomicUsize);

    impl Shared for Refused {
        fn inspect(&self, _: &mut dyn FnMut(&Stream)) {}

        fn end(&self, _: Status) {}

        fn refuse(&self, _: &ProtocolError) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn share(of: &Arc<Unfinished>) -> (Arc<Refused>, Share) {
        let stream = Arc::new(Refused::default());
        let shared: Arc<dyn Shared> = stream.clone();
        (stream, of.share(Arc::downgrade(&shared)))
    }

    fn streams(of: &Unfinished) -> usize {
        of.lock().streams.len()
    }

    #[test]
    fn what_a_stream_keeps_no_more_others_may() {
        let unfinished = Unfinished::new(100);
        let [(one, mut first), (other, mut second)] = [share(&unfinished), share(&unfinished)];
        first.keep(60).unwrap();
        second.keep(40).unwrap();
        assert_eq!(unfinished.bytes(), 100);
        first.keep(0).unwrap();
        assert_eq!(streams(&unfinished), 1, "who keeps nothing is no one of those that keep most");
        second.keep(100).unwrap();
        drop(second);
        assert_eq!(streams(&unfinished), 0);
        first.keep(100).unwrap();
        assert_eq!([one, other].map(|stream| stream.0.load(Ordering::Relaxed)), [0, 0]);
    }

    #[test]
    fn a_single_byte_counts() {
        let unfinished = Unfinished::new(100);
        let [(one, mut first), (_other, mut second)] = [share(&unfinished), share(&unfinished)];
        first.keep(1).unwrap();
        second.keep(99).unwrap();
        second.keep(100).unwrap_err();
        assert_eq!(one.0.load(Ordering::Relaxed), 0, "who keeps little is not the worse for it");
        first.keep(100).unwrap();
    }
}
