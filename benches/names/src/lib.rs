//! The names that are measured, and what a name takes with each peer.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Nothing to decode, nothing to sort.
pub const SHORT: &str = "xdstp://xds.example.com/envoy.config.listener.v3.Listener/web";
/// Four unsorted parameters, four components with escapes.
pub const LONG4: &str = "xdstp://control-plane.xds.example.com/envoy.config.endpoint.v3.ClusterLoadAssignment/region/eu%20west/cluster%2Dpayments/backend?zone=eu%2Dwest%2D1b&direction=outbound&shard_id=1234567890&env=prod%20canary%26stable";
/// A fallback and an entry; nothing to decode.
pub const ALT: &str = "xdstp://xds.example.com/envoy.config.route.v3.RouteConfigurationCollection/foo?env=prod#alt=xdstp://fallback.example.com/envoy.config.route.v3.RouteConfigurationCollection/foo,entry=vhost_1";

/// The names with what they are called in reports.
pub const NAMES: [(&str, &str); 3] = [("short", SHORT), ("long4", LONG4), ("alt", ALT)];

/// One thing to do with a name; the result keeps the work from being optimised away.
pub type Case = fn(&str) -> usize;

/// Everything that is measured.
pub const CASES: [(&str, Case); 12] = [
    ("bound: copy", |text| std::hint::black_box(String::from(text)).len()),
    ("syntax: fluent-uri", |text| fluent_uri::Uri::parse(text).unwrap().path().as_str().len()),
    ("syntax: http", |text| text.parse::<http::Uri>().unwrap().path().len()),
    ("syntax: url", |text| url::Url::parse(text).unwrap().path().len()),
    ("syntax: iri-string", |text| iri_string::types::UriStr::new(text).unwrap().path_str().len()),
    ("full: fluent-uri and semantics", |text| semantics(text).id.len()),
    ("full: xdstp-uri", |text| usize::from(xdstp_uri::Locator::parse(text).unwrap().is_canonical())),
    ("full: xdstp-uri, every component read", read),
    ("full: xdstp-uri, an owned name", |text| {
        let text = text.split_once('#').map_or(text, |(name, _)| name);
        xdstp_uri::ResourceName::parse(text).unwrap().as_str().len()
    }),
    ("canonical: fluent-uri and semantics", |text| semantics(text).canonical().len()),
    ("canonical: xdstp-uri, a string", |text| {
        xdstp_uri::Locator::parse(text).unwrap().to_canonical().into_owned().len()
    }),
    ("canonical: xdstp-uri, is it?", |text| {
        let text = text.split_once('#').map_or(text, |(name, _)| name);
        usize::from(xdstp_uri::Urn::parse(text).unwrap().is_canonical())
    }),
];

fn read(text: &str) -> usize {
    let locator = xdstp_uri::Locator::parse(text).unwrap();
    read_locator(&locator)
}

fn read_locator(locator: &xdstp_uri::Locator<'_>) -> usize {
    let components = locator.authority().len() + locator.resource_type().len() + locator.id().len();
    let params: usize = locator.context_params().iter().map(|(key, value)| key.len() + value.len()).sum();
    let directives: usize = locator
        .directives()
        .map(|directive| match directive.alt() {
            Some(alt) => read_locator(&alt),
            None => directive.entry().map_or(0, |entry| entry.len()),
        })
        .sum();
    components + params + directives
}

/// What a user of a URI crate writes on top of it.
struct Semantics<'a> {
    authority: Cow<'a, str>,
    resource_type: Cow<'a, str>,
    id: Cow<'a, str>,
    params: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    alt: Option<String>,
    entry: Option<Cow<'a, str>>,
}

fn semantics(text: &str) -> Semantics<'_> {
    let uri = fluent_uri::Uri::parse(text).unwrap();
    let decode = |text| percent_decode_str(text).decode_utf8().unwrap();
    let path = uri.path().as_str().strip_prefix('/').unwrap();
    let (resource_type, id) = path.split_once('/').unwrap_or((path, ""));
    let mut params: Vec<_> = uri
        .query()
        .into_iter()
        .flat_map(|query| query.as_str().split('&'))
        .filter(|piece| !piece.is_empty())
        .map(|piece| piece.split_once('=').unwrap_or((piece, "")))
        .map(|(key, value)| (decode(key), decode(value)))
        .collect();
    params.sort_by(|a, b| a.0.cmp(&b.0));
    let (mut alt, mut entry) = (None, None);
    for piece in uri.fragment().into_iter().flat_map(|fragment| fragment.as_str().split(',')) {
        if let Some(value) = piece.strip_prefix("alt=") {
            alt = Some(semantics(&decode(value)).canonical());
        } else {
            entry = Some(decode(piece.strip_prefix("entry=").unwrap()));
        }
    }
    Semantics {
        authority: decode(uri.authority().unwrap().as_str()),
        resource_type: decode(resource_type),
        id: decode(id),
        params,
        alt,
        entry,
    }
}

impl Semantics<'_> {
    fn canonical(&self) -> String {
        use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
        const PATH: &AsciiSet = &NON_ALPHANUMERIC
            .remove(b'-')
            .remove(b'.')
            .remove(b'_')
            .remove(b'~')
            .remove(b'/')
            .remove(b':')
            .remove(b'@');
        let mut out = format!(
            "xdstp://{}/{}/{}",
            utf8_percent_encode(&self.authority, PATH),
            self.resource_type,
            utf8_percent_encode(&self.id, PATH)
        );
        for (index, (key, value)) in self.params.iter().enumerate() {
            out.push(if index == 0 { '?' } else { '&' });
            out.extend(utf8_percent_encode(key, PATH));
            out.push('=');
            out.extend(utf8_percent_encode(value, PATH));
        }
        if let Some(alt) = &self.alt {
            out.push_str("#alt=");
            out.extend(utf8_percent_encode(alt, PATH));
        }
        if let Some(entry) = &self.entry {
            out.push_str(",entry=");
            out.extend(utf8_percent_encode(entry, PATH));
        }
        out
    }
}
