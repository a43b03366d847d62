//! The origins of files of a running relay: read as it starts, and again as they change.

use std::sync::Arc;
use std::time::Instant;

use crate::config::Config;
use crate::error::Error;
use crate::file_origin::{FileError, FileResource, Watch, directory_of, held};
use crate::relay_core::{RelayCore, Trouble};

/// All of them, watched while this lives.
pub(super) struct FileOrigins {
    _watches: Vec<Watch>,
    /// Those that are bad as the relay starts.
    bad: Vec<Bad>,
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
}

impl FileOrigins {
    /// # Errors
    /// What is needed to read them is not good. That they are bad is told [later](Self::are_released).
    pub(super) fn read(config: &Config, core: &Arc<RelayCore>) -> Result<Self, Error> {
        let mut all = Self { _watches: Vec::new(), bad: Vec::new() };
        for (position, origin) in config.origins.iter().enumerate() {
            let Some((directory, descriptors)) = origin.kind.files() else { continue };
            let directory = directory_of(config, origin, directory, descriptors)?;
            let follower = Follower { core: core.clone(), position, name: origin.name.clone() };
            let read = directory.resources();
            match &read {
                Ok(resources) => core.set_files(position, held(resources), Instant::now()),
                Err(error) => all.bad.push(Bad { follower: follower.clone(), error: error.clone() }),
            }
            let reload = move |read: Result<Vec<FileResource>, FileError>| match read {
                Ok(resources) => follower.good(&resources),
                Err(error) => follower.bad(&error, "the last good state is kept"),
            };
            let watch = Watch::of(directory, read, reload);
            let failed = |reason: String| Error::Origin { origin: origin.name.clone(), reason };
            all._watches.push(watch.map_err(|error| failed(error.to_string()))?);
        }
        Ok(all)
    }

    /// Whether the files of an origin were bad as the relay started.
    pub(super) fn were_bad(&self, origin: &str) -> bool {
        self.bad.iter().any(|bad| bad.follower.name == origin)
    }

    /// Goes on without those that are bad: of each something is released, and served.
    ///
    /// # Errors
    /// What is wrong with the first of which nothing is.
    pub(super) fn are_released(&self) -> Result<(), Error> {
        for Bad { follower, error } in &self.bad {
            let Follower { core, position, name } = follower;
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
    fn good(&self, resources: &[FileResource]) {
        self.core.metrics().reloads(&self.name).ok.inc();
        tracing::info!(origin = %self.name, resources = resources.len(), "files changed");
        self.core.set_files(self.position, held(resources), Instant::now());
        self.core.set_trouble(self.position, None);
    }

    fn bad(&self, error: &FileError, instead: &str) {
        self.core.metrics().reloads(&self.name).failed.inc();
        // What is said last stays in sight.
        error.lines().for_each(|line| tracing::error!(origin = %self.name, "{line}"));
        tracing::error!(origin = %self.name, "files are not good: {instead}");
        let lines: Vec<_> = error.lines().collect();
        let words = format!("files are not good, and {instead}: {}", lines.join("; "));
        self.core.set_trouble(self.position, Some(Trouble { is_away: false, words }));
    }
}
