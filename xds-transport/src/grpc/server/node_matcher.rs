//! Which nodes somebody asks for, as `envoy.type.matcher.v3.NodeMatcher` says it.

use bytes::Bytes;
use prost::Message as _;

use crate::wire::matcher::{
    DoubleMatcher, NodeMatcher, StringMatcher, StructMatcher, ValueMatcher, double_matcher, list_matcher,
    string_matcher, struct_matcher, value_matcher,
};
use crate::wire::{Node, Struct, Value, value};

/// How long all that is asked for may be: each client is compared with all of it.
const MOST_BYTES: usize = 64 << 10;

/// How many values all of it may compare.
const MOST_VALUES: usize = 256;

/// Any of these; where there is none, every node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeMatchers(Vec<NodeMatcher>);

impl NodeMatchers {
    /// # Errors
    /// One of them is not supported, or says nothing: in words that name the field.
    pub(crate) fn read(encoded: &[Bytes]) -> Result<Self, String> {
        if encoded.iter().map(Bytes::len).sum::<usize>() > MOST_BYTES {
            return Err(format!("node_matchers: longer than {MOST_BYTES} bytes"));
        }
        let (mut matchers, mut values) = (Vec::new(), 0);
        for (at, encoded) in encoded.iter().enumerate() {
            let path = format!("node_matchers[{at}]");
            let mut matcher = NodeMatcher::decode(encoded.clone()).map_err(|error| format!("{path}: {error}"))?;
            // One that compares nothing is one, too.
            values += 1 + matcher.node_metadatas.iter().filter_map(|of| of.value.as_ref()).map(count).sum::<usize>();
            if values > MOST_VALUES {
                return Err(format!("{path}: with those before it more than {MOST_VALUES} values are compared"));
            }
            check(&mut matcher, &path)?;
            matchers.push(matcher);
        }
        Ok(Self(matchers))
    }

    /// Whether a node is meant, as its client said it.
    pub(crate) fn match_encoded(&self, node: &Bytes) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let node = Node::decode(node.clone()).unwrap_or_default();
        self.0.iter().any(|matcher| is_meant(matcher, &node))
    }
}

/// All that one says.
fn is_meant(matcher: &NodeMatcher, node: &Node) -> bool {
    let metadata = |of: &StructMatcher| {
        let found = node.metadata.as_ref().and_then(|metadata| at(metadata, &of.path));
        of.value.as_ref().is_some_and(|value| has_value(value, found))
    };
    matcher.node_id.as_ref().is_none_or(|text| has_text(text, &node.id)) && matcher.node_metadatas.iter().all(metadata)
}

fn at<'a>(metadata: &'a Struct, path: &[struct_matcher::PathSegment]) -> Option<&'a Value> {
    let (last, before) = path.split_last()?;
    let mut fields = &metadata.fields;
    for segment in before {
        let Some(value::Kind::StructValue(inner)) = &fields.get(key(segment)?)?.kind else { return None };
        fields = &inner.fields;
    }
    fields.get(key(last)?)
}

fn key(segment: &struct_matcher::PathSegment) -> Option<&str> {
    let struct_matcher::path_segment::Segment::Key(key) = segment.segment.as_ref()?;
    Some(key)
}

fn has_value(matcher: &ValueMatcher, value: Option<&Value>) -> bool {
    use value_matcher::MatchPattern as Is;
    let kind = value.and_then(|value| value.kind.as_ref());
    match (&matcher.match_pattern, kind) {
        // As Envoy has it, against the words of its field: whatever is at the path is there, be it no primitive value; and what is not there is
        // picked by nothing, nor by `false`.
        (Some(Is::PresentMatch(present)), Some(_)) => *present,
        (Some(Is::OrMatch(any)), _) => any.value_matchers.iter().any(|matcher| has_value(matcher, value)),
        (Some(Is::NullMatch(_)), Some(value::Kind::NullValue(_))) => true,
        (Some(Is::DoubleMatch(matcher)), Some(value::Kind::NumberValue(number))) => has_number(matcher, *number),
        (Some(Is::StringMatch(matcher)), Some(value::Kind::StringValue(text))) => has_text(matcher, text),
        (Some(Is::BoolMatch(expected)), Some(value::Kind::BoolValue(flag))) => expected == flag,
        (Some(Is::ListMatch(matcher)), Some(value::Kind::ListValue(list))) => match &matcher.match_pattern {
            Some(list_matcher::MatchPattern::OneOf(one)) => list.values.iter().any(|value| has_value(one, Some(value))),
            None => false,
        },
        _ => false,
    }
}

fn has_number(matcher: &DoubleMatcher, number: f64) -> bool {
    match &matcher.match_pattern {
        Some(double_matcher::MatchPattern::Range(range)) => (range.start..range.end).contains(&number),
        #[expect(clippy::float_cmp, reason = "exact is what it says")]
        Some(double_matcher::MatchPattern::Exact(exact)) => number == *exact,
        None => false,
    }
}

/// As Envoy has it, case is that of ASCII letters only. The pattern is in lower case where case is ignored.
fn has_text(StringMatcher { match_pattern, ignore_case }: &StringMatcher, text: &str) -> bool {
    use string_matcher::MatchPattern as Is;
    let is = |part: Option<&[u8]>, pattern: &str| match part {
        Some(part) if *ignore_case => part.eq_ignore_ascii_case(pattern.as_bytes()),
        Some(part) => part == pattern.as_bytes(),
        None => false,
    };
    let bytes = text.as_bytes();
    match match_pattern {
        Some(Is::Exact(exact)) => is(Some(bytes), exact),
        Some(Is::Prefix(prefix)) => is(bytes.get(..prefix.len()), prefix),
        Some(Is::Suffix(suffix)) => is(bytes.len().checked_sub(suffix.len()).and_then(|at| bytes.get(at..)), suffix),
        // A copy is found in by one look at each letter.
        Some(Is::Contains(part)) if *ignore_case => text.to_ascii_lowercase().contains(part),
        Some(Is::Contains(part)) => text.contains(part),
        Some(Is::SafeRegex(_) | Is::Custom(_)) | None => false,
    }
}

/// How many values one compares, itself and those in it.
fn count(ValueMatcher { match_pattern }: &ValueMatcher) -> usize {
    use value_matcher::MatchPattern as Is;
    1 + match match_pattern {
        Some(Is::OrMatch(any)) => any.value_matchers.iter().map(count).sum(),
        Some(Is::ListMatch(list)) => {
            list.match_pattern.as_ref().map_or(0, |list_matcher::MatchPattern::OneOf(one)| count(one))
        }
        _ => 0,
    }
}

/// Whether it is supported; it is made ready to compare with.
fn check(NodeMatcher { node_id, node_metadatas }: &mut NodeMatcher, path: &str) -> Result<(), String> {
    if let Some(text) = node_id {
        check_text(text, &format!("{path}.node_id"))?;
    }
    for (at, StructMatcher { path: keys, value }) in node_metadatas.iter_mut().enumerate() {
        let path = format!("{path}.node_metadatas[{at}]");
        if keys.is_empty() || keys.iter().any(|segment| key(segment).is_none_or(str::is_empty)) {
            return Err(format!("{path}.path: expected at least one key, and each with a name"));
        }
        let value = value.as_mut().ok_or_else(|| format!("{path}.value: none; expected one"))?;
        check_value(value, &format!("{path}.value"))?;
    }
    Ok(())
}

/// No deeper than what is decoded.
fn check_value(ValueMatcher { match_pattern }: &mut ValueMatcher, path: &str) -> Result<(), String> {
    use value_matcher::MatchPattern as Is;
    match match_pattern {
        Some(Is::NullMatch(_) | Is::BoolMatch(_) | Is::PresentMatch(_)) => Ok(()),
        Some(Is::StringMatch(text)) => check_text(text, &format!("{path}.string_match")),
        Some(Is::DoubleMatch(DoubleMatcher { match_pattern: Some(_) })) => Ok(()),
        Some(Is::DoubleMatch(_)) => Err(unknown(&format!("{path}.double_match"))),
        Some(Is::ListMatch(list)) => match &mut list.match_pattern {
            Some(list_matcher::MatchPattern::OneOf(one)) => check_value(one, &format!("{path}.list_match.one_of")),
            None => Err(unknown(&format!("{path}.list_match"))),
        },
        Some(Is::OrMatch(any)) => {
            let path = format!("{path}.or_match.value_matchers");
            if any.value_matchers.len() < 2 {
                return Err(format!("{path}: {}; expected two at the least", any.value_matchers.len()));
            }
            any.value_matchers
                .iter_mut()
                .enumerate()
                .try_for_each(|(at, one)| check_value(one, &format!("{path}[{at}]")))
        }
        None => Err(unknown(path)),
    }
}

fn check_text(StringMatcher { match_pattern, ignore_case }: &mut StringMatcher, path: &str) -> Result<(), String> {
    use string_matcher::MatchPattern as Is;
    let (text, field) = match match_pattern {
        Some(Is::Exact(exact)) => (exact, None),
        Some(Is::Prefix(prefix)) => (prefix, Some("prefix")),
        Some(Is::Suffix(suffix)) => (suffix, Some("suffix")),
        Some(Is::Contains(part)) => (part, Some("contains")),
        Some(Is::SafeRegex(_)) => return Err(format!("{path}.safe_regex: not supported")),
        Some(Is::Custom(_)) => return Err(format!("{path}.custom: not supported")),
        None => return Err(unknown(path)),
    };
    if *ignore_case {
        text.make_ascii_lowercase();
    }
    match field.filter(|_| text.is_empty()) {
        Some(field) => Err(format!("{path}.{field}: empty; expected some text")),
        None => Ok(()),
    }
}

fn unknown(path: &str) -> String {
    format!("{path}: says nothing, or what is not known here")
}

#[cfg(test)]
mod tests;
