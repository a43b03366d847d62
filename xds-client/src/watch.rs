//! What a program holds to see resources change.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use parking_lot::Mutex;
use xdstp_cache::Interest;

use crate::error::Error;
use crate::event::Event;
use crate::federation::ResourceStatus;
#[cfg(feature = "lrs")]
use crate::load::{LoadError, LoadReporter};
use crate::resolver::{Find, Told};
use crate::resource::{Content, Raw};

/// A subscription, which ends when it is dropped.
///
/// It holds no queue: a resource that changes three times before it is looked at is seen once, as it is then. It is a
/// [`Stream`], of [raw](Raw) resources or of those of a [type](crate::Resource).
pub struct Watch<R: Content = Raw> {
    state: State,
    content: PhantomData<fn() -> R>,
}

enum State {
    Watching(Box<dyn Find>),
    /// It is yet to be asked for.
    Awaiting(Arc<Mutex<Awaited>>),
    /// It cannot be: what is to be said of that, once.
    Never(Option<Box<Error>>),
}

/// What is watched once somebody asks for it.
#[derive(Default)]
pub(crate) struct Awaited {
    found: Option<Result<Box<dyn Find>, Error>>,
    waker: Option<Waker>,
    is_asked: bool,
    /// All is to be told again when another server counts.
    renotifies: bool,
}

impl Awaited {
    /// It is asked for, or cannot be; and who waits for that.
    pub(crate) fn find(&mut self, found: Result<Box<dyn Find>, Error>) -> Option<Waker> {
        (self.found, self.is_asked) = (Some(found), true);
        self.waker.take()
    }

    pub(crate) fn is_awaited(&self) -> bool {
        !self.is_asked
    }

    fn take(&mut self, waker: &Waker) -> Option<Result<Box<dyn Find>, Error>> {
        let mut found = self.found.take();
        match &mut found {
            Some(Ok(found)) if self.renotifies => found.renotify(),
            Some(_) => {}
            None => self.waker = Some(waker.clone()),
        }
        found
    }
}

impl<R: Content> Watch<R> {
    pub(crate) fn awaiting(awaited: Arc<Mutex<Awaited>>) -> Self {
        Self { state: State::Awaiting(awaited), content: PhantomData }
    }

    pub(crate) fn new(found: Box<dyn Find>) -> Self {
        Self { state: State::Watching(found), content: PhantomData }
    }

    pub(crate) fn never(error: Error) -> Self {
        Self { state: State::Never(Some(Box::new(error))), content: PhantomData }
    }

    /// What is watched: of a list collection or a part of it, the list; nothing, if what was to be cannot be asked for.
    pub fn interest(&self) -> Option<&Interest> {
        match &self.state {
            State::Watching(found) => Some(found.first().interest()),
            State::Awaiting(_) | State::Never(_) => None,
        }
    }

    /// What is known of the resource that is watched, at its own name, wherever that leads; nothing of a collection, of which
    /// each resource has its own.
    pub fn status(&self) -> Option<ResourceStatus> {
        match &self.state {
            State::Watching(found) => found.is_one().then(|| found.first().status())?,
            State::Awaiting(_) | State::Never(_) => None,
        }
    }

    /// The server that counts now for what is watched, of those of its authority, or of that which a redirect or an alternative
    /// leads to; nothing, if it cannot be asked for.
    pub fn server(&self) -> Option<Arc<str>> {
        match &self.state {
            State::Watching(found) => Some(found.source().server()),
            State::Awaiting(_) | State::Never(_) => None,
        }
    }

    /// The position of the origin that it is from.
    pub(crate) fn origin(&self) -> Option<usize> {
        match &self.state {
            State::Watching(found) => Some(found.source().origin()),
            State::Awaiting(_) | State::Never(_) => None,
        }
    }

    /// Whether what is held of it is from before a restart, and its server has not said yet that it is so: of a collection,
    /// whether anything of its authority is, or of what its members lead to. Its server has spoken of what it says is gone, and the program uses on: that is not
    /// stale, and [`status`](Self::status) says what it is.
    pub fn is_stale(&self) -> bool {
        match &self.state {
            State::Watching(found) => found.is_stale(),
            State::Awaiting(_) | State::Never(_) => false,
        }
    }

    /// Has all that there is told again whenever another server comes to count for it, though it is as it was: a resource may say
    /// something that stands for its server (`self`, gRFC A47), and who goes by that does it anew. Otherwise what is as it was is
    /// no news. What a redirect or an alternative leads to is told again, too, when another server counts for that or for the redirect;
    /// the members of a list collection (TP1) are not.
    #[must_use]
    pub fn renotify_on_switch(mut self) -> Self {
        match &mut self.state {
            State::Watching(found) => found.renotify(),
            State::Awaiting(awaited) => awaited.lock().renotifies = true,
            State::Never(_) => {}
        }
        self
    }

    /// Reports load to the server that what is watched came from: what a cluster says by `lrs_server: { self: {} }`. Another
    /// server may come to count, and then the reporter is another, too: see [`renotify_on_switch`](Self::renotify_on_switch).
    ///
    /// # Errors
    /// When what is watched cannot be asked for, and so has no server.
    #[cfg(feature = "lrs")]
    pub fn load_reporter(&self) -> Result<LoadReporter, LoadError> {
        match &self.state {
            State::Watching(found) => found.source().load_reporter(),
            State::Awaiting(_) | State::Never(_) => Err(LoadError::NotWatched),
        }
    }

    /// What comes next. Dropping the future loses nothing. A watch that cannot be says so once, and nothing after it.
    pub async fn changed(&mut self) -> Event<R::Value> {
        let next = std::future::poll_fn(|cx| self.poll(cx.waker())).await;
        match next {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    /// What comes next, if it is there already.
    pub fn try_next(&mut self) -> Option<Event<R::Value>> {
        match self.poll(Waker::noop()) {
            Poll::Ready(event) => event,
            Poll::Pending => None,
        }
    }

    fn poll(&mut self, waker: &Waker) -> Poll<Option<Event<R::Value>>> {
        if let State::Awaiting(awaited) = &self.state {
            let Some(found) = awaited.lock().take(waker) else { return Poll::Pending };
            self.state = match found {
                Ok(found) => State::Watching(found),
                Err(error) => State::Never(Some(Box::new(error))),
            };
        }
        match &mut self.state {
            State::Awaiting(_) => Poll::Pending,
            State::Never(error) => Poll::Ready(error.take().map(|error| Event::Failed { name: None, error: *error })),
            State::Watching(found) => loop {
                match found.next(waker) {
                    // There is nothing to use still, whatever server can be reached.
                    Some(Told::Cleared { name: None }) if found.first().is_unread() => {}
                    Some(told) => return Poll::Ready(Some(event::<R>(&mut **found, told))),
                    None => return Poll::Pending,
                }
            },
        }
    }
}

fn event<R: Content>(found: &mut dyn Find, told: Told) -> Event<R::Value> {
    match told {
        Told::Put { name, resource } => {
            let value = R::value(&resource.value);
            // Who watches by another type may have taken it.
            if found.is_one() {
                found.first_mut().set_unread(value.is_err());
            }
            match value {
                Ok(value) => Event::Put { name, version: resource.version, resource: value },
                Err(reason) => {
                    let error = Error::Invalid { version: resource.version, reason: reason.as_str().into() };
                    Event::Failed { name: Some(name), error }
                }
            }
        }
        Told::Gone { name } => Event::Removed { name },
        Told::Failed { name, error, held: true, .. } if !found.first().is_unread() => {
            Event::Ambient { name, error: Some(error) }
        }
        Told::Failed { name, error, .. } => Event::Failed { name, error },
        Told::Cleared { name } => Event::Ambient { name, error: None },
        Told::Answered => Event::Answered,
    }
}

impl<R: Content> Stream for Watch<R> {
    type Item = Event<R::Value>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<R::Value>>> {
        self.poll(cx.waker())
    }
}

impl<R: Content> fmt::Debug for Watch<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.state {
            State::Watching(found) => found.first().interest() as &dyn fmt::Debug,
            State::Awaiting(_) => &"awaited",
            State::Never(error) => error,
        };
        f.debug_tuple("Watch").field(what).finish()
    }
}
