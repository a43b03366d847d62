//! Which rule of `clients` a client is under, by what its connection and its call say of it.

mod shown;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use http::request::Parts;
use tonic::Status;
use xds_transport::TypeRules;

pub(crate) use self::shown::{Shown, peer};
use crate::api::is_type;
use crate::bearers::Bearers;
use crate::config::{ClientLimits, ClientRule, Config};
use crate::error::Error;
use crate::lock::lock;
use crate::metrics::{AUDIT, Denial, Metrics};

/// The rules that count, until others do.
pub(crate) struct ClientRules(Mutex<Arc<Rules>>);

/// Rules, in their order; none where all may ask for everything.
pub(crate) struct Rules(Option<Vec<Known>>);

/// The rule that a client is under.
#[derive(Clone)]
pub(crate) struct Under {
    /// Which of them, from 0.
    pub(crate) position: usize,
    pub(crate) rule: Arc<ClientRule>,
}

struct Known {
    rule: Arc<ClientRule>,
    tokens: Option<Arc<Bearers>>,
}

impl ClientRules {
    pub(crate) fn new(rules: Rules) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Arc::new(rules))))
    }

    /// Those that count now.
    pub(crate) fn now(&self) -> Arc<Rules> {
        lock(&self.0).clone()
    }

    /// These count from now on.
    pub(crate) fn replace(&self, rules: Rules) {
        *lock(&self.0) = Arc::new(rules);
    }
}

impl Under {
    /// Which rule it is, and what one client may use up by it.
    pub(crate) fn allowed(&self) -> (usize, ClientLimits) {
        (self.position, self.rule.limits)
    }
}

impl Rules {
    /// Reads their files.
    ///
    /// # Errors
    /// A file is not good.
    pub(crate) fn load(config: &Config) -> Result<Self, Error> {
        let Some(rules) = &config.clients else { return Ok(Self(None)) };
        let known = |(index, rule): (usize, &ClientRule)| {
            let load = |file: &PathBuf| {
                let bad = |reason| Error::Field { field: format!("clients[{index}].match.token"), reason };
                Bearers::load(file).map(Arc::new).map_err(bad)
            };
            let tokens = rule.matches.token.as_ref().map(load).transpose()?;
            Ok::<_, Error>(Known { rule: Arc::new(rule.clone()), tokens })
        };
        Ok(Self(Some(rules.iter().enumerate().map(known).collect::<Result<_, _>>()?)))
    }

    /// What of a configuration's rules is good, and for nobody: types that are none of Envoy's, which may be somebody's own.
    pub(crate) fn warn(config: &Config) {
        let types = TypeRules::envoy();
        for (index, rule) in config.clients.iter().flatten().enumerate() {
            for (at, end) in rule.types.iter().flatten().enumerate() {
                let of_a_list = end.strip_suffix("Collection").unwrap_or(end);
                if !types.services().any(|(known, _)| is_type(known.as_str(), of_a_list)) {
                    tracing::warn!(
                        "clients[{index}].types[{at}]: `{end}` is no type of Envoy's; expected such as Listener, unless it is one of your own"
                    );
                }
            }
        }
    }

    /// The files of tokens among them.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Arc<Bearers>> {
        self.0.iter().flatten().filter_map(|known| known.tokens.clone())
    }

    /// The first rule for who makes a call, where there are any.
    ///
    /// # Errors
    /// There is none for it: it is refused, which is counted and said.
    pub(crate) fn admit(&self, call: &Parts, peer: &str, metrics: &Metrics) -> Result<Option<Under>, Status> {
        self.of(&Shown::of(call)).inspect_err(|status| {
            metrics.downstream_denied(Denial::Client);
            tracing::warn!(target: AUDIT, %peer, path = call.uri.path(), "a client is denied: {}", status.message());
        })
    }

    /// The first rule for who shows this, where there are any.
    ///
    /// # Errors
    /// There is none for it.
    pub(crate) fn of(&self, shown: &Shown) -> Result<Option<Under>, Status> {
        let Some(rules) = &self.0 else { return Ok(None) };
        if let Some(position) = rules.iter().position(|known| known.is_for(shown)) {
            return Ok(rules.get(position).map(|known| Under { position, rule: known.rule.clone() }));
        }
        let mut tokens = self.tokens().peekable();
        let may_show_one = tokens.peek().is_some() && !tokens.any(|tokens| tokens.accepts(shown.token.as_ref()));
        Err(if may_show_one {
            Status::unauthenticated("no rule of `clients` is for this client, which carries no token that is known")
        } else {
            Status::permission_denied("no rule of `clients` is for this client")
        })
    }
}

impl Known {
    fn is_for(&self, shown: &Shown) -> bool {
        let has_token = || self.tokens.as_ref().is_none_or(|tokens| tokens.accepts(shown.token.as_ref()));
        shown.is_that(&self.rule.matches) && has_token()
    }
}
