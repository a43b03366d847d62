//! The response body: asked by HTTP/2 when there is room, it pulls the stream then.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::task::JoinHandle;
use tonic::Status;

use crate::grpc::now;
use crate::grpc::server::alarm::Alarm;
use crate::grpc::server::state::{StreamState, status_of};
use crate::grpc::server::streams::Entry;
use crate::server::{Source, Transmit};

/// Ends with trailers: an error would become RST_STREAM, and the client would not learn why.
pub(crate) struct ResponseBody<S: Source + Send + 'static> {
    state: Arc<StreamState<S>>,
    reading: JoinHandle<()>,
    /// What is being written; one at a time.
    transmit: Option<Transmit>,
    alarm: Alarm,
    /// When to look although nothing happened.
    timeout: Option<Instant>,
    /// The last look found something and there may be more, or it paused, or there was none yet.
    more: bool,
    over: bool,
    _entry: Entry,
}

impl<S: Source + Send + 'static> ResponseBody<S> {
    pub(crate) fn new(state: Arc<StreamState<S>>, reading: JoinHandle<()>, entry: Entry) -> Self {
        let alarm = Alarm::at(now().into());
        Self { state, reading, transmit: None, alarm, timeout: None, more: true, over: false, _entry: entry }
    }

    /// The next response, if there is one, is what is to be written; or the status the stream ends with.
    fn poll_stream(&mut self) -> Result<(), Status> {
        let mut inner = self.state.lock();
        let inner = &mut *inner;
        if let Some(status) = self.state.take_end(inner.source.as_mut()) {
            return Err(status);
        }
        let Some(source) = inner.source.as_mut() else { return Err(Status::ok("")) };
        self.transmit = inner.stream.poll_transmit(now(), source).map_err(|error| status_of(&error, source))?;
        let is_there = self.transmit.is_some();
        if !is_there && inner.half_closed && !inner.stream.has_paused() {
            return Err(Status::ok(""));
        }
        self.more = is_there && inner.stream.may_continue() || inner.stream.has_paused();
        self.timeout = inner.stream.poll_timeout();
        Ok(())
    }

    fn next_chunk(&mut self) -> Option<Bytes> {
        let chunk = self.transmit.as_mut()?.next_chunk();
        if chunk.is_none() {
            self.transmit = None;
        }
        chunk
    }

    fn trailers(&mut self, status: &Status) -> Frame<Bytes> {
        self.over = true;
        let mut trailers = HeaderMap::new();
        if status.add_header(&mut trailers).is_err() {
            trailers.insert("grpc-status", http::HeaderValue::from(13));
        }
        Frame::trailers(trailers)
    }
}

impl<S: Source + Send + 'static> Body for ResponseBody<S> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if this.over {
            return Poll::Ready(None);
        }
        if let Some(chunk) = this.next_chunk() {
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        loop {
            // Before looking, or a wake between looking and registering is lost.
            this.state.wake.register(cx.waker());
            if this.state.apart.is_busy() {
                return Poll::Pending;
            }
            if !this.state.wake.take_due() && !this.more {
                let Some(timeout) = this.timeout else { return Poll::Pending };
                this.alarm.set(timeout.into());
                ready!(this.alarm.poll(cx));
            }
            if let Err(status) = this.poll_stream() {
                return Poll::Ready(Some(Ok(this.trailers(&status))));
            }
            if let Some(transmit) = &mut this.transmit {
                let length = u32::try_from(transmit.remaining()).unwrap_or(u32::MAX).to_be_bytes();
                let [a, b, c, d] = length;
                let chunk = transmit.chunk_after(&[0, a, b, c, d]).unwrap_or_default();
                return Poll::Ready(Some(Ok(Frame::data(chunk))));
            }
            if this.more {
                // The others of this thread have their turn now.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

impl<S: Source + Send + 'static> Drop for ResponseBody<S> {
    fn drop(&mut self) {
        self.reading.abort();
        self.state.abandon();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use bytes::BytesMut;
    use prost::Message as _;
    use xdstp_cache::{Cache, Options, TypeUrl};

    use super::*;
    use crate::grpc::server::handle::{self, Shared};
    use crate::grpc::server::state::Inner;
    use crate::grpc::server::streams::Streams;
    use crate::server::{Settings, Stream};
    use crate::wire::DeltaDiscoveryRequest;
    use crate::wire::walk;
    use crate::{Frame, Protocol};

    const URL: &str = "type.example.com/T";

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Names of which all but the last are held as they are, in a cache that looks at one of those at a time.
    fn begun(names: &[&str]) -> ResponseBody<Cache<Frame>> {
        let url = TypeUrl::from(URL);
        let mut options = Options::default();
        options.looks = 1;
        let mut source = Cache::new(options);
        let mut edit = source.edit(now());
        for name in names {
            edit.put(&url, &name.parse().unwrap(), Frame::of_message(&url, b"1").into_resource(None));
        }
        drop(edit.finish());
        let version = Frame::of_message(&url, b"1").into_resource(None).version;
        let held = |name: &&str| {
            let mut held = BytesMut::new();
            walk::put_bytes(&mut held, 1, name.as_bytes());
            walk::put_bytes(&mut held, 2, version.as_str().as_bytes());
            held.freeze()
        };
        let request = DeltaDiscoveryRequest {
            type_url: URL.to_owned(),
            resource_names_subscribe: names.iter().map(|&name| name.to_owned()).collect(),
            initial_resource_versions: names[..names.len() - 1].iter().map(held).collect(),
            ..DeltaDiscoveryRequest::default()
        };
        let mut stream = Stream::new(Protocol::Delta, Settings::default());
        stream.handle_message(now(), request.encode_to_vec().into(), &mut source).unwrap();
        let inner = Inner { stream, source: Some(source), half_closed: false };
        let state = Arc::new(StreamState::new(inner, handle::Wake::default()));
        let shared: Arc<dyn Shared> = state.clone();
        let entry = Streams::default().enter(Arc::downgrade(&shared), None).unwrap();
        ResponseBody::new(state, tokio::spawn(async {}), entry)
    }

    #[tokio::test]
    async fn a_stream_that_pauses_is_polled_again_and_what_it_has_written_it_does_not_keep() {
        let (mut body, woken) = (begun(&["a", "b", "c", "d"]), Arc::<Woken>::default());
        let waker = woken.clone().into();
        let mut cx = Context::from_waker(&waker);
        let mut poll = |body: &mut ResponseBody<_>| {
            let polled = Pin::new(body).poll_frame(&mut cx);
            polled.map(|frame| frame.unwrap().unwrap().into_data().unwrap())
        };
        let mut pauses = 0;
        while poll(&mut body).is_pending() {
            pauses += 1;
            assert_eq!(woken.0.load(Ordering::Relaxed), pauses, "nobody else has it polled again");
        }
        assert!(pauses > 0);
        while poll(&mut body).is_ready() {}
        assert!(body.transmit.is_none());
    }
}
