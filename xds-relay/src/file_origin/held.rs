//! The resources of files, as scopes have them; and whole files, for who looks for one at its locator.

use std::path::Path;

use prost::Message as _;
use xds_transport::{Frame, wire};
use xdstp_cache::TypeUrl;
use xdstp_client::federation::Held;
use xdstp_client::{Decode, DiscoveryResponse};
use xdstp_uri::ResourceName;

use super::descriptors::Descriptors;
use super::load::load_embedded;
use super::resource::FileResource;

/// Resources, ready to be served.
pub(crate) fn held(resources: &[FileResource]) -> Vec<Held> {
    let named = resources.iter().filter_map(|resource| {
        let type_url = TypeUrl::from(resource.type_url.as_str());
        let name = ResourceName::parse(&resource.name).ok()?;
        let aliases = wire::Resource { aliases: resource.aliases.clone(), ..wire::Resource::default() }.encode_to_vec();
        let frame = Frame::of_message(&type_url, &resource.value);
        let frame = frame.with_wrapper(aliases.into(), resource.ttl, false).of_variant(resource.variant.clone());
        Some((type_url, name, frame.into_resource(resource.version.as_deref().map(Into::into))))
    });
    named.collect()
}

/// Files that end in `.pb` are encoded, all others are YAML, or the JSON that is YAML: as Envoy has it.
impl Decode for Descriptors {
    fn decode(&self, file: &Path, content: &[u8]) -> Result<Vec<Held>, String> {
        if file.extension().is_some_and(|extension| extension == "pb") {
            return DiscoveryResponse::default().decode(file, content);
        }
        let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        // What is wrong names the file: which directory it is in, is known to who asked for it.
        load_embedded(&[(&name, text)], self).map(|resources| held(&resources)).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use xds_transport::wire::collection::{CollectionEntry, entries, redirect};

    use super::*;

    const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

    fn decode(file: &str, content: &str) -> Result<Vec<Held>, String> {
        Descriptors::built_in().unwrap().decode(Path::new(file), content.as_bytes())
    }

    #[test]
    fn a_file_is_read_as_its_name_says() {
        let yaml = format!("resources:\n- {{\"@type\": {CLUSTER}, name: web}}\n");
        let held = decode("/etc/x.yaml", &yaml).unwrap();
        assert_eq!(held.iter().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>(), ["web"]);
        assert_eq!(decode("/etc/x.yaml", "resources:\n- 5\n").unwrap_err().split(' ').next(), Some("x.yaml:2:3:"));
        assert!(decode("/etc/x.pb", &yaml).is_err());
        // Field 4, the type of them all.
        let encoded = format!("\"{}{CLUSTER}", char::from(u8::try_from(CLUSTER.len()).unwrap()));
        assert!(decode("/etc/x.pb", &encoded).unwrap().is_empty(), "of a type, and without any");
    }

    #[test]
    fn lists_and_redirects_of_tp1_are_read() {
        let list = "resources:
- name: list
  resource:
    \"@type\": type.googleapis.com/envoy.config.listener.v3.ListenerCollection
    entries:
    - inline_entry: {name: web, version: '1', resource: {\"@type\": type.googleapis.com/envoy.config.listener.v3.Listener, name: web}}
    - locator: {scheme: FILE, id: etc/other.yaml}
";
        let held = decode("list.yaml", list).unwrap();
        let listed = entries(held[0].2.value.any()).unwrap().unwrap();
        let [CollectionEntry::Inline { name, .. }, CollectionEntry::Locator(to)] = listed.as_slice() else { panic!() };
        assert_eq!((name.as_str(), to.to_string().as_str()), ("web", "file:///etc/other.yaml"));

        let locator = "resources:
- name: moved
  resource: {\"@type\": type.googleapis.com/xds.core.v3.ResourceLocator, scheme: FILE, id: etc/new.yaml}
";
        let held = decode("moved.yaml", locator).unwrap();
        assert_eq!(redirect(held[0].2.value.any()).unwrap().unwrap().to_string(), "file:///etc/new.yaml");
    }
}
