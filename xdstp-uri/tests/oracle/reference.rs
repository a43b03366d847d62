//! A second reading of the grammar, by tables: slow, decoding everything, and with nothing in common with the crate.

use std::collections::BTreeMap;

use xdstp_uri::{MAX_ALT_DEPTH, MAX_LEN};

/// A component, the bytes that end it, and which component each of them begins.
const TABLE: &[(Part, &[(u8, Part)])] = &[
    (Part::Authority, &[(b'/', Part::Type), (b'?', Part::Nothing), (b'#', Part::Nothing)]),
    (Part::Type, &[(b'/', Part::Id), (b'?', Part::Params), (b'#', Part::Fragment)]),
    (Part::Id, &[(b'?', Part::Params), (b'#', Part::Fragment)]),
    (Part::Path, &[(b'#', Part::Fragment)]),
    (Part::Params, &[(b'#', Part::Fragment)]),
    (Part::Fragment, &[]),
];

/// What each component shows as it is, beside letters and digits (RFC 3986; a separator inside the component is not).
const PLAIN: &[(Part, &str)] = &[
    (Part::Authority, "-._~!$&'()*+,;=:[]@"),
    (Part::Type, "-._"),
    (Part::Id, "-._~!$&'()*+,;=:@/"),
    (Part::Path, "-._~!$&'()*+,;=:@/"),
    (Part::Params, "-._~!$'()*+,;:@/?"),
    (Part::Fragment, "-._~!$&'()*+;=:@/?"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Authority,
    Type,
    Id,
    /// Of a file: all that follows the third slash.
    Path,
    Params,
    Fragment,
    /// No component may begin here.
    Nothing,
}

/// What a locator says, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) scheme: &'static str,
    pub(crate) authority: String,
    pub(crate) resource_type: String,
    pub(crate) id: String,
    pub(crate) params: BTreeMap<String, String>,
    pub(crate) directives: Vec<Directive>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Directive {
    Alt(Box<Read>),
    Entry(String),
}

/// What a text says, if it is an `xdstp:` name: one without directives.
pub(crate) fn read_name(text: &str) -> Option<Read> {
    read(text).filter(|read| read.scheme == "xdstp" && read.directives.is_empty())
}

/// What a text says, if it is a locator.
pub(crate) fn read(text: &str) -> Option<Read> {
    if text.len() > MAX_LEN {
        return None;
    }
    read_nested(text, 0).filter(|read| read.canonical().len() <= MAX_LEN)
}

fn read_nested(text: &str, depth: usize) -> Option<Read> {
    let scheme = ["xdstp", "http", "file"].into_iter().find(|scheme| text.starts_with(&format!("{scheme}:")))?;
    let rest = &text[scheme.len() + 1..];
    let first = match (scheme, rest.starts_with("//")) {
        ("file", true) => Part::Path,
        (_, true) => Part::Authority,
        ("xdstp", false) => Part::Type,
        _ => return None,
    };
    // Up to where the first component begins.
    let rest = match first {
        Part::Path => rest.strip_prefix("///")?,
        Part::Authority => &rest[2..],
        _ => rest.strip_prefix('/')?,
    };
    let parts = cut(rest, first)?;
    let decoded = |part: Part| parts.get(&part).map_or(Some(String::new()), |raw| decode(raw));
    let resource_type = decoded(Part::Type)?;
    if scheme != "file" && (resource_type.is_empty() || !resource_type.bytes().all(|byte| is_plain(Part::Type, byte))) {
        return None;
    }
    let id = if scheme == "file" { decoded(Part::Path)? } else { decoded(Part::Id)? };
    let mut params = BTreeMap::new();
    for piece in parts.get(&Part::Params).into_iter().flat_map(|raw| raw.split('&')).filter(|piece| !piece.is_empty()) {
        let (key, value) = piece.split_once('=').unwrap_or((piece, ""));
        params.insert(decode(key)?, decode(value)?);
    }
    let directives = parts.get(&Part::Fragment).map_or(Some(Vec::new()), |raw| read_directives(raw, depth))?;
    Some(Read { scheme, authority: decoded(Part::Authority)?, resource_type, id, params, directives })
}

/// Follows the table from component to component.
fn cut(text: &str, first: Part) -> Option<BTreeMap<Part, &str>> {
    let (mut parts, mut part, mut rest) = (BTreeMap::new(), first, text);
    loop {
        let (_, ends) = TABLE.iter().find(|(of, _)| *of == part)?;
        let end = rest.bytes().position(|byte| ends.iter().any(|(end, _)| *end == byte));
        let raw = &rest[..end.unwrap_or(rest.len())];
        if raw.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return None;
        }
        parts.insert(part, raw);
        let Some(end) = end else { return Some(parts).filter(|_| part != Part::Authority) };
        let next = ends.iter().find(|(byte, _)| *byte == rest.as_bytes()[end])?.1;
        (part, rest) = (next, &rest[end + 1..]);
    }
}

fn read_directives(fragment: &str, depth: usize) -> Option<Vec<Directive>> {
    if fragment.contains('#') {
        return None;
    }
    let mut directives = Vec::new();
    for piece in fragment.split(',') {
        directives.push(match piece.split_once('=')? {
            ("alt", url) if depth < MAX_ALT_DEPTH => Directive::Alt(Box::new(read_nested(&decode(url)?, depth + 1)?)),
            ("entry", name) if !name.is_empty() => Directive::Entry(decode(name)?),
            _ => return None,
        });
    }
    let alts = directives.iter().filter(|directive| matches!(directive, Directive::Alt(_))).count();
    (alts < 2 && directives.len() - alts < 2).then_some(directives)
}

fn decode(raw: &str) -> Option<String> {
    let (bytes, mut decoded, mut at) = (raw.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let triplet = raw.get(at + 1..at + 3).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match triplet {
            Some(digits) if bytes[at] == b'%' => {
                decoded.push(u8::from_str_radix(digits, 16).ok()?);
                at += 3;
            }
            _ => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).ok()
}

fn is_plain(part: Part, byte: u8) -> bool {
    let plain = PLAIN.iter().find(|(of, _)| *of == part).map_or("", |(_, plain)| plain);
    byte.is_ascii_alphanumeric() || plain.bytes().any(|other| other == byte)
}

impl Read {
    pub(crate) fn is_glob(&self) -> bool {
        self.id.split('/').next_back() == Some("*")
    }

    /// The glob that this is a member of.
    pub(crate) fn parent(&self) -> Option<Self> {
        if self.id.is_empty() || self.is_glob() {
            return None;
        }
        let mut segments: Vec<&str> = self.id.split('/').collect();
        segments.pop();
        segments.push("*");
        Some(Self { id: segments.join("/"), ..self.clone() }).filter(|parent| parent.canonical().len() <= MAX_LEN)
    }

    /// A resource of this name is one that the other asks for.
    pub(crate) fn answers(&self, other: &Self) -> bool {
        self == other || self.parent().as_ref() == Some(other)
    }

    /// The collection that a node with these parameters asks for: its own go before theirs, directives stay behind.
    pub(crate) fn collection(&self, node: &[(&str, &str)]) -> Option<Self> {
        let mut params: BTreeMap<String, String> =
            node.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        params.extend(self.params.clone());
        let collection = Self { params, directives: Vec::new(), ..self.clone() };
        Some(collection).filter(|read| read.scheme == "xdstp" && read.canonical().len() <= MAX_LEN)
    }

    pub(crate) fn canonical(&self) -> String {
        self.written(&mut |part, byte| !is_plain(part, byte), &self.params.iter().collect::<Vec<_>>())
    }

    /// One of its many spellings: `choose` is asked what to escape of what need not be, and for where to begin with the parameters.
    pub(crate) fn respelled(&self, choose: &mut dyn FnMut() -> usize) -> String {
        let mut params: Vec<_> = self.params.iter().collect();
        if !params.is_empty() {
            let by = choose() % params.len();
            params.rotate_left(by);
        }
        self.written(&mut |part, byte| !is_plain(part, byte) || choose().is_multiple_of(4), &params)
    }

    fn written(&self, escaped: &mut dyn FnMut(Part, u8) -> bool, params: &[(&String, &String)]) -> String {
        let mut encode = |part, text: &str| -> String {
            text.bytes()
                .map(|byte| if escaped(part, byte) { format!("%{byte:02X}") } else { char::from(byte).to_string() })
                .collect()
        };
        let mut text = format!("{}://", self.scheme);
        if self.scheme == "file" {
            text += "/";
            text += &encode(Part::Path, &self.id);
        } else {
            text +=
                &format!("{}/{}", encode(Part::Authority, &self.authority), encode(Part::Type, &self.resource_type));
            if !self.id.is_empty() {
                text += "/";
                text += &encode(Part::Id, &self.id);
            }
        }
        for (i, (key, value)) in params.iter().enumerate() {
            let separator = if i == 0 { '?' } else { '&' };
            text += &format!("{separator}{}={}", encode(Part::Params, key), encode(Part::Params, value));
        }
        for (i, directive) in self.directives.iter().enumerate() {
            text.push(if i == 0 { '#' } else { ',' });
            text += &match directive {
                Directive::Alt(read) => format!("alt={}", encode(Part::Fragment, &read.canonical())),
                Directive::Entry(name) => format!("entry={}", encode(Part::Fragment, name)),
            };
        }
        text
    }
}
