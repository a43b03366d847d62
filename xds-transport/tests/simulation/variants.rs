//! The same content, under variants (TP2): the client is told what it would be told without any.
//!
//! Each body of a name has a variant of its own that is for the client, so that a change of the body may be a swap of two
//! variants; beside them come and go others that are not for it. Either the client sends what it selects by, or the
//! server selects for it by the same, and no message says a variant.

use std::sync::LazyLock;
use std::time::Instant;

use xds_matcher::DynamicParameters;
use xds_matcher::draft::Subscription;
use xds_transport::{Dialect, Frame};
use xdstp_cache::{Cache, Resource, Selector, SubscriberId, TypeUrl, Variant};
use xdstp_uri::ResourceName;

/// In which form of TP2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) draft: bool,
    /// Names have no variants at times. What takes the place of such a one, and goes before anybody is told, full states do
    /// not repeat: they repeat what it took the place of.
    pub(crate) plain: bool,
    /// The client says itself what it selects; or the server selects for it, whatever it says.
    pub(crate) on_wire: bool,
}

struct Forms {
    selector: Selector,
    /// Those for the client. One alone is there at a time.
    own: [Variant; 4],
    /// Those that are not.
    others: [Variant; 2],
}

static FINAL: LazyLock<Forms> = LazyLock::new(|| {
    let variant = |text: &str| Variant::Constraints(text.parse().unwrap());
    let own = ["env=prod", "v=1", "exists(env) and not v=2"].map(variant);
    Forms {
        selector: Selector::Parameters(DynamicParameters::from_iter([("env", "prod"), ("v", "1")])),
        own: with_plain(own),
        others: ["env=test", "not exists(v)"].map(variant),
    }
});

static DRAFT: LazyLock<Forms> = LazyLock::new(|| {
    let variant = |pairs: &[(&str, &str)]| Variant::Parameters(DynamicParameters::from_iter(pairs.iter().copied()));
    let own: [&[_]; 3] = [&[("env", "prod")], &[("v", "1")], &[("env", "prod"), ("v", "1"), ("shard", "3")]];
    let others: [&[_]; 2] = [&[("env", "test")], &[("env", "prod"), ("v", "2")]];
    Forms {
        selector: Selector::Constraints(Subscription::where_present(&"env=prod and v=1".parse().unwrap()).unwrap()),
        own: with_plain(own.map(variant)),
        others: others.map(variant),
    }
});

fn with_plain([first, second, third]: [Variant; 3]) -> [Variant; 4] {
    [first, second, third, Variant::plain().clone()]
}

/// What an origin does to a cache, at a moment.
pub(crate) struct Varied<'a> {
    pub(crate) cache: &'a mut Cache<Frame>,
    pub(crate) woken: &'a mut Vec<SubscriberId>,
    pub(crate) url: &'a TypeUrl,
    pub(crate) name: &'a ResourceName,
    pub(crate) now: Instant,
}

impl Form {
    fn forms(self) -> &'static Forms {
        if self.draft { &DRAFT } else { &FINAL }
    }

    pub(crate) fn dialect(self) -> Dialect {
        if self.draft { Dialect::Draft } else { Dialect::Final }
    }

    /// What the client sends for everything.
    pub(crate) fn selector(self) -> &'static Selector {
        &self.forms().selector
    }

    /// Whether something that is kept is there for the client.
    pub(crate) fn is_own(self, variant: Option<&Variant>) -> bool {
        self.forms().own.contains(variant.unwrap_or(Variant::plain()))
    }

    /// Whether it is one of those for others.
    pub(crate) fn is_other(self, variant: Option<&Variant>, which: usize) -> bool {
        variant.is_some_and(|variant| self.forms().others.get(which) == Some(variant))
    }

    /// The variant of a body. That of one that comes again is what it was, or else it would be news.
    fn own(self, body: u8) -> &'static Variant {
        let own = &self.forms().own;
        &own[usize::from(body) % (own.len() - usize::from(!self.plain))]
    }

    /// Whether others may be there beside a body: that a name gets its first variants has it sent again as it was.
    pub(crate) fn has_others(self, body: u8) -> bool {
        !self.own(body).is_plain()
    }

    /// The body is this one from now on, in one step.
    pub(crate) fn put(self, of: Varied<'_>, body: u8, resource: &Resource<Frame>) {
        let mut edit = of.cache.edit(of.now);
        let (own, chosen) = (&self.forms().own, self.own(body));
        own.iter().filter(|one| *one != chosen).for_each(|gone| edit.remove_variant(of.url, of.name, gone));
        edit.put_variant(of.url, of.name, chosen, resource.clone());
        of.woken.extend(edit.finish());
    }

    /// Nothing is there for the client any more, and maybe something for others.
    pub(crate) fn remove(self, of: Varied<'_>) {
        let mut edit = of.cache.edit(of.now);
        self.forms().own.iter().for_each(|gone| edit.remove_variant(of.url, of.name, gone));
        of.woken.extend(edit.finish());
    }

    /// What is for others comes, or goes: that is nothing to the client.
    pub(crate) fn vary(self, of: Varied<'_>, which: usize, resource: Option<&Resource<Frame>>) {
        let mut edit = of.cache.edit(of.now);
        let variant = &self.forms().others[which];
        match resource {
            Some(resource) => _ = edit.put_variant(of.url, of.name, variant, resource.clone()),
            None => edit.remove_variant(of.url, of.name, variant),
        }
        of.woken.extend(edit.finish());
    }
}
