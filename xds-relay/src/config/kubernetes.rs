//! A cluster of Kubernetes, and which objects of it are the relay's.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::fields::KUBERNETES_FIELDS;
use super::tls::{self, File};
use super::{OriginTls, ServerAddress, rules};
use crate::yaml::{Error, Node};

/// Objects of a cluster of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kubernetes {
    /// The API server: that of the cluster that the relay is in, if there is none.
    pub server: Option<ServerAddress>,
    /// How it is spoken to: in clear text, if there is none; in the relay's own cluster by what a pod has.
    pub tls: Option<OriginTls>,
    /// A file with nothing but the token that says who the relay is; in the relay's own cluster that of its service account.
    pub token_file: Option<PathBuf>,
    /// Where objects are looked for: in the relay's own namespace, if there is none; in all, if that is
    /// [`EVERYWHERE`](Self::EVERYWHERE).
    pub namespaces: Vec<String>,
    /// Which objects: of at least one kind.
    pub kinds: Vec<KubernetesKind>,
    /// Those with these labels; without one, config maps with `xds-relay.io/resources=true`, and all of other kinds.
    pub label_selector: Option<String>,
}

/// A kind of object that has resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KubernetesKind {
    /// `ConfigMap`: every key of its `data` is a text as a file has it.
    ConfigMaps,
    /// `XdsResource`, of this project's own API: its `spec` is a resource.
    XdsResources,
}

const SERVER: &str = "expected https://HOST:PORT, or HOST:PORT for clear text, such as https://10.0.0.1:6443";
const NO_KINDS: &str = "empty; expected config_maps, xds_resources or both";
const NAMESPACE: &str = "expected a namespace, or \"*\" alone for all";
const SELECTOR: &str = "expected a selector of labels, such as mesh=a";
const IN_CLEAR_TEXT: &str = "a token goes over TLS only; expected tls, or https://HOST:PORT";
const KINDS: [KubernetesKind; 2] = [KubernetesKind::ConfigMaps, KubernetesKind::XdsResources];

impl Kubernetes {
    /// What stands for all namespaces.
    pub const EVERYWHERE: &str = "*";

    /// The cluster that the relay is a pod of: its config maps, in the relay's own namespace.
    ///
    /// ```
    /// use xds_relay::config::{Kubernetes, KubernetesKind};
    ///
    /// let kubernetes = Kubernetes::in_cluster().with_namespaces(["mesh"]).with_kinds([KubernetesKind::XdsResources]);
    /// assert!(kubernetes.server.is_none() && kubernetes.label_selector.is_none());
    /// ```
    pub fn in_cluster() -> Self {
        Self {
            server: None,
            tls: None,
            token_file: None,
            namespaces: Vec::new(),
            kinds: vec![KubernetesKind::ConfigMaps],
            label_selector: None,
        }
    }

    /// The same of a cluster whose API server is there, by TLS where that is `https://HOST:PORT`.
    pub fn at(server: ServerAddress) -> Self {
        let tls = server.is_https().then(OriginTls::default);
        Self { server: Some(server), tls, ..Self::in_cluster() }
    }

    /// The objects in these namespaces.
    #[must_use]
    pub fn with_namespaces(self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { namespaces: namespaces.into_iter().map(Into::into).collect(), ..self }
    }

    /// The objects of these kinds.
    #[must_use]
    pub fn with_kinds(self, kinds: impl IntoIterator<Item = KubernetesKind>) -> Self {
        Self { kinds: kinds.into_iter().collect(), ..self }
    }

    /// What is wrong with it, if anything: the field, and in which way.
    pub(super) fn problem(&self) -> Option<(String, String)> {
        if let Some(server) = &self.server
            && let Err(problem) = server_of(&server.to_string())
        {
            return Some(("server".to_owned(), problem));
        }
        for (index, namespace) in self.namespaces.iter().enumerate() {
            let before = self.namespaces.get(..index).unwrap_or_default();
            if let Err(problem) = is_one_more(namespace, before, self.namespaces.len()) {
                return Some((format!("namespaces[{index}]"), problem));
            }
        }
        if self.kinds.is_empty() {
            return Some(("kinds".to_owned(), NO_KINDS.to_owned()));
        }
        if let Some(Err(problem)) = self.label_selector.as_deref().map(selector) {
            return Some(("label_selector".to_owned(), problem));
        }
        let is_secret = self.token_file.is_none() || self.server.is_none() || self.tls.is_some();
        (!is_secret).then(|| ("token_file".to_owned(), IN_CLEAR_TEXT.to_owned()))
    }
}

impl fmt::Display for KubernetesKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConfigMaps => "config_maps",
            Self::XdsResources => "xds_resources",
        })
    }
}

impl FromStr for KubernetesKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = KINDS.into_iter().find(|kind| kind.to_string() == text);
        kind.ok_or_else(|| format!("`{text}`: expected config_maps or xds_resources"))
    }
}

/// All is by default.
pub(super) fn kubernetes(node: &Node, file: File<'_>) -> Result<Kubernetes, Error> {
    node.expect_fields(KUBERNETES_FIELDS)?;
    let server = node.field("server", |node| {
        let text = node.text()?;
        server_of(text).or_else(|problem| node.refuse(problem))
    })?;
    let of = server.map_or_else(Kubernetes::in_cluster, Kubernetes::at);
    let tls = node.field("tls", |node| tls::origin(node, file))?.or_else(|| of.tls.clone());
    let is_clear = of.server.is_some() && tls.is_none();
    let token = |node: &Node| if is_clear { node.refuse(IN_CLEAR_TEXT) } else { file(node) };
    let selector_of = |node: &Node| {
        let text = node.text()?;
        selector(text).or_else(|problem| node.refuse(problem))?;
        Ok(text.to_owned())
    };
    Ok(Kubernetes {
        tls,
        token_file: node.field("token_file", token)?,
        namespaces: node.field("namespaces", namespaces)?.unwrap_or_default(),
        kinds: node.field("kinds", kinds)?.unwrap_or_else(|| of.kinds.clone()),
        label_selector: node.field("label_selector", selector_of)?,
        ..of
    })
}

fn server_of(text: &str) -> Result<ServerAddress, String> {
    match rules::server(text) {
        Ok(server @ ServerAddress::Http(_)) => Ok(server),
        _ => Err(format!("`{text}`: {SERVER}")),
    }
}

fn namespaces(list: &Node) -> Result<Vec<String>, Error> {
    let namespaces = list.items(|node| node.text().map(str::to_owned))?;
    let mut before: Vec<String> = Vec::new();
    list.items(|node| {
        let namespace = node.text()?;
        is_one_more(namespace, &before, namespaces.len()).or_else(|problem| node.refuse(problem))?;
        before.push(namespace.to_owned());
        Ok(())
    })?;
    if namespaces.is_empty() { list.refuse(format!("empty; {NAMESPACE}")) } else { Ok(namespaces) }
}

/// Whether a namespace may stand behind these, where there are so many.
fn is_one_more(namespace: &str, before: &[String], all: usize) -> Result<(), String> {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = !namespace.is_empty() && namespace.len() <= 63 && namespace.chars().all(is_letter);
    let shown = namespace.escape_debug();
    if !is_name && (namespace != Kubernetes::EVERYWHERE || all > 1) {
        return Err(format!("`{shown}`: {NAMESPACE}"));
    }
    match before.iter().position(|other| other == namespace) {
        Some(other) => Err(format!("`{shown}` is namespaces[{other}] already")),
        None => Ok(()),
    }
}

fn kinds(list: &Node) -> Result<Vec<KubernetesKind>, Error> {
    let mut kinds = Vec::new();
    list.items(|node| {
        let kind: KubernetesKind = node.text()?.parse().or_else(|problem: String| node.refuse(problem))?;
        if kinds.contains(&kind) {
            return node.refuse(format!("`{kind}`: listed twice"));
        }
        kinds.push(kind);
        Ok(())
    })?;
    if kinds.is_empty() { list.refuse(NO_KINDS) } else { Ok(kinds) }
}

fn selector(text: &str) -> Result<(), String> {
    let is_good = !text.trim().is_empty() && text.len() <= 1000 && !text.contains(char::is_control);
    is_good.then_some(()).ok_or_else(|| format!("`{}`: {SELECTOR}", text.escape_debug()))
}

/// Written as it is read; `path` and `tls` write files.
pub(super) fn written<E>(
    Kubernetes { server, tls, token_file, namespaces, kinds, label_selector }: &Kubernetes,
    path: impl Fn(&Path) -> Result<serde_json::Value, E>,
    written_tls: impl Fn(&OriginTls) -> Result<serde_json::Value, E>,
) -> Result<serde_json::Value, E> {
    let mut written = serde_json::Map::new();
    let mut put = |field: &str, value: serde_json::Value| written.insert(field.to_owned(), value);
    if let Some(server) = server {
        put("server", server.to_string().into());
    }
    if let Some(tls) = tls {
        put("tls", written_tls(tls)?);
    }
    if let Some(file) = token_file {
        put("token_file", path(file)?);
    }
    if !namespaces.is_empty() {
        put("namespaces", namespaces.clone().into());
    }
    put("kinds", kinds.iter().map(ToString::to_string).collect::<Vec<_>>().into());
    if let Some(selector) = label_selector {
        put("label_selector", selector.as_str().into());
    }
    Ok(written.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Origin};

    fn read(kubernetes: &str) -> Result<Kubernetes, String> {
        let text = format!("origins: [{{ name: a, {kubernetes} }}]");
        let config = Config::parse("relay.yaml", &text).map_err(|error| error.to_string())?;
        Ok(config.origins[0].kind.kubernetes().unwrap().0.clone())
    }

    #[test]
    fn nothing_need_be_said_in_a_cluster() {
        assert_eq!(read("kubernetes: {}").unwrap(), Kubernetes::in_cluster());
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let said = format!(
            "kubernetes: {{ server: 'https://a:6443', tls: {{ ca: {file} }}, token_file: {file}, namespaces: [a, b-1], \
             kinds: [xds_resources, config_maps], label_selector: 'a=b,!c' }}"
        );
        let read = read(&said).unwrap();
        let at = Kubernetes::at("https://a:6443".parse().unwrap()).with_namespaces(["a", "b-1"]);
        let at = at.with_kinds([KubernetesKind::XdsResources, KubernetesKind::ConfigMaps]);
        let tls = OriginTls { ca: Some(file.into()), ..OriginTls::default() };
        let (tls, token_file, label_selector) = (Some(tls), Some(file.into()), Some("a=b,!c".to_owned()));
        assert_eq!(read, Kubernetes { tls, token_file, label_selector, ..at });
        assert_eq!(read.problem(), None);
    }

    #[test]
    fn what_is_wrong_names_its_field() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let in_clear_text = format!("kubernetes: {{ server: 'a:1', token_file: {file} }}");
        for (kubernetes, words) in [
            ("kubernetes: { server: a }", "kubernetes.server: `a`: expected https://HOST:PORT"),
            ("kubernetes: { server: 'unix:/a' }", "kubernetes.server: `unix:/a`: expected https://HOST:PORT"),
            ("kubernetes: { namespaces: [] }", "kubernetes.namespaces: empty; expected a namespace"),
            ("kubernetes: { namespaces: [A] }", "kubernetes.namespaces[0]: `A`: expected a namespace"),
            ("kubernetes: { namespaces: [a, '*'] }", "kubernetes.namespaces[1]: `*`: expected a namespace"),
            ("kubernetes: { namespaces: [a, a] }", "kubernetes.namespaces[1]: `a` is namespaces[0] already"),
            ("kubernetes: { kinds: [] }", "kubernetes.kinds: empty; expected config_maps"),
            ("kubernetes: { kinds: [secrets] }", "kubernetes.kinds[0]: `secrets`: expected config_maps"),
            ("kubernetes: { kinds: [config_maps, config_maps] }", "kubernetes.kinds[1]: `config_maps`: listed twice"),
            ("kubernetes: { label_selector: ' ' }", "kubernetes.label_selector: ` `: expected a selector"),
            ("kubernetes: { namespace: a }", "kubernetes.namespace: unknown field `namespace`"),
            (&in_clear_text, "kubernetes.token_file: a token goes over TLS only"),
            ("server: 'a:1', kubernetes: {}", "origins[0].kubernetes: an origin is one of a server, files, etcd and"),
            ("files: ., kubernetes: {}", "origins[0].kubernetes: an origin is one of a server, files, etcd and"),
            ("tls: {}, kubernetes: {}", "origins[0].tls: expected tls within kubernetes"),
            ("protocol: sotw, kubernetes: {}", "origins[0].protocol: only an origin with a server"),
        ] {
            let error = read(kubernetes).unwrap_err();
            assert!(error.contains(words), "{kubernetes}: {error}");
        }
    }

    #[test]
    fn one_that_a_program_makes_is_held_to_the_same() {
        let at = |uri: &str| Kubernetes::at(uri.parse().unwrap());
        let problem = |kubernetes: Kubernetes| kubernetes.problem().map(|(field, _)| field);
        assert_eq!(problem(at("https://a:1")), None);
        assert_eq!(problem(Kubernetes::in_cluster().with_namespaces(["*"])), None);
        assert_eq!(problem(at("unix:/a")).as_deref(), Some("server"));
        assert_eq!(problem(Kubernetes::in_cluster().with_namespaces(["a", "*"])).as_deref(), Some("namespaces[1]"));
        assert_eq!(problem(Kubernetes::in_cluster().with_kinds([])).as_deref(), Some("kinds"));
        let selecting = Kubernetes { label_selector: Some("\n".to_owned()), ..Kubernetes::in_cluster() };
        assert_eq!(problem(selecting).as_deref(), Some("label_selector"));
        let told = Kubernetes { token_file: Some("t".into()), ..at("http://a:1") };
        assert_eq!(problem(told).as_deref(), Some("token_file"));
        let config = Config::new([Origin::kubernetes("a", Kubernetes::in_cluster().with_kinds([]))]);
        assert_eq!(config.validate().unwrap_err().field, "origins[0].kubernetes.kinds");
    }
}
