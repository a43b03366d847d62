//! Servers are asked, and what they say is passed on.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use xdstp_client::Watch;

use super::event::Event;
use super::progress::{From, Progress};
use super::servers::Servers;
use super::wanted::Wanted;
use crate::stdout;

/// A collection may be answered in several responses: this much silence ends it.
const QUIET: Duration = Duration::from_millis(250);

/// So long the server of what is shown from before may take to say that it is so, or be found to be away.
const DOUBT: Duration = Duration::from_secs(1);

/// Until when is listened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// All that was asked for is known, or this much time is over.
    Known(Duration),
    /// This much time is over, if it is limited; or ^C, or nobody reads what is printed.
    Over(Option<Duration>),
}

/// How often it is looked whether what was told as stale is so still: that its server says the same of it is no event of a watch.
const LOOK: Duration = Duration::from_millis(250);

/// Of the watch at this place.
struct News {
    place: usize,
    /// The server that counts for it.
    server: Option<Arc<str>>,
    /// Whether what it holds is from before.
    stale: bool,
    /// None: what was stale is not any more.
    event: Option<xdstp_client::Event>,
}

impl News {
    fn see(self, progress: &mut Progress, servers: &Servers) -> Vec<Event> {
        let Some(event) = self.event else { return progress.confirmed(self.place) };
        let elsewhere = progress.elsewhere(self.place, &event).and_then(|name| servers.of_authority(name));
        let server = elsewhere.or_else(|| self.server.and_then(|server| servers.place(&server)));
        progress.seen(self.place, From { server, stale: self.stale }, event)
    }
}

/// Passes on what a watch sees, for as long as anybody takes it.
async fn follow(mut watch: Watch, place: usize, sender: mpsc::Sender<News>) {
    let mut told_stale = false;
    loop {
        let event = tokio::select! {
            biased;
            event = watch.changed() => Some(event),
            () = sleep(LOOK), if told_stale => None,
        };
        let stale = watch.is_stale();
        if event.is_none() && stale {
            continue;
        }
        told_stale = event.is_some() && (told_stale || stale);
        if sender.send(News { place, server: watch.server(), stale, event }).await.is_err() {
            break;
        }
    }
}

/// Asks the servers, and prints what comes; what there is in the end, unless it was ^C, or nobody reads that.
///
/// # Errors
/// That of `print`.
pub(crate) async fn listen(
    wanted: &Wanted,
    servers: &Servers,
    until: Until,
    mut print: impl FnMut(&Servers, Event) -> io::Result<()>,
) -> io::Result<Option<Progress>> {
    let mut progress = Progress::new(servers.names().iter().cloned());
    // A full channel holds the watches back, and those coalesce.
    let (sender, news) = mpsc::channel(1);
    let mut places = 0;
    for (text, found) in wanted.names(servers.schemes()) {
        match found.and_then(|name| Ok((servers.of(&name)?, name))) {
            Ok((server, name)) => {
                let watch = servers.client().watch(wanted.type_url(), name.as_str());
                progress.ask(name, server);
                tokio::spawn(follow(watch, places, sender.clone()));
                places += 1;
            }
            Err(reason) => print(servers, progress.refuse(text, &reason))?,
        }
    }
    drop(sender);
    let mut print = |event| print(servers, event);
    let is_over = match until {
        Until::Known(patience) => known(&mut progress, servers, news, patience, &mut print).await.map(|()| true)?,
        Until::Over(limit) if progress.has_any() => over(&mut progress, servers, news, limit, &mut print).await?,
        Until::Over(_) => true,
    };
    Ok(is_over.then_some(progress))
}

async fn known(
    progress: &mut Progress,
    servers: &Servers,
    mut news: mpsc::Receiver<News>,
    patience: Duration,
    print: &mut impl FnMut(Event) -> io::Result<()>,
) -> io::Result<()> {
    let begin = Instant::now();
    let end = begin.checked_add(patience);
    let at_most = |until: Instant| Some(end.map_or(until, |end| end.min(until)));
    loop {
        let until = match (progress.is_waiting(), progress.is_doubtful(), progress.has_collections()) {
            (true, ..) => end,
            (false, true, _) if Instant::now() < begin + DOUBT => at_most(begin + DOUBT),
            (false, _, true) => at_most(Instant::now() + QUIET),
            (false, _, false) => break,
        };
        let next = match until {
            Some(until) => timeout_at(until, news.recv()).await.ok().flatten(),
            None => news.recv().await,
        };
        let Some(next) = next else { break };
        next.see(progress, servers).into_iter().try_for_each(&mut *print)?;
        progress.give_up_refused().into_iter().try_for_each(&mut *print)?;
    }
    progress.doubt().into_iter().try_for_each(&mut *print)?;
    progress.give_up(patience).into_iter().try_for_each(print)
}

/// Whether there is somebody to tell what there is in the end: it was not ^C, and what was printed is read.
async fn over(
    progress: &mut Progress,
    servers: &Servers,
    mut news: mpsc::Receiver<News>,
    limit: Option<Duration>,
    print: &mut impl FnMut(Event) -> io::Result<()>,
) -> io::Result<bool> {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    let ended = async {
        match end {
            Some(end) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
        }
    };
    let interrupted = tokio::signal::ctrl_c();
    let closed = stdout::closed();
    tokio::pin!(ended, interrupted, closed);
    loop {
        tokio::select! {
            // First, so that it is listened to before anything is printed.
            biased;
            interrupted = &mut interrupted => return interrupted.map(|()| false),
            () = &mut closed => return Ok(false),
            () = &mut ended => break,
            Some(next) = news.recv() => next.see(progress, servers).into_iter().try_for_each(&mut *print)?,
        }
    }
    progress.give_up(limit.unwrap_or_default()).into_iter().try_for_each(print)?;
    Ok(true)
}
