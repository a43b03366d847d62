//! Calls beside discovery and load reports: about the relay's health, and about what clients have. One that lasts is a stream, of those
//! that there may be.

mod question;

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::response::Response;
use http::request::Parts;
use tonic::Status;
use xds_transport::server::ProtocolError;
use xdstp_client::federation::Share;

use self::question::{Counting, Question};
use crate::client_rules::{ClientRules, Shown, Under, peer};
use crate::kept_body::KeptBody;
use crate::metrics::AUDIT;
use crate::relay_core::{ClientUse, RelayCore, line};

/// Counts them.
#[derive(Clone)]
pub(crate) struct Beside {
    core: Arc<RelayCore>,
    rules: Arc<ClientRules>,
}

/// One of the streams that there may be, and that its client may have, until it is dropped.
pub(crate) struct Counted {
    client: ClientUse,
    _place: Share,
}

impl Beside {
    pub(crate) fn new(core: Arc<RelayCore>, rules: Arc<ClientRules>) -> Self {
        Self { core, rules }
    }

    /// One more, of a client that is under a rule, where there is one for it.
    ///
    /// # Errors
    /// There are as many as there may be, or too many new ones, of all or of its client.
    pub(crate) fn admit(&self, call: &Parts, under: Option<&Under>) -> Result<Counted, Status> {
        let (now, shown) = (Instant::now(), Shown::of(call));
        let client = shown.identity(under.map(|under| &*under.rule));
        let opened = self.core.admit_client((client.clone(), false), under.map(Under::allowed), now);
        let refused = |words: String| {
            tracing::warn!(target: AUDIT, peer = %peer(call), %client, path = call.uri.path(), "a call is refused: {words}");
            Status::resource_exhausted(words)
        };
        let client_use = opened.map_err(|error| refused(error.to_string()))?;
        match self.core.admit_call(now) {
            Ok(place) => Ok(Counted { client: client_use, _place: place }),
            Err(error) => {
                client_use.undo(now);
                Err(refused(error.to_string()))
            }
        }
    }

    /// The same, of a client that needs no rule.
    ///
    /// # Errors
    /// As those of [`admit`](Self::admit).
    pub(crate) fn admit_anybody(&self, call: &Parts) -> Result<Counted, Status> {
        let under = self.rules.now().of(&Shown::of(call)).ok().flatten();
        self.admit(call, under.as_ref())
    }

    /// What a client asks in a call: it is to begin in time.
    pub(crate) fn begun_in_time(&self, body: Body) -> Body {
        Body::new(Question::begun(body, self.patience()))
    }

    /// What a client asks in a call that is short: it is to be whole in time, and counts as long as it is waited for.
    pub(crate) fn whole_in_time(&self, call: &Parts, body: Body) -> Body {
        let (beside, call) = (self.clone(), call.clone());
        let count: Counting = Box::new(move || beside.admit_anybody(&call));
        Body::new(Question::whole(body, self.patience(), count))
    }

    fn patience(&self) -> question::Patience {
        let (core, within) = (self.core.clone(), self.core.limits().first_request);
        question::Patience::new(within, move || {
            core.metrics().downstream_refused("first_request");
            Status::unavailable(format!("{}{}", ProtocolError::NoRequest { within }, line("first_request")))
        })
    }
}

impl Counted {
    /// Whose it is, unless it came from this machine, where nothing tells one from another.
    pub(crate) fn client(&self) -> Option<u64> {
        (!self.client.identity().is_this_machine()).then(|| self.client.number())
    }

    /// Has it count until the answer is over.
    pub(crate) fn until_over(self, answer: Response) -> Response {
        answer.map(|body| Body::new(KeptBody::new(body, self)))
    }
}
