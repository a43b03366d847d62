//! Rules of a message type, ready to be applied to its values.

use std::collections::HashSet;

use prost::Message as _;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use regex::{RegexBuilder, bytes::RegexBuilder as BytesRegexBuilder};

use super::form::Form;
use super::number::{Numbers, Range};
use super::options::{Options, TypeOptions};
use super::rules::{
    AnyRules, BytesRules, DurationRules, EnumRules, FieldRules, MapRules, OfType, RepeatedRules, StringRules, Time,
    TimestampRules, WellKnown,
};
use super::text::{ByteStrings, Strings, whole};

/// How large a pattern may become once it is compiled.
const MOST_COMPILED: usize = 1 << 20;
/// How deep its groups may be within each other.
const MOST_NESTING: u32 = 100;
const SECOND: i128 = 1_000_000_000;

/// What is asked of messages of one type.
#[derive(Debug, Default)]
pub(super) struct TypeRules {
    /// Whether nothing in them is looked at.
    pub(super) is_skipped: bool,
    pub(super) fields: Vec<OfField>,
    /// Of each one member must be set: its name, and its members.
    pub(super) oneofs: Vec<(String, Vec<FieldDescriptor>)>,
    /// The numbers of fields whose messages are not looked at.
    pub(super) passed_over: HashSet<u32>,
}

/// What is asked of a field.
#[derive(Debug)]
pub(super) struct OfField {
    pub(super) field: FieldDescriptor,
    pub(super) is_required: bool,
    pub(super) values: Option<Values>,
}

/// What is asked of its values.
#[derive(Debug)]
pub(super) enum Values {
    Float(Numbers<f32>),
    Double(Numbers<f64>),
    Signed(Numbers<i64>),
    Unsigned(Numbers<u64>),
    Bool(bool),
    String(Box<Strings>),
    Bytes(Box<ByteStrings>),
    Enum {
        numbers: Numbers<i32>,
        is_defined: bool,
    },
    List {
        items: Range<u64>,
        are_unique: bool,
        of_items: Option<Box<Self>>,
        ignores_empty: bool,
    },
    Map {
        pairs: Range<u64>,
        of_keys: Option<Box<Self>>,
        of_values: Option<Box<Self>>,
        ignores_empty: bool,
    },
    Any {
        one_of: Vec<String>,
        none_of: Vec<String>,
    },
    /// In nanoseconds.
    Duration(Numbers<i128>),
    /// In nanoseconds since 1970.
    Timestamp(Numbers<i128>),
    /// There is a rule that nothing can be checked by, because of this.
    Unusable(String),
}

impl TypeRules {
    pub(super) fn of(message: &MessageDescriptor, options: &Options) -> Self {
        let Some(TypeOptions { is_skipped, fields, required_oneofs }) = options.of(message.full_name()) else {
            return Self::default();
        };
        let mut rules = Self { is_skipped: *is_skipped, ..Self::default() };
        for (number, encoded) in fields {
            let Some(field) = message.get_field(*number) else { continue };
            match FieldRules::decode(encoded.as_slice()) {
                Ok(said) => rules.add(field, said),
                Err(error) => {
                    let values = Some(Values::Unusable(error.to_string()));
                    rules.fields.push(OfField { field, is_required: false, values });
                }
            }
        }
        let oneofs = message.oneofs().filter(|oneof| required_oneofs.iter().any(|name| name == oneof.name()));
        rules.oneofs = oneofs.map(|oneof| (oneof.name().to_owned(), oneof.fields().collect())).collect();
        rules
    }

    fn add(&mut self, field: FieldDescriptor, said: FieldRules) {
        let message = said.message.unwrap_or_default();
        let of_items = match &said.of_type {
            Some(OfType::Repeated(rules)) => rules.items.as_ref(),
            Some(OfType::Map(rules)) => rules.values.as_ref(),
            _ => None,
        };
        if message.skip || of_items.is_some_and(|rules| rules.message.unwrap_or_default().skip) {
            self.passed_over.insert(field.number());
        }
        let is_required = message.required
            || match &said.of_type {
                Some(OfType::Any(rules)) => rules.required,
                Some(OfType::Duration(rules)) => rules.required,
                Some(OfType::Timestamp(rules)) => rules.required,
                _ => false,
            };
        let values = said.of_type.and_then(|of_type| of_field(of_type, &field));
        if is_required || values.is_some() {
            self.fields.push(OfField { field, is_required, values });
        }
    }
}

fn of_field(of_type: OfType, field: &FieldDescriptor) -> Option<Values> {
    let fits = match &of_type {
        OfType::Repeated(_) => field.is_list(),
        OfType::Map(_) => field.is_map(),
        _ => !field.is_list() && !field.is_map(),
    };
    match of_type {
        _ if !fits => unfit(),
        OfType::Repeated(rules) => {
            let RepeatedRules { min_items, max_items, unique, items, ignore_empty } = *rules;
            Some(Values::List {
                items: Range::of_counts(min_items, max_items),
                are_unique: unique,
                of_items: items.and_then(|items| of_values(items.of_type?, &field.kind())).map(Box::new),
                ignores_empty: ignore_empty,
            })
        }
        OfType::Map(rules) => {
            let MapRules { min_pairs, max_pairs, keys, values, ignore_empty } = *rules;
            let Kind::Message(entry) = field.kind() else { return unfit() };
            let of = |rules: Option<Box<FieldRules>>, field: FieldDescriptor| {
                rules.and_then(|rules| of_values(rules.of_type?, &field.kind())).map(Box::new)
            };
            Some(Values::Map {
                pairs: Range::of_counts(min_pairs, max_pairs),
                of_keys: of(keys, entry.map_entry_key_field()),
                of_values: of(values, entry.map_entry_value_field()),
                ignores_empty: ignore_empty,
            })
        }
        of_type => of_values(of_type, &field.kind()),
    }
}

/// The kind of what is in a wrapper such as `google.protobuf.UInt32Value` is its own.
fn of_values(of_type: OfType, kind: &Kind) -> Option<Values> {
    let wrapped = match kind {
        Kind::Message(message) => wrapped(message),
        _ => None,
    };
    let kind = wrapped.as_ref().unwrap_or(kind);
    macro_rules! numbers {
        ($rules:ident) => {
            Numbers {
                constant: $rules.r#const.map(Into::into),
                range: Range::new([$rules.lt, $rules.lte, $rules.gt, $rules.gte].map(|at| at.map(Into::into))),
                one_of: $rules.r#in.into_iter().map(Into::into).collect(),
                none_of: $rules.not_in.into_iter().map(Into::into).collect(),
                ignores_zero: $rules.ignore_empty,
            }
        };
    }
    Some(match (of_type, kind) {
        (OfType::Float(rules), Kind::Float) => Values::Float(numbers!(rules)),
        (OfType::Double(rules), Kind::Double) => Values::Double(numbers!(rules)),
        (OfType::Int32(rules), Kind::Int32) => Values::Signed(numbers!(rules)),
        (OfType::Int64(rules), Kind::Int64) => Values::Signed(numbers!(rules)),
        (OfType::Uint32(rules), Kind::Uint32) => Values::Unsigned(numbers!(rules)),
        (OfType::Uint64(rules), Kind::Uint64) => Values::Unsigned(numbers!(rules)),
        (OfType::Sint32(rules), Kind::Sint32) => Values::Signed(numbers!(rules)),
        (OfType::Sint64(rules), Kind::Sint64) => Values::Signed(numbers!(rules)),
        (OfType::Fixed32(rules), Kind::Fixed32) => Values::Unsigned(numbers!(rules)),
        (OfType::Fixed64(rules), Kind::Fixed64) => Values::Unsigned(numbers!(rules)),
        (OfType::Sfixed32(rules), Kind::Sfixed32) => Values::Signed(numbers!(rules)),
        (OfType::Sfixed64(rules), Kind::Sfixed64) => Values::Signed(numbers!(rules)),
        (OfType::Bool(rules), Kind::Bool) => Values::Bool(rules.r#const?),
        (OfType::String(rules), Kind::String) => strings(*rules),
        (OfType::Bytes(rules), Kind::Bytes) => byte_strings(*rules),
        (OfType::Enum(rules), Kind::Enum(_)) => enumeration(rules),
        // Whether it must be set is asked of a message of any type: Envoy's own have it so.
        (OfType::Any(AnyRules { r#in: one_of, not_in: none_of, .. }), Kind::Message(_))
            if one_of.is_empty() && none_of.is_empty() =>
        {
            return None;
        }
        (OfType::Any(AnyRules { r#in: one_of, not_in: none_of, .. }), Kind::Message(of))
            if of.full_name() == "google.protobuf.Any" =>
        {
            Values::Any { one_of, none_of }
        }
        (OfType::Duration(rules), Kind::Message(of)) if of.full_name() == "google.protobuf.Duration" => duration(rules),
        (OfType::Timestamp(rules), Kind::Message(of)) if of.full_name() == "google.protobuf.Timestamp" => {
            timestamp(rules)
        }
        _ => return unfit(),
    })
}

#[expect(clippy::unnecessary_wraps, reason = "what callers return")]
fn unfit() -> Option<Values> {
    Some(Values::Unusable("it is for fields of another type".to_owned()))
}

fn wrapped(message: &MessageDescriptor) -> Option<Kind> {
    let name = message.full_name().strip_prefix("google.protobuf.")?.strip_suffix("Value")?;
    (!name.is_empty() && name != "List").then(|| message.get_field(1).map(|field| field.kind()))?
}

fn enumeration(EnumRules { r#const: constant, defined_only, r#in: one_of, not_in: none_of }: EnumRules) -> Values {
    let range = Range::new([None; 4]);
    Values::Enum {
        numbers: Numbers { constant, range, one_of, none_of, ignores_zero: false },
        is_defined: defined_only,
    }
}

fn strings(rules: StringRules) -> Values {
    let form = match rules.well_known.map(|known| form(known, rules.strict.unwrap_or(true))).transpose() {
        Ok(form) => form.flatten(),
        Err(unknown) => return Values::Unusable(unknown),
    };
    let pattern = |pattern: String| {
        let mut builder = RegexBuilder::new(&whole(&pattern));
        builder.size_limit(MOST_COMPILED).nest_limit(MOST_NESTING).build()
    };
    let pattern = match rules.pattern.map(pattern).transpose() {
        Ok(pattern) => pattern,
        Err(error) => return unreadable(&error),
    };
    Values::String(Box::new(Strings {
        constant: rules.r#const,
        characters: counts(rules.len, rules.min_len, rules.max_len),
        bytes: counts(rules.len_bytes, rules.min_bytes, rules.max_bytes),
        pattern,
        prefix: rules.prefix,
        suffix: rules.suffix,
        contains: rules.contains,
        lacks: rules.not_contains,
        one_of: rules.r#in,
        none_of: rules.not_in,
        form,
        ignores_empty: rules.ignore_empty,
    }))
}

/// What is `false` is no rule.
fn form(known: WellKnown, is_strict: bool) -> Result<Option<Form>, String> {
    let (is_on, form) = match known {
        WellKnown::Email(is_on) => (is_on, Form::Email),
        WellKnown::Hostname(is_on) => (is_on, Form::Hostname),
        WellKnown::Ip(is_on) => (is_on, Form::Ip),
        WellKnown::Ipv4(is_on) => (is_on, Form::Ipv4),
        WellKnown::Ipv6(is_on) => (is_on, Form::Ipv6),
        WellKnown::Uri(is_on) => (is_on, Form::Uri),
        WellKnown::UriRef(is_on) => (is_on, Form::UriRef),
        WellKnown::Address(is_on) => (is_on, Form::Address),
        WellKnown::Uuid(is_on) => (is_on, Form::Uuid),
        WellKnown::Regex(0) => return Ok(None),
        WellKnown::Regex(1 | 2) if !is_strict => (true, Form::Header),
        WellKnown::Regex(1) => (true, Form::HeaderName),
        WellKnown::Regex(2) => (true, Form::HeaderValue),
        WellKnown::Regex(number) => return Err(format!("there is no well-known regex {number}")),
    };
    Ok(is_on.then_some(form))
}

fn byte_strings(rules: BytesRules) -> Values {
    let pattern = |pattern: String| {
        let mut builder = BytesRegexBuilder::new(&whole(&pattern));
        builder.size_limit(MOST_COMPILED).nest_limit(MOST_NESTING).build()
    };
    let pattern = match rules.pattern.map(pattern).transpose() {
        Ok(pattern) => pattern,
        Err(error) => return unreadable(&error),
    };
    let lengths: Option<(&[usize], _)> = match (rules.ip, rules.ipv4, rules.ipv6) {
        (true, ..) => Some((&[4, 16], "an IP address: 4 or 16 bytes")),
        (_, true, _) => Some((&[4], "an IPv4 address: 4 bytes")),
        (.., true) => Some((&[16], "an IPv6 address: 16 bytes")),
        _ => None,
    };
    Values::Bytes(Box::new(ByteStrings {
        constant: rules.r#const,
        bytes: counts(rules.len, rules.min_len, rules.max_len),
        pattern,
        prefix: rules.prefix,
        suffix: rules.suffix,
        contains: rules.contains,
        one_of: rules.r#in,
        none_of: rules.not_in,
        lengths,
        ignores_empty: rules.ignore_empty,
    }))
}

/// What is exact says all.
fn counts(exact: Option<u64>, least: Option<u64>, most: Option<u64>) -> Range<u64> {
    if exact.is_some() { Range::of_counts(exact, exact) } else { Range::of_counts(least, most) }
}

fn unreadable(error: &regex::Error) -> Values {
    let reason = match error {
        regex::Error::CompiledTooBig(most) => format!("its pattern takes more than {most} bytes"),
        _ => "its pattern is none that can be read".to_owned(),
    };
    Values::Unusable(reason)
}

fn duration(rules: DurationRules) -> Values {
    Values::Duration(Numbers {
        constant: rules.r#const.map(nanoseconds),
        range: Range::new([rules.lt, rules.lte, rules.gt, rules.gte].map(|at| at.map(nanoseconds))),
        one_of: rules.r#in.into_iter().map(nanoseconds).collect(),
        none_of: rules.not_in.into_iter().map(nanoseconds).collect(),
        ignores_zero: false,
    })
}

fn timestamp(rules: TimestampRules) -> Values {
    Values::Timestamp(Numbers {
        constant: rules.r#const.map(nanoseconds),
        range: Range::new([rules.lt, rules.lte, rules.gt, rules.gte].map(|at| at.map(nanoseconds))),
        one_of: Vec::new(),
        none_of: Vec::new(),
        ignores_zero: false,
    })
}

/// Of a `Duration` or a `Timestamp`.
pub(super) fn nanoseconds(Time { seconds, nanos }: Time) -> i128 {
    i128::from(seconds) * SECOND + i128::from(nanos)
}
