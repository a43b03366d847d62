//! How files of resources are read.

use super::values::flag;
use crate::yaml::{Error, Node};

/// How the files of an origin are read.
///
/// ```
/// use xds_relay::config::FileReading;
///
/// let reading = FileReading::default();
/// assert!(reading.validate && !reading.environment && !reading.sub_directories);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileReading {
    /// Whether what Envoy would refuse for its values is refused: the rules of `validate.proto` in the descriptor set.
    pub validate: bool,
    /// Whether `${NAME}` in a value is what the environment has under that name, as in a configuration.
    pub environment: bool,
    /// Whether files of directories within the directory are read, too.
    pub sub_directories: bool,
}

impl Default for FileReading {
    fn default() -> Self {
        Self { validate: true, environment: false, sub_directories: false }
    }
}

/// What only an origin with files has.
const FIELDS: [&str; 2] = ["environment", "sub_directories"];

impl FileReading {
    /// Those of an origin with files.
    pub(super) fn read(origin: &Node) -> Result<Self, Error> {
        let default = Self::default();
        Ok(Self {
            validate: validate(origin)?,
            environment: origin.field("environment", flag)?.unwrap_or(default.environment),
            sub_directories: origin.field("sub_directories", flag)?.unwrap_or(default.sub_directories),
        })
    }

    /// Another origin has none of what is of files alone.
    pub(super) fn refuse(origin: &Node) -> Result<(), Error> {
        let refuse = |key| origin.field(key, |node| node.refuse::<()>("only an origin with files reads files"));
        FIELDS.into_iter().try_for_each(|key| refuse(key).map(drop))
    }
}

/// Whether what an origin is written in is held to the rules of its types.
pub(super) fn validate(origin: &Node) -> Result<bool, Error> {
    Ok(origin.field("validate", flag)?.unwrap_or(FileReading::default().validate))
}
