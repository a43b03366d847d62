//! The options of `validate.proto` in a descriptor set.
//!
//! They are read from the set itself. A pool gives them as extensions only where the set has `validate.proto` too, and as
//! unknown fields otherwise: here they count either way.

use std::collections::HashMap;

use prost::DecodeError;
use prost::Message as _;

/// What the options say of each message type that has some, by its full name.
#[derive(Debug, Default)]
pub(in crate::file_origin) struct Options(HashMap<String, TypeOptions>);

/// What they say of one.
#[derive(Debug, Default)]
pub(super) struct TypeOptions {
    /// Whether nothing in it is checked.
    pub(super) is_skipped: bool,
    /// By the number of the field: an encoded `FieldRules`.
    pub(super) fields: Vec<(u32, Vec<u8>)>,
    /// The names of those of which one member must be set.
    pub(super) required_oneofs: Vec<String>,
}

impl Options {
    /// Those of an encoded `FileDescriptorSet`.
    ///
    /// # Errors
    /// It is none.
    pub(in crate::file_origin) fn read(set: &[u8]) -> Result<Self, DecodeError> {
        let mut options = Self::default();
        for file in Set::decode(set)?.file {
            options.add(&file.package, file.message_type);
        }
        Ok(options)
    }

    pub(super) fn of(&self, type_name: &str) -> Option<&TypeOptions> {
        self.0.get(type_name)
    }

    fn add(&mut self, scope: &str, messages: Vec<Message>) {
        // The set was decoded, which bounds how deep they are within each other.
        for message in messages {
            let name = if scope.is_empty() { message.name } else { format!("{scope}.{}", message.name) };
            self.add(&name, message.nested_type);
            let said = message.options.unwrap_or_default();
            let rules = |field: Field| {
                let rules = field.options?.rules.concat();
                (!rules.is_empty()).then_some((u32::try_from(field.number).ok()?, rules))
            };
            let is_required = |oneof: &Oneof| oneof.options.as_ref().is_some_and(|options| options.required);
            let options = TypeOptions {
                is_skipped: said.disabled || said.ignored,
                fields: message.field.into_iter().filter_map(rules).collect(),
                required_oneofs: message.oneof_decl.into_iter().filter(is_required).map(|oneof| oneof.name).collect(),
            };
            if options.is_skipped || !options.fields.is_empty() || !options.required_oneofs.is_empty() {
                self.0.insert(name, options);
            }
        }
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Set {
    #[prost(message, repeated, tag = "1")]
    file: Vec<File>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct File {
    #[prost(string, tag = "2")]
    package: String,
    #[prost(message, repeated, tag = "4")]
    message_type: Vec<Message>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Message {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    field: Vec<Field>,
    #[prost(message, repeated, tag = "3")]
    nested_type: Vec<Self>,
    #[prost(message, optional, tag = "7")]
    options: Option<MessageOptions>,
    #[prost(message, repeated, tag = "8")]
    oneof_decl: Vec<Oneof>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct MessageOptions {
    #[prost(bool, tag = "1071")]
    disabled: bool,
    #[prost(bool, tag = "1072")]
    ignored: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Field {
    #[prost(int32, tag = "3")]
    number: i32,
    #[prost(message, optional, tag = "8")]
    options: Option<FieldOptions>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FieldOptions {
    /// Compilers write a record for each rule that is set by itself. One after the other they are all of them.
    #[prost(bytes = "vec", repeated, tag = "1071")]
    rules: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Oneof {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    options: Option<OneofOptions>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct OneofOptions {
    #[prost(bool, tag = "1071")]
    required: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_are_written_one_by_one_all_count() {
        // Those of a string: `min_len: 1`, and `max_len: 2`.
        let rules = [[0x72, 2, 0x10, 1], [0x72, 2, 0x18, 2]].map(Vec::from).to_vec();
        let field = Field { number: 3, options: Some(FieldOptions { rules }) };
        let unruled = Field { number: 4, options: Some(FieldOptions::default()) };
        let message = Message { name: "T".into(), field: vec![field, unruled], ..Message::default() };
        let file = File { package: "t".into(), message_type: vec![message] };
        let options = Options::read(&Set { file: vec![file] }.encode_to_vec()).unwrap();
        assert_eq!(options.of("t.T").unwrap().fields, [(3, vec![0x72, 2, 0x10, 1, 0x72, 2, 0x18, 2])]);
    }
}
