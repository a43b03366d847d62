//! What is kept of a `google.protobuf.FileDescriptorSet`: the fields that are listed here, by the numbers of
//! `descriptor.proto`, and of the extensions those of `validate.proto`. All else is gone once it is decoded.

/// `FileDescriptorSet`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FileSet {
    #[prost(message, repeated, tag = "1")]
    pub(super) file: Vec<File>,
}

/// `FileDescriptorProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct File {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) package: Option<String>,
    #[prost(string, repeated, tag = "3")]
    pub(super) dependency: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    pub(super) message_type: Vec<Message>,
    #[prost(message, repeated, tag = "5")]
    pub(super) enum_type: Vec<Enum>,
    #[prost(string, optional, tag = "12")]
    pub(super) syntax: Option<String>,
    #[prost(int32, optional, tag = "14")]
    pub(super) edition: Option<i32>,
}

/// `DescriptorProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Message {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(message, repeated, tag = "2")]
    pub(super) field: Vec<Field>,
    #[prost(message, repeated, tag = "3")]
    pub(super) nested_type: Vec<Self>,
    #[prost(message, repeated, tag = "4")]
    pub(super) enum_type: Vec<Enum>,
    #[prost(message, optional, tag = "7")]
    pub(super) options: Option<MessageOptions>,
    #[prost(message, repeated, tag = "8")]
    pub(super) oneof_decl: Vec<Oneof>,
}

/// `MessageOptions`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MessageOptions {
    #[prost(bool, optional, tag = "7")]
    pub(super) map_entry: Option<bool>,
    #[prost(bool, optional, tag = "1071")]
    pub(super) disabled: Option<bool>,
    #[prost(bool, optional, tag = "1072")]
    pub(super) ignored: Option<bool>,
}

/// `FieldDescriptorProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Field {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(int32, optional, tag = "3")]
    pub(super) number: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(super) label: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(super) r#type: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(super) type_name: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub(super) default_value: Option<String>,
    #[prost(message, optional, tag = "8")]
    pub(super) options: Option<FieldOptions>,
    #[prost(int32, optional, tag = "9")]
    pub(super) oneof_index: Option<i32>,
    #[prost(string, optional, tag = "10")]
    pub(super) json_name: Option<String>,
    #[prost(bool, optional, tag = "17")]
    pub(super) proto3_optional: Option<bool>,
}

/// Values of `FieldDescriptorProto.Type`.
pub(super) const GROUP: i32 = 10;
pub(super) const MESSAGE: i32 = 11;
pub(super) const ENUM: i32 = 14;

/// `FieldOptions`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FieldOptions {
    #[prost(bool, optional, tag = "2")]
    pub(super) packed: Option<bool>,
    /// `validate.FieldRules`, in as many records as a compiler wrote.
    #[prost(bytes = "vec", repeated, tag = "1071")]
    pub(super) rules: Vec<Vec<u8>>,
}

/// `OneofDescriptorProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Oneof {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(super) options: Option<OneofOptions>,
}

/// `OneofOptions`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OneofOptions {
    #[prost(bool, optional, tag = "1071")]
    pub(super) required: Option<bool>,
}

/// `EnumDescriptorProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Enum {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(message, repeated, tag = "2")]
    pub(super) value: Vec<EnumValue>,
    #[prost(message, optional, tag = "3")]
    pub(super) options: Option<EnumOptions>,
}

/// `EnumOptions`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EnumOptions {
    #[prost(bool, optional, tag = "2")]
    pub(super) allow_alias: Option<bool>,
}

/// `EnumValueDescriptorProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EnumValue {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(super) number: Option<i32>,
}
