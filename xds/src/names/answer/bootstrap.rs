//! Questions that depend on a gRPC bootstrap.

use serde_json::{Map, Value, json};
use xdstp_uri::ResourceName;
use xdstp_uri::a47::{self, AuthorityEntry, Bootstrap, DataPlaneAuthority, Servers, Target};

use super::{Refusal, field, fields, texts};

pub(super) fn look_up(input: &Value) -> Result<Value, Refusal> {
    let known = texts(input.get("bootstrap_authorities"))?;
    let authorities: Map<_, _> = known.into_iter().map(|name| (name.into(), json!({}))).collect();
    let name = ResourceName::parse(field(input, "name")?)?;
    let lookup = a47::look_up_authority(&Json(&json!({ "authorities": authorities })), &name)?;
    Ok(json!({"authority_lookup": lookup.authority}))
}

pub(super) fn client_listener(input: &Value) -> Result<Value, Refusal> {
    let target = Target::parse(field(input, "target")?)?;
    let bootstrap = Json(input.get("bootstrap").unwrap_or(&Value::Null));
    let mut found = listener(&bootstrap, &a47::client_listener_name(&bootstrap, &target)?);
    let authority = target.data_plane_authority(DataPlaneAuthority::WholePath);
    found.insert("data_plane_authority".into(), authority.into());
    Ok(found.into())
}

pub(super) fn server_listener(input: &Value) -> Result<Value, Refusal> {
    let (template, address) = (input.get("template"), field(input, "address")?);
    let mut bootstrap = fields([("server_listener_resource_name_template", json!(template))]);
    let name = a47::server_listener_name(&Json(&bootstrap.clone().into()), address)?;
    // The question has the authority of the template in mind, with no servers of its own.
    if let Some(locator) = ResourceName::parse(&name).ok().as_ref().and_then(ResourceName::locator) {
        bootstrap.insert("authorities".into(), fields([(&*locator.authority(), json!({}))]).into());
    }
    Ok(listener(&Json(&bootstrap.into()), &name).into())
}

fn listener(bootstrap: &Json<'_>, listener: &str) -> Map<String, Value> {
    let style = if listener.starts_with("xdstp:") { "xdstp" } else { "old" };
    let mut found = fields([("listener_name", listener.into()), ("style", style.into())]);
    let Ok(name) = ResourceName::parse(listener) else { return found };
    found.insert("canonical".into(), name.as_str().into());
    if let Ok(lookup) = a47::look_up_authority(bootstrap, &name) {
        let own = lookup.authority.as_ref().and_then(|authority| bootstrap.servers(authority));
        let servers = match (lookup.servers, own) {
            (Servers::Authority, Some(own)) => own.clone(),
            _ => "top_level".into(),
        };
        found.insert("servers".into(), servers);
        found.insert("authority_lookup".into(), lookup.authority.into());
    }
    found
}

/// A bootstrap as it was given. What has another type than it should is not there.
struct Json<'a>(&'a Value);

impl<'a> Json<'a> {
    fn text(&self, field: &str) -> Option<&'a str> {
        self.0.get(field)?.as_str()
    }

    fn entry(&self, authority: &str) -> Option<Self> {
        self.0.get("authorities")?.get(authority).map(Self)
    }

    fn servers(&self, authority: &str) -> Option<&'a Value> {
        self.entry(authority)?.0.get("xds_servers")
    }
}

impl Bootstrap for Json<'_> {
    fn client_default_listener_resource_name_template(&self) -> Option<&str> {
        self.text("client_default_listener_resource_name_template")
    }

    fn server_listener_resource_name_template(&self) -> Option<&str> {
        self.text("server_listener_resource_name_template")
    }

    fn authority(&self, name: &str) -> Option<AuthorityEntry<'_>> {
        let servers = self.servers(name).and_then(Value::as_array);
        self.entry(name).map(|entry| {
            let template = entry.text("client_listener_resource_name_template");
            AuthorityEntry::new(template, servers.is_some_and(|servers| !servers.is_empty()))
        })
    }
}
