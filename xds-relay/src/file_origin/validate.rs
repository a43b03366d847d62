//! What `validate.proto` says of the values of messages: Envoy refuses what breaks these rules, too.
//!
//! The rules are options of fields in a descriptor set. They are made ready once for each message type, when there is a
//! message of it, and are applied to a message, to those in it, and to what is in an `Any` of a known type. A field that
//! is not set is only asked whether it must be; a scalar without presence is always what it is.
//!
//! Three rules are not applied. `map.no_sparse` always holds, and `lt_now`, `gt_now` and `within` of a `Timestamp` would
//! make a file good at one time and bad at another.

mod compiled;
mod form;
mod number;
mod options;
mod refusal;
mod rules;
mod text;
mod walk;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use prost_reflect::{DynamicMessage, ReflectMessage};

use self::compiled::TypeRules;
use self::refusal::{Place, Refusals};
use crate::lock::lock;

pub(super) use self::options::Options;
pub(super) use self::refusal::{Found, PathStep, Refusal};

/// The rules of a descriptor set, with those that are ready.
pub(super) struct Validator {
    options: Arc<Options>,
    /// By the full name of the type: there are no more than the set has.
    ready: Mutex<HashMap<String, Arc<TypeRules>>>,
}

impl Validator {
    pub(super) fn new(options: Arc<Options>) -> Self {
        Self { options, ready: Mutex::default() }
    }

    /// What of a message breaks a rule, up to a bound.
    pub(super) fn refusals(&self, message: &DynamicMessage) -> Vec<Refusal> {
        let mut refusals = Refusals::default();
        walk::walk(message, (Place::ROOT, 0), &|message| self.rules(message), &mut refusals);
        refusals.all
    }

    fn rules(&self, message: &DynamicMessage) -> Arc<TypeRules> {
        let descriptor = message.descriptor();
        let mut ready = lock(&self.ready);
        if let Some(rules) = ready.get(descriptor.full_name()) {
            return rules.clone();
        }
        let rules = Arc::new(TypeRules::of(&descriptor, &self.options));
        ready.insert(descriptor.full_name().to_owned(), rules.clone());
        rules
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validator").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
