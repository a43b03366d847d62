//! What kinds of origins a configuration knows.

use std::fmt;
use std::path::{Path, PathBuf};

use xds_transport::Protocol;

use super::{Etcd, FileReading, Kubernetes, ServerAddress};

/// What an origin is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OriginKind {
    /// A management server, a control plane or another relay, and those to turn to while it fails.
    Server {
        /// One, or several in order of preference that all have the same resources, and are spoken to alike. What a name
        /// stands for is looked up for each connection.
        servers: Vec<ServerAddress>,
        /// The protocol to speak with it.
        protocol: Protocol,
    },
    /// A directory of resource files.
    Files {
        /// It existed when the configuration was read.
        directory: PathBuf,
        /// A descriptor set to use in place of the built-in one.
        descriptors: Option<PathBuf>,
        /// What is made of the files.
        reading: FileReading,
    },
    /// Keys of etcd that people and programs put resources under.
    Etcd {
        /// The cluster, and what all of its keys begin with.
        etcd: Etcd,
        /// A descriptor set to use in place of the built-in one.
        descriptors: Option<PathBuf>,
        /// Whether what Envoy would refuse for its values is refused, as in [files](FileReading::validate).
        validate: bool,
    },
    /// Objects of Kubernetes that have resources.
    Kubernetes {
        /// The cluster, and what all of its keys begin with.
        kubernetes: Kubernetes,
        /// A descriptor set to use in place of the built-in one.
        descriptors: Option<PathBuf>,
        /// Whether what Envoy would refuse for its values is refused, as in [files](FileReading::validate).
        validate: bool,
    },
    /// One that the program brings which the relay is part of, under this name: see
    /// [`RelayBuilder::origin`](crate::RelayBuilder::origin). A file cannot say so.
    Embedded,
}

impl OriginKind {
    /// In order of preference, if it has servers: it is dialed.
    ///
    /// ```
    /// use xds_relay::config::Origin;
    ///
    /// let origin = Origin::server("a", "http://10.0.0.1:18010".parse()?);
    /// assert_eq!(origin.kind.servers().map(<[_]>::len), Some(1));
    /// assert_eq!(origin.kind.to_string(), "10.0.0.1:18010, delta");
    /// assert_eq!(Origin::files("b", "mesh").kind.servers(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn servers(&self) -> Option<&[ServerAddress]> {
        match self {
            Self::Server { servers, .. } => Some(servers),
            Self::Files { .. } | Self::Etcd { .. } | Self::Kubernetes { .. } | Self::Embedded => None,
        }
    }

    /// The directory and the descriptors, if it has files: they are read when the relay is checked and when it starts, and
    /// watched.
    ///
    /// ```
    /// use std::path::Path;
    /// use xds_relay::config::Origin;
    ///
    /// assert_eq!(Origin::files("b", "mesh").kind.files(), Some((Path::new("mesh"), None)));
    /// ```
    #[must_use]
    pub fn files(&self) -> Option<(&Path, Option<&Path>)> {
        match self {
            Self::Files { directory, descriptors, .. } => Some((directory, descriptors.as_deref())),
            Self::Server { .. } | Self::Etcd { .. } | Self::Kubernetes { .. } | Self::Embedded => None,
        }
    }

    /// How its files are read; the default, if it has none.
    #[cfg(feature = "file-origin")]
    pub(crate) fn file_reading(&self) -> FileReading {
        if let Self::Files { reading, .. } = self { *reading } else { FileReading::default() }
    }

    /// Whether its texts are held to the rules of their types.
    #[cfg(feature = "file-origin")]
    pub(crate) fn validates(&self) -> bool {
        match self {
            Self::Files { reading, .. } => reading.validate,
            Self::Etcd { validate, .. } | Self::Kubernetes { validate, .. } => *validate,
            Self::Server { .. } | Self::Embedded => false,
        }
    }

    /// The cluster and the descriptors, if it is etcd: it is followed.
    ///
    /// ```
    /// use xds_relay::config::{Etcd, Origin};
    ///
    /// let etcd = Etcd::new(["http://127.0.0.1:2379".parse()?], "mesh/");
    /// let origin = Origin::etcd("kv", etcd.clone());
    /// assert_eq!(origin.kind.etcd(), Some((&etcd, None)));
    /// assert_eq!(origin.kind.to_string(), "mesh/ in etcd at 127.0.0.1:2379");
    /// # Ok::<(), String>(())
    /// ```
    #[must_use]
    pub fn etcd(&self) -> Option<(&Etcd, Option<&Path>)> {
        match self {
            Self::Etcd { etcd, descriptors, .. } => Some((etcd, descriptors.as_deref())),
            Self::Server { .. } | Self::Files { .. } | Self::Kubernetes { .. } | Self::Embedded => None,
        }
    }

    /// The objects and the descriptors, if it is Kubernetes: it is followed.
    ///
    /// ```
    /// use xds_relay::config::{Kubernetes, Origin};
    ///
    /// let origin = Origin::kubernetes("kube", Kubernetes::in_cluster());
    /// assert_eq!(origin.kind.kubernetes(), Some((&Kubernetes::in_cluster(), None)));
    /// assert_eq!(origin.kind.to_string(), "config_maps in Kubernetes");
    /// ```
    #[must_use]
    pub fn kubernetes(&self) -> Option<(&Kubernetes, Option<&Path>)> {
        match self {
            Self::Kubernetes { kubernetes, descriptors, .. } => Some((kubernetes, descriptors.as_deref())),
            Self::Server { .. } | Self::Files { .. } | Self::Etcd { .. } | Self::Embedded => None,
        }
    }
}

/// For people: `10.0.0.1:18010 or else 10.0.0.2:18010, delta`.
impl fmt::Display for OriginKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { servers, protocol } => {
                let servers: Vec<_> = servers.iter().map(ServerAddress::target).collect();
                write!(f, "{}, {}", servers.join(" or else "), protocol.as_str())
            }
            Self::Files { directory, .. } => write!(f, "files in {}", directory.display()),
            Self::Etcd { etcd, .. } => {
                let members: Vec<_> = etcd.endpoints.iter().map(ServerAddress::target).collect();
                write!(f, "{} in etcd at {}", etcd.prefix, members.join(" or else "))
            }
            Self::Kubernetes { kubernetes, .. } => {
                let kinds: Vec<_> = kubernetes.kinds.iter().map(ToString::to_string).collect();
                write!(f, "{} in Kubernetes", kinds.join(" and "))?;
                kubernetes.server.as_ref().map_or(Ok(()), |server| write!(f, " at {}", server.target()))
            }
            Self::Embedded => f.write_str("embedded"),
        }
    }
}
