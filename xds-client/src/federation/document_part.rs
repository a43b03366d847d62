//! What of a document is for whom: all of a type for who watches the document, the only one for who was led to it.

use prost::Message;
use xds_transport::Frame;
use xds_transport::wire::Any;
use xds_transport::wire::collection::redirect;
use xdstp_cache::{Resource, TypeUrl};
use xdstp_uri::member_type;

use crate::federation::origin::Held;

/// The resource that a document has for who looks for a type in it, if it has any. Of the type of a list that is what has all
/// of its members that are in the document, unless the list stands there itself.
///
/// # Errors
/// There are several, and nothing says which.
pub(crate) fn part_for(type_url: &TypeUrl, held: &[Held]) -> Result<Option<Resource<Frame>>, String> {
    let mut of_type = held.iter().filter(|(of, ..)| of == type_url);
    match (of_type.next(), of_type.count(), held) {
        (Some((.., one)), 0, _) => return Ok(Some(one.clone())),
        (Some(_), others, _) => {
            let message = message_of(type_url);
            return Err(format!("there are {} of {message}: `#entry=` would say which", others + 1));
        }
        // It leads on.
        (None, _, [(.., only)]) if matches!(redirect(only.value.any()), Ok(Some(_))) => return Ok(Some(only.clone())),
        _ => {}
    }
    let Some(member) = member_type(message_of(type_url)) else { return Ok(None) };
    let members: Vec<_> = held.iter().filter(|(of, ..)| message_of(of) == member).collect();
    // A document of other things is none of the list.
    Ok((held.is_empty() || !members.is_empty()).then(|| list_of(type_url, &members)))
}

fn message_of(type_url: &TypeUrl) -> &str {
    type_url.as_str().rsplit('/').next().unwrap_or_default()
}

/// A list collection as TP1 has it, whose entries stand in it.
#[derive(Message)]
struct Collection {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<CollectionEntry>,
}

#[derive(Message)]
struct CollectionEntry {
    #[prost(message, optional, tag = "2")]
    inline_entry: Option<InlineEntry>,
}

#[derive(Message)]
struct InlineEntry {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
    #[prost(message, optional, tag = "3")]
    resource: Option<Any>,
}

fn list_of(type_url: &TypeUrl, members: &[&Held]) -> Resource<Frame> {
    let entry = |(_, name, resource): &&Held| {
        let (name, version) = (name.to_string(), resource.version.to_string());
        let resource = Any::decode(resource.value.any().clone()).ok();
        CollectionEntry { inline_entry: Some(InlineEntry { name, version, resource }) }
    };
    let list = Collection { entries: members.iter().map(entry).collect() };
    Frame::of_message(type_url, &list.encode_to_vec()).into_resource(None)
}
