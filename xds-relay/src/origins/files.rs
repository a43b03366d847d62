//! The origins of files of a running relay: read as it starts, and again as they change.

use std::sync::Arc;
use std::time::Instant;

use crate::config::Config;
use crate::error::Error;
use crate::file_origin::{FileError, FileResource, Reading, Watch, directory_of, held};
use crate::keyed_origin::{HELD, said_of_removal};
use crate::metrics::ReloadMetrics;
use crate::relay_core::{RelayCore, Trouble};

/// All of them, watched while this lives.
pub(super) struct FileOrigins {
    _watches: Vec<Watch>,
    /// Those that are bad as the relay starts.
    bad: Vec<Bad>,
    /// Those that have no files then.
    empty: Vec<String>,
}

struct Bad {
    follower: Follower,
    error: FileError,
}

/// What is done with the files of one origin.
#[derive(Clone)]
struct Follower {
    core: Arc<RelayCore>,
    position: usize,
    name: String,
    metrics: ReloadMetrics,
}

impl FileOrigins {
    /// # Errors
    /// What is needed to read them is not good. That they are bad is told [later](Self::are_released).
    pub(super) fn read(config: &Config, core: &Arc<RelayCore>) -> Result<Self, Error> {
        let mut all = Self { _watches: Vec::new(), bad: Vec::new(), empty: Vec::new() };
        for (position, origin) in config.origins.iter().enumerate() {
            let Some((directory, descriptors)) = origin.kind.files() else { continue };
            let directory = directory_of(config, origin, directory, descriptors)?;
            let follower = Follower::new(core, position, &origin.name);
            let read = directory.resources();
            let is_empty = read.as_ref().is_ok_and(Vec::is_empty) && directory.has_no_files();
            // It may be where a volume is mounted in a moment: clients who come back are not told that all is gone.
            let read = Some(read).filter(|_| !is_empty);
            match &read {
                None => all.empty.push(origin.name.clone()),
                Some(Ok(resources)) => core.set_files(position, held(resources), Instant::now()),
                Some(Err(error)) => all.bad.push(Bad { follower: follower.clone(), error: error.clone() }),
            }
            let reload = move |reading| match reading {
                Reading::Done(Ok(resources)) => follower.good(&resources),
                Reading::Done(Err(error)) => follower.bad(&error, "the last good state is kept"),
                Reading::Held { gone } => follower.held(gone),
            };
            let watch = Watch::of(directory, read, reload);
            let failed = |reason: String| Error::Origin { origin: origin.name.clone(), reason };
            all._watches.push(watch.map_err(|error| failed(error.to_string()))?);
        }
        Ok(all)
    }

    /// Whether the files of an origin were bad as the relay started, or there were none.
    pub(super) fn are_unknown(&self, origin: &str) -> bool {
        self.bad.iter().any(|bad| bad.follower.name == origin) || self.empty.iter().any(|empty| empty == origin)
    }

    /// Goes on without those that are bad: of each something is released, and served.
    ///
    /// # Errors
    /// What is wrong with the first of which nothing is.
    pub(super) fn are_released(&self) -> Result<(), Error> {
        for Bad { follower, error } in &self.bad {
            let Follower { core, position, name, .. } = follower;
            if !core.serves_releases_of(*position) {
                return Err(Error::Origin { origin: name.clone(), reason: error.to_string() });
            }
            // They may be good by now.
            if !core.has_content(*position) {
                follower.bad(error, "what was released is served");
            }
        }
        Ok(())
    }
}

impl Follower {
    fn new(core: &Arc<RelayCore>, position: usize, name: &str) -> Self {
        let metrics = core.metrics().reloads(name);
        metrics.set_held(0);
        Self { core: core.clone(), position, name: name.to_owned(), metrics }
    }

    fn good(&self, resources: &[FileResource]) {
        self.metrics.ok.inc();
        self.metrics.set_held(0);
        tracing::info!(origin = %self.name, resources = resources.len(), "files changed");
        self.core.set_files(self.position, held(resources), Instant::now());
        self.core.set_trouble(self.position, None);
    }

    /// So many resources are gone, or there are no files as the relay starts.
    fn held(&self, gone: usize) {
        self.metrics.set_held(gone);
        let is_away = gone == 0;
        let words = match is_away {
            true => format!("there are no files: that counts once it is so for {} s", HELD.as_secs()),
            false => said_of_removal(gone),
        };
        tracing::error!(origin = %self.name, "{words}");
        self.core
            .set_trouble(self.position, Some(Trouble { is_away, in_brief: words.clone(), words, refused_since: None }));
    }

    fn bad(&self, error: &FileError, instead: &str) {
        self.metrics.failed.inc();
        self.metrics.set_held(0);
        // What is said last stays in sight.
        error.lines().for_each(|line| tracing::error!(origin = %self.name, "{line}"));
        tracing::error!(origin = %self.name, "files are not good: {instead}");
        let lines: Vec<_> = error.lines().collect();
        let words = format!("files are not good, and {instead}: {}", lines.join("; "));
        let in_brief = format!("files are not good, and {instead}: {}", error.count());
        self.core.set_trouble(self.position, Some(Trouble { is_away: false, words, in_brief, refused_since: None }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_origin::{Descriptors, load};
    use crate::serve::Relay;

    #[tokio::test]
    async fn who_starts_before_its_volume_is_there_knows_nothing_and_what_is_held_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display();
        let text = format!("{{ listen: 127.0.0.1:0, admin: none, origins: [{{ name: f, files: '{path}' }}] }}");
        let config = Config::parse("relay.yaml", &text).unwrap();
        let waits = Relay::bind(config.clone()).await.unwrap();
        assert!(!waits.core.has_content(0), "clients who come back are told of nothing that it is gone");

        let a = r#"{ "resources": [{ "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a" }] }"#;
        std::fs::write(directory.path().join("a.json"), a).unwrap();
        let relay = Relay::bind(config).await.unwrap();
        let core = relay.core.clone();
        assert!(core.has_content(0));
        let follower = Follower::new(&core, 0, "f");
        let said = || {
            let status = core.origin_details(Instant::now()).origins.remove(0).status;
            status.last_error.or(status.hint).unwrap_or_default()
        };
        let held = || {
            let metrics = core.metrics().render(&core.gauges());
            let line =
                metrics.lines().find(|line| line.starts_with("xds_relay_file_origin_held_removals{origin=\"f\"} "));
            line.and_then(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
        };
        assert_eq!(held(), Some(0));
        follower.held(0);
        assert_eq!((said().as_str(), held()), ("there are no files: that counts once it is so for 30 s", Some(0)));
        let words = "12 resources are gone at once: they stay until that is so for 30 s";
        follower.held(12);
        assert_eq!((said().as_str(), held()), (words, Some(12)));
        follower.good(&[]);
        assert_eq!((said().as_str(), held()), ("", Some(0)));
        // What is bad by then is not held, and all stays.
        follower.held(12);
        let bad = tempfile::tempdir().unwrap();
        std::fs::write(bad.path().join("a.json"), "{").unwrap();
        let error = load(bad.path(), &Descriptors::built_in().unwrap()).unwrap_err();
        follower.bad(&error, "the last good state is kept");
        assert_eq!(held(), Some(0));
    }
}
