//! From the file as written to a configuration that can be run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    net::SocketAddr,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use bytesize::ByteSize;
use http::Uri;
use serde_saphyr::{Location, Spanned};

use super::{
    Config, ConfigError, DEFAULT_ADMIN, DEFAULT_DRAIN, DEFAULT_LINGER, DEFAULT_LISTEN, Limits, Node, NodeField, Origin,
    OriginKind,
    document::{Document, LimitsDocument, NodeDocument, OriginDocument},
};

pub(super) fn config(file: &Path, document: Document) -> Result<Config, ConfigError> {
    let check = Check { file };
    let listen = match &document.listen {
        None => DEFAULT_LISTEN,
        Some(text) => check.address(text, "listen", "expected IP:PORT, such as 127.0.0.1:18000 or [::]:18000")?,
    };
    let admin = match &document.admin {
        None => Some(DEFAULT_ADMIN),
        Some(text) if text.value == "none" => None,
        Some(text) => {
            let address = check.address(text, "admin", "expected IP:PORT, such as 127.0.0.1:18001, or none")?;
            if address == listen && address.port() != 0 {
                return check.refuse(text.referenced, "admin", "the same address as listen; expected another port");
            }
            Some(address)
        }
    };
    let origins = check.origins(document.origins)?;
    let default_origin = check.default_origin(document.default_origin, &origins)?;
    Ok(Config {
        listen,
        admin,
        node: document.node.map(node).unwrap_or_default(),
        default_origin,
        origins,
        share_by: document.share_by.map(|fields| check.share_by(&fields)).transpose()?,
        linger: check.duration(document.linger, "linger", DEFAULT_LINGER)?,
        drain: check.duration(document.drain, "drain", DEFAULT_DRAIN)?,
        limits: check.limits(&document.limits.unwrap_or_default())?,
    })
}

/// A day: what is longer is a slip of the unit, and sums of times must not overflow.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Below, a request with one long name would not fit; above, protobuf has no messages.
const MESSAGE_BYTES: RangeInclusive<u64> = (4 << 10)..=(i32::MAX as u64);

struct Check<'a> {
    file: &'a Path,
}

impl Check<'_> {
    fn refuse<T>(
        &self,
        place: Location,
        field: impl Into<String>,
        problem: impl Into<String>,
    ) -> Result<T, ConfigError> {
        Err(ConfigError::Invalid {
            file: self.file.to_owned(),
            line: place.line().max(1),
            column: place.column().max(1),
            field: field.into(),
            problem: problem.into(),
        })
    }

    fn address(&self, text: &Spanned<String>, field: &str, expected: &str) -> Result<SocketAddr, ConfigError> {
        match text.value.parse() {
            Ok(address) => Ok(address),
            Err(_) => self.refuse(text.referenced, field, format!("`{}`: {expected}", text.value)),
        }
    }

    fn origins(&self, documents: Option<Spanned<Vec<Spanned<OriginDocument>>>>) -> Result<Vec<Origin>, ConfigError> {
        const EXPECTED: &str = "expected a list of at least one origin, each with a name and a server or files";
        let Some(documents) = documents else {
            return self.refuse(Location::UNKNOWN, "origins", format!("missing; {EXPECTED}"));
        };
        if documents.value.is_empty() {
            return self.refuse(documents.referenced, "origins", format!("empty; {EXPECTED}"));
        }
        let mut origins: Vec<Origin> = Vec::new();
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        for (index, document) in documents.value.into_iter().enumerate() {
            let field = format!("origins[{index}]");
            let place = document.referenced;
            let document = document.value;
            let name = self.origin_name(place, &field, document.name.as_ref(), &origins)?;
            for (index, authority) in document.authorities.iter().enumerate() {
                let field = format!("{field}.authorities[{index}]");
                if authority.value.contains(['/', '?', '#']) || authority.value.contains(char::is_whitespace) {
                    let problem = format!("`{}`: expected an authority alone, such as example.com", authority.value);
                    return self.refuse(authority.referenced, field, problem);
                }
                if let Some(owner) = owners.insert(authority.value.clone(), name.clone()) {
                    let problem = format!("`{}` is listed by origin `{owner}` already", authority.value);
                    return self.refuse(authority.referenced, field, problem);
                }
            }
            let authorities = document.authorities.iter().map(|authority| authority.value.clone()).collect();
            let kind = self.origin_kind(place, &field, &document)?;
            origins.push(Origin { name, authorities, kind });
        }
        Ok(origins)
    }

    fn origin_name(
        &self,
        place: Location,
        field: &str,
        name: Option<&Spanned<String>>,
        others: &[Origin],
    ) -> Result<String, ConfigError> {
        let field = format!("{field}.name");
        let Some(name) = name else {
            return self.refuse(place, field, "missing; expected a name for this origin");
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.value.is_empty() || name.value.len() > 64 || !name.value.chars().all(plain) {
            let problem = format!("`{}`: expected up to 64 letters, digits, `.`, `_` and `-`", name.value);
            return self.refuse(name.referenced, field, problem);
        }
        match others.iter().position(|other| other.name == name.value) {
            None => Ok(name.value.clone()),
            Some(other) => {
                let problem = format!("`{}` is the name of origins[{other}] already", name.value);
                self.refuse(name.referenced, field, problem)
            }
        }
    }

    fn origin_kind(&self, place: Location, field: &str, document: &OriginDocument) -> Result<OriginKind, ConfigError> {
        match (&document.server, &document.files) {
            (Some(server), None) => {
                if let Some(descriptors) = &document.descriptors {
                    let problem = "only an origin with files has descriptors";
                    return self.refuse(descriptors.referenced, format!("{field}.descriptors"), problem);
                }
                match server_uri(&server.value) {
                    Ok(uri) => Ok(OriginKind::Server {
                        uri,
                        protocol: document.protocol.as_ref().map(|protocol| protocol.value).unwrap_or_default(),
                    }),
                    Err(problem) => {
                        let problem = format!("`{}`: {problem}", server.value);
                        self.refuse(server.referenced, format!("{field}.server"), problem)
                    }
                }
            }
            (None, Some(files)) => {
                if let Some(protocol) = &document.protocol {
                    let problem = "only an origin with a server has a protocol";
                    return self.refuse(protocol.referenced, format!("{field}.protocol"), problem);
                }
                let directory = self.path(&files.value);
                if !directory.is_dir() {
                    let problem = format!("no directory {}", directory.display());
                    return self.refuse(files.referenced, format!("{field}.files"), problem);
                }
                let descriptors = document.descriptors.as_ref().map(|text| (text.referenced, self.path(&text.value)));
                if let Some((place, path)) = descriptors.as_ref().filter(|(_, path)| !path.is_file()) {
                    let problem = format!("no file {}", path.display());
                    return self.refuse(*place, format!("{field}.descriptors"), problem);
                }
                Ok(OriginKind::Files { directory, descriptors: descriptors.map(|(_, path)| path) })
            }
            (None, None) => self.refuse(place, field, "expected server: HOST:PORT or files: DIRECTORY"),
            (Some(_), Some(files)) => self.refuse(
                files.referenced,
                format!("{field}.files"),
                "an origin has a server or files, not both; expected two origins",
            ),
        }
    }

    /// Relative paths start from the directory that the configuration is in, not from where the relay was started.
    fn path(&self, text: &str) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(text)
    }

    fn default_origin(&self, name: Option<Spanned<String>>, origins: &[Origin]) -> Result<String, ConfigError> {
        let names = || origins.iter().map(|origin| origin.name.as_str());
        match name {
            None => Ok(names().next().unwrap_or_default().to_owned()),
            Some(name) if names().any(|origin| origin == name.value) => Ok(name.value),
            Some(name) => {
                let problem =
                    format!("no origin `{}`; expected one of {}", name.value, names().collect::<Vec<_>>().join(", "));
                self.refuse(name.referenced, "default_origin", problem)
            }
        }
    }

    fn share_by(&self, texts: &Spanned<Vec<Spanned<String>>>) -> Result<Vec<NodeField>, ConfigError> {
        // An empty list would put every node into one group: nobody who writes it can be sure to mean that.
        if texts.value.is_empty() {
            let problem = "empty; expected at least one part of the node, or no share_by to share nothing";
            return self.refuse(texts.referenced, "share_by", problem);
        }
        let mut fields = Vec::new();
        let mut seen = BTreeSet::new();
        for (index, text) in texts.value.iter().enumerate() {
            let refuse = |problem: &dyn Display| {
                self.refuse(text.referenced, format!("share_by[{index}]"), format!("`{}`: {problem}", text.value))
            };
            match text.value.parse::<NodeField>() {
                Err(expected) => return refuse(&expected),
                Ok(field) if !seen.insert(field.clone()) => return refuse(&"listed twice"),
                Ok(field) => fields.push(field),
            }
        }
        Ok(fields)
    }

    fn duration(&self, text: Option<Spanned<String>>, field: &str, default: Duration) -> Result<Duration, ConfigError> {
        let Some(text) = text else { return Ok(default) };
        match humantime::parse_duration(&text.value) {
            Ok(duration) if duration <= LONGEST => Ok(duration),
            Ok(_) => self.refuse(text.referenced, field, format!("`{}`: expected at most 24h", text.value)),
            Err(_) => {
                let problem = format!("`{}`: expected a duration, such as 500ms, 30s or 2m", text.value);
                self.refuse(text.referenced, field, problem)
            }
        }
    }

    fn limits(&self, document: &LimitsDocument) -> Result<Limits, ConfigError> {
        let Limits { max_request_bytes, max_response_bytes } = Limits::default();
        Ok(Limits {
            max_request_bytes: self.size(
                document.max_request_bytes.as_ref(),
                "limits.max_request_bytes",
                max_request_bytes,
            )?,
            max_response_bytes: self.size(
                document.max_response_bytes.as_ref(),
                "limits.max_response_bytes",
                max_response_bytes,
            )?,
        })
    }

    fn size(&self, text: Option<&Spanned<String>>, field: &str, default: usize) -> Result<usize, ConfigError> {
        let Some(text) = text else { return Ok(default) };
        let bytes = text.value.parse().ok().map(|ByteSize(bytes)| bytes).filter(|bytes| MESSAGE_BYTES.contains(bytes));
        match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
            Some(bytes) => Ok(bytes),
            None => {
                let problem = format!("`{}`: expected 4 KiB to 2 GiB, such as 16777216 or 16 MiB", text.value);
                self.refuse(text.referenced, field, problem)
            }
        }
    }
}

fn node(document: NodeDocument) -> Node {
    let default = Node::default();
    Node {
        id: document.id.unwrap_or(default.id),
        cluster: document.cluster.unwrap_or(default.cluster),
        locality: document.locality,
        metadata: document.metadata,
    }
}

/// `HOST:PORT` or `http://HOST:PORT`.
fn server_uri(text: &str) -> Result<Uri, &'static str> {
    const EXPECTED: &str = "expected HOST:PORT or http://HOST:PORT, such as control-plane.example.com:18000";
    if text.starts_with("https://") {
        return Err("TLS towards an origin is not supported; expected http://HOST:PORT");
    }
    let authority = text.strip_prefix("http://").map_or(text, |rest| rest.strip_suffix('/').unwrap_or(rest));
    let authority: http::uri::Authority = authority.parse().map_err(|_| EXPECTED)?;
    let port_given = authority.port_u16().is_some_and(|port| port != 0);
    if !port_given || authority.host().is_empty() || authority.as_str().contains('@') {
        return Err(EXPECTED);
    }
    Uri::builder().scheme("http").authority(authority).path_and_query("/").build().map_err(|_| EXPECTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_and_a_port() {
        for (text, uri) in [
            ("127.0.0.1:18010", "http://127.0.0.1:18010/"),
            ("[::1]:18010", "http://[::1]:18010/"),
            ("control-plane.example.com:80", "http://control-plane.example.com:80/"),
            ("http://localhost:1", "http://localhost:1/"),
            ("http://localhost:1/", "http://localhost:1/"),
        ] {
            assert_eq!(server_uri(text).unwrap().to_string(), uri);
        }
        for text in
            ["", "localhost", "localhost:0", "localhost:65536", ":1", "http://", "http://a:1/b", "u@a:1", "unix:/a"]
        {
            assert!(server_uri(text).is_err(), "{text}");
        }
        assert!(server_uri("https://a:1").unwrap_err().contains("TLS"));
    }
}
