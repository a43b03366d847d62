//! The bootstrap file of envoyproxy/xds-relay, as a configuration.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{Aggregation, Config, ConfigError, OriginKind, Unmatched, rules};
use crate::aggregation::{Reading, Rules, RulesError};
use crate::text_file::{self, Unread};
use crate::yaml::{self, Position};

mod go_duration;
mod read;

/// The fields by which such a file is told from a configuration: none of them is in both.
const ITS_OWN: [&str; 4] = ["origin_server", "originServer", "metrics_sink", "metricsSink"];

/// A bootstrap file of envoyproxy/xds-relay: the configuration that does the same, and what has no equal in it. Displayed as
/// YAML that [`Config::parse`] reads.
///
/// ```
/// use xds_relay::config::Bootstrap;
///
/// let text = r#"
/// server: { address: { address: 127.0.0.1, port_value: 9991 } }
/// origin_server: { address: { address: control-plane.example.com, port_value: 18000 } }
/// logging: { path: /var/log/xds-relay.log, level: WARN }
/// cache: { ttl: 60s }
/// metrics_sink: { statsd: { address: { address: 127.0.0.1, port_value: 8125 }, root_prefix: relay, flush_interval: 1s } }
/// admin: { address: { address: 127.0.0.1, port_value: 6070 } }
/// "#;
/// let bootstrap = Bootstrap::parse("bootstrap.yaml", text)?;
/// assert_eq!(bootstrap.config().linger.as_secs(), 60);
/// assert!(bootstrap.to_string().contains("listen: \"127.0.0.1:9991\"\n"));
/// let told: Vec<String> = bootstrap.notes().iter().map(ToString::to_string).collect();
/// assert!(told[1].starts_with("bootstrap.yaml:4:18: logging.path: "), "{told:?}");
///
/// let error = Bootstrap::parse("bootstrap.yaml", "server: {}").unwrap_err();
/// assert_eq!(error.to_string(), "bootstrap.yaml:1:9: server.address: value is required");
/// # Ok::<(), xds_relay::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    file: PathBuf,
    config: Config,
    /// Whether it says how long a connection may be quiet.
    says_keepalive: bool,
    notes: Vec<BootstrapNote>,
}

/// Something that a bootstrap file says, or leaves out, and that is otherwise here. Displayed as
/// `FILE:LINE:COLUMN: FIELD: what is so`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BootstrapNote {
    /// The file as given.
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// Such as `logging.path`.
    pub field: &'static str,
    /// What becomes of it.
    pub text: String,
    /// The field of the configuration that it is about, if it is about one.
    beside: &'static str,
}

impl fmt::Display for BootstrapNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}: {}", self.file.display(), self.line, self.column, self.field, self.text)
    }
}

/// What is read of one, before it is known which file it is.
struct Found {
    config: Config,
    says_keepalive: bool,
    notes: Vec<Remark>,
}

struct Remark {
    position: Position,
    field: &'static str,
    beside: &'static str,
    text: String,
}

impl Bootstrap {
    /// Reads a file if it is such a one, and says nothing of what else it is.
    ///
    /// # Errors
    /// It cannot be read, or [`Bootstrap::parse`] refuses it.
    pub fn load_if_one(path: impl AsRef<Path>) -> Result<Option<Self>, ConfigError> {
        let path = path.as_ref();
        let text = text(path)?;
        let root = yaml::parse(&text).ok().flatten();
        let is_one = root.is_some_and(|root| ITS_OWN.iter().any(|key| root.entry(key).is_some()));
        if is_one { Self::parse(path, &text).map(Some) } else { Ok(None) }
    }

    /// Reads and checks a file; see [`Bootstrap::parse`].
    ///
    /// # Errors
    /// The file cannot be read, or [`Bootstrap::parse`] refuses it.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        Self::parse(path, &text(path)?)
    }

    /// Checks the text of one, as the original does: fields in `snake_case` or `lowerCamelCase`, nothing unknown, nothing left
    /// out that is required. `file` is what errors and notes name.
    ///
    /// # Errors
    /// What is wrong first, and where; or what this relay does not do, such as listening at a name.
    pub fn parse(file: impl AsRef<Path>, text: &str) -> Result<Self, ConfigError> {
        let file = file.as_ref();
        let found = yaml::parse(text).and_then(|root| read::bootstrap(&root.unwrap_or_else(yaml::Node::empty)));
        let Found { config, says_keepalive, notes } = found.map_err(|error| ConfigError::in_document(file, error))?;
        let note = |Remark { position, field, beside, text }| {
            let Position { line, column } = position;
            BootstrapNote { file: file.to_owned(), line, column, field, text, beside }
        };
        Ok(Self { file: file.to_owned(), config, says_keepalive, notes: notes.into_iter().map(note).collect() })
    }

    /// Has clients share by the rules of a file, as the original's other file says it; requests that no rule is for are refused,
    /// as the original does it.
    ///
    /// # Errors
    /// The rules are bad.
    pub fn share_by_rules(&mut self, rules: &Path) -> Result<(), RulesError> {
        let depend = Rules::load(rules, Reading::Documented)?.depend_on_reading();
        let mut aggregation = Aggregation::new(std::path::absolute(rules).unwrap_or_else(|_| rules.to_owned()));
        aggregation.unmatched = Unmatched::Reject;
        self.config.aggregation = Some(aggregation);
        self.notes.retain(|note| note.field != read::NO_RULES);
        if depend {
            let text = "the first rule of a fragment that matches counts, as the original's documents say. Its program adds a \
                        piece for each that does: `legacy_all_matches: true` does so, too";
            let (file, field) = (rules.to_owned(), "fragments");
            let note = BootstrapNote { file, line: 1, column: 1, field, text: text.to_owned(), beside: "aggregation" };
            self.notes.push(note);
        }
        Ok(())
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The same, without what was said of it.
    #[must_use]
    pub fn into_config(self) -> Config {
        self.config
    }

    /// What is otherwise than in the original, in the order of its fields.
    #[must_use]
    pub fn notes(&self) -> &[BootstrapNote] {
        &self.notes
    }

    /// The fields that the file gives another value than they have by default, in the configuration's own order.
    fn written(&self) -> Result<Vec<(&'static str, Value)>, String> {
        let mut all = self.config.to_value()?;
        let mut default = Config::new(self.config.origins.clone()).to_value()?;
        let origins: Vec<Value> = self.config.origins.iter().map(|origin| self.origin(origin)).collect();
        let mut fields = Vec::new();
        for key in super::fields::FIELDS {
            let of = |all: &mut Value| all.get_mut(*key).map(Value::take).unwrap_or_default();
            let (value, unsaid) = (of(&mut all), of(&mut default));
            match *key {
                "origins" => fields.push((*key, json!(origins))),
                "limits" if value != unsaid => {
                    let lingering = self.config.limits.lingering_names;
                    fields.push((*key, json!({ "lingering_names": lingering })));
                }
                "listen" | "admin" => fields.push((*key, value)),
                _ if value != unsaid => fields.push((*key, value)),
                _ => {}
            }
        }
        Ok(fields)
    }

    fn origin(&self, origin: &super::Origin) -> Value {
        let mut fields = Map::new();
        fields.insert("name".to_owned(), json!(origin.name));
        if let OriginKind::Server { servers, protocol } = &origin.kind {
            let server = servers.first().map(super::ServerAddress::target);
            fields.insert("server".to_owned(), json!(server));
            fields.insert("protocol".to_owned(), json!(protocol.as_str()));
            fields.insert("methods".to_owned(), origin.methods.to_value());
        }
        if self.says_keepalive {
            fields.insert("keepalive".to_owned(), json!(humantime::format_duration(origin.keepalive).to_string()));
        }
        if !origin.node_metadata.is_empty() {
            fields.insert("node_metadata".to_owned(), json!(origin.node_metadata));
        }
        Value::Object(fields)
    }
}

impl fmt::Display for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.display().to_string();
        writeln!(f, "# What {} says, for this relay: xds-relay --config FILE", name.escape_debug())?;
        let remarks = |f: &mut fmt::Formatter<'_>, is_here: &dyn Fn(&str) -> bool| {
            let mut notes = self.notes.iter().filter(|note| is_here(note.beside));
            notes.try_for_each(|note| writeln!(f, "# {}, line {}: {}", note.field, note.line, note.text))
        };
        let written = self.written().map_err(|_| fmt::Error)?;
        // A field that is as it is by default is not written, and what is said of it is.
        remarks(f, &|beside| written.iter().all(|(key, _)| *key != beside))?;
        for (key, mut value) in written.iter().cloned() {
            remarks(f, &|beside| beside == key)?;
            keep_as_it_is(&mut value);
            f.write_str(&yaml::write(&json!({ key: value }), usize::MAX).0)?;
        }
        Ok(())
    }
}

/// What begins like a value from the environment is none.
fn keep_as_it_is(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace("${", "$${"),
        Value::Array(items) => items.iter_mut().for_each(keep_as_it_is),
        Value::Object(fields) => fields.values_mut().for_each(keep_as_it_is),
        _ => {}
    }
}

fn text(path: &Path) -> Result<String, ConfigError> {
    text_file::read(path).map_err(|error| match error {
        Unread::File(reason) => ConfigError::Unreadable { file: path.to_owned(), reason },
        Unread::Text(error) => ConfigError::in_document(path, error),
    })
}
