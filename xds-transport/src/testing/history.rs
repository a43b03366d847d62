//! A source, what is in it, and its subscribers: what is done to all of them is one history.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use xdstp_cache::{Interest, Removals, ResourceError, TypeUrl, Version};
use xdstp_uri::ResourceName;

use crate::frame::Frame;
use crate::testing::Edit;
use crate::testing::model::Content;
use crate::testing::reader::Reader;

/// A type that is asked for by names and by everything, and one that is asked for by globs.
pub(crate) const PLAIN: &str = "type.example.com/Plain";
pub(crate) const TREE: &str = "type.example.com/Tree";
pub(crate) const GLOB: &str = "xdstp://a/example.Tree/dir/*";
pub(crate) const OTHER: &str = "xdstp://a/example.Tree/other/*";

/// A member of a glob.
pub(crate) fn member(glob: &str, name: &str) -> String {
    glob.replace('*', name)
}

/// A step that shows nothing wrong is no error.
pub(crate) type Step = Result<(), String>;

pub(crate) struct History<S> {
    pub(crate) source: S,
    /// How many entries a pull visits at most.
    pub(crate) part: usize,
    now: Instant,
    content: BTreeMap<TypeUrl, Content>,
    /// `None` once it is closed.
    readers: Vec<Option<Reader>>,
    /// What was done.
    pub(crate) steps: Vec<String>,
}

impl<S: Edit> History<S> {
    pub(crate) fn new(source: S, part: usize, now: Instant) -> Self {
        Self { source, part, now, content: BTreeMap::new(), readers: Vec::new(), steps: Vec::new() }
    }

    fn note(&mut self, step: String) {
        self.steps.push(step);
    }

    /// There is this, at this version.
    pub(crate) fn put(&mut self, of: &str, name: &str, version: &str) -> Step {
        self.put_for(of, name, version, None)
    }

    /// The same, for a time.
    pub(crate) fn put_for(&mut self, of: &str, name: &str, version: &str, ttl: Option<Duration>) -> Step {
        self.note(format!("put {name} {version}"));
        let (type_url, name, version) = (TypeUrl::from(of), read(name)?, Version::from(version));
        let before = self.content.entry(type_url.clone()).or_default().insert(name.clone(), version.clone());
        let same = before.as_ref() == Some(&version);
        let frame = Frame::of_message(&type_url, format!("{name} {version}").as_bytes());
        let frame = frame.with_wrapper(Bytes::new(), ttl, false);
        let (now, resource) = (self.now, frame.into_resource(Some(version)));
        self.change(&type_url, &name, same, |source| source.put(&type_url, &name, resource, now))?;
        for reader in self.readers.iter_mut().flatten().filter(|reader| !same && reader.type_url == type_url) {
            reader.model.put(&name);
        }
        Ok(())
    }

    /// It is gone.
    pub(crate) fn remove(&mut self, of: &str, name: &str) -> Step {
        self.note(format!("remove {name}"));
        let (type_url, name, now) = (TypeUrl::from(of), read(name)?, self.now);
        let content = self.content.entry(type_url.clone()).or_default();
        let was_there = content.remove(&name).is_some();
        let content = content.clone();
        self.change(&type_url, &name, !was_there, |source| source.remove(&type_url, &name, now))?;
        for reader in self.readers.iter_mut().flatten().filter(|reader| reader.type_url == type_url) {
            match was_there {
                true => reader.model.remove(&name, &content),
                false => reader.model.remove_unknown(&name),
            }
        }
        Ok(())
    }

    /// Does something to a name. Who keeps count of what changed must have another number then.
    fn change(&mut self, type_url: &TypeUrl, name: &ResourceName, same: bool, change: impl FnOnce(&mut S)) -> Step {
        let Self { source, readers, .. } = self;
        let concerned = |reader: &&Reader| !same && reader.type_url == *type_url && reader.model.covers(name);
        let readers: Vec<_> = readers.iter_mut().flatten().collect();
        let ids: Vec<_> = readers.iter().map(|reader| &**reader).filter(concerned).map(|reader| reader.id).collect();
        let before: Vec<_> = ids.iter().map(|id| source.changes(*id)).collect();
        change(source);
        readers.into_iter().for_each(Reader::interrupt);
        let after = ids.iter().map(|id| source.changes(*id));
        match before.into_iter().zip(after).any(|(before, after)| before.is_some() && before == after) {
            true => Err(format!("{name} changed, and the number of changes did not")),
            false => Ok(()),
        }
    }

    /// Whether the source has errors, and this is one of its now.
    pub(crate) fn fail(&mut self, of: &str, name: &str, code: i32) -> Result<bool, String> {
        self.note(format!("fail {name} {code}"));
        let error = ResourceError::new(code, format!("{name} fails"));
        self.readers.iter_mut().flatten().for_each(Reader::interrupt);
        Ok(self.source.fail(&of.into(), &read(name)?, error, self.now))
    }

    /// A subscriber with these interests from the first on.
    pub(crate) fn open(&mut self, of: &str, interests: &[&str]) -> Result<usize, String> {
        self.open_with(of, interests, &[])
    }

    /// The same, with names and versions that it has from before.
    pub(crate) fn open_with(&mut self, of: &str, interests: &[&str], held: &[(&str, &str)]) -> Result<usize, String> {
        let at = self.readers.len();
        self.note(format!("{at} opens, wants {interests:?} and has {held:?}"));
        let type_url = TypeUrl::from(of);
        let interests: Vec<Interest> =
            interests.iter().map(|text| read(text).map(Interest::from)).collect::<Result<_, _>>()?;
        let held = held.iter().map(|(name, version)| Ok((read(name)?, Version::from(*version))));
        let held = held.collect::<Result<Vec<_>, String>>()?;
        let content = self.content.entry(type_url.clone()).or_default();
        self.readers.push(Some(Reader::open(&mut self.source, &type_url, &interests, held, content)?));
        Ok(at)
    }

    pub(crate) fn subscribe(&mut self, at: usize, interest: &str) -> Step {
        self.note(format!("{at} subscribes to {interest}"));
        let interest = read(interest)?.into();
        self.with(at, |reader, source, _, content| reader.subscribe(source, &interest, content))
    }

    pub(crate) fn unsubscribe(&mut self, at: usize, interest: &str) -> Step {
        self.note(format!("{at} unsubscribes from {interest}"));
        let interest = read(interest)?.into();
        self.with(at, |reader, source, _, content| reader.unsubscribe(source, &interest, content))
    }

    /// One pull, whatever is left.
    pub(crate) fn pull(&mut self, at: usize, removals: Removals) -> Step {
        self.note(format!("{at} pulls"));
        self.with(at, |reader, source, part, content| reader.pull(source, removals, part, content).map(drop))
    }

    /// All there is to pull but removals, in parts.
    pub(crate) fn settle_additions(&mut self, at: usize) -> Step {
        self.note(format!("{at} pulls all additions"));
        self.with(at, Reader::settle_additions)
    }

    /// All there is to pull, in parts: then it knows all there is.
    pub(crate) fn settle(&mut self, at: usize) -> Step {
        self.note(format!("{at} pulls all"));
        self.with(at, Reader::settle)
    }

    pub(crate) fn settle_all(&mut self) -> Step {
        (0..self.readers.len()).try_for_each(|at| self.settle(at))
    }

    pub(crate) fn close(&mut self, at: usize) {
        self.note(format!("{at} closes"));
        if let Some(reader) = self.readers.get_mut(at).and_then(Option::take) {
            reader.close(&mut self.source);
        }
    }

    /// What it wants, but for closed ones.
    pub(crate) fn wants(&self, at: usize) -> Vec<String> {
        let reader = self.readers.get(at).and_then(Option::as_ref);
        reader.into_iter().flat_map(|reader| &reader.model.wants).map(|interest| interest.as_str().to_owned()).collect()
    }

    fn with(&mut self, at: usize, act: impl FnOnce(&mut Reader, &mut S, usize, &Content) -> Step) -> Step {
        let Self { source, part, content, readers, .. } = self;
        let Some(reader) = readers.get_mut(at).and_then(Option::as_mut) else { return Ok(()) };
        act(reader, source, *part, content.entry(reader.type_url.clone()).or_default())
    }
}

fn read(name: &str) -> Result<ResourceName, String> {
    ResourceName::parse(name).map_err(|error| error.to_string())
}
