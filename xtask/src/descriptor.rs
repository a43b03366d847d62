//! The descriptor set of Envoy's configuration types, small enough to commit.
//!
//! `envoy-types` publishes the set that it was generated from. Most of that is of no
//! use for turning JSON into protobuf: comments, services, validation rules and the
//! other options. What is left is an eighth of the size.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::{Read, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use prost::Message;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumOptions, FieldDescriptorProto, FieldOptions, FileDescriptorProto,
    FileDescriptorSet,
};
use prost_types::{MessageOptions, field_descriptor_proto::Type};

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
    let set = FileDescriptorSet::decode(std::fs::read(source.join(SET_IN_CRATE))?.as_slice())?;
    Ok(stripped(set)?.encode_to_vec())
}

/// The set without what JSON to protobuf does not need.
fn stripped(mut set: FileDescriptorSet) -> Result<FileDescriptorSet, String> {
    set.file.retain(|file| !ANNOTATION_PACKAGES.contains(&file.package()) && !ANNOTATION_FILES.contains(&file.name()));
    for file in &mut set.file {
        strip_file(file);
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

fn strip_file(file: &mut FileDescriptorProto) {
    file.public_dependency.clear();
    file.weak_dependency.clear();
    file.service.clear();
    file.extension.clear();
    file.options = None;
    file.source_code_info = None;
    for message in &mut file.message_type {
        strip_message(message);
    }
    for enumeration in &mut file.enum_type {
        strip_enum(enumeration);
    }
}

fn strip_message(message: &mut DescriptorProto) {
    let map_entry = message.options.take().and_then(|options| options.map_entry);
    message.options = map_entry.map(|_| MessageOptions { map_entry, ..MessageOptions::default() });
    message.extension.clear();
    message.reserved_range.clear();
    message.reserved_name.clear();
    for oneof in &mut message.oneof_decl {
        oneof.options = None;
    }
    for field in &mut message.field {
        strip_field(field);
    }
    for enumeration in &mut message.enum_type {
        strip_enum(enumeration);
    }
    for nested in &mut message.nested_type {
        strip_message(nested);
    }
}

fn strip_field(field: &mut FieldDescriptorProto) {
    let packed = field.options.take().and_then(|options| options.packed);
    field.options = packed.map(|_| FieldOptions { packed, ..FieldOptions::default() });
    if field.json_name.as_deref() == Some(default_json_name(field.name()).as_str()) {
        field.json_name = None;
    }
}

fn strip_enum(enumeration: &mut EnumDescriptorProto) {
    let allow_alias = enumeration.options.take().and_then(|options| options.allow_alias);
    enumeration.options = allow_alias.map(|_| EnumOptions { allow_alias, ..EnumOptions::default() });
    enumeration.reserved_range.clear();
    enumeration.reserved_name.clear();
    for value in &mut enumeration.value {
        value.options = None;
    }
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
fn homes(set: &FileDescriptorSet) -> BTreeMap<String, String> {
    fn message_homes(scope: &str, message: &DescriptorProto, file: &str, homes: &mut BTreeMap<String, String>) {
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
    message: &DescriptorProto,
    homes: &BTreeMap<String, String>,
    dependencies: &mut BTreeSet<String>,
) -> Result<(), String> {
    for field in &message.field {
        if matches!(field.r#type(), Type::Message | Type::Enum | Type::Group) {
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
    use prost_types::{EnumValueDescriptorProto, FileOptions, ServiceDescriptorProto};

    use super::*;

    fn field(name: &str, type_name: &str) -> FieldDescriptorProto {
        FieldDescriptorProto {
            name: Some(name.into()),
            json_name: Some(default_json_name(name)),
            r#type: Some(Type::Message.into()),
            type_name: Some(type_name.into()),
            options: Some(FieldOptions { packed: Some(false), deprecated: Some(true), ..FieldOptions::default() }),
            ..FieldDescriptorProto::default()
        }
    }

    fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
        let options = MessageOptions { map_entry: Some(true), deprecated: Some(true), ..MessageOptions::default() };
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

    #[test]
    fn only_what_decides_the_encoding_is_left() {
        let mut user = file("a", &["b.proto", "validate.proto"], vec![message("A", vec![field("to_b", ".b.B")])]);
        let aliased = EnumOptions { allow_alias: Some(true), deprecated: Some(true), ..EnumOptions::default() };
        user.enum_type.push(EnumDescriptorProto {
            options: Some(aliased),
            value: vec![EnumValueDescriptorProto::default()],
            ..EnumDescriptorProto::default()
        });
        let set = FileDescriptorSet {
            file: vec![
                file("b", &[], vec![message("B", vec![])]),
                file("validate", &[], vec![message("Rules", vec![])]),
                file("only_services", &[], vec![]),
                user,
            ],
        };

        let set = stripped(set).unwrap();
        let names: Vec<&str> = set.file.iter().map(FileDescriptorProto::name).collect();
        assert_eq!(names, ["b.proto", "a.proto"]);
        let user = &set.file[1];
        assert_eq!(user.dependency, ["b.proto"]);
        assert!(user.service.is_empty() && user.options.is_none());
        let options = user.message_type[0].options.clone().unwrap();
        assert_eq!((options.map_entry, options.deprecated), (Some(true), None));
        let field = &user.message_type[0].field[0];
        assert_eq!(field.json_name, None);
        assert_eq!(field.options.clone().unwrap(), FieldOptions { packed: Some(false), ..FieldOptions::default() });
        let options = user.enum_type[0].options.clone().unwrap();
        assert_eq!((options.allow_alias, options.deprecated), (Some(true), None));
    }

    #[test]
    fn a_type_that_is_left_out_but_needed_is_an_error() {
        let user = file("a", &["validate.proto"], vec![message("A", vec![field("rules", ".validate.Rules")])]);
        let set = FileDescriptorSet { file: vec![file("validate", &[], vec![message("Rules", vec![])]), user] };
        assert_eq!(stripped(set), Err("A.rules: .validate.Rules was stripped but is needed".to_owned()));
    }
}
