//! What there is beside the pages.

use maud::{Markup, html};

const ENDPOINTS: [(&str, &str); 10] = [
    ("/healthz", "200 as long as the process runs"),
    ("/readyz", "200 when clients should come, else 503 and why not"),
    ("/metrics", "for Prometheus"),
    ("/api/v1/status", "how the relay is: JSON, as are the next five"),
    ("/api/v1/origins", "its origins, and the streams to them"),
    ("/api/v1/clients", "who is served, and how each is"),
    ("/api/v1/releases", "what is released to whom, of scopes that have releases"),
    ("/api/v1/audit", "what was done with releases, by whom and why"),
    ("/api/v1/resources", "what is held"),
    ("/config_dump", "all of that at once: ?type=Cluster for one type, ?name=hello for names that contain a text"),
];

pub(super) fn endpoints() -> Markup {
    html! {
        dl.facts.paths {
            @for (path, what) in ENDPOINTS {
                dt { a href=(path) { code { (path) } } }
                dd { (what) }
            }
        }
    }
}
