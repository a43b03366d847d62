//! What the origin has for others than the client.

use std::time::Instant;

use xdstp_uri::ResourceName;

use super::{Origin, Replica};
use crate::variants::Form;
use crate::world::{Of, World};

impl Origin {
    /// What is for others comes, or goes, where nothing is wrong: what comes would end that.
    pub(crate) fn vary(&mut self, world: &World, of: Of, name: usize, which: usize, body: Option<u8>, now: Instant) {
        let name = &world.kinds[of].names[name];
        let failing = self.errors[of].keys().any(|failing| name.answers(failing));
        let has_others = |form: &Form| self.body(of, name).is_none_or(|body| form.has_others(body));
        let Some(form) = world.setup.variants.filter(|form| !failing && has_others(form)) else { return };
        let resource = body.map(|body| world.resource(of, name, body, None));
        if resource.is_none() && !self.content[of].contains_key(name) {
            // What came and went before anybody looked may be told once more to be absent.
            self.note(of, name);
            if self.has_only(world, of, name, form, which) {
                self.removed[of].insert(name.clone(), self.moment);
            }
        }
        for replica in &mut self.replicas {
            form.vary(replica.varied(&world.kinds[of].url, name, now), which, resource.as_ref());
        }
    }
    /// Whether all that some replica has of a name is this one for others.
    fn has_only(&self, world: &World, of: Of, name: &ResourceName, form: Form, which: usize) -> bool {
        let url = &world.kinds[of].url;
        self.replicas.iter().any(|Replica { cache, .. }| {
            let there = cache
                .resources()
                .filter(|stored| stored.name == name && *stored.type_url == *url && stored.resource.is_some());
            let mut variants = there.map(|stored| stored.variant).peekable();
            variants.peek().is_some() && variants.all(|variant| form.is_other(variant, which))
        })
    }
}
