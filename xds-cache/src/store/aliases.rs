//! Which names stand for which resource.

use std::collections::{BTreeSet, HashMap};

use xdstp_uri::ResourceName;

/// The aliases of resources of one type: each stands for one resource, the last that claimed it (rule 105).
///
/// ```
/// use xdstp_cache::Aliases;
/// use xdstp_uri::ResourceName;
///
/// let names = ["routes/shop", "routes/till", "routes/shop.example"];
/// let [shop, till, alias]: [ResourceName; 3] = names.map(|name| name.parse().unwrap());
/// let mut aliases = Aliases::default();
/// aliases.insert(alias.clone(), &shop);
/// assert_eq!(aliases.insert(alias.clone(), &till), Some(shop.clone()));
/// assert_eq!(aliases.canonical(&alias), Some(&till));
/// assert!(aliases.of(&shop).is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    canonical: HashMap<ResourceName, ResourceName>,
    of: HashMap<ResourceName, BTreeSet<ResourceName>>,
}

static NONE: BTreeSet<ResourceName> = BTreeSet::new();

impl Aliases {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.canonical.is_empty()
    }

    /// The name of the resource that an alias stands for.
    pub fn canonical(&self, alias: &ResourceName) -> Option<&ResourceName> {
        self.canonical.get(alias)
    }

    /// The aliases of a resource.
    pub fn of(&self, name: &ResourceName) -> &BTreeSet<ResourceName> {
        self.of.get(name).unwrap_or(&NONE)
    }

    /// Lets an alias stand for a resource. What it stood for before is returned.
    pub fn insert(&mut self, alias: ResourceName, name: &ResourceName) -> Option<ResourceName> {
        let before = self.remove(&alias);
        self.canonical.insert(alias.clone(), name.clone());
        self.of.entry(name.clone()).or_default().insert(alias);
        before
    }

    /// Lets an alias stand for nothing. What it stood for is returned.
    pub fn remove(&mut self, alias: &ResourceName) -> Option<ResourceName> {
        // Mostly there are none, and no name is hashed for that.
        if self.is_empty() {
            return None;
        }
        let name = self.canonical.remove(alias)?;
        if let Some(aliases) = self.of.get_mut(&name) {
            aliases.remove(alias);
            if aliases.is_empty() {
                self.of.remove(&name);
            }
        }
        Some(name)
    }

    /// Takes all aliases from a resource.
    pub fn clear(&mut self, name: &ResourceName) -> BTreeSet<ResourceName> {
        if self.is_empty() {
            return BTreeSet::new();
        }
        let aliases = self.of.remove(name).unwrap_or_default();
        for alias in &aliases {
            self.canonical.remove(alias);
        }
        aliases
    }

    /// All of them, each with the name of the resource that it stands for, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceName, &ResourceName)> {
        self.canonical.iter()
    }
}
