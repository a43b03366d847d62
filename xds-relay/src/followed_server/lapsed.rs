//! What nobody let live on (TTL): silence is no answer, and it is there until the control plane says that it is gone.

use std::collections::HashSet;

use xds_transport::client::Update;
use xdstp_cache::TypeUrl;
use xdstp_uri::ResourceName;

/// What a stream knows no more because it lived until some time, over SotW.
#[derive(Default)]
pub(super) struct Lapsed(HashSet<(TypeUrl, ResourceName)>);

impl Lapsed {
    /// Nothing goes by an update that no response said. Over delta one says in so many words what is gone, whether the stream knew it or
    /// not; over SotW it is gone when a `full_state` lacks it.
    pub(super) fn keep(&mut self, update: &mut Update, full_state: bool) {
        let type_url = &update.type_url;
        if update.unsaid {
            let removed = std::mem::take(&mut update.removed).into_iter();
            self.0.extend(removed.filter(|_| full_state).map(|name| (type_url.clone(), name)));
        } else if full_state && update.rejected.is_empty() && !self.0.is_empty() {
            let came = update.changed.iter().chain(&update.repeated);
            let there: HashSet<_> = came.map(|changed| &changed.name).collect();
            let lapsed = self.0.extract_if(|(of, _)| of == type_url).map(|(_, name)| name);
            let gone: Vec<_> = lapsed.filter(|name| !there.contains(name)).collect();
            update.removed.extend(gone);
        }
    }

    /// A stream begins: what it lacks is not there.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
