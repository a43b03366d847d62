//! The first message of a client that reports load: it has the node, which a rule may have to look at before anybody hears of it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body as AxumBody;
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use prost::Message as _;
use tonic::Status;
use xds_transport::wire::Node;
use xds_transport::wire::walk::{Field, FieldValue, Fields};

/// What precedes a message of gRPC: whether it is compressed, and its length.
const HEAD: usize = 5;

/// A body of which the beginning was read.
pub(super) struct Begun {
    read: VecDeque<Bytes>,
    rest: AxumBody,
}

impl Begun {
    /// All of it is still to be read.
    pub(super) fn unread(body: AxumBody) -> Self {
        Self { read: VecDeque::new(), rest: body }
    }

    /// Reads until the first message is here, which may have so many bytes: the node in it.
    ///
    /// # Errors
    /// It is too long, or compressed, or there is none.
    pub(super) async fn read(body: AxumBody, longest: usize) -> Result<(Self, Node), Status> {
        let (mut begun, mut message) = (Self::unread(body), BytesMut::new());
        loop {
            if let Some(node) = node_in(&message, longest)? {
                return Ok((begun, node));
            }
            let frame = std::future::poll_fn(|cx| Pin::new(&mut begun.rest).poll_frame(cx)).await;
            let Some(Ok(frame)) = frame else {
                return Err(Status::invalid_argument("the stream ended before its first message"));
            };
            if let Ok(data) = frame.into_data() {
                message.extend_from_slice(&data);
                begun.read.push_back(data);
            }
        }
    }
}

/// The node in the first message of these bytes, once that is whole.
fn node_in(bytes: &[u8], longest: usize) -> Result<Option<Node>, Status> {
    let Some((&[compressed, a, b, c, d], rest)) = bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
    if compressed != 0 {
        return Err(Status::unimplemented(
            "a first message that is compressed, and has a node that is to be looked at",
        ));
    }
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    if length > longest {
        return Err(Status::resource_exhausted(format!("a first message of {length} bytes, {longest} are taken")));
    }
    let Some(message) = rest.get(..length) else { return Ok(None) };
    let mut node = Node::default();
    for field in Fields::of(message) {
        let malformed =
            |error: String| Status::invalid_argument(format!("a first message that does not decode: {error}"));
        // Of several that say something of the node all count: as protobuf has it they are one.
        if let Field { number: 1, value: FieldValue::Bytes(encoded) } =
            field.map_err(|error| malformed(error.to_string()))?
        {
            node.merge(encoded).map_err(|error| malformed(error.to_string()))?;
        }
    }
    Ok(Some(node))
}

impl Body for Begun {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.read.pop_front() {
            Some(read) => Poll::Ready(Some(Ok(Frame::data(read)))),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(node: &[u8]) -> Vec<u8> {
        let content = [&[0x0a, node.len() as u8][..], node].concat();
        [&[0, 0, 0, 0, content.len() as u8][..], &content].concat()
    }

    #[tokio::test]
    async fn what_was_read_for_its_node_is_read_again_as_it_was() {
        let bytes = [message(b"\x0a\x01a\x12\x01c"), vec![0, 0, 0, 0, 0]].concat();
        let (begun, node) = Begun::read(AxumBody::from(bytes.clone()), 100).await.unwrap();
        assert_eq!((node.id.as_str(), node.cluster.as_str()), ("a", "c"));
        let again = axum::body::to_bytes(AxumBody::new(begun), 100).await.unwrap();
        assert_eq!(again, bytes);
    }

    #[test]
    fn a_message_is_waited_for_as_long_as_it_may_be_good() {
        let whole = message(b"\x0a\x01a");
        for cut in 0..whole.len() {
            assert_eq!(node_in(&whole[..cut], 100).unwrap(), None);
        }
        assert!(node_in(&whole, 2).is_err() && node_in(&[1, 0, 0, 0, 0], 100).is_err());
        assert!(node_in(&message(b"\x0a\x05a"), 100).is_err());
        assert_eq!(
            node_in(&[0, 0, 0, 0, 0], 100).unwrap(),
            Some(Node::default()),
            "a node that is not said is of no id"
        );
    }
}
