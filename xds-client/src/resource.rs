//! What a program makes of resources.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use xds_transport::Frame;
use xds_transport::wire::Any;
use xdstp_cache::TypeUrl;

use crate::federation::{Reason, Trust, Validated, guarded};

/// A type of resources, as a program uses them. Every message of prost that [has a name](prost::Name) is one: those of the
/// crate `envoy-types`, for instance.
///
/// ```
/// use bytes::Bytes;
/// use xdstp_client::{Reason, Resource};
///
/// /// How many bytes a cluster has.
/// struct Size(usize);
///
/// impl Resource for Size {
///     fn type_url() -> String {
///         "type.googleapis.com/envoy.config.cluster.v3.Cluster".into()
///     }
///
///     fn decode(message: Bytes) -> Result<Self, Reason> {
///         if message.is_empty() { Err(Reason::new("it is empty")) } else { Ok(Self(message.len())) }
///     }
/// }
/// ```
pub trait Resource: Sized + Send + Sync + 'static {
    /// Its type URL.
    fn type_url() -> String;

    /// Reads an encoded message. It is called once for every version that comes, before that is acknowledged, and by
    /// whoever receives: it returns soon. No lock of the client is held meanwhile. One may be when what it returned is dropped:
    /// that must not ask the client for anything, and so must not end a watch.
    ///
    /// # Errors
    /// Why the message is of no use. Its server is told so, by a NACK; what was there before stays in use.
    fn decode(message: Bytes) -> Result<Self, Reason>;

    /// Reads a message of a server that may set what concerns security, which others may not: the bootstrap says so of it
    /// (`trusted_xds_server`, gRFC A81). As any other's, unless a type tells them apart. What is held already when the first watch
    /// comes that has it read, or that has it read as another Rust type than the first, is read by [`decode`](Self::decode),
    /// whoever sent it.
    ///
    /// # Errors
    /// The same.
    fn decode_trusted(message: Bytes) -> Result<Self, Reason> {
        Self::decode(message)
    }
}

impl<M: Message + prost::Name + Default + 'static> Resource for M {
    fn type_url() -> String {
        format!("type.googleapis.com/{}", M::full_name())
    }

    fn decode(message: Bytes) -> Result<Self, Reason> {
        Ok(<M as Message>::decode(message)?)
    }
}

/// Resources as they come: each an encoded `google.protobuf.Any`.
#[derive(Clone, Copy, Debug)]
pub enum Raw {}

/// What watches yield: either [`Raw`] or any [`Resource`].
pub trait Content: sealed::Content {}

impl<C: sealed::Content> Content for C {}

pub(crate) mod sealed {
    use super::{Frame, Reason};

    pub trait Content: 'static {
        /// A resource, as it is yielded.
        type Value: Clone + Send + 'static;

        /// What was made of a frame, or is now.
        fn value(frame: &Frame) -> Result<Self::Value, Reason>;
    }
}

impl sealed::Content for Raw {
    type Value = Bytes;

    fn value(frame: &Frame) -> Result<Bytes, Reason> {
        Ok(frame.any().clone())
    }
}

impl<R: Resource> sealed::Content for R {
    type Value = Arc<R>;

    fn value(frame: &Frame) -> Result<Arc<R>, Reason> {
        let made = frame.decoded().and_then(|value| Arc::clone(value).downcast().ok());
        // It came before anybody had a use for it, or is something else to somebody else. Who sent it is not known here.
        made.map_or_else(|| guarded(|| R::decode(Any::decode(frame.any().clone())?.value).map(Arc::new)), Ok)
    }
}

/// The validator of a type.
pub(crate) fn validator<R: Resource>() -> (TypeUrl, impl Fn(&Any, Trust) -> Result<Validated, Reason> + Send + Sync) {
    let read = |any: &Any, trust| {
        let message = any.value.clone();
        let made = match trust {
            Trust::Trusted => R::decode_trusted(message),
            Trust::Untrusted => R::decode(message),
        };
        Ok(Arc::new(made?) as Validated)
    };
    (R::type_url().into(), read)
}
