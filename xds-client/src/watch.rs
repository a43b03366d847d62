//! What a program holds to see resources change.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use xdstp_cache::{Interest, SubscriberId, TypeUrl};

use crate::client::Inner;
use crate::error::Error;
use crate::event::Event;
use crate::federation::{Heard, News, ResourceStatus, Scope};
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
    Watching(Box<Watching>),
    /// It cannot be: what is to be said of that, once.
    Never(Option<Error>),
}

struct Watching {
    /// Streams live for as long as somebody watches.
    client: Arc<Inner>,
    scope: Arc<Scope>,
    type_url: TypeUrl,
    interest: Interest,
    id: SubscriberId,
    heard: Heard,
}

impl<R: Content> Watch<R> {
    pub(crate) fn new(client: Arc<Inner>, scope: Arc<Scope>, type_url: TypeUrl, interest: Interest) -> Self {
        let id = scope.watch(&type_url, &interest);
        let watching = Watching { client, scope, type_url, interest, id, heard: Heard::default() };
        Self { state: State::Watching(Box::new(watching)), content: PhantomData }
    }

    pub(crate) fn never(error: Error) -> Self {
        Self { state: State::Never(Some(error)), content: PhantomData }
    }

    /// What is watched; nothing, if what was to be cannot be asked for.
    pub fn interest(&self) -> Option<&Interest> {
        match &self.state {
            State::Watching(watching) => Some(&watching.interest),
            State::Never(_) => None,
        }
    }

    /// What is known of the resource that is watched; nothing of a collection, of which each resource has its own.
    pub fn status(&self) -> Option<ResourceStatus> {
        let State::Watching(watching) = &self.state else { return None };
        match &watching.interest {
            Interest::Name(name) if !name.is_glob() => Some(watching.scope.entry(&watching.type_url, name).status),
            _ => None,
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
        match &mut self.state {
            State::Never(error) => Poll::Ready(error.take().map(|error| Event::Failed { name: None, error })),
            State::Watching(watching) => {
                let Watching { client, scope, type_url, interest, id, heard } = &mut **watching;
                let news = scope.next(type_url, interest, *id, heard, waker);
                news.map_or(Poll::Pending, |news| Poll::Ready(Some(event::<R>(client, scope, interest, news))))
            }
        }
    }
}

fn event<R: Content>(client: &Inner, scope: &Scope, interest: &Interest, news: News) -> Event<R::Value> {
    match news {
        News::Put { name, resource } => match R::value(&resource.value) {
            Ok(value) => Event::Put { name, version: resource.version, resource: value },
            Err(reason) => {
                let error = Error::Invalid { version: resource.version, reason: reason.as_str().into() };
                Event::Failed { name: Some(name), error }
            }
        },
        News::Gone { name } if interest.is_collection() => Event::Removed { name },
        News::Gone { name } => Event::Failed { name: Some(name), error: Error::Absent },
        News::Failed { name, error, held } => {
            let error = client.error(scope, &error);
            match error {
                // What a collection has is what its server says, and nothing else of it is kept.
                Error::Absent if interest.is_collection() => Event::Removed { name },
                error if held => Event::Ambient { name: Some(name), error: Some(error) },
                error => Event::Failed { name: Some(name), error },
            }
        }
        News::Answered => Event::Answered,
        News::Lost { trouble, held } => {
            let error = client.unreachable(&trouble);
            if held { Event::Ambient { name: None, error: Some(error) } } else { Event::Failed { name: None, error } }
        }
        News::Back => Event::Ambient { name: None, error: None },
    }
}

impl<R: Content> Stream for Watch<R> {
    type Item = Event<R::Value>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<R::Value>>> {
        self.poll(cx.waker())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if self.scope.unwatch(&self.type_url, self.id) {
            self.client.left();
        }
    }
}

impl<R: Content> fmt::Debug for Watch<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.state {
            State::Watching(watching) => &watching.interest as &dyn fmt::Debug,
            State::Never(error) => error,
        };
        f.debug_tuple("Watch").field(what).finish()
    }
}
