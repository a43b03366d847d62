//! What differs between resource types.

use xdstp_cache::{Cause, ResourceError, TypeUrl};

use crate::wire::walk;

/// The rules of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeRule {
    /// A SotW response holds everything subscribed, and absence from it is deletion (rule 66).
    pub full_state_in_sotw: bool,
    /// There is no SotW for this type: who asks for it there is told so, server or client (rule 2).
    pub delta_only: bool,
    /// A first request without names asks for everything (rules 40, 41): turn it off for clients that mean nothing by
    /// it (rule 42).
    pub legacy_wildcard: bool,
    /// The place in the order of one stream: lower goes first (rule 122).
    pub rank: u8,
    /// Removals wait until every type has sent what changed: make before break (rule 122).
    pub removals_last: bool,
    /// A SotW response waits, for a second at most, behind un-ACKed types of lower rank (rule 122).
    pub waits_for_lower_ranks: bool,
    /// A name that the first request both subscribes and lists at the current version is not sent again (rule 49).
    pub skip_known_on_resume: bool,
    /// A name that does not exist is told as an alias of itself that stands for nothing, not as removed (rule 106).
    pub absent_by_alias: bool,
    /// Whoever asks is answered for itself: no cache shares it, whether it says so or not (rule 121).
    pub never_shared: bool,
    /// The field path of the name inside the payload; empty if there is none.
    pub name_path: Vec<u32>,
    /// Who is sent a changed resource of this type is sent these again, if subscribed (rule 124). No other type is sent
    /// because this one changed (rule 125).
    pub dependents: Vec<Dependent>,
}

/// A type whose resources are sent again when the resource that refers to them changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependent {
    /// The type of the resource referred to.
    pub type_url: TypeUrl,
    /// Field paths of the reference in the payload: the first that holds a name counts.
    pub reference_paths: Vec<Vec<u32>>,
}

impl Default for TypeRule {
    fn default() -> Self {
        Self {
            full_state_in_sotw: false,
            delta_only: false,
            legacy_wildcard: false,
            rank: u8::MAX,
            removals_last: false,
            waits_for_lower_ranks: false,
            skip_known_on_resume: true,
            absent_by_alias: false,
            never_shared: false,
            name_path: vec![1],
            dependents: Vec::new(),
        }
    }
}

impl TypeRule {
    /// The name inside an encoded `Any` of this type.
    pub fn name_of<'a>(&self, any: &'a [u8]) -> Option<&'a str> {
        if self.name_path.is_empty() { None } else { self.text(any, &self.name_path) }
    }

    /// The names of type `dependent.type_url` that an encoded `Any` of this type refers to.
    pub fn reference_of<'a>(&self, dependent: &Dependent, any: &'a [u8]) -> Option<&'a str> {
        dependent.reference_paths.iter().find_map(|path| self.text(any, path)).filter(|name| !name.is_empty())
    }

    fn text<'a>(&self, any: &'a [u8], path: &[u32]) -> Option<&'a str> {
        let mut from_any = Vec::with_capacity(path.len() + 1);
        from_any.push(2);
        from_any.extend_from_slice(path);
        walk::text_at(any, &from_any)
    }
}

/// `google.rpc.Code.UNIMPLEMENTED`: what a protocol does not have.
const UNIMPLEMENTED: i32 = 12;

/// Why a type without a method of its own is not asked of an origin that has no other.
pub(crate) fn no_method(type_url: &TypeUrl) -> ResourceError {
    let message = format!("there is no method for {type_url} alone: it comes by the aggregated one (ADS) only");
    ResourceError::new(UNIMPLEMENTED, message).found_by(Cause::Unasked)
}

/// Why a type that is delta only is not sent over SotW.
pub(crate) fn no_sotw(type_url: &TypeUrl) -> ResourceError {
    let message = format!("there is no state of the world of {type_url}: it comes over delta only");
    ResourceError::new(UNIMPLEMENTED, message)
}
