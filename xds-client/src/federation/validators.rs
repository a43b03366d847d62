//! What a program makes of resources: once for each version, before it is acknowledged.

use std::any::Any as Value;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, RwLock};

use prost::Message;
use xds_transport::Frame;
use xds_transport::wire::Any;
use xdstp_cache::TypeUrl;

/// What a program made of a resource.
pub type Validated = Arc<dyn Value + Send + Sync>;

/// What makes something of the resources of a type, or says why it does not.
pub(crate) type Validator = dyn Fn(&Any) -> Result<Validated, Reason> + Send + Sync;

/// Why a resource is of no use: for people, and for its server, which is sent it in a NACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(Arc<str>);

impl Reason {
    /// In words.
    pub fn new(words: impl Into<Arc<str>>) -> Self {
        Self(words.into())
    }

    /// The words.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// So that `?` makes one of any error.
impl<E: std::error::Error> From<E> for Reason {
    fn from(error: E) -> Self {
        Self(error.to_string().into())
    }
}

/// The validators of a program, by type; what has none is taken as it comes.
#[derive(Default)]
pub struct Validators(RwLock<HashMap<TypeUrl, Arc<Validator>>>);

impl Validators {
    /// Of a type, if it has none yet.
    pub fn insert(
        &self,
        type_url: TypeUrl,
        validator: impl Fn(&Any) -> Result<Validated, Reason> + Send + Sync + 'static,
    ) {
        let has = self.of(&type_url).is_some();
        if !has {
            let mut all = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            all.entry(type_url).or_insert_with(|| Arc::new(validator));
        }
    }

    pub(crate) fn of(&self, type_url: &TypeUrl) -> Option<Arc<Validator>> {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(type_url).cloned()
    }
}

impl fmt::Debug for Validators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Validators")
    }
}

/// What a validator says of a resource. One that panics refuses it.
pub(crate) fn validate(validator: &Validator, frame: &Frame) -> Result<Validated, Reason> {
    let any = Any::decode(frame.any().clone())?;
    let said = catch_unwind(AssertUnwindSafe(|| validator(&any)));
    said.unwrap_or_else(|_| Err(Reason::new("what reads such resources failed (it panicked)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r044_a_reader_that_panics_refuses_what_it_reads() {
        let frame = Frame::of_message(&"T".into(), b"body");
        #[allow(clippy::panic, reason = "it is what is tested")]
        let refused = validate(&|_: &Any| panic!("on purpose"), &frame).unwrap_err();
        assert!(refused.as_str().contains("panicked"));
        assert!(validate(&|any: &Any| Ok(Arc::new(any.value.len())), &frame).is_ok());
    }

    #[test]
    fn the_first_validator_of_a_type_stays() {
        let validators = Validators::default();
        for number in [1, 2] {
            validators.insert("T".into(), move |_| Ok(Arc::new(number)));
        }
        let of = validators.of(&"T".into()).unwrap();
        let made = validate(&*of, &Frame::of_message(&"T".into(), b"")).unwrap();
        assert_eq!(made.downcast_ref(), Some(&1));
        assert!(validators.of(&"U".into()).is_none());
    }
}
