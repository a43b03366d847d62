//! Which names an origin of files serves.

use std::collections::BTreeMap;

use xdstp_uri::ResourceName;

use crate::config::{Config, canonical_authority};

/// The names of one origin: who else's they are is an error in a file, because they would be served to nobody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Served {
    /// Authority, as a parsed name holds it → the name of its origin, for those of other origins.
    elsewhere: BTreeMap<String, String>,
    /// The default origin, if that is another one.
    default_origin: Option<String>,
    own: Vec<String>,
}

impl Served {
    /// What the configuration says that this origin serves.
    pub(crate) fn by(config: &Config, origin: &str) -> Self {
        let (own, elsewhere): (Vec<_>, Vec<_>) =
            config.authorities().into_iter().partition(|(_, owner)| *owner == origin);
        Self {
            elsewhere: elsewhere
                .into_iter()
                .map(|(name, owner)| (canonical_authority(name), owner.to_owned()))
                .collect(),
            default_origin: Some(config.default_origin.clone()).filter(|default| default != origin),
            own: own.into_iter().map(|(name, _)| canonical_authority(name)).collect(),
        }
    }

    /// Why nobody would be served a resource of this name.
    pub(crate) fn refusal(&self, name: &str) -> Option<String> {
        let parsed = ResourceName::parse(name).ok()?;
        let authority = parsed.authority();
        let owner = match authority {
            Some(authority) if self.own.iter().any(|own| own == authority) => return None,
            Some(authority) => self.elsewhere.get(authority).or(self.default_origin.as_ref())?,
            None => self.default_origin.as_ref()?,
        };
        Some(match authority {
            Some(authority) => format!("`{name}` is served to nobody: `{authority}` comes from origin `{owner}`"),
            None => format!("`{name}` is served to nobody: names without an authority come from origin `{owner}`"),
        })
    }
}
