//! All files of a directory, together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use xdstp_uri::ResourceName;

use super::dangling::references;
use super::descriptors::{Descriptors, DescriptorsError};
use super::document::{self, Placed};
use super::environment::Environment;
use super::error::{FileError, FileErrors};
use super::files::{Listing, list};
use super::glance::{Glance, glance};
use super::problems::Problems;
use super::resource::FileResource;
use super::served::Served;
use super::variant_keys::other_keys;
use super::written::{Written, kind};
use crate::causes::with_causes;
use crate::config::{Config, Origin};
use crate::error::Error;
use crate::text_file::{self, Unread};
use crate::yaml;

/// How many times a directory is read that changes meanwhile, where nobody waits for it to rest.
const TRIES: u32 = 3;

/// Reads the resources in the files of a directory.
///
/// Files end in `.yaml`, `.yml` or `.json`; names that begin with a dot (editors' and Kubernetes' own) and
/// sub-directories are passed over. The result is sorted by type and name, so that it does not depend on which file
/// holds what.
///
/// # Errors
/// All that is wrong, with files and places: all files are good, or none is used.
pub fn load(directory: &Path, descriptors: &Descriptors) -> Result<Vec<FileResource>, FileError> {
    let directory = Directory::new(directory.to_owned(), descriptors.clone(), Served::default());
    Ok(directory.read()?.resources)
}

/// Reads resources from texts that are part of a program, such as [`EXAMPLE`](crate::config::EXAMPLE): pairs of a file name,
/// for messages, and what would be in the file.
///
/// # Errors
/// As [`load`].
pub fn load_embedded(files: &[(&str, &str)], descriptors: &Descriptors) -> Result<Vec<FileResource>, FileError> {
    let (mut resources, mut errors) = (Resources::default(), FileErrors::default());
    for (name, text) in files {
        let read = document::read(text, descriptors, None);
        resources.add(Path::new(name), read, &Served::default(), &mut errors);
    }
    errors.into_result()?;
    Ok(resources.into_vec())
}

/// Reads the text that is all there is of one name, whose place is called so in messages: see [`load_embedded`].
///
/// # Errors
/// As [`load`].
pub(crate) fn load_value(
    place: &str,
    text: &str,
    name: &str,
    descriptors: &Descriptors,
) -> Result<Vec<FileResource>, FileError> {
    load_one(place, (text, Some(name)), descriptors, &Served::default())
}

/// Reads a text whose place is called so in messages: a list as a file has it, or a resource alone.
///
/// # Errors
/// As [`load`].
pub(crate) fn load_text(
    place: &str,
    text: &str,
    descriptors: &Descriptors,
    served: &Served,
) -> Result<Vec<FileResource>, FileError> {
    load_one(place, (text, None), descriptors, served)
}

fn load_one(
    place: &str,
    (text, name): (&str, Option<&str>),
    descriptors: &Descriptors,
    served: &Served,
) -> Result<Vec<FileResource>, FileError> {
    let place = Path::new(place);
    let mut resources = Resources::default();
    let placed = document::read_value(text, name, descriptors);
    let placed = placed.map_err(|problems| FileError::of_document(place, problems))?;
    for one in placed {
        resources.put(place, one, served).map_err(|error| FileError::in_document(place, error))?;
    }
    Ok(resources.into_vec())
}

/// What is needed to read a directory of resources.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(super) path: PathBuf,
    pub(super) descriptors: Descriptors,
    pub(super) served: Served,
    /// Where values come from, if they may come from there.
    pub(super) environment: Option<Environment>,
    /// Whether the files of directories below it are read, too.
    pub(super) with_directories: bool,
}

/// The resources of a directory.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) resources: Vec<FileResource>,
    /// How many of them each file holds.
    pub(super) counts: BTreeMap<PathBuf, usize>,
    /// What they refer to that none of them is.
    dangling: Vec<FileError>,
    other_keys: Vec<FileError>,
}

/// An origin of the configuration, as its files are.
#[derive(Debug)]
pub(crate) struct LoadedOrigin {
    pub(crate) resources: Vec<FileResource>,
    /// What they refer to that comes from here, and that none of them is. That is no error: clients may have it in their own files,
    /// or it may come in another file a moment later.
    pub(crate) dangling: Vec<FileError>,
    /// Variants whose constraints have other keys than the others of their name, which is no error either.
    pub(crate) other_keys: Vec<FileError>,
}

impl Directory {
    /// One whose files are read as they are, and those below it are not.
    pub(super) fn new(path: PathBuf, descriptors: Descriptors, served: Served) -> Self {
        Self { path, descriptors, served, environment: None, with_directories: false }
    }

    pub(super) fn list(&self) -> Result<Listing, FileError> {
        list(&self.path, self.with_directories)
    }

    pub(super) fn read(&self) -> Result<Loaded, FileError> {
        let (mut resources, mut errors) = (Resources::default(), FileErrors::default());
        let mut counts = BTreeMap::new();
        for file in self.list()?.files {
            match text(&file) {
                Ok(text) => {
                    let read = document::read(&text, &self.descriptors, self.environment.as_ref());
                    let count = resources.add(&file, read, &self.served, &mut errors);
                    counts.insert(file, count);
                }
                Err(error) => errors.push(error),
            }
        }
        errors.into_result()?;
        let dangling = resources.dangling(&self.served);
        let other_keys = resources.other_keys();
        Ok(Loaded { resources: resources.into_vec(), counts, dangling, other_keys })
    }

    /// How its files look.
    pub(super) fn glance(&self) -> Glance {
        self.list().ok().map(|listing| glance(listing.files))
    }

    /// Reads it, and says whether its files were as they are all the while: else some may be of one state, and others of the next.
    pub(super) fn read_while_it_rests(&self) -> (Glance, Result<Loaded, FileError>, bool) {
        // Before reading: what changes while the files are read is seen as different next time.
        let seen = self.glance();
        let read = self.read();
        let rests = self.glance() == seen;
        (seen, read, rests)
    }

    /// Whether there are none, as where a volume is to be mounted.
    pub(crate) fn has_no_files(&self) -> bool {
        self.list().is_ok_and(|listing| listing.files.is_empty())
    }

    /// What is in its files.
    pub(crate) fn resources(&self) -> Result<Vec<FileResource>, FileError> {
        let mut tries = TRIES;
        loop {
            let (_, read, rests) = self.read_while_it_rests();
            tries -= 1;
            if rests || tries == 0 {
                return read.map(|loaded| loaded.resources);
            }
        }
    }
}

/// The directory of an origin of the configuration.
///
/// # Errors
/// The file of the types that it may have is not good.
pub(crate) fn directory_of(
    config: &Config,
    origin: &Origin,
    files: &Path,
    descriptors: Option<&Path>,
) -> Result<Directory, Error> {
    let descriptors = descriptors_of(config, origin, descriptors)?;
    let reading = origin.kind.file_reading();
    Ok(Directory {
        environment: reading.environment.then(Environment::of_process),
        with_directories: reading.sub_directories,
        ..Directory::new(files.to_owned(), descriptors, Served::by(config, &origin.name))
    })
}

/// Reads the descriptors and the resources of an origin of the configuration.
pub(crate) fn load_origin(
    config: &Config,
    origin: &Origin,
    files: &Path,
    descriptors: Option<&Path>,
) -> Result<LoadedOrigin, Error> {
    let failed = |error: FileError| Error::Origin { origin: origin.name.clone(), reason: error.to_string() };
    let loaded = directory_of(config, origin, files, descriptors)?.read().map_err(failed)?;
    let Loaded { resources, dangling, other_keys, .. } = loaded;
    Ok(LoadedOrigin { resources, dangling, other_keys })
}

/// The types that an origin of the configuration may have, with their rules where it is held to them.
///
/// # Errors
/// The file of them is not good.
pub(crate) fn descriptors_of(config: &Config, origin: &Origin, file: Option<&Path>) -> Result<Descriptors, Error> {
    let unusable = |error: DescriptorsError| {
        let field = config.field_of(origin, "descriptors");
        Error::Field { field, reason: with_causes(&error) }
    };
    let descriptors = file.map_or_else(Descriptors::built_in, Descriptors::load).map_err(unusable)?;
    Ok(if origin.kind.validates() { descriptors.with_validation() } else { descriptors })
}

fn text(file: &Path) -> Result<String, FileError> {
    text_file::read(file).map_err(|error| match error {
        Unread::File(error) => FileError::of_file(file, error.to_string()),
        Unread::Text(error) => FileError::in_document(file, error),
    })
}

/// By type URL and name: all variants.
#[derive(Default)]
struct Resources(BTreeMap<(String, String), Vec<Written>>);

impl Resources {
    /// Adds what a file holds; how many resources that is. What is wrong with it is added to the errors.
    fn add(
        &mut self,
        file: &Path,
        read: Result<Vec<Result<Placed, Problems>>, Problems>,
        served: &Served,
        errors: &mut FileErrors,
    ) -> usize {
        let read = read.unwrap_or_else(|problems| vec![Err(problems)]);
        let count = read.len();
        for placed in read {
            let put = placed.and_then(|placed| Ok(self.put(file, placed, served)?));
            let problems = put.err().into_iter().flatten();
            problems.for_each(|error| errors.push(FileError::in_document(file, error)));
        }
        count
    }

    fn put(&mut self, file: &Path, placed: Placed, served: &Served) -> Result<(), yaml::Error> {
        let Placed { resource, position, path, taken } = placed;
        let variants = self.0.entry((resource.type_url.clone(), resource.name.clone())).or_default();
        let is_refused = || variants.iter().find_map(|other| other.refusal(&resource, &taken));
        let is_not_served = || {
            let reason = served.refusal(&resource.name)?;
            let of = |variable: &String| {
                format!("what `{variable}` names is served to nobody: it comes from another origin")
            };
            Some(taken.identity.as_ref().map_or(reason, of))
        };
        if let Some(reason) = is_not_served().or_else(is_refused) {
            return Err(yaml::Error { position: Some(position), path, reason });
        }
        variants.push(Written { resource, file: file.to_owned(), position, taken });
        Ok(())
    }

    /// Each resource that refers to what is served from here, and not there, with that.
    fn dangling(&self, served: &Served) -> Vec<FileError> {
        let written = || self.0.values().flatten();
        let aliases: BTreeSet<(&str, &str)> = written()
            .map(|written| &written.resource)
            .flat_map(|resource| resource.aliases.iter().map(|alias| (resource.type_url.as_str(), alias.as_str())))
            .collect();
        let mut dangling = Vec::new();
        for one in written() {
            let Written { resource, taken, .. } = one;
            references(resource, &mut |of, name| {
                let name = ResourceName::parse(name).map_or_else(|_| name.to_owned(), |name| name.to_string());
                let is_there = self.0.contains_key(&(of.to_owned(), name.clone())) || aliases.contains(&(of, &*name));
                if is_there || served.refusal(&name).is_some() {
                    return;
                }
                let (from, to) = (kind(&resource.type_url), kind(of));
                let reason = format!("{from} `{}` refers to {to} `{name}`, which no file has", resource.name);
                let of = |variable: &String| {
                    format!(
                        "it refers to what no file has, which is not shown, because that may say what `{variable}` is"
                    )
                };
                dangling.push(one.noted(taken.any.as_ref().map_or(reason, of)));
            });
        }
        dangling
    }

    /// Of each name the first variant whose constraints have other keys than those before it.
    fn other_keys(&self) -> Vec<FileError> {
        let of_name = |variants: &Vec<Written>| {
            let (at, words) = other_keys(variants.iter().map(|written| written.resource.variant.as_ref()))?;
            let other = variants.get(at)?;
            let concealed = variants.iter().find_map(|written| written.taken.identity.as_ref());
            Some(other.noted(match concealed {
                Some(variable) => format!("variants of what is named by `{variable}` have not the same keys"),
                None => format!("{} `{}` {words}", kind(&other.resource.type_url), other.resource.name),
            }))
        };
        self.0.values().filter_map(of_name).collect()
    }

    fn into_vec(self) -> Vec<FileResource> {
        let by_variant = |mut variants: Vec<Written>| {
            variants.sort_by(|one, other| one.resource.variant.cmp(&other.resource.variant));
            variants.into_iter().map(|written| written.resource)
        };
        self.0.into_values().flat_map(by_variant).collect()
    }
}

#[cfg(test)]
mod tests;
