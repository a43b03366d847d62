//! How connections are secured, and what calls carry.

use std::path::PathBuf;
use std::time::Duration;

use super::duration;
use super::error::Wrong;
use super::json::{Json, Object};

/// How often certificates are read again, unless the bootstrap says so.
const REFRESH: Duration = Duration::from_secs(600);

/// How connections to a server are secured.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChannelCreds {
    /// `insecure`: in clear text.
    Insecure,
    /// `tls` (gRFC A65).
    Tls(TlsFiles),
    /// `google_default`: what Google's servers want.
    GoogleDefault,
}

/// The files of `tls`; they are read again every so often.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TlsFiles {
    /// Who may vouch for the server: those that the system trusts, if there is none.
    pub ca_certificate: Option<PathBuf>,
    /// The client's own certificate and its key, for a server that asks for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// How often they are read again: 600 seconds by default.
    pub refresh: Duration,
}

/// What calls carry beside (gRFC A97).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallCreds {
    /// `jwt_token_file`: a bearer token, read from this file.
    JwtTokenFile(PathBuf),
}

impl Default for TlsFiles {
    fn default() -> Self {
        Self { ca_certificate: None, identity: None, refresh: REFRESH }
    }
}

impl TlsFiles {
    /// A certificate needs its key, and a key its certificate.
    pub(super) fn read(fields: &Object<'_>) -> Result<Self, Wrong> {
        let file = |name| Ok::<_, Wrong>(fields.text(name)?.map(PathBuf::from));
        let identity = match (file("certificate_file")?, file("private_key_file")?) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => return Err(fields.wrong("certificate_file is there, and private_key_file is missing")),
            (None, Some(_)) => return Err(fields.wrong("private_key_file is there, and certificate_file is missing")),
        };
        let refresh = fields.member("refresh_interval").map(|json| duration::read(&json)).transpose()?;
        Ok(Self { ca_certificate: file("ca_certificate_file")?, identity, refresh: refresh.unwrap_or(REFRESH) })
    }
}

/// gRFC A27: the first that is supported, however wrong those after it are.
pub(super) fn channel(json: &Json<'_>) -> Result<ChannelCreds, Wrong> {
    let mut others = Vec::new();
    for entry in json.array()? {
        let fields = entry.object()?;
        let kind = fields.required("type")?.text()?;
        match kind.as_str() {
            "insecure" => return Ok(ChannelCreds::Insecure),
            "google_default" => return Ok(ChannelCreds::GoogleDefault),
            "tls" => {
                let files = config(&fields)?.map(|config| TlsFiles::read(&config)).transpose()?;
                return Ok(ChannelCreds::Tls(files.unwrap_or_default()));
            }
            _ => others.push(kind),
        }
    }
    if others.is_empty() {
        return Err(json.wrong("it names none"));
    }
    Err(json.wrong(format_args!("none of {} is supported: insecure, tls and google_default are", others.join(", "))))
}

/// gRFC A97: all that are supported.
pub(super) fn calls(json: &Json<'_>) -> Result<Vec<CallCreds>, Wrong> {
    let mut all = Vec::new();
    for entry in json.array()? {
        let fields = entry.object()?;
        if fields.required("type")?.text()? == "jwt_token_file" {
            let config = config(&fields)?.ok_or_else(|| fields.wrong("config is missing"))?;
            all.push(CallCreds::JwtTokenFile(config.required("jwt_token_file")?.text()?.into()));
        }
    }
    Ok(all)
}

fn config<'a>(fields: &Object<'a>) -> Result<Option<Object<'a>>, Wrong> {
    fields.member("config").map(Json::object).transpose()
}
