//! Dynamic parameters and constraints (TP2) as they travel: `ResourceLocator`, `ResourceName`, and what the draft has under
//! the same numbers.

mod draft;
mod final_form;

use bytes::Bytes;
use thiserror::Error;
use xds_matcher::{Constraint, ConstraintError, DynamicParameters, MAX_NODES};
use xdstp_cache::{Selector, Variant};

use crate::Dialect;
use crate::wire::shape::{self, Undecodable};
use crate::wire::walk::{self, FieldValue, Fields};

/// A subscription with what selects among the variants of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Locator {
    /// The name, glob or wildcard, as spelled.
    pub name: String,
    /// What the subscriber sends with it.
    pub selector: Selector,
}

/// A locator, or the name of a variant, is not to be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LocatorError {
    /// It is no such message.
    #[error("{0}")]
    Malformed(String),
    /// Its constraints are none, or cannot be said in the form that the other side knows.
    #[error("dynamic parameters of {name:?}: {error}")]
    Constraints {
        /// Of which name.
        name: String,
        /// What is wrong, and where.
        error: ConstraintError,
    },
}

impl Locator {
    /// A subscription of a name, glob or wildcard, as spelled.
    pub fn new(name: impl Into<String>, selector: Selector) -> Self {
        Self { name: name.into(), selector }
    }

    /// Decodes an `envoy.service.discovery.v3.ResourceLocator`.
    ///
    /// # Errors
    /// When it is none, or its constraints make no sense.
    pub fn decode(dialect: Dialect, message: &[u8]) -> Result<Self, LocatorError> {
        let (mut name, mut parameters, mut constraints) = ("", Vec::new(), None);
        for field in Fields::of(message) {
            let field = field.map_err(|_| Undecodable::not_a_message("resource_locators"))?;
            match (field.number, field.value) {
                (1, FieldValue::Bytes(text)) => name = shape::text("name", text)?,
                (2, FieldValue::Bytes(value)) => match dialect {
                    Dialect::Final => parameters.push(entry("dynamic_parameters", value)?),
                    Dialect::Draft => constraints = Some(value),
                },
                (1 | 2, _) => Err(Undecodable::new("resource_locators", "not of its type"))?,
                _ => {}
            }
        }
        let of_name = |fault: Fault| fault.of(name);
        let selector = match constraints {
            Some(constraints) => {
                let message = draft::decode(constraints).map_err(of_name)?;
                Selector::Constraints(message.lower().map_err(|error| of_name(error.into()))?)
            }
            None => Selector::Parameters(DynamicParameters::from_iter(parameters)),
        };
        // Constraints of nothing say nothing, in either form.
        let selector = if selector.is_default() { Selector::default() } else { selector };
        Ok(Self { name: name.to_owned(), selector })
    }

    /// Encodes it; what the dialect has another form for is translated.
    ///
    /// ```
    /// use xds_matcher::DynamicParameters;
    /// use xds_transport::Dialect;
    /// use xds_transport::wire::parameters::Locator;
    /// use xdstp_cache::Selector;
    ///
    /// let canary = Selector::Parameters(DynamicParameters::from_iter([("env", "canary")]));
    /// let locator = Locator::new("cart", canary);
    /// let encoded = locator.encode(Dialect::Final)?;
    /// assert_eq!(Locator::decode(Dialect::Final, &encoded)?, locator);
    /// assert_ne!(locator.encode(Dialect::Draft)?, encoded);
    /// # Ok::<(), xds_transport::wire::parameters::LocatorError>(())
    /// ```
    ///
    /// # Errors
    /// When its constraints are not of exact values, and the final form has only these.
    pub fn encode(&self, dialect: Dialect) -> Result<Bytes, LocatorError> {
        let mut encoded = Vec::new();
        walk::put_bytes(&mut encoded, 1, self.name.as_bytes());
        let unsayable = |error| LocatorError::Constraints { name: self.name.clone(), error };
        match (dialect, &self.selector) {
            _ if self.selector.is_default() => {}
            (Dialect::Final, Selector::Parameters(parameters)) => put_entries(&mut encoded, 2, parameters),
            (Dialect::Final, Selector::Constraints(constraints)) => {
                put_entries(&mut encoded, 2, &constraints.to_parameters().map_err(unsayable)?);
            }
            (Dialect::Draft, Selector::Parameters(parameters)) => {
                walk::put_bytes(&mut encoded, 2, &draft::encode(&parameters.to_draft_constraints()));
            }
            (Dialect::Draft, Selector::Constraints(constraints)) => {
                let message = draft::raise(constraints.constraint()).map_err(unsayable)?;
                walk::put_bytes(&mut encoded, 2, &draft::encode(&message));
            }
        }
        Ok(encoded.into())
    }
}

/// How a resource is called, and which of its variants it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VariantName<'a> {
    pub(crate) name: &'a str,
    /// `None` where the message does not say.
    pub(crate) variant: Option<Variant>,
}

impl<'a> VariantName<'a> {
    /// Decodes an `envoy.service.discovery.v3.ResourceName`, which is of the final form.
    pub(crate) fn decode(message: &'a [u8]) -> Result<Self, LocatorError> {
        let (mut name, mut constraints) = ("", None);
        for field in Fields::of(message) {
            let field = field.map_err(|_| Undecodable::not_a_message("resource_name"))?;
            match (field.number, field.value) {
                (1, FieldValue::Bytes(text)) => name = shape::text("name", text)?,
                (2, FieldValue::Bytes(value)) => constraints = Some(value),
                (1 | 2, _) => Err(Undecodable::new("resource_name", "not of its type"))?,
                _ => {}
            }
        }
        let of_name = |fault: Fault| fault.of(name);
        let variant = match constraints {
            None => None,
            Some(constraints) => {
                let message = final_form::decode(constraints).map_err(of_name)?;
                Some(Variant::Constraints(message.lower().map_err(|error| of_name(error.into()))?))
            }
        };
        Ok(Self { name, variant })
    }
}

/// An encoded `ResourceName` of a variant that goes to who sends the selector.
pub(crate) fn resource_name(name: &str, variant: &Variant, selector: &Selector) -> Vec<u8> {
    let mut encoded = Vec::new();
    walk::put_bytes(&mut encoded, 1, name.as_bytes());
    if !variant.is_plain() {
        walk::put_bytes(&mut encoded, 2, &constraints_of(variant, selector));
    }
    encoded
}

/// The same of what there is none of for who sends the selector.
pub(crate) fn missing_name(name: &str, selector: &Selector) -> Vec<u8> {
    let mut encoded = Vec::new();
    walk::put_bytes(&mut encoded, 1, name.as_bytes());
    walk::put_bytes(&mut encoded, 2, &exactly(selector).map_or_else(Vec::new, |message| final_form::encode(&message)));
    encoded
}

/// The fields of a `Resource` that say what it is called and which variant it is.
pub(crate) fn named(dialect: Dialect, name: &str, variant: &Variant, selector: &Selector) -> Vec<u8> {
    let mut encoded = Vec::new();
    match dialect {
        // Rule 119: the name is there, and not in `name`.
        Dialect::Final => walk::put_bytes(&mut encoded, 8, &resource_name(name, variant, selector)),
        Dialect::Draft => {
            walk::put_bytes(&mut encoded, 3, name.as_bytes());
            put_parameters(&mut encoded, variant, selector);
        }
    }
    encoded
}

/// Appends what the draft says of a variant: `Resource.dynamic_parameters`.
fn put_parameters(into: &mut Vec<u8>, variant: &Variant, selector: &Selector) {
    let translated = match variant {
        Variant::Parameters(parameters) => Ok(parameters.clone()),
        Variant::Constraints(constraint) => constraint.to_draft_parameters(),
    };
    // What cannot be said of all who get the variant can be said of this one.
    let parameters = translated.ok().or_else(|| match selector {
        Selector::Parameters(parameters) => Some(parameters.clone()),
        Selector::Constraints(constraints) => constraints.to_parameters().ok(),
    });
    if let Some(parameters) = parameters {
        put_entries(into, 8, &parameters);
    }
}

fn constraints_of(variant: &Variant, selector: &Selector) -> Vec<u8> {
    let translated = match variant {
        Variant::Constraints(constraint) => final_form::raise(constraint),
        Variant::Parameters(parameters) => parameters.to_constraint().and_then(|all| final_form::raise(&all)),
    };
    // What cannot be said of all who get the variant can be said of this one.
    let message = translated.ok().or_else(|| exactly(selector));
    message.map_or_else(Vec::new, |message| final_form::encode(&message))
}

/// What only parameters that have each of these satisfy.
fn exactly(selector: &Selector) -> Option<xds_matcher::final_form::DynamicParameterConstraints> {
    let parameters = match selector {
        Selector::Parameters(parameters) => parameters.clone(),
        Selector::Constraints(constraints) => constraints.to_parameters().ok()?,
    };
    let mut each = parameters.iter().map(|(key, value)| Constraint::value(key, value));
    let exactly = match parameters.len() {
        1 => each.next()?,
        _ => Constraint::all(each).ok()?,
    };
    final_form::raise(&exactly).ok()
}

/// An entry of a `map<string, string>`.
pub(crate) fn entry<'a>(name: &'static str, message: &'a [u8]) -> Result<(&'a str, &'a str), Undecodable> {
    let (mut key, mut value) = ("", "");
    for field in Fields::of(message) {
        let field = field.map_err(|_| Undecodable::not_a_message(name))?;
        match (field.number, field.value) {
            (1, FieldValue::Bytes(text)) => key = shape::text(name, text)?,
            (2, FieldValue::Bytes(text)) => value = shape::text(name, text)?,
            (1 | 2, _) => return Err(Undecodable::new(name, "not of its type")),
            _ => {}
        }
    }
    Ok((key, value))
}

fn put_entries(into: &mut Vec<u8>, number: u32, parameters: &DynamicParameters) {
    for (key, value) in parameters.iter() {
        walk::put_delimited(into, number, walk::bytes_len(1, key.len()) + walk::bytes_len(2, value.len()));
        walk::put_bytes(into, 1, key.as_bytes());
        walk::put_bytes(into, 2, value.as_bytes());
    }
}

/// Why constraints are none.
enum Fault {
    Undecodable(Undecodable),
    Constraint(ConstraintError),
    TooMany,
}

impl Fault {
    fn of(self, name: &str) -> LocatorError {
        match self {
            Self::Undecodable(error) => error.into(),
            Self::Constraint(error) => LocatorError::Constraints { name: name.to_owned(), error },
            Self::TooMany => LocatorError::Malformed(format!("more than {MAX_NODES} constraints of {name:?}")),
        }
    }
}

impl From<Undecodable> for Fault {
    fn from(error: Undecodable) -> Self {
        Self::Undecodable(error)
    }
}

impl From<ConstraintError> for Fault {
    fn from(error: ConstraintError) -> Self {
        Self::Constraint(error)
    }
}

impl From<Undecodable> for LocatorError {
    fn from(error: Undecodable) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// What the messages of either form are called where one is none.
const CONSTRAINTS: &str = "dynamic_parameter_constraints";

fn fields(message: &[u8]) -> impl Iterator<Item = Result<(u32, FieldValue<'_>), Fault>> {
    Fields::of(message).map(|field| match field {
        Ok(field) => Ok((field.number, field.value)),
        Err(_) => Err(Undecodable::not_a_message(CONSTRAINTS).into()),
    })
}

fn not_of_its_type() -> Fault {
    Undecodable::new(CONSTRAINTS, "not of its type").into()
}

/// What is a member of a oneof, or of a list, is there also where it is empty.
fn put(into: &mut Vec<u8>, number: u32, value: &[u8]) {
    walk::put_delimited(into, number, value.len());
    into.extend_from_slice(value);
}

/// Counts what is decoded: a message of two bytes is a constraint of many.
struct Room(usize);

impl Room {
    fn new() -> Self {
        Self(MAX_NODES)
    }

    fn take(&mut self) -> Result<(), Fault> {
        self.0 = self.0.checked_sub(1).ok_or(Fault::TooMany)?;
        Ok(())
    }
}
