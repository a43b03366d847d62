//! What streams are opened on.

use bytes::Bytes;
use http_body::Body as HttpBody;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::StdError;

/// What a stream can be opened on: tonic's [`Channel`](tonic::transport::Channel), or any other [`GrpcService`], such as one with
/// interceptors and layers around it.
///
/// ```
/// use tonic::service::interceptor::InterceptedService;
/// use tonic::transport::Channel;
/// use tonic::{Request, Status};
/// use xds_transport::Protocol;
/// use xds_transport::grpc::client::Ads;
///
/// fn open(channel: Channel) -> Ads {
///     let signed = InterceptedService::new(channel, |mut request: Request<()>| {
///         let token = "Bearer sesame".parse().map_err(|_| Status::internal("a token that is no header"))?;
///         request.metadata_mut().insert("authorization", token);
///         Ok(request)
///     });
///     Ads::open(signed, Protocol::Delta, 64 << 20)
/// }
/// ```
pub trait GrpcChannel:
    GrpcService<
        Body,
        Error: Into<StdError>,
        Future: Send,
        ResponseBody: HttpBody<Data = Bytes, Error: Into<StdError>> + Send + 'static,
    > + Send
    + 'static
{
}

impl<T> GrpcChannel for T
where
    T: GrpcService<Body> + Send + 'static,
    T::Error: Into<StdError>,
    T::Future: Send,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError>,
{
}
