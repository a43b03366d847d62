//! What a program makes of resources: once for each version, before it is acknowledged.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use prost::Message;
use xds_transport::Frame;
use xds_transport::wire::Any;
use xds_transport::wire::collection::redirect;
use xdstp_cache::TypeUrl;
use xdstp_uri::Locator;

use crate::federation::listed::Listed;
use crate::federation::validated::{Reason, Validated};

/// What makes something of the resources of a type, or says why it does not.
pub(crate) type Validator = dyn Fn(&Any, Trust) -> Result<Validated, Reason> + Send + Sync;

/// Whether what comes from a server may set what concerns security (gRFC A81).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    Trusted,
    #[default]
    Untrusted,
}

/// What a program makes of resources, by type; what has no validator is taken as it comes.
#[derive(Default)]
pub struct Validators(RwLock<HashMap<TypeUrl, Reader>>);

#[derive(Clone)]
enum Reader {
    Message(Arc<Validator>),
    /// List collections of this type.
    List(TypeUrl),
}

impl Validators {
    /// Of a type, if it has none yet.
    pub fn insert(
        &self,
        type_url: TypeUrl,
        validator: impl Fn(&Any) -> Result<Validated, Reason> + Send + Sync + 'static,
    ) {
        let _ = self.insert_by_trust(type_url, move |any, _| validator(any));
    }

    /// The same of what reads resources otherwise where a server is trusted. Whether it had none.
    pub(crate) fn insert_by_trust(
        &self,
        type_url: TypeUrl,
        validator: impl Fn(&Any, Trust) -> Result<Validated, Reason> + Send + Sync + 'static,
    ) -> bool {
        self.insert_reader(type_url, || Reader::Message(Arc::new(validator)))
    }

    /// The same of the list collections of a type, whose members are read by what reads that.
    pub(crate) fn insert_lists(&self, lists: &TypeUrl, members: &TypeUrl) -> bool {
        self.insert_reader(lists.clone(), || Reader::List(members.clone()))
    }

    fn insert_reader(&self, type_url: TypeUrl, reader: impl FnOnce() -> Reader) -> bool {
        let mut is_new = self.of(&type_url).is_none();
        if is_new {
            let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
            is_new = !all.contains_key(&type_url);
            all.entry(type_url).or_insert_with(reader);
        }
        is_new
    }

    /// What is made of a resource; nothing, if nobody has a use for it.
    pub(crate) fn read(&self, type_url: &TypeUrl, frame: &Frame, trust: Trust) -> Option<Result<Validated, Reason>> {
        match redirect(frame.any()) {
            Ok(None) => Some(match self.of(type_url)? {
                Reader::Message(validator) => validate(&*validator, frame.any(), trust),
                Reader::List(members) => {
                    self.read_list(&members, frame, trust).map(|listed| Arc::new(listed) as Validated)
                }
            }),
            Ok(Some(to)) => Some(Ok(Arc::new(Redirect(to)))),
            Err(error) => Some(Err(error.into())),
        }
    }

    /// The members of a list collection of a type.
    pub(crate) fn read_list(&self, members: &TypeUrl, frame: &Frame, trust: Trust) -> Result<Listed, Reason> {
        let validator = match self.of(members) {
            Some(Reader::Message(validator)) => Some(validator),
            Some(Reader::List(_)) | None => None,
        };
        Listed::read(frame.any(), members, |any| {
            validator.as_ref().map(|validator| validate(&**validator, any, trust)).transpose()
        })
    }

    fn of(&self, type_url: &TypeUrl) -> Option<Reader> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(type_url).cloned()
    }
}

/// A resource that says where to look in its place (TP1).
#[derive(Clone, Debug)]
pub(crate) struct Redirect(Locator<'static>);

impl Redirect {
    /// Where to, if a resource that was read is one.
    pub(crate) fn of(frame: &Frame) -> Option<&Locator<'static>> {
        frame.decoded()?.downcast_ref::<Self>().map(|Self(to)| to)
    }
}

impl fmt::Debug for Validators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Validators")
    }
}

/// What a validator says of a resource. One that panics refuses it.
fn validate(validator: &Validator, any: &Bytes, trust: Trust) -> Result<Validated, Reason> {
    let any = Any::decode(any.clone())?;
    guarded(|| validator(&any, trust))
}

/// What the program's own code makes of a resource. If it panics, that is a refusal.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T, Reason>) -> Result<T, Reason> {
    let said = catch_unwind(AssertUnwindSafe(read));
    said.unwrap_or_else(|_| Err(Reason::new("what reads such resources failed (it panicked)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r044_a_reader_that_panics_refuses_what_it_reads() {
        let frame = Frame::of_message(&"T".into(), b"body");
        #[allow(clippy::panic, reason = "it is what is tested")]
        let refused = validate(&|_: &Any, _| panic!("on purpose"), frame.any(), Trust::default()).unwrap_err();
        assert!(refused.as_str().contains("panicked"));
        assert!(validate(&|any: &Any, _| Ok(Arc::new(any.value.len())), frame.any(), Trust::default()).is_ok());
    }

    #[test]
    fn the_first_validator_of_a_type_stays() {
        let validators = Validators::default();
        for number in [1, 2] {
            validators.insert("T".into(), move |_| Ok(Arc::new(number)));
        }
        let frame = |type_url: &str| Frame::of_message(&type_url.into(), b"");
        let read = |type_url: &str| validators.read(&type_url.into(), &frame(type_url), Trust::default());
        assert_eq!(read("T").unwrap().unwrap().downcast_ref(), Some(&1));
        assert!(read("U").is_none());
    }
}
