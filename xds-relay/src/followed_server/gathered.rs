//! What a control plane has, as far as it said so; and what of it is released.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xds_transport::Frame;
use xdstp_cache::Resource;
use xdstp_client::federation::Held;

use super::references::References;
use crate::keyed_origin::Name;
use crate::relay_core::InRelease;

/// How much of a control plane is followed: as many resources, and so many bytes of them, of their names and of those in them.
const MOST: Most = Most { resources: 1_000_000, bytes: 1 << 30 };

#[derive(Clone, Copy, Debug)]
struct Most {
    resources: usize,
    bytes: usize,
}

type All = BTreeMap<Name, Arc<Said>>;

/// What it said last.
pub(super) struct Gathered {
    references: References,
    said: All,
    /// Names that are asked for, beside what collections bring.
    named: BTreeSet<Name>,
    /// Those of them that it said do not exist.
    absent: BTreeSet<Name>,
    /// What was released of it last, on this run.
    before: All,
    bytes: usize,
    most: Most,
    /// There was more than that.
    is_over: bool,
    /// How often it was looked what is to be asked for.
    #[cfg(test)]
    asked: usize,
}

/// A resource.
#[derive(Debug)]
struct Said {
    resource: Resource<Frame>,
    /// Names that come from here: it is of use only with them.
    needs: Vec<Name>,
    /// Names that may come from elsewhere.
    wishes: Vec<Name>,
}

/// The names that are to be asked for, and those that are not any more.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) more: Vec<Name>,
    pub(super) left: Vec<Name>,
}

/// What there is to release.
#[derive(Debug, Default)]
pub(super) struct Whole {
    all: All,
    /// The names that are waited for, each with one that refers to it.
    pub(super) waits: BTreeMap<Name, Name>,
    /// Something is not in it that may be in what is served: nothing is known to stand in for it.
    pub(super) lacks: bool,
    /// Something in it is as the candidate has it alone, while the control plane says something else by now.
    pub(super) has_candidates: bool,
}

impl Said {
    fn new(resource: Resource<Frame>, name: &Name, references: &References) -> Self {
        let (needs, wishes) = references.of(name, resource.value.any());
        // Its version is that of its content: the control plane's may change without it, and would be news. And whoever serves it lets
        // it live on, as no heartbeat of the control plane comes to a release.
        Self { resource: resource.value.until(None).into_resource(None), needs, wishes }
    }

    /// What it takes, with its name.
    fn bytes(&self, name: &Name) -> usize {
        let size = |(_, name): &Name| size_of::<Name>() + name.as_str().len();
        let frame = &self.resource.value;
        frame.any().len() + frame.wrapper().len() + size(name) + self.refers().map(size).sum::<usize>()
    }

    fn refers(&self) -> impl Iterator<Item = &Name> {
        self.needs.iter().chain(&self.wishes)
    }

    fn is_as(&self, other: &Self) -> bool {
        let (one, other) = (&self.resource.value, &other.resource.value);
        (one.any(), one.wrapper(), one.ttl(), one.variant())
            == (other.any(), other.wrapper(), other.ttl(), other.variant())
    }
}

impl Gathered {
    pub(super) fn new(references: References) -> Self {
        Self {
            references,
            said: All::new(),
            named: BTreeSet::new(),
            absent: BTreeSet::new(),
            before: All::new(),
            bytes: 0,
            most: MOST,
            is_over: false,
            #[cfg(test)]
            asked: 0,
        }
    }

    /// A resource is there. If it is too much, all is as it was, until all is said anew.
    pub(super) fn put(&mut self, name: Name, resource: Resource<Frame>) {
        let said = Said::new(resource, &name, &self.references);
        self.absent.remove(&name);
        let before = self.said.get(&name);
        let bytes = self.bytes - before.map_or(0, |before| before.bytes(&name)) + said.bytes(&name);
        let resources = self.said.len() + usize::from(before.is_none());
        if resources > self.most.resources || bytes > self.most.bytes {
            self.is_over = true;
            return;
        }
        self.bytes = bytes;
        self.said.insert(name, Arc::new(said));
    }

    /// A resource is not there, or not any more.
    pub(super) fn gone(&mut self, name: Name) {
        self.forget(&name);
        if self.named.contains(&name) {
            self.absent.insert(name);
        }
    }

    fn forget(&mut self, name: &Name) {
        if let Some(before) = self.said.remove(name) {
            self.bytes -= before.bytes(name);
        }
    }

    #[cfg(test)]
    pub(super) fn asked(&self) -> usize {
        self.asked
    }

    #[cfg(test)]
    pub(super) fn at_most(&mut self, resources: usize) {
        self.most.resources = resources;
    }

    /// All is to be said anew.
    pub(super) fn begin_anew(&mut self) {
        self.said.clear();
        self.named.clear();
        self.absent.clear();
        (self.bytes, self.is_over) = (0, false);
    }

    /// What is referred to is asked for, by what is there and by what was released in its place, and nothing else is any more.
    pub(super) fn ask(&mut self) -> Asked {
        #[cfg(test)]
        {
            self.asked += 1;
        }
        let mut wanted = BTreeSet::new();
        for (name, said) in &self.said {
            let before = self.before.get(name).filter(|_| self.late(said).is_some());
            wanted.extend(said.refers().chain(before.into_iter().flat_map(|before| before.refers())).cloned());
        }
        let more: Vec<_> = wanted.difference(&self.named).cloned().collect();
        let left: Vec<_> = self.named.difference(&wanted).cloned().collect();
        for name in &left {
            self.absent.remove(name);
            self.forget(name);
        }
        self.named = wanted;
        Asked { more, left }
    }

    /// The first name that it needs of which nothing is known.
    fn late<'a>(&self, said: &'a Said) -> Option<&'a Name> {
        said.needs.iter().find(|name| !self.is_known(name))
    }

    /// Whether it is known whether there is such a resource.
    pub(super) fn is_known(&self, name: &Name) -> bool {
        self.said.contains_key(name) || self.absent.contains(name)
    }

    /// All names that something that is there refers to and of which nothing is known, each with one that refers to it: also those that
    /// may come from elsewhere.
    pub(super) fn open(&self) -> BTreeMap<Name, Name> {
        let mut open = BTreeMap::new();
        for (by, said) in &self.said {
            for name in said.refers().filter(|name| !self.is_known(name)) {
                open.entry(name.clone()).or_insert_with(|| by.clone());
            }
        }
        open
    }

    /// Whether it would be in a release by its name.
    pub(super) fn is_released(&self, name: &Name) -> bool {
        self.references.is_released(name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// Why it is not followed any further, if it has too much.
    pub(super) fn too_much(&self) -> Option<String> {
        let Most { resources, bytes } = self.most;
        self.is_over.then(|| format!("it has more than {resources} resources or {} MiB of them", bytes >> 20))
    }

    /// All that is there with what it needs; what waits, and what is refused that never was good on this run, is as it is `served`: what was
    /// gathered before may be what somebody rolled back.
    pub(super) fn whole<'a>(
        &self,
        refused: impl Iterator<Item = &'a Name> + Clone,
        served: impl Fn() -> Result<BTreeMap<Name, InRelease>, &'static str>,
    ) -> Whole {
        let mut former = Former { references: &self.references, served: &served, read: None };
        let mut whole = Whole::default();
        // What is referred to by name is there with what refers to it.
        for (name, said) in self.said.iter().filter(|(name, _)| !self.named.contains(name)) {
            match self.late(said) {
                None => self.add(&mut whole, (name, said), &mut former, |name| !self.absent.contains(name)),
                Some(late) => {
                    whole.waits.entry(late.clone()).or_insert_with(|| name.clone());
                    self.add_former(&mut whole, name, &mut former);
                }
            }
        }
        for name in refused.clone().filter(|name| !self.said.contains_key(name) && !self.named.contains(name)) {
            self.add_former(&mut whole, name, &mut former);
        }
        whole.lacks = matches!(former.read, Some(Err(_)));
        // A good one of this run stands in for it, or it was added above.
        let mut stands_in = refused.filter(|name| whole.all.contains_key(name));
        whole.has_candidates |= stands_in.any(|name| former.is_candidates(name));
        whole
    }

    /// A resource as it is served, if it is.
    fn add_former(&self, whole: &mut Whole, name: &Name, former: &mut Former<'_>) {
        let Some(said) = former.of(name) else { return };
        let mut absent = said.refers().filter(|refers| !self.said.contains_key(refers));
        whole.has_candidates |= former.is_candidates(name) || absent.any(|refers| former.is_candidates(refers));
        self.add(whole, (name, &said), former, |_| true);
    }

    /// A resource, and what it refers to: where that is not there, it may be as it was.
    fn add(
        &self,
        whole: &mut Whole,
        (name, said): (&Name, &Arc<Said>),
        former: &mut Former<'_>,
        may_be_former: impl Fn(&Name) -> bool,
    ) {
        for refers in said.refers() {
            let there = self.said.get(refers).cloned();
            if let Some(there) = there.or_else(|| may_be_former(refers).then(|| former.of(refers)).flatten()) {
                whole.all.insert(refers.clone(), there);
            }
        }
        whole.all.insert(name.clone(), said.clone());
    }

    /// It is released from now on. Whether it is otherwise than what was last.
    pub(super) fn release(&mut self, whole: Whole) -> bool {
        let mut pairs = self.before.iter().zip(&whole.all);
        let is_same = self.before.len() == whole.all.len()
            && pairs.all(|((one, this), (other, that))| one == other && (Arc::ptr_eq(this, that) || this.is_as(that)));
        self.before = whole.all;
        !is_same
    }

    /// Others may release something since: what is served stands in for what waits.
    pub(super) fn forget_released(&mut self) {
        self.before.clear();
    }

    /// What was released last.
    pub(super) fn released(&self) -> Vec<Held> {
        let held =
            |((type_url, name), said): (&Name, &Arc<Said>)| (type_url.clone(), name.clone(), said.resource.clone());
        self.before.iter().map(held).collect()
    }
}

/// What is served.
struct Former<'a> {
    references: &'a References,
    served: &'a dyn Fn() -> Result<BTreeMap<Name, InRelease>, &'static str>,
    /// What is served, once it was needed.
    read: Option<Result<BTreeMap<Name, InRelease>, &'static str>>,
}

impl Former<'_> {
    fn of(&mut self, name: &Name) -> Option<Arc<Said>> {
        let resource = self.read().as_ref().ok()?.get(name)?.resource.clone();
        Some(Arc::new(Said::new(resource, name, self.references)))
    }

    /// Whether the candidate has it, and what is stable has not, or otherwise; or that is not known.
    fn is_candidates(&mut self, name: &Name) -> bool {
        let Ok(served) = self.read() else { return true };
        served.get(name).is_some_and(|of| of.is_candidates)
    }

    fn read(&mut self) -> &Result<BTreeMap<Name, InRelease>, &'static str> {
        self.read.get_or_insert_with(|| (self.served)())
    }
}

#[cfg(test)]
mod tests {
    use xdstp_cache::TypeUrl;
    use xdstp_uri::ResourceName;

    use super::*;

    fn name(text: &str) -> Name {
        (TypeUrl::from("x.Y"), ResourceName::parse(text).unwrap())
    }

    fn resource(body: &[u8]) -> Resource<Frame> {
        Frame::of_message(&"x.Y".into(), body).into_resource(None)
    }

    #[test]
    fn what_stands_in_for_what_is_refused_is_what_is_served_if_that_is_known() {
        let mut gathered = Gathered::new(References::default());
        gathered.put(name("a"), resource(b"1"));
        let whole = gathered.whole(std::iter::empty(), || panic!("nothing is lacking"));
        assert!(!whole.lacks && gathered.release(whole));
        gathered.gone(name("a"));
        let refused = ["a", "b", "c"].map(name);
        let as_stable = |resource| InRelease { resource, is_candidates: false };
        let served = || Ok(BTreeMap::from(["a", "b"].map(|text| (name(text), as_stable(resource(b"0"))))));
        let whole = gathered.whole(refused.iter(), served);
        let is = |whole: &Whole, text: &str| {
            whole.all.get(&name(text)).map(|said| said.resource.value.any().last().copied().unwrap())
        };
        assert_eq!(["a", "b", "c"].map(|text| is(&whole, text)), [Some(b'0'), Some(b'0'), None]);
        assert!(!whole.lacks);
        assert!(gathered.whole(refused.iter(), || Err("it cannot be read")).lacks);
        let whole = gathered.whole(refused.iter(), served);
        assert!(gathered.release(whole));
        let whole = gathered.whole(refused.iter(), served);
        assert!(!gathered.release(whole), "it is the same again");
    }

    #[test]
    fn what_is_released_lives_for_as_long_as_it_is_there_whatever_its_ttl() {
        let mut gathered = Gathered::new(References::default());
        let frame =
            resource(b"1").value.with_wrapper(Default::default(), Some(std::time::Duration::from_secs(60)), false);
        #[allow(clippy::disallowed_methods, reason = "any moment will do")]
        let expires = Some(std::time::Instant::now());
        gathered.put(name("a"), frame.until(expires).into_resource(None));
        let whole = gathered.whole(std::iter::empty(), || panic!("nothing is lacking"));
        assert!(gathered.release(whole));
        let released = gathered.released();
        let value = &released[0].2.value;
        assert!(value.ttl().is_some() && value.expires().is_none());
    }

    #[test]
    fn what_is_too_much_is_not_taken_and_counts_with_its_name() {
        let mut gathered = Gathered::new(References::default());
        gathered.most = Most { resources: 2, bytes: 1 << 20 };
        for text in ["a", "b", "b"] {
            gathered.put(name(text), resource(b"v"));
        }
        assert_eq!(gathered.too_much(), None);
        gathered.put(name("c"), resource(b""));
        assert!(gathered.too_much().is_some_and(|words| words.starts_with("it has more than 2 resources or 1 MiB")));
        gathered.begin_anew();
        assert_eq!((gathered.too_much(), gathered.bytes), (None, 0));
        let long = "n".repeat(1 << 10);
        gathered.most.bytes = 1 << 10;
        gathered.put(name(&long), resource(b""));
        assert!(gathered.too_much().is_some() && gathered.is_empty());
    }
}
