//! Streams, nodes and types.

use tonic::Code;

use crate::conformance::check::{Check, Done, Stop, expect};
use crate::conformance::lab::Lab;
use crate::conformance::messages::Ask;
use crate::conformance::method::{ADS, ALL, Method, SOTW_ADS};
use crate::conformance::resources::Of;

pub(crate) const CHECKS: &[Check] = &[
    check!(
        1,
        "streams",
        ALL,
        every_method,
        "every method leads to the same resources",
        "clients that use this method get nothing of what others get"
    ),
    check!(
        2,
        "streams",
        SOTW_ADS,
        delta_only,
        "what is delta only is refused in words over SotW, or not answered",
        "a client that asks for virtual hosts over SotW loses its whole stream, again and again"
    ),
    check!(
        3,
        "streams",
        ADS,
        no_type,
        "an aggregated request without a type is refused as an invalid argument",
        "a client's mistake is taken for something else, and stays"
    ),
    check!(
        3,
        "streams",
        &[Method::Sotw, Method::Delta],
        implied_type,
        "a stream of one type implies it, and refuses another",
        "clients that leave out the type, as they may, are not answered"
    ),
    check!(
        4,
        "streams",
        SOTW_ADS,
        first_node,
        "the node of the first request counts for the whole stream",
        "Envoy sends its node once: later types are answered as for somebody else"
    ),
    check!(
        6,
        "streams",
        ADS,
        other_node,
        "a node that changes on a stream ends nothing",
        "Envoy whose dynamic context changes loses its stream"
    ),
    check!(
        7,
        "streams",
        ADS,
        types_apart,
        "every type has versions, nonces and acknowledgements of its own",
        "Envoy holds the ACK of clusters until endpoints come: both wait for ever"
    ),
    check!(
        10,
        "streams",
        ADS,
        only_what_was_asked,
        "a type that was not asked for is not sent",
        "clients drop it, and gRPC may log an error each time"
    ),
    check!(11, "streams", ADS, any_type, "any type URL is served", "extensions of one's own cannot be configured"),
    check!(
        12,
        "streams",
        ALL,
        cancelled,
        "streams that are cancelled leave the server answering",
        "a fleet that reconnects starves the server"
    ),
    check!(
        127,
        "streams",
        ALL,
        streams_apart,
        "streams do not wait for each other",
        "one client that does not acknowledge stops the others"
    ),
    check!(
        139,
        "streams",
        ALL,
        identifier,
        "a response says who answers, in control_plane.identifier",
        "nobody can tell from Envoy's statistics which server it talks to"
    ),
];

async fn every_method(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(Of::Endpoints, &a, 1), (Of::Endpoints, &b, 1)]).await?;
    let mut client = lab.open(Of::Endpoints);
    client.want(Of::Endpoints, &[&a, &b]).await?;
    client.told(Of::Endpoints, &[(&a, 1), (&b, 1)]).await?;
    lab.put(&[(Of::Endpoints, &a, 2)]).await?;
    client.told(Of::Endpoints, &[(&a, 2)]).await.map(|_| ())
}

async fn delta_only(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(Of::Endpoints, &a, 1)]).await?;
    let mut client = lab.open(Of::Endpoints);
    client.want(Of::VirtualHost, &["routes/host"]).await?;
    client.want(Of::Endpoints, &[&a]).await?;
    let defined = ["InvalidArgument", "Unimplemented", "NotFound", "FailedPrecondition", "OutOfRange"];
    match client.told(Of::Endpoints, &[(&a, 1)]).await {
        Err(Stop::Inconclusive(_)) => Ok(()),
        Err(Stop::Fail { seen, .. }) if defined.iter().any(|code| seen.contains(code)) => Ok(()),
        told => told.map(|_| ()),
    }
}

async fn no_type(lab: &mut Lab) -> Done {
    let mut client = lab.open(Of::Endpoints);
    client.send(Ask { names: vec![lab.name("a")], ..Ask::default() }).await?;
    ends_as_invalid(client.ending("the end of the stream: InvalidArgument").await?)
}

fn ends_as_invalid(status: tonic::Status) -> Done {
    if status.code() == Code::Unimplemented {
        return Err(Stop::inconclusive("the server has no such method"));
    }
    let is_invalid = status.code() == Code::InvalidArgument;
    expect(is_invalid, "the end of the stream: InvalidArgument", format!("{:?} {}", status.code(), status.message()))
}

async fn implied_type(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(Of::Endpoints, &a, 1)]).await?;
    let mut client = lab.open(Of::Endpoints);
    client.send(Ask { names: vec![a.clone()], ..Ask::default() }).await?;
    client.told(Of::Endpoints, &[(&a, 1)]).await?;
    client.send(Ask { type_url: Of::Cluster.type_url().into(), names: vec![a], ..Ask::default() }).await?;
    ends_as_invalid(client.ending("the end of the stream: InvalidArgument").await?)
}

async fn first_node(lab: &mut Lab) -> Done {
    let [a, c] = lab.names(["a", "c"]);
    lab.put(&[(Of::Endpoints, &a, 1), (Of::Cluster, &c, 1)]).await?;
    let mut client = lab.open_by(lab.method, Of::Cluster, &["xds.config.resource-in-sotw"]);
    client.want(Of::Cluster, &[&c]).await?;
    let first = client.told(Of::Cluster, &[(&c, 1)]).await?;
    client.want(Of::Endpoints, &[&a]).await?;
    let later = client.told(Of::Endpoints, &[(&a, 1)]).await?;
    if !first.iter().filter_map(|said| said.got(&c)).any(|got| got.is_wrapped) {
        return Err(Stop::inconclusive("the server wraps nothing: what it knows of the node is not seen"));
    }
    let is_wrapped = later.iter().filter_map(|said| said.got(&a)).all(|got| got.is_wrapped);
    expect(is_wrapped, "the endpoints wrapped, as the clusters are", "them as they are")
}

async fn other_node(lab: &mut Lab) -> Done {
    let [a, b] = lab.names(["a", "b"]);
    lab.put(&[(Of::Endpoints, &a, 1), (Of::Endpoints, &b, 1)]).await?;
    let mut client = lab.open(Of::Endpoints);
    client.want(Of::Endpoints, &[&a]).await?;
    client.told(Of::Endpoints, &[(&a, 1)]).await?;
    let mut node = lab.node(&[]);
    node.id += "-changed";
    client.node = Some(node);
    client.want(Of::Endpoints, &[&a, &b]).await?;
    client.told(Of::Endpoints, &[(&b, 1)]).await.map(|_| ())
}

async fn types_apart(lab: &mut Lab) -> Done {
    let [a, c] = lab.names(["a", "c"]);
    lab.put(&[(Of::Endpoints, &a, 1), (Of::Cluster, &c, 1)]).await?;
    let mut client = lab.open(Of::Cluster);
    client.want(Of::Cluster, &[&c]).await?;
    let clusters = client.next(Of::Cluster, "clusters").await?;
    client.want(Of::Endpoints, &[&a]).await?;
    client.told(Of::Endpoints, &[(&a, 1)]).await?;
    lab.put(&[(Of::Endpoints, &a, 2)]).await?;
    client.told(Of::Endpoints, &[(&a, 2)]).await?;
    client.ack(&clusters).await?;
    lab.put(&[(Of::Cluster, &c, 2)]).await?;
    client.told(Of::Cluster, &[(&c, 2)]).await.map(|_| ())
}

async fn only_what_was_asked(lab: &mut Lab) -> Done {
    let [a, c] = lab.names(["a", "c"]);
    lab.start(&[(Of::Endpoints, &a, 1)]).await?;
    let mut client = lab.open(Of::Endpoints);
    let marker = lab.marker();
    client.want(Of::Endpoints, &[&a, &marker]).await?;
    client.told(Of::Endpoints, &[(&a, 1), (&marker, 1)]).await?;
    lab.put(&[(Of::Cluster, &c, 1), (Of::Listener, &c, 1), (Of::Route, &c, 1)]).await?;
    lab.mark(&mut client, Of::Endpoints).await?;
    let strange: Vec<_> = client.strangers().map(|said| said.type_url.clone()).collect();
    expect(strange.is_empty(), "endpoints and nothing else", strange.join(", "))
}

async fn any_type(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(Of::Unknown, &a, 1)]).await?;
    let mut client = lab.open(Of::Unknown);
    client.want(Of::Unknown, &[&a]).await?;
    client.told(Of::Unknown, &[(&a, 1)]).await.map(|_| ())
}

async fn cancelled(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(Of::Endpoints, &a, 1)]).await?;
    for _ in 0..STREAMS {
        let mut client = lab.open(Of::Endpoints);
        client.want(Of::Endpoints, &[&a]).await?;
        // Not read to the end, and not acknowledged.
        client.next(Of::Endpoints, "endpoints").await?;
    }
    lab.put(&[(Of::Endpoints, &a, 2)]).await?;
    let mut client = lab.open(Of::Endpoints);
    client.want(Of::Endpoints, &[&a]).await?;
    client.told(Of::Endpoints, &[(&a, 2)]).await.map(|_| ())
}

/// How many streams are cancelled.
const STREAMS: usize = 30;

async fn streams_apart(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(Of::Endpoints, &a, 1)]).await?;
    let (mut idle, mut other) = (lab.open(Of::Endpoints), lab.open(Of::Endpoints));
    idle.want(Of::Endpoints, &[&a]).await?;
    let unanswered = idle.next(Of::Endpoints, "endpoints").await?;
    other.want(Of::Endpoints, &[&a]).await?;
    other.told(Of::Endpoints, &[(&a, 1)]).await?;
    for content in [2, 3] {
        lab.put(&[(Of::Endpoints, &a, content)]).await?;
        other.told(Of::Endpoints, &[(&a, content)]).await?;
    }
    idle.ack(&unanswered).await?;
    idle.told(Of::Endpoints, &[(&a, 3)]).await.map(|_| ())
}

async fn identifier(lab: &mut Lab) -> Done {
    let a = lab.name("a");
    lab.put(&[(Of::Endpoints, &a, 1)]).await?;
    let mut client = lab.open(Of::Endpoints);
    client.want(Of::Endpoints, &[&a]).await?;
    let first = client.next(Of::Endpoints, "endpoints").await?;
    match first.identifier.is_empty() {
        true => Err(Stop::inconclusive("the server does not say who it is, which it need not")),
        false => Ok(()),
    }
}
