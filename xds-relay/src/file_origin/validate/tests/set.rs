//! Types with rules, made for a test.

use prost_reflect::{DynamicMessage, ReflectMessage as _};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use super::super::{Found, PathStep, Refusal};
use crate::file_origin::Descriptors;

/// What tests need of it, by its numbers.
const VALIDATE: &str = r#"
syntax = "proto2";
package validate;
import "google/protobuf/descriptor.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
extend google.protobuf.MessageOptions { optional bool disabled = 1071; optional bool ignored = 1072; }
extend google.protobuf.OneofOptions { optional bool required = 1071; }
extend google.protobuf.FieldOptions { optional FieldRules rules = 1071; }
message FieldRules {
  optional MessageRules message = 17;
  oneof type {
    FloatRules float = 1; DoubleRules double = 2; Int32Rules int32 = 3; Int64Rules int64 = 4; UInt32Rules uint32 = 5;
    UInt64Rules uint64 = 6; SInt32Rules sint32 = 7; SInt64Rules sint64 = 8; Fixed32Rules fixed32 = 9;
    Fixed64Rules fixed64 = 10; SFixed32Rules sfixed32 = 11; SFixed64Rules sfixed64 = 12; BoolRules bool = 13;
    StringRules string = 14; BytesRules bytes = 15; EnumRules enum = 16; RepeatedRules repeated = 18; MapRules map = 19;
    AnyRules any = 20; DurationRules duration = 21; TimestampRules timestamp = 22;
  }
}
NUMBERS
message BoolRules { optional bool const = 1; }
message StringRules {
  optional string const = 1; optional uint64 min_len = 2; optional uint64 max_len = 3; optional uint64 min_bytes = 4;
  optional uint64 max_bytes = 5; optional string pattern = 6; optional string prefix = 7; optional string suffix = 8;
  optional string contains = 9; repeated string in = 10; repeated string not_in = 11;
  oneof well_known {
    bool email = 12; bool hostname = 13; bool ip = 14; bool ipv4 = 15; bool ipv6 = 16; bool uri = 17; bool uri_ref = 18;
    bool address = 21; bool uuid = 22; int32 well_known_regex = 24;
  }
  optional uint64 len = 19; optional uint64 len_bytes = 20; optional string not_contains = 23;
  optional bool strict = 25 [default = true]; optional bool ignore_empty = 26;
}
message BytesRules {
  optional bytes const = 1; optional uint64 min_len = 2; optional uint64 max_len = 3; optional string pattern = 4;
  optional bytes prefix = 5; optional bytes suffix = 6; optional bytes contains = 7; repeated bytes in = 8;
  repeated bytes not_in = 9; oneof well_known { bool ip = 10; bool ipv4 = 11; bool ipv6 = 12; }
  optional uint64 len = 13; optional bool ignore_empty = 14;
}
message EnumRules {
  optional int32 const = 1; optional bool defined_only = 2; repeated int32 in = 3; repeated int32 not_in = 4;
}
message MessageRules { optional bool skip = 1; optional bool required = 2; }
message RepeatedRules {
  optional uint64 min_items = 1; optional uint64 max_items = 2; optional bool unique = 3; optional FieldRules items = 4;
  optional bool ignore_empty = 5;
}
message MapRules {
  optional uint64 min_pairs = 1; optional uint64 max_pairs = 2; optional bool no_sparse = 3; optional FieldRules keys = 4;
  optional FieldRules values = 5; optional bool ignore_empty = 6;
}
message AnyRules { optional bool required = 1; repeated string in = 2; repeated string not_in = 3; }
message DurationRules {
  optional bool required = 1; optional google.protobuf.Duration const = 2; optional google.protobuf.Duration lt = 3;
  optional google.protobuf.Duration lte = 4; optional google.protobuf.Duration gt = 5;
  optional google.protobuf.Duration gte = 6; repeated google.protobuf.Duration in = 7;
  repeated google.protobuf.Duration not_in = 8;
}
message TimestampRules {
  optional bool required = 1; optional google.protobuf.Timestamp const = 2; optional google.protobuf.Timestamp lt = 3;
  optional google.protobuf.Timestamp lte = 4; optional google.protobuf.Timestamp gt = 5;
  optional google.protobuf.Timestamp gte = 6; optional bool lt_now = 7; optional bool gt_now = 8;
  optional google.protobuf.Duration within = 9;
}
"#;

const NUMBERS: &[&str] = &[
    "float", "double", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
    "sfixed64",
];

fn validate() -> String {
    let rules = |kind: &&str| {
        let name = kind.replacen("uint", "UInt", 1).replacen("sint", "SInt", 1).replacen("sfixed", "SFixed", 1);
        let (first, rest) = name.split_at(1);
        let field = |(index, name): (usize, &str)| format!("optional {kind} {name} = {}; ", index + 1);
        let fields: String = ["const", "lt", "lte", "gt", "gte"].into_iter().enumerate().map(field).collect();
        let fields =
            format!("{fields}repeated {kind} in = 6; repeated {kind} not_in = 7; optional bool ignore_empty = 8;");
        format!("message {}{rest}Rules {{ {fields} }}\n", first.to_uppercase())
    };
    VALIDATE.replace("NUMBERS", &NUMBERS.iter().map(rules).collect::<String>())
}

#[derive(Debug)]
struct Sources(Vec<(&'static str, String)>);

impl FileResolver for Sources {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.0.iter().find(|(known, _)| *known == name) {
            Some((_, source)) => File::from_source(name, source),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}

/// A set with these messages in the package `t`.
pub(super) fn set_of(messages: &str) -> Vec<u8> {
    let imports = ["any", "duration", "timestamp", "wrappers", "struct"]
        .map(|name| format!("import \"google/protobuf/{name}.proto\";\n"))
        .concat();
    let test = format!(
        "syntax = \"proto3\";\npackage t;\nimport \"validate/validate.proto\";\n{imports}enum E {{ ZERO = 0; ONE = 1; TWO = 2; }}\n{messages}"
    );
    let mut resolver = ChainFileResolver::new();
    resolver.add(Sources(vec![("validate/validate.proto", validate()), ("t.proto", test)]));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).open_file("t.proto").unwrap_or_else(|error| panic!("{error:?}"));
    compiler.encode_file_descriptor_set()
}

pub(super) fn types_of(messages: &str) -> Descriptors {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("set");
    std::fs::write(&file, set_of(messages)).unwrap();
    Descriptors::load(&file).unwrap().with_validation()
}

/// What of a message `t.T` is refused, and how.
pub(super) fn refused_by(types: &Descriptors, json: &str) -> Vec<String> {
    let of = types.pool.get_message_by_name("t.T").unwrap();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let message = DynamicMessage::deserialize(of, &mut deserializer).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(message.descriptor().full_name(), "t.T");
    types.validator.as_ref().unwrap().refusals(&message).iter().map(words).collect()
}

/// The same of one with this field, which is the first.
pub(super) fn refused(field: &str, json: &str) -> Vec<String> {
    refused_by(&types_of(&format!("message T {{ {field} }}")), json)
}

fn words(Refusal { path, expected, found }: &Refusal) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            PathStep::Field(name, _) => text.extend([if text.is_empty() { "" } else { "." }, name]),
            PathStep::Index(index) => text.push_str(&format!("[{index}]")),
            PathStep::Key(key) => text.push_str(&format!("[{key:?}]")),
        }
    }
    match found {
        Found::Untold => format!("{text}: {expected}"),
        Found::Told(found) | Found::TypeUrl(found) | Found::Value(found) => {
            format!("{text}: {expected}, found {found}")
        }
    }
}
