//! The descriptor set of Envoy's configuration types, small enough to commit.
//!
//! `envoy-types` publishes the set that it was generated from. Most of that is of no
//! use for turning JSON into protobuf and for checking what it says: comments, services
//! and options, but for those of `validate.proto`. What is left is a sixth of the size.

mod kept;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::{Read, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use prost::Message as _;

use self::kept::{
    ENUM, Enum, EnumOptions, Field, FieldOptions, FileSet, GROUP, MESSAGE, Message, MessageOptions, OneofOptions,
};
use crate::{published, workspace};

const CRATE: &str = "envoy-types";
const VERSION: &str = "0.7.7";
const SET_IN_CRATE: &str = "src/generated/types.bin";

/// Packages that hold nothing but options of other protos.
const ANNOTATION_PACKAGES: &[&str] = &["envoy.annotations", "udpa.annotations", "validate", "xds.annotations.v3"];
/// The same, where the package has configuration types too.
const ANNOTATION_FILES: &[&str] = &["google/protobuf/descriptor.proto"];

/// Writes the committed file anew.
pub(crate) fn write() -> Result<String, Box<dyn Error>> {
    let set = made()?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&set)?;
    let compressed = encoder.finish()?;
    let file = committed();
    std::fs::write(&file, &compressed)?;
    Ok(format!("{}: {} bytes, {} uncompressed", file.display(), compressed.len(), set.len()))
}

/// Compares the committed file with what this tool makes: the sets, not the
/// compressed bytes, which a newer compressor may arrange otherwise.
pub(crate) fn check() -> Result<String, Box<dyn Error>> {
    let file = committed();
    let mut set = Vec::new();
    GzDecoder::new(std::fs::File::open(&file)?).read_to_end(&mut set)?;
    if set == made()? {
        Ok(format!("{} is what {CRATE} {VERSION} gives", file.display()))
    } else {
        Err(format!("{} is not what {CRATE} {VERSION} gives: run `cargo xtask descriptor`", file.display()).into())
    }
}

fn committed() -> PathBuf {
    workspace::root().join(format!("xds-relay/descriptors/{CRATE}-{VERSION}.binpb.gz"))
}

fn made() -> Result<Vec<u8>, Box<dyn Error>> {
    let scratch = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace::root().join("target"), PathBuf::from);
    let source = published::source(CRATE, VERSION, &scratch.join("xtask"))?;
    let set = FileSet::decode(std::fs::read(source.join(SET_IN_CRATE))?.as_slice())?;
    Ok(stripped(set)?.encode_to_vec())
}

/// The set without what JSON to protobuf and the checks of values do not need.
fn stripped(mut set: FileSet) -> Result<FileSet, String> {
    set.file.retain(|file| !ANNOTATION_PACKAGES.contains(&file.package()) && !ANNOTATION_FILES.contains(&file.name()));
    for file in &mut set.file {
        file.message_type.iter_mut().for_each(strip_message);
        file.enum_type.iter_mut().for_each(strip_enum);
    }
    set.file.retain(|file| !file.message_type.is_empty() || !file.enum_type.is_empty());

    let homes = homes(&set);
    for file in &mut set.file {
        let mut dependencies = BTreeSet::new();
        for message in &file.message_type {
            collect_dependencies(message, &homes, &mut dependencies)?;
        }
        dependencies.remove(file.name());
        file.dependency = dependencies.into_iter().collect();
    }
    Ok(set)
}

/// Options of which nothing is kept are none.
fn strip_message(message: &mut Message) {
    message.options.take_if(|options| *options == MessageOptions::default());
    for oneof in &mut message.oneof_decl {
        oneof.options.take_if(|options| *options == OneofOptions::default());
    }
    message.field.iter_mut().for_each(strip_field);
    message.enum_type.iter_mut().for_each(strip_enum);
    message.nested_type.iter_mut().for_each(strip_message);
}

fn strip_field(field: &mut Field) {
    field.options.take_if(|options| *options == FieldOptions::default());
    if field.json_name.as_deref() == Some(default_json_name(field.name()).as_str()) {
        field.json_name = None;
    }
}

fn strip_enum(enumeration: &mut Enum) {
    enumeration.options.take_if(|options| *options == EnumOptions::default());
}

/// The name that every reader of descriptors derives where none is given.
fn default_json_name(field: &str) -> String {
    let mut name = String::with_capacity(field.len());
    let mut capitalise = false;
    for character in field.chars() {
        if character == '_' {
            capitalise = true;
        } else {
            name.push(if capitalise { character.to_ascii_uppercase() } else { character });
            capitalise = false;
        }
    }
    name
}

/// Fully qualified type name (with its leading dot) to the file that defines it.
fn homes(set: &FileSet) -> BTreeMap<String, String> {
    fn message_homes(scope: &str, message: &Message, file: &str, homes: &mut BTreeMap<String, String>) {
        let name = format!("{scope}.{}", message.name());
        for enumeration in &message.enum_type {
            homes.insert(format!("{name}.{}", enumeration.name()), file.to_owned());
        }
        for nested in &message.nested_type {
            message_homes(&name, nested, file, homes);
        }
        homes.insert(name, file.to_owned());
    }

    let mut homes = BTreeMap::new();
    for file in &set.file {
        let scope = if file.package().is_empty() { String::new() } else { format!(".{}", file.package()) };
        for message in &file.message_type {
            message_homes(&scope, message, file.name(), &mut homes);
        }
        for enumeration in &file.enum_type {
            homes.insert(format!("{scope}.{}", enumeration.name()), file.name().to_owned());
        }
    }
    homes
}

fn collect_dependencies(
    message: &Message,
    homes: &BTreeMap<String, String>,
    dependencies: &mut BTreeSet<String>,
) -> Result<(), String> {
    for field in &message.field {
        if matches!(field.r#type(), MESSAGE | ENUM | GROUP) {
            let home = homes.get(field.type_name()).ok_or_else(|| {
                format!("{}.{}: {} was stripped but is needed", message.name(), field.name(), field.type_name())
            })?;
            dependencies.insert(home.clone());
        }
    }
    message.nested_type.iter().try_for_each(|nested| collect_dependencies(nested, homes, dependencies))
}

#[cfg(test)]
mod tests {
    use prost_types::field_descriptor_proto::Type;
    use prost_types::{
        DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
        FileDescriptorSet, FileOptions, OneofDescriptorProto, ServiceDescriptorProto,
    };

    use super::*;

    fn field(name: &str, type_name: &str) -> FieldDescriptorProto {
        FieldDescriptorProto {
            name: Some(name.into()),
            json_name: Some(default_json_name(name)),
            r#type: Some(Type::Message.into()),
            type_name: Some(type_name.into()),
            options: Some(prost_types::FieldOptions {
                packed: Some(false),
                deprecated: Some(true),
                ..Default::default()
            }),
            ..FieldDescriptorProto::default()
        }
    }

    fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
        let options =
            prost_types::MessageOptions { map_entry: Some(true), deprecated: Some(true), ..Default::default() };
        DescriptorProto { name: Some(name.into()), field, options: Some(options), ..DescriptorProto::default() }
    }

    fn file(package: &str, dependency: &[&str], message_type: Vec<DescriptorProto>) -> FileDescriptorProto {
        FileDescriptorProto {
            name: Some(format!("{package}.proto")),
            package: Some(package.into()),
            dependency: dependency.iter().map(|name| (*name).to_owned()).collect(),
            message_type,
            service: vec![ServiceDescriptorProto::default()],
            options: Some(FileOptions::default()),
            ..FileDescriptorProto::default()
        }
    }

    fn made_of(file: Vec<FileDescriptorProto>) -> FileSet {
        FileSet::decode(FileDescriptorSet { file }.encode_to_vec().as_slice()).unwrap()
    }

    #[test]
    fn only_what_decides_the_encoding_and_the_checks_is_left() {
        let mut user = file("a", &["b.proto", "validate.proto"], vec![message("A", vec![field("to_b", ".b.B")])]);
        user.message_type[0].oneof_decl = vec![OneofDescriptorProto {
            name: Some("either".into()),
            options: Some(prost_types::OneofOptions::default()),
        }];
        let aliased =
            prost_types::EnumOptions { allow_alias: Some(true), deprecated: Some(true), ..Default::default() };
        user.enum_type.push(EnumDescriptorProto {
            options: Some(aliased),
            value: vec![EnumValueDescriptorProto::default()],
            ..EnumDescriptorProto::default()
        });
        let files = vec![
            file("b", &[], vec![message("B", vec![])]),
            file("validate", &[], vec![message("Rules", vec![])]),
            file("only_services", &[], vec![]),
            user,
        ];
        let set = stripped(made_of(files)).unwrap();
        let names: Vec<&str> = set.file.iter().map(kept::File::name).collect();
        assert_eq!(names, ["b.proto", "a.proto"]);

        // What is left as others read it.
        let set = FileDescriptorSet::decode(set.encode_to_vec().as_slice()).unwrap();
        let user = &set.file[1];
        assert_eq!(user.dependency, ["b.proto"]);
        assert!(user.service.is_empty() && user.options.is_none());
        let options = user.message_type[0].options.clone().unwrap();
        assert_eq!((options.map_entry, options.deprecated), (Some(true), None));
        assert_eq!(user.message_type[0].oneof_decl[0].options, None);
        let field = &user.message_type[0].field[0];
        assert_eq!(field.json_name, None);
        let packed = prost_types::FieldOptions { packed: Some(false), ..Default::default() };
        assert_eq!(field.options, Some(packed));
        let options = user.enum_type[0].options.clone().unwrap();
        assert_eq!((options.allow_alias, options.deprecated), (Some(true), None));
    }

    #[test]
    fn the_rules_of_validate_are_left_and_other_extensions_are_not() {
        let rules = FieldOptions { packed: None, rules: vec![vec![0x72, 2, 0x10, 1], vec![0x72, 2, 0x18, 2]] };
        // Field 1569, a string: an annotation of another file.
        let other = [0x8a, 0x62, 1, b'x'];
        let options = FieldOptions::decode([rules.encode_to_vec().as_slice(), &other].concat().as_slice()).unwrap();
        let field = Field { name: Some("a".into()), options: Some(options), ..Field::default() };
        let mut message = Message {
            field: vec![field],
            options: Some(MessageOptions { disabled: Some(true), ..MessageOptions::default() }),
            ..Message::default()
        };
        strip_message(&mut message);
        assert_eq!(message.field[0].options, Some(rules));
        assert_eq!(message.options.unwrap().disabled, Some(true));
    }

    #[test]
    fn a_type_that_is_left_out_but_needed_is_an_error() {
        let user = file("a", &["validate.proto"], vec![message("A", vec![field("rules", ".validate.Rules")])]);
        let set = made_of(vec![file("validate", &[], vec![message("Rules", vec![])]), user]);
        assert_eq!(stripped(set), Err("A.rules: .validate.Rules was stripped but is needed".to_owned()));
    }
}
