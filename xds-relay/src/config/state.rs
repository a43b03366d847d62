//! Where the relay keeps what it knows, and when it is ready.

use std::path::{Path, PathBuf};

use super::Etcd;
use super::etcd::etcd;
use super::fields::STATE_FIELDS;
use super::tls::File;
use crate::yaml::{self, Error};

/// Where the relay keeps what its origins said last, to serve it after a restart while they are away.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// A directory, which is made if there is none; for one relay at a time.
    pub path: PathBuf,
    /// What becomes of keys.
    pub secrets: Secrets,
    /// A cluster that several relays keep their releases in.
    pub etcd: Option<Etcd>,
    /// Whether what origins said last is kept there, too.
    pub last_known_good: KnownIn,
}

/// Who has what origins said last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KnownIn {
    /// Each relay what it heard itself, in its directory.
    #[default]
    Own,
    /// All relays what any of them heard, in etcd, beside that: one that starts for the first time is served from there.
    Shared,
}

/// What becomes of resources of the type `Secret`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Secrets {
    /// They are not kept.
    #[default]
    Omit,
    /// They are kept encrypted (AES-256-GCM), by the first key of this file, and read by any of them.
    Encrypted(PathBuf),
}

/// What a relay must have before it says that it is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadyWhen {
    /// Its files, where origins are directories.
    #[default]
    Started,
    /// And origins that take connections, each once.
    Origins,
    /// And these, or what they said before a restart.
    LastKnownGood,
}

/// What the keys of what is kept in etcd begin with where nothing is said of it.
const ETCD_PREFIX: &str = "xds-relay/v1/";

/// Relative paths start from `directory`.
pub(super) fn state(node: &yaml::Node, directory: &Path, file: File<'_>) -> Result<State, Error> {
    node.expect_fields(STATE_FIELDS)?;
    let expected = "expected a directory for what is known, such as /var/lib/xds-relay";
    let path = node.required_field("path", expected, |node| {
        let path = directory.join(node.text()?);
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if path.exists() && !path.is_dir() {
            return node.refuse(format!("{} is no directory", path.display()));
        }
        if !path.exists() && !parent.is_dir() {
            return node.refuse(format!("no directory {} to make it in", parent.display()));
        }
        Ok(path)
    })?;
    let etcd = node.field("etcd", |node| etcd(node, Some(ETCD_PREFIX), file))?;
    let last_known_good = node.field("last_known_good", |node| known_in(node, etcd.is_some()))?.unwrap_or_default();
    Ok(State {
        path,
        secrets: node.field("secrets", |node| secrets(node, file))?.unwrap_or_default(),
        etcd,
        last_known_good,
    })
}

fn known_in(node: &yaml::Node, has_etcd: bool) -> Result<KnownIn, Error> {
    match node.text()? {
        "own" => Ok(KnownIn::Own),
        "shared" if has_etcd => Ok(KnownIn::Shared),
        "shared" => node.refuse("`shared`: there is no etcd to have it in; expected etcd beside it, or own"),
        other => node.refuse(format!("`{other}`: expected own or shared")),
    }
}

fn secrets(node: &yaml::Node, file: File<'_>) -> Result<Secrets, Error> {
    if !node.entries().is_empty() {
        node.expect_fields(&["encrypted"])?;
        let expected = "expected a file of keys, the first of which encrypts";
        return node.required_field("encrypted", expected, file).map(Secrets::Encrypted);
    }
    match node.text()? {
        "omit" => Ok(Secrets::Omit),
        other => node.refuse(format!("`{other}`: expected omit, or encrypted: FILE")),
    }
}

pub(super) fn ready_when(node: &yaml::Node) -> Result<ReadyWhen, Error> {
    match node.text()? {
        "started" => Ok(ReadyWhen::Started),
        "origins" => Ok(ReadyWhen::Origins),
        "last_known_good" => Ok(ReadyWhen::LastKnownGood),
        other => node.refuse(format!("`{other}`: expected started, origins or last_known_good")),
    }
}
