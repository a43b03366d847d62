//! What the streams of a client tell its metrics: of a server that has several, once for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use xdstp_cache::TypeUrl;

use super::metrics::Metrics;
use crate::federation::{Observer, Reached};

pub(super) struct Counting {
    metrics: Arc<dyn Metrics>,
    servers: Mutex<BTreeMap<String, Streams>>,
}

/// The streams to a server that know something of it.
#[derive(Default)]
struct Streams {
    /// How many know what.
    known: BTreeMap<Reached, usize>,
    /// What the program was told of it last.
    told: Option<bool>,
    /// Somebody tells it, and looks again after that.
    telling: bool,
}

impl Streams {
    /// It can be reached if it answers any of them; where none failed, a stream is enough.
    fn is(&self) -> Option<bool> {
        let any = |of| self.known.contains_key(&of);
        (!self.known.is_empty()).then(|| any(Reached::Answered) || !any(Reached::Failed))
    }

    fn turn(&mut self, was: Option<Reached>, is: Option<Reached>) {
        if let Some(was) = was
            && let Some(count) = self.known.get_mut(&was)
        {
            *count -= 1;
            if *count == 0 {
                self.known.remove(&was);
            }
        }
        is.into_iter().for_each(|is| *self.known.entry(is).or_default() += 1);
    }
}

impl Counting {
    pub(super) fn new(metrics: Arc<dyn Metrics>) -> Self {
        Self { metrics, servers: Mutex::default() }
    }

    /// What is news of a server, if nobody tells that already. None is left of a server that nobody asks any more.
    fn news(&self, server: &str) -> Option<Option<bool>> {
        let mut servers = self.servers.lock();
        let streams = servers.get_mut(server)?;
        let is = streams.is();
        streams.telling = streams.told != is;
        streams.told = is;
        if streams.telling {
            return Some(is);
        }
        if is.is_none() {
            servers.remove(server);
        }
        None
    }
}

/// The program is being told. If it panics, it is to be told what comes next.
struct Telling<'a> {
    counting: &'a Counting,
    server: &'a str,
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.counting.servers.lock().get_mut(self.server).into_iter().for_each(|streams| streams.telling = false);
        }
    }
}

impl Observer for Counting {
    fn reached(&self, server: &str, was: Option<Reached>, is: Option<Reached>) {
        {
            let mut servers = self.servers.lock();
            let streams = servers.entry(server.to_owned()).or_default();
            streams.turn(was, is);
            if streams.telling {
                return;
            }
        }
        // No lock is held while the program's code runs.
        let _telling = Telling { counting: self, server };
        while let Some(is) = self.news(server) {
            self.metrics.connected(server, is);
            if is == Some(false) {
                self.metrics.server_failure(server);
            }
        }
    }

    fn judged(&self, server: &str, type_url: &TypeUrl, valid: u64, invalid: u64) {
        self.metrics.resource_updates(server, type_url.as_str(), valid, invalid);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Panics when a server is first told to be reachable.
    #[derive(Default)]
    struct Panics(Mutex<Vec<Option<bool>>>);

    impl Metrics for Panics {
        fn connected(&self, _: &str, is: Option<bool>) {
            self.0.lock().push(is);
            assert_ne!(is, Some(true), "on purpose");
        }
    }

    #[test]
    fn a_program_that_panics_is_told_what_comes_next() {
        let panics = Arc::<Panics>::default();
        let counting = Counting::new(panics.clone());
        let turn = |was, is| _ = catch_unwind(AssertUnwindSafe(|| counting.reached("s", was, is)));
        turn(None, Some(Reached::Opened));
        turn(Some(Reached::Opened), Some(Reached::Failed));
        turn(Some(Reached::Failed), None);
        assert_eq!(*panics.0.lock(), [Some(true), Some(false), None]);
        assert!(counting.servers.lock().is_empty());
    }

    /// What it is told.
    #[derive(Default)]
    struct Heard(Mutex<Vec<Option<bool>>>);

    impl Metrics for Heard {
        fn connected(&self, _: &str, is: Option<bool>) {
            self.0.lock().push(is);
        }
    }

    #[test]
    fn a_server_is_connected_while_it_answers_a_stream_and_one_more_is_no_answer_once_another_failed() {
        let heard = Arc::<Heard>::default();
        let counting = Counting::new(heard.clone());
        let told = |was, is| {
            counting.reached("s", was, is);
            std::mem::take(&mut *heard.0.lock())
        };
        let (opened, answered, failed) = (Some(Reached::Opened), Some(Reached::Answered), Some(Reached::Failed));
        assert_eq!(told(None, opened), [Some(true)]);
        assert_eq!(told(opened, answered), []);
        assert_eq!(told(None, failed), [], "another stream answers");
        assert_eq!(told(answered, failed), [Some(false)]);
        assert_eq!(told(None, opened), []);
        assert_eq!(told(opened, answered), [Some(true)]);
        assert_eq!([told(failed, None), told(failed, None)], [[], []]);
        assert_eq!(told(answered, None), [None]);
    }
}
