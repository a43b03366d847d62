//! Scopes that want more than a request to their origin can name: who came with the most loses first, and nobody else loses
//! anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use xdstp_cache::TypeUrl;

use crate::federation::core::Federation;
use crate::federation::request_room::RequestRoom;
use crate::federation::scope::Scope;

/// The scopes that share a room, and what lacks it.
struct Crowd {
    room: Arc<RequestRoom>,
    scopes: Vec<Arc<Scope>>,
    /// By type, in bytes.
    lacking: BTreeMap<TypeUrl, usize>,
}

impl Federation {
    /// Where more is wanted than a request can name: what nobody wants any more goes at once, and then who wants most.
    /// Whoever that is, `end_largest` ends it: given the room, a type, and how many bytes of names of that are to go.
    pub fn make_room(&self, now: Instant, end_largest: &mut dyn FnMut(&Arc<RequestRoom>, &TypeUrl, usize)) {
        for Crowd { room, scopes, lacking } in self.crowds() {
            // While a first request is handled the origin is not asked: until it is, nobody else goes for the same.
            if !room.take_on() {
                continue;
            }
            for (type_url, lacking) in lacking {
                let forgone: usize = scopes.iter().map(|scope| scope.forgo(&type_url, now)).sum();
                if forgone < lacking {
                    end_largest(&room, &type_url, lacking - forgone);
                }
            }
            scopes.iter().for_each(|scope| scope.ask());
        }
    }

    fn crowds(&self) -> Vec<Crowd> {
        let mut crowds: BTreeMap<*const RequestRoom, Crowd> = BTreeMap::new();
        for scope in self.scopes() {
            let Some(room) = scope.room.clone() else { continue };
            let crowd = crowds.entry(Arc::as_ptr(&room)).or_insert_with(|| Crowd {
                room,
                scopes: Vec::new(),
                lacking: BTreeMap::new(),
            });
            for (type_url, size) in scope.lacking() {
                *crowd.lacking.entry(type_url).or_default() += size;
            }
            crowd.scopes.push(scope);
        }
        crowds.into_values().filter(|crowd| !crowd.lacking.is_empty()).collect()
    }
}
