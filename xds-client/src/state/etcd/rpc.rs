//! One call over one connection.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Streaming};
use tonic_prost::ProstCodec;

use super::failure::Failure;
use crate::upstream::chain;

/// The largest answer that is taken, in bytes: more than etcd stores as one value, many times.
pub(super) const MOST_ANSWER: usize = 32 << 20;

/// A connection that is called over, and what calls carry there.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pub(super) channel: Channel,
    pub(super) token: Option<MetadataValue<Ascii>>,
}

impl Calls {
    pub(super) async fn unary<Q, A>(&self, method: &'static str, asked: Q) -> Result<A, Failure>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let (mut grpc, path) = self.ready(method).await?;
        let answer = grpc.unary(self.carrying(asked), path, ProstCodec::default()).await;
        answer.map(tonic::Response::into_inner).map_err(|status| Failure::of(&status))
    }

    /// Asks once, and hears what comes, for as long as that is kept.
    pub(super) async fn streaming<Q, A>(&self, method: &'static str, asked: Q) -> Result<Streaming<A>, Failure>
    where
        Q: Message + Unpin + 'static,
        A: Message + Default + 'static,
    {
        let (mut grpc, path) = self.ready(method).await?;
        let answer = grpc.streaming(self.carrying(Once(Some(asked))), path, ProstCodec::default()).await;
        answer.map(tonic::Response::into_inner).map_err(|status| Failure::of(&status))
    }

    /// A connection that is over says so before anything is sent.
    async fn ready(&self, method: &'static str) -> Result<(Grpc<Channel>, PathAndQuery), Failure> {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(MOST_ANSWER);
        grpc.ready().await.map_err(|error| Failure::Elsewhere(chain(&error)))?;
        Ok((grpc, PathAndQuery::from_static(method)))
    }

    fn carrying<Q>(&self, asked: Q) -> Request<Q> {
        let mut request = Request::new(asked);
        let metadata = request.metadata_mut();
        // Who has no leader says so at once, and does not wait for one; and ends what streams there are.
        metadata.insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = &self.token {
            metadata.insert("token", token.clone());
        }
        request
    }
}

/// What is asked, once. The side that asks stays open.
struct Once<Q>(Option<Q>);

impl<Q: Unpin> Stream for Once<Q> {
    type Item = Q;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Q>> {
        // It wakes nobody: the call ends when its answers are dropped.
        self.0.take().map_or(Poll::Pending, |asked| Poll::Ready(Some(asked)))
    }
}
