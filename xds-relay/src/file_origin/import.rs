//! Resources out of Envoy's own file: what is static there, as files of this origin.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::descriptors::Descriptors;
use super::document;
use super::error::FileError;
use super::problems::Problems;
use super::resource::FileResource;
use super::secrets::{hide_in, hide_in_syntax};
use crate::text_file::{self, Unread};
use crate::yaml::{self, Content, Error, Key, Node, Position};

mod relations;

/// The static resources of an Envoy, one in a file, and what is to be known of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Import {
    /// In the order of the file.
    pub files: Vec<ImportedFile>,
    /// What was not taken, and what is not as it was: `FILE:LINE:COLUMN: FIELD: what`.
    pub notes: Vec<String>,
}

/// A file with one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportedFile {
    /// Its name, without a directory: of letters, digits, `.`, `_` and `-`, and another one for each.
    pub name: String,
    /// YAML.
    pub text: String,
    /// Whether nobody but its owner is to read it.
    pub is_secret: bool,
}

/// A list of `static_resources`.
struct List {
    name: &'static str,
    one: &'static str,
    type_name: &'static str,
}

const LISTS: [List; 3] = [
    List { name: "listeners", one: "listener", type_name: "envoy.config.listener.v3.Listener" },
    List { name: "clusters", one: "cluster", type_name: "envoy.config.cluster.v3.Cluster" },
    List { name: "secrets", one: "secret", type_name: SECRET },
];
const SECRET: &str = "envoy.extensions.transport_sockets.tls.v3.Secret";
const BOOTSTRAP: &str = "envoy.config.bootstrap.v3.Bootstrap";
const STATIC: [&str; 2] = ["static_resources", "staticResources"];

/// Reads an Envoy's own file, YAML or JSON, and makes a file of each of its static listeners, clusters and secrets. A listener
/// keeps its routes, and a cluster its endpoints.
///
/// ```
/// use xds_relay::file_origin::{Descriptors, import};
///
/// let descriptors = Descriptors::built_in()?;
/// let text = "static_resources: { clusters: [{ name: web, connect_timeout: 1s }] }";
/// let imported = import("envoy.yaml", text, &descriptors)?;
/// assert_eq!(imported.files[0].name, "cluster-web.yaml");
///
/// let error = import("envoy.yaml", "static_resources: { clusters: [{ name: a, tls: 1 }] }", &descriptors).unwrap_err();
/// assert!(error.to_string().starts_with("envoy.yaml:1:43: static_resources.clusters[0]"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What is wrong first, and where: it is no bootstrap of Envoy (v3), two resources have one name, or there is none.
pub fn import(file: impl AsRef<Path>, text: &str, descriptors: &Descriptors) -> Result<Import, FileError> {
    let file = file.as_ref();
    read(text, descriptors, file).map_err(|problems| FileError::of_document(file, problems))
}

/// The same of a file.
///
/// # Errors
/// It cannot be read, or [`import`] refuses it.
pub fn import_file(file: impl AsRef<Path>, descriptors: &Descriptors) -> Result<Import, FileError> {
    let file = file.as_ref();
    let text = text_file::read(file).map_err(|error| match error {
        Unread::File(error) => FileError::of_file(file, error.to_string()),
        Unread::Text(error) => FileError::in_document(file, error),
    })?;
    import(file, &text, descriptors)
}

fn read(text: &str, descriptors: &Descriptors, file: &Path) -> Result<Import, Problems> {
    let root = yaml::parse(text)
        .map_err(hide_in_syntax)?
        .ok_or_else(|| Error::new(Position::default(), "the file is empty"))?;
    // All of it, so that a slip is not passed over with what is not taken.
    document::check(&typed(&root, BOOTSTRAP), descriptors)
        .map_err(|problems| problems.map(|error| hide_in(error, &root)))?;
    let Some((key, resources)) = STATIC.iter().find_map(|key| Some((*key, root.entry(key)?))) else {
        return Ok(root.refuse("there are no static_resources: nothing to import")?);
    };
    let stay = relations::clusters_that_stay(&root);
    let mut found = Found {
        file,
        descriptors,
        notes: Vec::new(),
        files: Vec::new(),
        taken: BTreeSet::new(),
        seen: BTreeSet::new(),
    };
    for list in &LISTS {
        let each = |node: &Node| node.items(|item| Ok(item.clone()));
        for (index, node) in resources.field(list.name, each)?.unwrap_or_default().iter().enumerate() {
            let path = format!("{key}.{}[{index}]", list.name);
            let placed = |problems: Problems| problems.under_index(index).under_key(list.name).under_key(key);
            found.resource(list, node, (&path, index), &stay).map_err(placed)?;
        }
    }
    if found.files.is_empty() {
        let nothing = resources.refuse("there is no listener, cluster or secret to import");
        return Ok(nothing.map_err(|error: Error| error.under_key(key))?);
    }
    relations::of_secrets(&root, &mut |position, path, reason| found.note(position, path, reason));
    let left: Vec<&str> = root.entries().iter().map(|(key, _)| key.text.as_str()).filter(|name| *name != key).collect();
    if !left.is_empty() {
        found.note(root.position, "", &format!("not taken, as it is no resource: {}", left.join(", ")));
    }
    Ok(Import { files: found.files, notes: found.notes })
}

/// What was found so far.
struct Found<'a> {
    file: &'a Path,
    descriptors: &'a Descriptors,
    notes: Vec<String>,
    files: Vec<ImportedFile>,
    /// Names of files, in small letters.
    taken: BTreeSet<String>,
    /// Types and names of resources.
    seen: BTreeSet<(String, String)>,
}

impl Found<'_> {
    fn note(&mut self, position: Position, path: &str, reason: &str) {
        let Position { line, column } = position;
        self.notes.push(format!("{}:{line}:{column}: {}{reason}", self.file.display(), yaml::Prefix(path)));
    }

    fn resource(
        &mut self,
        list: &List,
        node: &Node,
        (path, index): (&str, usize),
        stay: &relations::Stay,
    ) -> Result<(), Problems> {
        let mut entry = typed(node, list.type_name);
        let is_unnamed = node.entry("name").is_none_or(|name| name.is_null() || name.text().is_ok_and(str::is_empty));
        if list.one == "listener" && is_unnamed {
            let name = format!("listener-{index}");
            self.note(
                node.position,
                path,
                &format!("it has no name, and is called `{name}`: who asks for it asks by name"),
            );
            set(&mut entry, "name", &name);
        }
        let resource = document::read_entry(&entry, self.descriptors)?;
        if list.one == "cluster"
            && let Some(reason) = stay.reason(&resource.name)
        {
            self.note(node.position, path, &format!("`{}` is not taken: {reason}", resource.name));
            return Ok(());
        }
        if !self.seen.insert((resource.type_url.clone(), resource.name.clone())) {
            return Ok(node.refuse(format!("there is a {} `{}` already", list.one, resource.name))?);
        }
        let text = self.written(&entry, &resource)?;
        let name = self.file_name(list.one, &resource.name);
        self.files.push(ImportedFile { name, text, is_secret: list.type_name == SECRET });
        Ok(())
    }

    /// The text of a file that is read as this resource, and nothing else.
    fn written(&self, entry: &Node, resource: &FileResource) -> Result<String, Error> {
        let json = Value::deserialize(entry)?;
        let (text, _) = yaml::write(&json!({ "resources": [json] }), usize::MAX);
        let again = document::read(&text, self.descriptors, None);
        let same = again.is_ok_and(|read| match read.as_slice() {
            [Ok(placed)] => placed.resource == *resource,
            _ => false,
        });
        if same { Ok(text) } else { entry.refuse("it cannot be written as a file: a value in it has no equal in JSON") }
    }

    fn file_name(&mut self, kind: &str, name: &str) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let plain: String = name.chars().map(letter).take(100).collect();
        let names = (1_usize..).map(|number| match number {
            1 => format!("{kind}-{plain}.yaml"),
            _ => format!("{kind}-{plain}-{number}.yaml"),
        });
        let mut free = names.filter(|name| !self.taken.contains(&name.to_ascii_lowercase()));
        let name = free.next().unwrap_or_default();
        self.taken.insert(name.to_ascii_lowercase());
        name
    }
}

/// A message as a file of resources has it.
fn typed(node: &Node, type_name: &str) -> Node {
    let mut node = node.clone();
    set(&mut node, "@type", &format!("type.googleapis.com/{type_name}"));
    node
}

fn set(node: &mut Node, key: &str, value: &str) {
    let position = node.position;
    if let Content::Mapping(entries) = &mut node.content {
        entries.retain(|(other, _)| other.text != key);
        let value = Node { position, content: Content::Text(value.to_owned()) };
        entries.insert(0, (Key { position, text: key.to_owned() }, value));
    }
}
