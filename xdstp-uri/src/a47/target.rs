//! Target URIs of gRPC channels.

use alloc::string::{String, ToString};
use core::fmt;

use crate::percent::{self, Encoded, Set};

/// The target of a gRPC channel: `xds:path`, `xds:///path` or `xds://authority/path`.
///
/// # Examples
/// ```
/// use xdstp_uri::a47::Target;
///
/// let target = Target::parse("xds://xds.authority.com/server.example.com")?;
/// assert_eq!(target.authority(), Some("xds.authority.com"));
/// assert_eq!(target.path(), "server.example.com");
/// # Ok::<(), xdstp_uri::a47::InvalidTarget>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    authority: Option<String>,
    path: String,
}

impl Target {
    /// Parses a target. A query or fragment is ignored, as gRPC does.
    ///
    /// # Errors
    /// The scheme is not `xds`, no path follows, or escapes are not UTF-8.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::a47::Target;
    ///
    /// assert_eq!(Target::parse("xds:///%5B::1%5D:80")?.path(), "[::1]:80");
    /// assert!(Target::parse("dns:server").is_err());
    /// # Ok::<(), xdstp_uri::a47::InvalidTarget>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, InvalidTarget> {
        let invalid = |problem| InvalidTarget { target: text.to_string(), problem };
        let decode = |part: &str| {
            String::from_utf8(percent::decoded(part.as_bytes()).collect())
                .map_err(|_| invalid("expected percent-encoded bytes that are UTF-8"))
        };
        let rest = text.strip_prefix("xds:").ok_or_else(|| invalid("expected the scheme 'xds:'"))?;
        let rest = rest.split_once(['?', '#']).map_or(rest, |(rest, _)| rest);
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_once('/').ok_or_else(|| invalid("expected '/' and a path after the authority"))?,
            // `xds:/path` has no authority either.
            None => ("", rest.strip_prefix('/').unwrap_or(rest)),
        };
        if path.is_empty() {
            return Err(invalid("expected a path"));
        }
        let authority = if authority.is_empty() { None } else { Some(decode(authority)?) };
        Ok(Self { authority, path: decode(path)? })
    }

    /// The authority, decoded: a key of `authorities` in the bootstrap.
    #[must_use]
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// The path, decoded, without its leading `/`: what is put into the template.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What a request to this channel carries as its `:authority`, percent-encoded for it.
    ///
    /// # Examples
    /// ```
    /// use xdstp_uri::a47::{DataPlaneAuthority, Target};
    ///
    /// let target = Target::parse("xds:///path/to/service")?;
    /// assert_eq!(target.data_plane_authority(DataPlaneAuthority::WholePath), "path%2Fto%2Fservice");
    /// assert_eq!(target.data_plane_authority(DataPlaneAuthority::LastSegment), "service");
    /// # Ok::<(), xdstp_uri::a47::InvalidTarget>(())
    /// ```
    #[must_use]
    pub fn data_plane_authority(&self, rule: DataPlaneAuthority) -> String {
        let path = match rule {
            DataPlaneAuthority::WholePath => &*self.path,
            DataPlaneAuthority::LastSegment => self.path.rsplit('/').next().unwrap_or_default(),
        };
        Encoded(path, Set::AUTHORITY).to_string()
    }
}

/// How the data-plane authority follows from a target's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataPlaneAuthority {
    /// All of it, with `/` escaped: A47 as it is today.
    #[default]
    WholePath,
    /// What follows the last `/`: A47 as it was in January 2022.
    LastSegment,
}

/// A text is no target of an xDS channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTarget {
    target: String,
    problem: &'static str,
}

impl fmt::Display for InvalidTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "target {:?}: {}", self.target, self.problem)
    }
}

impl core::error::Error for InvalidTarget {}
