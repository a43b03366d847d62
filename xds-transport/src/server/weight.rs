//! How many names one text counts for.

/// How many names one counts for, among what there may be of them: what is kept of a stream is bounded in bytes, too, and a
/// long name counts for each KiB that it begins.
///
/// ```
/// use xds_transport::server::weight;
///
/// assert_eq!((weight("cart"), weight(&"x".repeat(5000))), (1, 5));
/// ```
pub fn weight(text: &str) -> usize {
    1 + text.len() / 1024
}
