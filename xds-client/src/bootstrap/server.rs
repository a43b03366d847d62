//! One server, and what it is known to do.

use super::creds::{self, CallCreds, ChannelCreds};
use super::error::Wrong;
use super::json::{Json, Object};

/// A server: two that are equal are one, with one stream for all who need it (gRFC A47).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    uri: String,
    channel_creds: ChannelCreds,
    call_creds: Vec<CallCreds>,
    features: Features,
}

/// What a server is known to do, or clients are to do with it. What is not known here is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Features {
    /// `ignore_resource_deletion` (gRFC A53): it is read, and nothing goes by it. What a server says is gone clients keep anyway, but
    /// for `fail_on_data_errors` (gRFC A88).
    pub ignore_resource_deletion: bool,
    /// `trusted_xds_server` (gRFC A81): it may set what concerns security.
    pub trusted_xds_server: bool,
    /// `fail_on_data_errors` (gRFC A88): a resource that is refused or gone is dropped, not kept.
    pub fail_on_data_errors: bool,
    /// `resource_timer_is_transient_error` (gRFC A88): a name that is not answered in time is no absence.
    pub resource_timer_is_transient_error: bool,
    /// `draft_dynamic_parameters` (of this client alone): of TP2 it speaks the draft of 2021, where clients send constraints.
    pub draft_dynamic_parameters: bool,
}

impl Server {
    /// A server by its address, a gRPC target: `host:port`, `dns:///host:port`, `unix:/path`.
    #[must_use]
    pub fn new(uri: impl Into<String>, channel_creds: ChannelCreds) -> Self {
        Self { uri: uri.into(), channel_creds, call_creds: Vec::new(), features: Features::default() }
    }

    /// Calls carry these, too.
    #[must_use]
    pub fn with_call_creds(mut self, creds: CallCreds) -> Self {
        self.call_creds.push(creds);
        self
    }

    /// It is known to do this.
    #[must_use]
    pub fn with_features(self, features: Features) -> Self {
        Self { features, ..self }
    }

    pub(super) fn speaking_draft(mut self) -> Self {
        self.features.draft_dynamic_parameters = true;
        self
    }

    /// Its address, as it is configured.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// How connections to it are secured: of those configured, the first that is supported.
    pub fn channel_creds(&self) -> &ChannelCreds {
        &self.channel_creds
    }

    /// What calls carry (gRFC A97): all that are supported.
    pub fn call_creds(&self) -> &[CallCreds] {
        &self.call_creds
    }

    /// What it is known to do.
    pub fn features(&self) -> Features {
        self.features
    }
}

pub(super) fn list(json: &Json<'_>) -> Result<Vec<Server>, Wrong> {
    json.array()?.map(|json| read(&json.object()?)).collect()
}

fn read(fields: &Object<'_>) -> Result<Server, Wrong> {
    let uri = fields.required("server_uri")?.text()?;
    let channel_creds = creds::channel(&fields.required("channel_creds")?)?;
    let call_creds = fields.member("call_creds").map(|json| creds::calls(&json)).transpose()?.unwrap_or_default();
    let features = fields.member("server_features").map(|json| features(&json)).transpose()?.unwrap_or_default();
    Ok(Server { uri, channel_creds, call_creds, features })
}

/// gRFC A30: what is not understood is ignored, of whatever JSON type it is.
fn features(json: &Json<'_>) -> Result<Features, Wrong> {
    let mut features = Features::default();
    for name in json.array()?.filter_map(|json| json.string().ok()) {
        match name.as_str() {
            "ignore_resource_deletion" => features.ignore_resource_deletion = true,
            "trusted_xds_server" => features.trusted_xds_server = true,
            "fail_on_data_errors" => features.fail_on_data_errors = true,
            "draft_dynamic_parameters" => features.draft_dynamic_parameters = true,
            // gRFC A88 has both spellings.
            "resource_timer_is_transient_error" | "resource_timer_is_transient_failure" => {
                features.resource_timer_is_transient_error = true;
            }
            _ => {}
        }
    }
    Ok(features)
}
