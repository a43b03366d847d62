//! Telling HTTP/2 from HTTP/1: what bounds an admin connection bounds one of HTTP/1.

/// How a client of HTTP/2 begins (RFC 9113, 3.4), as far as it takes to know it: `PRI` is a method of nobody else.
const PREFACE: &[u8] = b"PRI ";

/// How much of the preface a connection began with; `None` once it began with something else.
#[derive(Debug)]
pub(super) struct Preface(Option<usize>);

impl Default for Preface {
    fn default() -> Self {
        Self(Some(0))
    }
}

impl Preface {
    /// Whether the bytes that came next complete it.
    pub(super) fn completes(&mut self, bytes: &[u8]) -> bool {
        let Some(had) = self.0 else { return false };
        let rest = PREFACE.get(had..).unwrap_or_default();
        let compared = rest.len().min(bytes.len());
        let same = rest.get(..compared) == bytes.get(..compared);
        self.0 = same.then_some(had + compared).filter(|had| *had < PREFACE.len());
        same && compared == rest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_http2(pieces: &[&str]) -> bool {
        let mut preface = Preface::default();
        pieces.iter().any(|piece| preface.completes(piece.as_bytes()))
    }

    #[test]
    fn http_2_is_known_by_its_beginning_wherever_that_is_cut() {
        for pieces in
            [&["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] as &[_], &["PRI "], &["P", "R", "", "I", " "], &["PR", "I * HTTP"]]
        {
            assert!(is_http2(pieces), "{pieces:?}");
        }
        for pieces in [
            &["GET / HTTP/1.1\r\n"] as &[_],
            &["P", "OST "],
            &["PRI"],
            &[""],
            &["GET ", "PRI "],
            &["PRINT "],
            &["xPRI "],
        ] {
            assert!(!is_http2(pieces), "{pieces:?}");
        }
    }
}
