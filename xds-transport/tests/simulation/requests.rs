//! What a client may send on one stream: kept from what passes by, apart from the client's own books.

use std::collections::{BTreeMap, BTreeSet};

use xds_transport::Protocol;
use xdstp_uri::ResourceName;

use crate::consumer::Consumer;
use crate::messages::{Request, Response};
use crate::world::{Of, World};

/// What outlives a stream: SotW versions of responses that were accepted.
pub(crate) type Accepted = BTreeSet<(Of, String)>;

#[derive(Default)]
pub(crate) struct Requests {
    any: bool,
    types: BTreeMap<Of, Answers>,
}

#[derive(Default)]
struct Answers {
    /// Nonces of responses that arrived and are to be answered.
    unanswered: BTreeSet<String>,
    last_nonce: String,
    last_names: Vec<String>,
}

impl Requests {
    /// A response arrives at the client. One of a type that was not asked for here is not answered.
    pub(crate) fn response(&mut self, world: &World, response: &Response) {
        let Some(answers) = world.of(&response.type_url).and_then(|of| self.types.get_mut(&of)) else { return };
        if world.setup.protocol == Protocol::Sotw {
            answers.unanswered.clear();
        }
        answers.unanswered.insert(response.nonce.clone());
        answers.last_nonce.clone_from(&response.nonce);
    }

    /// A request leaves the client.
    pub(crate) fn request(
        &mut self,
        world: &World,
        consumer: &Consumer,
        accepted: &Accepted,
        request: &Request,
    ) -> Result<(), String> {
        if request.node.is_empty() != std::mem::replace(&mut self.any, true) {
            return Err("rule 5: the node belongs into the first request of a stream, and there only".into());
        }
        let of = world.of(&request.type_url).ok_or("a request of no type")?;
        let first = !self.types.contains_key(&of);
        let answers = self.types.entry(of).or_default();
        let answered = answers.unanswered.remove(&request.nonce);
        match world.setup.protocol {
            Protocol::Delta => {
                if !request.nonce.is_empty() && !answered {
                    return Err(format!("rule 25: nonce {:?} is none, or answered twice", request.nonce));
                }
                if !first && request.nonce.is_empty() && request.names.is_empty() && request.unsubscribe.is_empty() {
                    return Err("a request that says nothing".into());
                }
                if !first && !request.initial.is_empty() {
                    return Err("rule 85: initial versions in a later request".into());
                }
                for (name, version) in &request.initial {
                    let parsed = ResourceName::parse(name).map_err(|error| error.to_string())?;
                    // What was not accepted goes without a version, to be sent again.
                    if !version.is_empty() && consumer.version(of, &parsed) != Some(version) {
                        return Err(format!("rules 30, 83: {name} is not held at {version:?}"));
                    }
                }
            }
            Protocol::Sotw => {
                if request.nonce != answers.last_nonce {
                    return Err(format!("rule 14: nonce {:?}, not {:?}", request.nonce, answers.last_nonce));
                }
                if !first && !answered && request.names == answers.last_names {
                    return Err("rule 25: a request that says nothing".into());
                }
                // Something is held, but not what has this version.
                let version = request.version.strip_suffix('?').filter(|_| first).unwrap_or(&request.version);
                if !version.is_empty() && !accepted.contains(&(of, version.to_owned())) {
                    return Err(format!("rules 15, 26: version {:?} was never accepted", request.version));
                }
                if request.names.iter().collect::<BTreeSet<_>>().len() != request.names.len() {
                    return Err("rule 58: a name twice".into());
                }
                answers.last_names.clone_from(&request.names);
            }
        }
        Ok(())
    }

    /// Rule 25: every response is answered.
    pub(crate) fn check_answered(&self) -> Result<(), String> {
        match self.types.iter().find(|(_, answers)| !answers.unanswered.is_empty()) {
            Some((of, answers)) => Err(format!("{of}: rule 25: {:?} are not answered", answers.unanswered)),
            None => Ok(()),
        }
    }
}
