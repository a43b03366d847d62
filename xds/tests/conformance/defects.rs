//! The defects, each with the peer that has it or had it, and what it does to messages.

mod delta;
mod sotw;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use prost::Message;
use tonic::Status;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse};

pub(crate) const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(crate) const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
pub(crate) const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
pub(crate) const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";

macro_rules! defects {
    ($($(#[doc = $peer:literal])* $name:ident: $over:ident $rules:expr,)*) => {
        /// What is wrong with a server.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Defect { $($(#[doc = $peer])* $name,)* }

        /// Each with the protocol that has it, and the rules that it breaks.
        pub(crate) const DEFECTS: &[(Defect, &str, &[u64])] = &[$((Defect::$name, stringify!($over), &$rules),)*];
    };
}

defects! {
    /// go-control-plane #962, #46; kgateway 14701: a NACK is answered with what was refused.
    NackIsAnswered: both [23, 27, 31],
    /// go-control-plane #1450: what is subscribed again is not sent again.
    SubscribedAgainIsSilent: delta [48, 71],
    /// go-control-plane #431, grpc-java #9632: at one version nothing is sent twice on a stream.
    SotwComingBackIsSilent: sotw [55],
    /// go-control-plane #565: of a name that does not exist nothing is said.
    MissingIsSilent: delta [70, 71, 108, 117],
    /// envoy #10046, and servers that take it so: no endpoints are all endpoints.
    NoEndpointsAreAll: both [41, 46],
    /// A client that left its last name is taken for one that asks for everything.
    NothingIsEverything: both [40, 43, 44, 57],
    /// istio #41494: what a client brings along is not looked at.
    VersionsAreIgnored: delta [35, 84],
    /// envoy #22418: endpoints that a client holds are not sent to who asks for them by name.
    EndpointsAreForgotten: delta [49],
    /// go-control-plane: of a glob it is not known what was deleted.
    NoTombstones: delta [100],
    /// A glob that is empty is answered with nothing.
    EmptyGlobIsSilent: delta [99],
    /// go-control-plane #582: whether a response was accepted is seen by its version.
    VersionIsTheVerdict: sotw [21],
    /// A stale request is taken as if it were current.
    StaleIsCurrent: sotw [16],
    /// A request without a nonce is taken as if it were current.
    NoNonceIsCurrent: sotw [18],
    /// envoy #16659: over delta, what comes with another nonce than the last is dropped.
    NonceGatesDelta: delta [19, 88],
    /// A delta ACK is nothing else.
    AckIsNothingElse: delta [19, 22, 88],
    /// go-control-plane #426, #63 ("ADS mode"): silent until all names are there.
    SilentUntilAllAreThere: sotw [64, 65, 126],
    /// Everything is wrapped, for whoever asks.
    WrapsForEverybody: sotw [110],
    /// A TTL is told to whoever asks.
    TtlForEverybody: delta [110],
    /// A heartbeat has a version of its own.
    HeartbeatIsAnotherVersion: delta [112],
    /// go-control-plane #421: over delta nothing is refreshed.
    NoHeartbeats: delta [111, 112],
    /// A resource that is matched twice is sent twice.
    SendsTwice: both [69, 103],
    /// A response has something of another type in it, which nobody asked for.
    HasAStranger: both [63, 81],
    /// The name outside is another than the one inside.
    NameOutsideIsAnother: delta [80, 82, 85, 122, 125],
    /// It does not say who it is.
    NoIdentifier: both [],
    /// One nonce for all.
    OneNonce: both [13, 16],
    /// contour 6250: a version that stays, whatever changes.
    OneVersion: sotw [33],
    /// Versions are numbers of the stream that they are sent on.
    VersionsOfTheStream: delta [35],
    /// Routes go before the clusters that they lead to.
    RoutesFirst: both [122],
    /// What comes is held back until something goes.
    RemovalsFirst: delta [65, 134],
    /// go-control-plane #245, envoy #13009: endpoints do not follow their cluster.
    EndpointsDoNotFollow: delta [124],
    /// A listener has its routes sent again.
    RoutesFollowListeners: both [125],
    /// go-control-plane: over SotW all that was asked for is sent for each change.
    SotwSendsAll: sotw [],
    /// Over SotW a response is sent for each change, whether or not the one before was answered.
    ManyInFlight: sotw [128, 129],
    /// Over SotW clusters and listeners are sent as if they were endpoints: what changed.
    FullStateIsAPart: sotw [66, 102],
    /// What is left stays subscribed.
    LeavingIsIgnored: delta [22, 44, 47, 51, 52, 53, 57],
    /// To leave any name ends the wildcard without names.
    LeavingEndsTheWildcard: delta [45],
    /// grpc-go #5790: 4 MiB and no more.
    SmallResponses: both [131],
    /// envoy gateway 9564: a request may have 4 MiB.
    SmallRequests: delta [132],
    /// A request without a type is waited for.
    NoTypeIsSilence: both [3],
    /// A name that is too long ends the stream.
    OddNamesEndTheStream: both [109],
    /// What the node said is forgotten after its request.
    NodeIsForgotten: sotw [4],
    /// By the words of the documentation of `resource_locators`: names beside them are not looked at.
    NamesBesideLocatorsAreIgnored: delta [120],
    /// Of a variant that is gone only the name is said.
    RemovalsSayNoVariant: delta [119],
    /// Which variant is sent is not said.
    VariantsAreNotSaid: draft [119],
    /// What is said of ranges is not looked at.
    RangesAreIgnored: draft [119],
    /// What is inverted is taken as if it were not there.
    InvertIsIgnored: draft [119],
    /// What cannot be asked for upstream ends the stream, and nobody knows why.
    RefusesWithoutWords: draft [119],
    /// Names beside locators are answered, too.
    NamesBesideLocatorsCount: draft [120],
    /// Endpoints wait for the ACK of clusters.
    EndpointsWaitForClusters: both [7, 122, 123],
    /// go-control-plane #1471: types that it was not built with are refused.
    KnowsItsTypesOnly: both [11],
    /// A virtual host that does not exist is told as other resources are.
    VirtualHostsAreRemoved: delta [106],
}

/// What the protocol lets a server do and its clients bear, with the rules of which nothing is known then.
pub(crate) const BORNE: &[(Defect, &[u64])] = &[(Defect::SotwSendsAll, &[21, 37, 67]), (Defect::NoIdentifier, &[139])];

/// What a server with a defect does on a stream.
pub(crate) struct Hand {
    pub(crate) defect: Option<Defect>,
    pub(crate) number: usize,
    pub(crate) is_sotw: bool,
    /// To the origin, and to the client.
    pub(crate) up: Vec<Bytes>,
    pub(crate) down: Vec<Bytes>,
    /// How many responses the client was sent.
    pub(crate) count: usize,
    /// What the origin called a response: none, if it never sent it.
    pub(crate) nonces: HashMap<String, Option<String>>,
    pub(crate) types: BTreeMap<String, Type>,
    pub(crate) held: Vec<Bytes>,
}

/// Of one type, on a stream.
#[derive(Default)]
pub(crate) struct Type {
    pub(crate) requests: usize,
    /// The last one over SotW.
    pub(crate) request: DiscoveryRequest,
    /// What it is called by the origin, and by us.
    pub(crate) origin_nonce: String,
    pub(crate) nonce: String,
    pub(crate) version: String,
    pub(crate) is_acked: bool,
    /// The number of the latest response that the client answered.
    pub(crate) answered: usize,
    pub(crate) subscribed: BTreeSet<String>,
    pub(crate) holds: BTreeSet<String>,
    /// Asked for at some time.
    pub(crate) ever: BTreeSet<String>,
    /// Told as removed.
    pub(crate) missing: BTreeSet<String>,
    /// Asked for since it was sent last.
    pub(crate) asked: BTreeSet<String>,
    /// By name, what was sent: over delta the version, over SotW the bytes.
    pub(crate) sent: BTreeMap<String, Vec<u8>>,
    pub(crate) last_sotw: Option<DiscoveryResponse>,
    pub(crate) last_delta: Option<DeltaDiscoveryResponse>,
}

impl Hand {
    pub(crate) fn new(defect: Option<Defect>, number: usize, path: &str) -> Self {
        let is_sotw = path.rsplit('/').next().unwrap().starts_with("Stream");
        let (up, down, held) = (Vec::new(), Vec::new(), Vec::new());
        let (nonces, types) = (HashMap::new(), BTreeMap::new());
        Self { defect, number, is_sotw, up, down, count: 0, nonces, types, held }
    }

    pub(crate) fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    pub(crate) fn of(&mut self, type_url: &str) -> &mut Type {
        self.types.entry(type_url.to_owned()).or_default()
    }

    pub(crate) fn request(&mut self, request: Bytes) -> Result<(), Status> {
        if self.has(Defect::SmallRequests) && request.len() > 4 << 20 {
            return Err(Status::resource_exhausted("a request of more than 4 MiB"));
        }
        if self.is_sotw {
            self.sotw_request(DiscoveryRequest::decode(request).unwrap())
        } else {
            self.delta_request(DeltaDiscoveryRequest::decode(request).unwrap())
        }
    }

    pub(crate) fn response(&mut self, response: Bytes) -> Result<(), Status> {
        if self.has(Defect::SmallResponses) && response.len() > 4 << 20 {
            return Err(Status::out_of_range("a response of more than 4 MiB"));
        }
        if self.is_sotw {
            self.sotw_response(DiscoveryResponse::decode(response).unwrap());
        } else {
            self.delta_response(DeltaDiscoveryResponse::decode(response).unwrap());
        }
        Ok(())
    }

    /// What both protocols have in common of a request that is refused, or of which nothing comes.
    pub(crate) fn refuse(&self, type_url: &str, names: &[String]) -> Result<bool, Status> {
        if self.has(Defect::NoTypeIsSilence) && type_url.is_empty() {
            return Ok(true);
        }
        if self.has(Defect::KnowsItsTypesOnly) && type_url.contains("Unknown") {
            return Err(Status::invalid_argument("no such type"));
        }
        if self.has(Defect::OddNamesEndTheStream) && names.iter().any(|name| name.len() > 3000) {
            return Err(Status::invalid_argument("a name that is too long"));
        }
        Ok(false)
    }

    /// A nonce for a response, which the origin calls so.
    pub(crate) fn new_nonce(&mut self, type_url: &str, origin: Option<String>) -> String {
        self.count += 1;
        let nonce = if self.has(Defect::OneNonce) { "one".to_owned() } else { format!("n{}", self.count) };
        self.nonces.insert(nonce.clone(), origin.clone());
        let of = self.of(type_url);
        of.nonce.clone_from(&nonce);
        of.is_acked = false;
        if let Some(origin) = origin {
            of.origin_nonce = origin;
        }
        nonce
    }

    /// Whether a stream is of a client that has all four types.
    pub(crate) fn has_all_types(&self) -> bool {
        [CLUSTERS, ENDPOINTS, LISTENERS, ROUTES].iter().all(|of| self.types.contains_key(*of))
    }
}

pub(crate) fn encoded(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}
