//! What stands for what (rule 105).

use crate::keys::SlotKey;
use crate::store::slot::Slot;
use crate::store::tables::Store;

impl<V> Store<V> {
    /// The slot that who asked for the name in `at` is sent: another one if the name is an alias.
    pub(crate) fn resolve(&self, at: SlotKey) -> SlotKey {
        let Slot { type_key, ref name, .. } = self.slots[at];
        let aliases = &self.types[type_key].aliases;
        if aliases.is_empty() {
            return at;
        }
        aliases.canonical(name).and_then(|canonical| self.slot_of(type_key, canonical)).unwrap_or(at)
    }

    /// The slots of the aliases of a resource that somebody asked for.
    pub(crate) fn alias_slots(&self, at: SlotKey) -> impl Iterator<Item = SlotKey> {
        let Slot { type_key, ref name, .. } = self.slots[at];
        let aliases = self.types[type_key].aliases.of(name);
        aliases.iter().filter_map(move |alias| self.slot_of(type_key, alias))
    }

    /// Whether somebody did.
    pub(crate) fn is_watched(&self, at: SlotKey) -> bool {
        let watched = |at: SlotKey| self.slots[at].watchers.count > 0;
        watched(at) || self.alias_slots(at).any(watched)
    }
}
