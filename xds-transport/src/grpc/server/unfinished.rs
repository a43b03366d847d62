//! What is kept of requests that are not whole yet: so many bytes for all streams together. The client that sends most of them loses
//! first, of its streams the one that sends most, so that nobody who sends little is the worse for it.

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
    streams: HashMap<u64, OfStream>,
}

#[derive(Debug)]
struct OfStream {
    bytes: usize,
    stream: Weak<dyn Shared>,
    /// Without one it is a client of its own.
    client: Option<u64>,
}

/// What one stream keeps.
#[derive(Debug)]
pub(crate) struct Share {
    of: Arc<Unfinished>,
    stream: Weak<dyn Shared>,
    client: Option<u64>,
    /// Unless it keeps nothing.
    id: Option<u64>,
}

impl Unfinished {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, kept: Mutex::default() })
    }

    pub(crate) fn share(self: &Arc<Self>, stream: Weak<dyn Shared>, client: Option<u64>) -> Share {
        Share { of: self.clone(), stream, client, id: None }
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
    /// Whose it is.
    pub(crate) fn client(&self) -> Option<u64> {
        self.client
    }

    /// It keeps so many bytes now.
    ///
    /// # Errors
    /// There would be too much, and no client keeps more than that of this stream, nor a stream of it more than this.
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
            // Another found that it is this stream that is to end.
            Some(id) if !kept.streams.contains_key(&id) => return Err(error),
            Some(id) => id,
            None => {
                kept.next += 1;
                kept.next
            }
        };
        self.id = Some(id);
        let this = OfStream { bytes, stream: self.stream.clone(), client: self.client };
        let before = kept.streams.insert(id, this).map_or(0, |before| before.bytes);
        kept.bytes = kept.bytes - before + bytes;
        while kept.bytes > most {
            let Some(largest) = kept.largest() else { break };
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
    /// Of the client that keeps most the stream that does.
    fn largest(&self) -> Option<u64> {
        let mut of_clients: HashMap<_, usize> = HashMap::new();
        for of in self.streams.values() {
            if let Some(client) = of.client {
                *of_clients.entry(client).or_default() += of.bytes;
            }
        }
        let of_client = |of: &OfStream| of.client.and_then(|client| of_clients.get(&client)).copied();
        let largest = self.streams.iter().max_by_key(|(_, of)| (of_client(of).unwrap_or(of.bytes), of.bytes));
        largest.map(|(id, _)| *id)
    }

    fn remove(&mut self, id: u64) -> Option<Weak<dyn Shared>> {
        let OfStream { bytes, stream, .. } = self.streams.remove(&id)?;
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
        share_of(of, None)
    }

    fn share_of(of: &Arc<Unfinished>, client: Option<u64>) -> (Arc<Refused>, Share) {
        let stream = Arc::new(Refused::default());
        let shared: Arc<dyn Shared> = stream.clone();
        (stream, of.share(Arc::downgrade(&shared), client))
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

    /// Who divides what it keeps among many streams is no less than who keeps it on one.
    #[test]
    fn of_the_client_that_keeps_most_the_largest_stream_ends_though_another_s_is_larger() {
        for (one_request, another) in [(Some(2), Some(1)), (None, Some(1))] {
            let unfinished = Unfinished::new(100);
            let (honest, mut large) = share_of(&unfinished, one_request);
            large.keep(40).unwrap();
            let mut others: Vec<_> = (0..6).map(|_| share_of(&unfinished, another)).collect();
            for (bytes, (_, share)) in [9, 10, 11, 9, 10, 10].into_iter().zip(&mut others) {
                share.keep(bytes).unwrap();
            }
            // Of another, of none, and of its own what is one byte too much: the one of 11 goes.
            large.keep(42).unwrap();
            let ended = |others: &[(Arc<Refused>, Share)]| {
                let ended = others.iter().map(|(stream, _)| stream.0.load(Ordering::Relaxed));
                ended.collect::<Vec<_>>()
            };
            assert_eq!(ended(&others), [0, 0, 1, 0, 0, 0]);
            // It asks for more itself, and is the largest of those that are left.
            others[3].1.keep(21).unwrap_err();
            assert_eq!((ended(&others), honest.0.load(Ordering::Relaxed)), (vec![0, 0, 1, 0, 0, 0], 0));
        }
    }
}
