//! The messages of `validate.proto`, by their numbers there.

/// What a field's option says.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FieldRules {
    #[prost(message, optional, tag = "17")]
    pub(super) message: Option<MessageRules>,
    #[prost(oneof = "OfType", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22")]
    pub(super) of_type: Option<OfType>,
}

/// What it says of the values of a type.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum OfType {
    #[prost(message, tag = "1")]
    Float(FloatRules),
    #[prost(message, tag = "2")]
    Double(DoubleRules),
    #[prost(message, tag = "3")]
    Int32(Int32Rules),
    #[prost(message, tag = "4")]
    Int64(Int64Rules),
    #[prost(message, tag = "5")]
    Uint32(Uint32Rules),
    #[prost(message, tag = "6")]
    Uint64(Uint64Rules),
    #[prost(message, tag = "7")]
    Sint32(Sint32Rules),
    #[prost(message, tag = "8")]
    Sint64(Sint64Rules),
    #[prost(message, tag = "9")]
    Fixed32(Fixed32Rules),
    #[prost(message, tag = "10")]
    Fixed64(Fixed64Rules),
    #[prost(message, tag = "11")]
    Sfixed32(Sfixed32Rules),
    #[prost(message, tag = "12")]
    Sfixed64(Sfixed64Rules),
    #[prost(message, tag = "13")]
    Bool(BoolRules),
    #[prost(message, tag = "14")]
    String(Box<StringRules>),
    #[prost(message, tag = "15")]
    Bytes(Box<BytesRules>),
    #[prost(message, tag = "16")]
    Enum(EnumRules),
    #[prost(message, tag = "18")]
    Repeated(Box<RepeatedRules>),
    #[prost(message, tag = "19")]
    Map(Box<MapRules>),
    #[prost(message, tag = "20")]
    Any(AnyRules),
    #[prost(message, tag = "21")]
    Duration(DurationRules),
    #[prost(message, tag = "22")]
    Timestamp(TimestampRules),
}

/// Rules of numbers, which are all alike.
macro_rules! of_numbers {
    ($($name:ident: $kind:ident as $number:ty;)*) => {$(
        #[derive(Clone, PartialEq, prost::Message)]
        pub(super) struct $name {
            #[prost($kind, optional, tag = "1")]
            pub(super) r#const: Option<$number>,
            #[prost($kind, optional, tag = "2")]
            pub(super) lt: Option<$number>,
            #[prost($kind, optional, tag = "3")]
            pub(super) lte: Option<$number>,
            #[prost($kind, optional, tag = "4")]
            pub(super) gt: Option<$number>,
            #[prost($kind, optional, tag = "5")]
            pub(super) gte: Option<$number>,
            #[prost($kind, repeated, packed = "false", tag = "6")]
            pub(super) r#in: Vec<$number>,
            #[prost($kind, repeated, packed = "false", tag = "7")]
            pub(super) not_in: Vec<$number>,
            #[prost(bool, tag = "8")]
            pub(super) ignore_empty: bool,
        }
    )*};
}

of_numbers! {
    FloatRules: float as f32;
    DoubleRules: double as f64;
    Int32Rules: int32 as i32;
    Int64Rules: int64 as i64;
    Uint32Rules: uint32 as u32;
    Uint64Rules: uint64 as u64;
    Sint32Rules: sint32 as i32;
    Sint64Rules: sint64 as i64;
    Fixed32Rules: fixed32 as u32;
    Fixed64Rules: fixed64 as u64;
    Sfixed32Rules: sfixed32 as i32;
    Sfixed64Rules: sfixed64 as i64;
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct BoolRules {
    #[prost(bool, optional, tag = "1")]
    pub(super) r#const: Option<bool>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StringRules {
    #[prost(string, optional, tag = "1")]
    pub(super) r#const: Option<String>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) min_len: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) max_len: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(super) min_bytes: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) max_bytes: Option<u64>,
    #[prost(string, optional, tag = "6")]
    pub(super) pattern: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub(super) prefix: Option<String>,
    #[prost(string, optional, tag = "8")]
    pub(super) suffix: Option<String>,
    #[prost(string, optional, tag = "9")]
    pub(super) contains: Option<String>,
    #[prost(string, repeated, tag = "10")]
    pub(super) r#in: Vec<String>,
    #[prost(string, repeated, tag = "11")]
    pub(super) not_in: Vec<String>,
    #[prost(uint64, optional, tag = "19")]
    pub(super) len: Option<u64>,
    #[prost(uint64, optional, tag = "20")]
    pub(super) len_bytes: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub(super) not_contains: Option<String>,
    #[prost(oneof = "WellKnown", tags = "12, 13, 14, 15, 16, 17, 18, 21, 22, 24")]
    pub(super) well_known: Option<WellKnown>,
    #[prost(bool, optional, tag = "25")]
    pub(super) strict: Option<bool>,
    #[prost(bool, tag = "26")]
    pub(super) ignore_empty: bool,
}

#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub(super) enum WellKnown {
    #[prost(bool, tag = "12")]
    Email(bool),
    #[prost(bool, tag = "13")]
    Hostname(bool),
    #[prost(bool, tag = "14")]
    Ip(bool),
    #[prost(bool, tag = "15")]
    Ipv4(bool),
    #[prost(bool, tag = "16")]
    Ipv6(bool),
    #[prost(bool, tag = "17")]
    Uri(bool),
    #[prost(bool, tag = "18")]
    UriRef(bool),
    #[prost(bool, tag = "21")]
    Address(bool),
    #[prost(bool, tag = "22")]
    Uuid(bool),
    /// `well_known_regex`, a `KnownRegex`.
    #[prost(int32, tag = "24")]
    Regex(i32),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct BytesRules {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(super) r#const: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) min_len: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) max_len: Option<u64>,
    #[prost(string, optional, tag = "4")]
    pub(super) pattern: Option<String>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub(super) prefix: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub(super) suffix: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "7")]
    pub(super) contains: Option<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub(super) r#in: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "9")]
    pub(super) not_in: Vec<Vec<u8>>,
    #[prost(bool, tag = "10")]
    pub(super) ip: bool,
    #[prost(bool, tag = "11")]
    pub(super) ipv4: bool,
    #[prost(bool, tag = "12")]
    pub(super) ipv6: bool,
    #[prost(uint64, optional, tag = "13")]
    pub(super) len: Option<u64>,
    #[prost(bool, tag = "14")]
    pub(super) ignore_empty: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EnumRules {
    #[prost(int32, optional, tag = "1")]
    pub(super) r#const: Option<i32>,
    #[prost(bool, tag = "2")]
    pub(super) defined_only: bool,
    #[prost(int32, repeated, packed = "false", tag = "3")]
    pub(super) r#in: Vec<i32>,
    #[prost(int32, repeated, packed = "false", tag = "4")]
    pub(super) not_in: Vec<i32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct MessageRules {
    #[prost(bool, tag = "1")]
    pub(super) skip: bool,
    #[prost(bool, tag = "2")]
    pub(super) required: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RepeatedRules {
    #[prost(uint64, optional, tag = "1")]
    pub(super) min_items: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) max_items: Option<u64>,
    #[prost(bool, tag = "3")]
    pub(super) unique: bool,
    #[prost(message, optional, boxed, tag = "4")]
    pub(super) items: Option<Box<FieldRules>>,
    #[prost(bool, tag = "5")]
    pub(super) ignore_empty: bool,
}

/// `no_sparse` (3) is not here: there is no entry without a value once a message is read.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MapRules {
    #[prost(uint64, optional, tag = "1")]
    pub(super) min_pairs: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) max_pairs: Option<u64>,
    #[prost(message, optional, boxed, tag = "4")]
    pub(super) keys: Option<Box<FieldRules>>,
    #[prost(message, optional, boxed, tag = "5")]
    pub(super) values: Option<Box<FieldRules>>,
    #[prost(bool, tag = "6")]
    pub(super) ignore_empty: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AnyRules {
    #[prost(bool, tag = "1")]
    pub(super) required: bool,
    #[prost(string, repeated, tag = "2")]
    pub(super) r#in: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    pub(super) not_in: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DurationRules {
    #[prost(bool, tag = "1")]
    pub(super) required: bool,
    #[prost(message, optional, tag = "2")]
    pub(super) r#const: Option<Time>,
    #[prost(message, optional, tag = "3")]
    pub(super) lt: Option<Time>,
    #[prost(message, optional, tag = "4")]
    pub(super) lte: Option<Time>,
    #[prost(message, optional, tag = "5")]
    pub(super) gt: Option<Time>,
    #[prost(message, optional, tag = "6")]
    pub(super) gte: Option<Time>,
    #[prost(message, repeated, tag = "7")]
    pub(super) r#in: Vec<Time>,
    #[prost(message, repeated, tag = "8")]
    pub(super) not_in: Vec<Time>,
}

/// `lt_now` (7), `gt_now` (8) and `within` (9) are not here: a file would be good at one time and not at another.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TimestampRules {
    #[prost(bool, tag = "1")]
    pub(super) required: bool,
    #[prost(message, optional, tag = "2")]
    pub(super) r#const: Option<Time>,
    #[prost(message, optional, tag = "3")]
    pub(super) lt: Option<Time>,
    #[prost(message, optional, tag = "4")]
    pub(super) lte: Option<Time>,
    #[prost(message, optional, tag = "5")]
    pub(super) gt: Option<Time>,
    #[prost(message, optional, tag = "6")]
    pub(super) gte: Option<Time>,
}

/// A `Duration` or a `Timestamp`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Time {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}
