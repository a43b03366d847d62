//! The members of a list collection (TP1), as they stand in it.

use std::collections::HashSet;

use bytes::Bytes;
use xds_transport::Frame;
use xds_transport::wire::collection::{CollectionEntry, entries};
use xdstp_cache::{Resource, TypeUrl, Version};
use xdstp_uri::{Locator, ResourceName};

use crate::federation::validated::{Reason, Validated};

/// A list collection that was read.
#[derive(Debug)]
pub(crate) struct Listed(Vec<(ResourceName, Entry)>);

/// A member.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Inline(Resource<Frame>),
    Elsewhere(Locator<'static>),
}

impl Listed {
    /// Reads an encoded `Any` that is a list of members of a type, of each of which something may be made.
    ///
    /// # Errors
    /// It is no list, or one of its entries is of no use: then so is the list, which is one resource.
    pub(crate) fn read(
        any: &Bytes,
        members: &TypeUrl,
        make: impl Fn(&Bytes) -> Result<Option<Validated>, Reason>,
    ) -> Result<Self, Reason> {
        let entries = entries(any)?.ok_or_else(|| Reason::new("it is no list collection"))?;
        let (mut listed, mut names) = (Vec::with_capacity(entries.len()), HashSet::with_capacity(entries.len()));
        for (index, entry) in entries.into_iter().enumerate() {
            let bad = |reason: &dyn std::fmt::Display| Reason::new(format!("entry {index}: {reason}"));
            let (name, entry) = match entry {
                CollectionEntry::Locator(locator) => (name_of(&locator)?, Entry::Elsewhere(locator)),
                CollectionEntry::Inline { name, version, resource } => {
                    let inline = inline(members, version, resource, &make).map_err(|reason| bad(&reason))?;
                    let name = match name.as_str() {
                        "" => anonymous(&inline, &names),
                        named if named.chars().all(may_be_in_name) => name,
                        _ => {
                            return Err(bad(&format_args!(
                                "its name, {name:?}, has more than letters, digits and {MARKS}"
                            )));
                        }
                    };
                    (ResourceName::parse(&name).map_err(|error| bad(&error))?, Entry::Inline(inline))
                }
                _ => return Err(bad(&"neither a locator nor a resource")),
            };
            if name.is_glob() {
                return Err(bad(&"a collection, where a resource is expected"));
            }
            if !names.insert(name.clone()) {
                return Err(bad(&format_args!("{name} stands in the list twice")));
            }
            listed.push((name, entry));
        }
        Ok(Self(listed))
    }

    pub(crate) fn entries(&self) -> &[(ResourceName, Entry)] {
        &self.0
    }

    /// The inline entry of a name; those that have none cannot be found.
    pub(crate) fn inline(&self, name: &str) -> Option<(&ResourceName, &Resource<Frame>)> {
        let name = ResourceName::parse(name).ok().filter(|name| !name.as_str().starts_with(ANONYMOUS))?;
        self.0.iter().find_map(|(known, entry)| match entry {
            Entry::Inline(resource) if *known == name => Some((known, resource)),
            _ => None,
        })
    }
}

/// What may stand in the name of an entry beside letters and digits: by the message's rule or by TP1's words.
const MARKS: &str = "_-.~:/";

fn may_be_in_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || MARKS.contains(character)
}

/// No entry may be called something that begins like this.
const ANONYMOUS: char = '#';

/// What has no name is its content, and no other: a list that is sent anew has it again, wherever it stands.
fn anonymous(inline: &Resource<Frame>, names: &HashSet<ResourceName>) -> String {
    let digest = inline.digest();
    let mut name = format!("{ANONYMOUS}{digest:032x}");
    let mut count = 1;
    while ResourceName::parse(&name).is_ok_and(|name| names.contains(&name)) {
        count += 1;
        name = format!("{ANONYMOUS}{digest:032x}.{count}");
    }
    name
}

fn inline(
    members: &TypeUrl,
    version: Version,
    resource: Bytes,
    make: impl Fn(&Bytes) -> Result<Option<Validated>, Reason>,
) -> Result<Resource<Frame>, Reason> {
    let frame = Frame::of_any(members, resource)?;
    let frame = match make(frame.any())? {
        Some(made) => frame.with_decoded(made),
        None => frame,
    };
    Ok(frame.into_resource(Some(version).filter(|version| !version.as_str().is_empty())))
}

/// What a member that is elsewhere is called: as it is there. An entry of another list is a reference without its scheme,
/// which no other name is like.
fn name_of(locator: &Locator<'_>) -> Result<ResourceName, Reason> {
    match (locator.to_name(), locator.entry()) {
        (Some(name), None) => Ok(name),
        (Some(list), Some(entry)) => {
            let list = list.as_str().strip_prefix("xdstp:").unwrap_or(list.as_str());
            Ok(ResourceName::parse(&format!("{list}#entry={entry}"))?)
        }
        (None, entry) => {
            let at = locator.without_directives();
            let entry = entry.map(|entry| format!("#entry={entry}")).unwrap_or_default();
            Ok(ResourceName::parse(&format!("{at}{entry}"))?)
        }
    }
}
