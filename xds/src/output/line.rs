//! Events as objects, in the form that README.md promises.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use super::content::Content;
use crate::ask::{Event, Failure, Kind, What};

/// What an event does not have is left out. Fields may be added; none of these changes.
#[derive(Debug, Default, Serialize)]
struct Line<'a> {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    type_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<Value>,
}

impl<'a> Line<'a> {
    fn new(event: &'a Event, type_url: &'a str, server: Option<&'a str>, content: &Content) -> io::Result<Self> {
        let name = event.name.as_deref();
        let line = Self { type_url: name.map(|_| type_url), name, server, ..Self::default() };
        Ok(match &event.what {
            What::Put { version, any, stale } => {
                let resource = content.of(any).map_err(io::Error::other)?;
                let (version, resource) = (Some(version.as_str()), Some(resource));
                Self { event: "put", version, stale: Some(*stale), resource, ..line }
            }
            What::Removed => Self { event: "removed", ..line },
            What::Answered => Self { event: "answered", ..line },
            What::Error(failure) => Self { event: "error", ..line }.failed(failure),
            What::Ambient(None) => Self { event: "ambient", stale: Some(false), ..line },
            What::Ambient(Some(failure)) => Self { event: "ambient", stale: Some(true), ..line }.failed(failure),
        })
    }

    fn failed(self, failure: &'a Failure) -> Self {
        let kind = match failure.kind {
            Kind::Unreachable => "unreachable",
            Kind::Invalid => "invalid",
            Kind::Refused => "refused",
            Kind::Absent => "absent",
            Kind::Timeout => "timeout",
        };
        Self { kind: Some(kind), message: Some(&failure.message), ..self }
    }
}

pub(super) fn json(
    out: &mut impl Write,
    event: &Event,
    type_url: &str,
    server: Option<&str>,
    content: &Content,
) -> io::Result<()> {
    let line = Line::new(event, type_url, server, content)?;
    // In one piece, so that no reader sees half of one.
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    out.write_all(&text)
}

pub(super) fn yaml(
    out: &mut impl Write,
    event: &Event,
    type_url: &str,
    server: Option<&str>,
    content: &Content,
) -> io::Result<()> {
    let line = Line::new(event, type_url, server, content)?;
    yaml_document(out, &line)
}

/// Writes a document of YAML.
pub(crate) fn yaml_document(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    // A block of lines would lose lines that are empty.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(value, options).map_err(io::Error::other)?;
    writeln!(out, "---\n{}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_says_what_json_says_whatever_is_in_it() {
        let texts = [
            "no",
            "yes",
            "on",
            "~",
            "null",
            "true",
            "1",
            "01",
            "0x1",
            "1e3",
            ".inf",
            "1:30",
            "2001-01-01",
            "",
            " a ",
            "a: b",
            "a #b",
            "- a",
            "? a",
            "&a",
            "*a",
            "!a",
            "|",
            ">",
            "'",
            "\"",
            "%a",
            "@a",
            "`a",
            "a\nb",
            "a\n\nb\n",
            "\n",
            "\t",
            "\u{7}",
            "é日\u{1f600}",
            "{a}",
            "[a]",
            "a,b",
            "---",
            "...",
            "=",
            "<<",
            "y",
            "\u{feff}",
            "\u{2028}",
            "\r\n",
        ];
        let long = "word ".repeat(100);
        let mut lists = vec![json!([]), json!({}), json!([[], {}]), json!([[1, [2]], {"a": [{"b": null}]}])];
        lists.push(json!([1, -1, 0.5, 1e300, u64::MAX, true, null, long]));
        lists.extend(texts.map(|text| json!({ text: [text, { "a": text }] })));
        for resource in lists {
            let line = Line { event: "put", resource: Some(resource.clone()), ..Line::default() };
            let mut yaml = Vec::new();
            yaml_document(&mut yaml, &line).unwrap();
            let yaml = String::from_utf8(yaml).unwrap();
            let read: Value = serde_saphyr::from_str(&yaml).unwrap_or_else(|error| panic!("{error}: {yaml}"));
            assert_eq!(read, json!({ "event": "put", "resource": resource }), "{yaml}");
        }
    }
}
