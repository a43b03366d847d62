//! How many names one text counts for.

use xdstp_uri::ResourceName;

/// How many names one counts for, among what there may be of them: what is kept of a stream is bounded in bytes, too, and a
/// long name counts for each KiB that it begins.
///
/// ```
/// use xds_transport::server::weight;
///
/// assert_eq!((weight("cart"), weight(&"x".repeat(5000))), (1, 5));
/// ```
pub fn weight(text: &str) -> usize {
    of_bytes(text.len())
}

/// The same of a name that a client brings along, with the version at which it holds the resource.
///
/// ```
/// use xds_transport::server::held_weight;
///
/// let name = "cart".parse().unwrap();
/// assert_eq!((held_weight(&name, "1"), held_weight(&name, &"x".repeat(5000))), (1, 5));
/// ```
pub fn held_weight(name: &ResourceName, version: &str) -> usize {
    of_bytes(name.as_str().len() + version.len())
}

fn of_bytes(count: usize) -> usize {
    1 + count / 1024
}
