//! What is known of a value that is not kept, for it has a secret: which other resources are in it.

use xds_transport::is_secret;
use xdstp_cache::TypeUrl;
use xdstp_client::federation::Held;
use xdstp_uri::ResourceName;

/// Whether any of these is for nobody to read.
pub(super) fn has_secret(held: &[Held]) -> bool {
    held.iter().any(|(type_url, ..)| is_secret(type_url.as_str()))
}

/// What is beside secrets, each once. Where another value has it, too, it is to be known after a restart whose it was.
pub(super) fn outline(held: &[Held]) -> Vec<String> {
    let mut all: Vec<_> = match has_secret(held) {
        true => held.iter().filter(|(type_url, ..)| !is_secret(type_url.as_str())).map(written).collect(),
        false => Vec::new(),
    };
    all.dedup();
    all
}

fn written((type_url, name, _): &Held) -> String {
    format!("{} {}", type_url.as_str(), name.as_str())
}

/// The resources of an [`outline`].
pub(super) fn named(outline: &[String]) -> Vec<(TypeUrl, ResourceName)> {
    let name = |line: &String| {
        let (type_url, name) = line.split_once(' ')?;
        Some((TypeUrl::from(type_url), ResourceName::parse(name).ok()?))
    };
    outline.iter().filter_map(name).collect()
}
