//! Any bytes, read as whose a certificate is.

#[path = "../../src/grpc/server/certificate/subject.rs"]
#[allow(clippy::module_inception, reason = "the file has this name, too")]
mod subject;

/// It is a line of text, whatever it is, and not much longer than the bytes.
pub(crate) fn certificate_subject(bytes: &[u8]) {
    let text = subject::subject(bytes);
    assert!(!text.contains(|c: char| c.is_ascii_control()), "{text:?}");
    assert!(text.len() <= 16 + 8 * bytes.len(), "{} of {} bytes", text.len(), bytes.len());
}
