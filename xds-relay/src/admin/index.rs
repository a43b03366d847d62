use std::fmt::Write as _;

const PAGES: [(&str, &str); 9] = [
    ("/healthz", "200 as long as the process runs"),
    ("/readyz", "200 when subscribers should come, else 503 and why not"),
    ("/api/v1/status", "how the relay is, its origins, how many clients: JSON, as are the next two"),
    ("/api/v1/clients", "who is served, and how each is"),
    ("/api/v1/resources", "what is held"),
    ("/config_dump", "origins, resources with versions, subscribers: JSON"),
    ("/config_dump?type=Cluster", "the same for one type: a type URL or its end"),
    ("/config_dump?name=hello", "the same for names that contain a text"),
    ("/metrics", "for Prometheus"),
];

/// The list of pages, below a `note` where there is one.
pub(super) fn page(note: Option<&'static str>) -> String {
    let mut html = String::from(concat!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>xds-relay</title>\n",
        "<style>body{font:16px/1.5 sans-serif;margin:2em}dt{font-family:monospace}</style>\n",
        "<h1>xds-relay ",
        env!("CARGO_PKG_VERSION"),
        "</h1>\n"
    ));
    if let Some(note) = note {
        let _ = writeln!(html, "<p>{note}</p>");
    }
    html.push_str("<dl>\n");
    for (path, what) in PAGES {
        let _ = writeln!(html, "<dt><a href=\"{path}\">{path}</a></dt><dd>{what}</dd>");
    }
    html.push_str("</dl>\n</html>\n");
    html
}
