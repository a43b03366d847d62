//! Origins that change several types at once, and see to it that what is referred to is there.

use crate::history::At;
use crate::network::Network;
use crate::world::{Body, Of, Place, REFERRED, place_of_referred};
use xdstp_uri::ResourceName;

/// How often what is busy changes, in ms.
const EVERY: u64 = 300;

/// What changes all the time.
pub(super) struct Busy {
    pub(super) next: u64,
    pub(super) until: u64,
    pub(super) of: Of,
    pub(super) name: ResourceName,
    pub(super) place: Place,
}

impl Network<'_> {
    /// Something refers to other clusters now, or goes if it refers to none. Forwards these are there first, and what nobody
    /// uses goes last; `backwards` is an origin that has no order.
    pub(super) fn switch(
        &mut self,
        (of, name, at): (Of, usize, At),
        to: u64,
        pace: u64,
        backwards: bool,
    ) -> Result<(), String> {
        let name = self.world.kinds[of].names[name].clone();
        let place = at.place(&self.world.setup, &name);
        let referred = |of: Of, bit: usize| {
            let referred = &self.world.kinds[of].names[bit];
            (place_of_referred(referred, place, &name), of, referred.clone())
        };
        // What is for everybody refers to nothing that is not.
        let may =
            |bit: &usize| to & 1 << bit != 0 && [None, place.group].contains(&referred(REFERRED[0], *bit).0.group);
        let bits: Vec<_> = (0..self.world.kinds[of].names.len()).filter(may).collect();
        let uses = bits.iter().map(|bit| 1 << bit).sum();
        let needed: Vec<_> = REFERRED.iter().flat_map(|of| bits.iter().map(|bit| referred(*of, *bit))).collect();
        if backwards {
            self.remove_unused(Some((place, of, &name, uses)), pace)?;
        }
        for (place, of, name) in needed {
            if self.origins.resource(place, of, &name).is_none() {
                self.put(of, &name, place, Body::default());
                self.pause(pace)?;
            }
        }
        if uses == 0 {
            let now = self.instant();
            self.origins.remove(&self.world, of, &name, place, now);
        } else {
            self.put(of, &name, place, Body { uses, ..Body::default() });
        }
        if !backwards {
            self.pause(pace)?;
            self.remove_unused(None, pace)?;
        }
        Ok(())
    }

    fn remove_unused(&mut self, but: Option<(Place, Of, &ResourceName, u64)>, pace: u64) -> Result<(), String> {
        for (place, of, name) in self.origins.unused(&self.world, but) {
            let now = self.instant();
            self.origins.remove(&self.world, of, &name, place, now);
            self.pause(pace)?;
        }
        Ok(())
    }

    pub(super) fn put(&mut self, of: Of, name: &ResourceName, place: Place, body: Body) {
        let now = self.instant();
        self.origins.put(&self.world, of, name, place, body, now);
    }

    fn pause(&mut self, pace: u64) -> Result<(), String> {
        if pace > 0 {
            self.touch();
            self.run_until(self.now + pace)?;
        }
        Ok(())
    }

    /// What is busy changes.
    pub(super) fn be_busy(&mut self) {
        let now = self.now;
        let mut due = Vec::new();
        for busy in self.busy.iter_mut().filter(|busy| busy.next <= now) {
            busy.next = now + EVERY;
            due.push((busy.of, busy.name.clone(), busy.place));
        }
        self.busy.retain(|busy| busy.until > now);
        for (of, name, place) in due {
            if let Some((body, _)) = self.origins.resource(place, of, &name) {
                let body = body.clone();
                self.put(of, &name, place, body);
                self.touch();
            }
        }
    }
}
