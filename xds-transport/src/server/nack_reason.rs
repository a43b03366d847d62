//! Why clients reject responses, in few words.

/// Why a client rejected a response, as far as the code that it says tells: clients agree on no more than that there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NackReason {
    /// What a resource says is not valid: `INVALID_ARGUMENT`, `FAILED_PRECONDITION` or `OUT_OF_RANGE`.
    Validation,
    /// It could not be read: `DATA_LOSS`.
    Decode,
    /// It is valid, and the client cannot do it: `UNIMPLEMENTED`.
    Unsupported,
    /// `INTERNAL`, which Envoy says of everything that it rejects.
    Internal,
    /// Any other code, or none.
    Other,
}

impl NackReason {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Validation, Self::Decode, Self::Unsupported, Self::Internal, Self::Other];

    /// That of a code of gRPC.
    ///
    /// ```
    /// use xds_transport::server::NackReason;
    ///
    /// assert_eq!(NackReason::of_code(3), NackReason::Validation);
    /// assert_eq!(NackReason::of_code(-1).as_str(), "other");
    /// ```
    pub fn of_code(code: i32) -> Self {
        match code {
            3 | 9 | 11 => Self::Validation,
            12 => Self::Unsupported,
            13 => Self::Internal,
            15 => Self::Decode,
            _ => Self::Other,
        }
    }

    /// For labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "validation",
            Self::Decode => "decode",
            Self::Unsupported => "unsupported",
            Self::Internal => "internal",
            Self::Other => "other",
        }
    }
}
