//! All of a range of keys at one revision, which comes in pages.

use bytes::Bytes;

use super::client::Client;
use super::failure::Failure;
use super::messages::{KeyValue, RangeRequest, RangeResponse};
use super::range::KeyRange;
use crate::state::store::{Entry, Listing, Revision};

/// How many keys the first page has. A server counts keys, not bytes: nobody knows yet how large these are.
const FIRST: usize = 16;
/// How many keys a page has at most.
const MOST: usize = 1000;
/// How many bytes a page is to have, more or less.
const PAGE: usize = 2 << 20;
/// How much is listed, in bytes: as much as etcd stores where nobody said otherwise.
const MOST_BYTES: usize = 2 << 30;
/// How often it is begun anew.
const ATTEMPTS: usize = 5;

/// All keys of a range, without the first `cut` bytes of each.
pub(super) async fn list(client: &Client, range: &KeyRange, cut: usize) -> Result<Listing, Failure> {
    for _ in 0..ATTEMPTS {
        if let Some(listing) = at_one_revision(client, range, cut).await? {
            return Ok(listing);
        }
    }
    Err(Failure::Elsewhere(format!("what was being listed was compacted away {ATTEMPTS} times")))
}

/// What one key has, without its first `cut` bytes.
pub(super) async fn read(client: &Client, key: String, cut: usize) -> Result<Option<Entry>, Failure> {
    let asked = RangeRequest { key: key.into_bytes(), limit: 1, ..RangeRequest::default() };
    match client.range(&asked).await?.0.kvs.pop() {
        Some(kv) if kv.key != asked.key => Err(Failure::Nonsense("a key that was not asked for")),
        Some(kv) => entry(kv, cut).map(Some),
        None => Ok(None),
    }
}

/// `None` if that revision went while it was read.
async fn at_one_revision(client: &Client, range: &KeyRange, cut: usize) -> Result<Option<Listing>, Failure> {
    let mut pages = Pages::new(range.clone());
    let mut begun = None;
    loop {
        let (answer, seen) = match client.patient(pages.late).range(&pages.next_request()).await {
            Ok(answered) => answered,
            Err(Failure::Late) if pages.limit > 1 => {
                pages.late += 1;
                pages.limit = (pages.limit / 4).max(1);
                continue;
            }
            Err(Failure::TooLarge) if pages.limit > 1 => {
                pages.limit = (pages.limit / 8).max(1);
                continue;
            }
            Err(Failure::Compacted) if pages.revision > 0 => return Ok(None),
            Err(failure) => return Err(failure),
        };
        if *begun.get_or_insert(seen.number) != seen.number {
            return Ok(None);
        }
        if pages.take(answer, cut)? {
            let Pages { entries, revision, no_text, .. } = pages;
            return Ok(Some(Listing { entries, revision, no_text }));
        }
    }
}

/// What came so far.
#[derive(Debug)]
struct Pages {
    /// What is still to come.
    rest: KeyRange,
    limit: usize,
    /// How many pages did not come in time.
    late: u32,
    /// 0 before the first page.
    revision: Revision,
    entries: Vec<Entry>,
    no_text: Vec<Bytes>,
    bytes: usize,
}

impl Pages {
    fn new(range: KeyRange) -> Self {
        let (entries, no_text) = (Vec::new(), Vec::new());
        Self { rest: range, limit: FIRST, late: 0, revision: 0, entries, no_text, bytes: 0 }
    }

    fn next_request(&self) -> RangeRequest {
        let KeyRange { key, end: range_end } = self.rest.clone();
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let revision = i64::try_from(self.revision).unwrap_or(i64::MAX);
        RangeRequest { key, range_end, limit, revision, keys_only: false }
    }

    /// Whether that was the last.
    fn take(&mut self, page: RangeResponse, cut: usize) -> Result<bool, Failure> {
        if self.revision == 0 {
            let revision = page.header.and_then(|header| Revision::try_from(header.revision).ok());
            self.revision = revision.filter(|revision| *revision > 0).ok_or(Failure::Nonsense("a revision is none"))?;
        }
        if page.kvs.len() > self.limit || (page.more && page.kvs.is_empty()) {
            return Err(Failure::Nonsense("a page of another size"));
        }
        let (count, mut bytes) = (page.kvs.len(), 0);
        for kv in page.kvs {
            if !self.rest.contains(&kv.key) {
                return Err(Failure::Nonsense("a key that was not asked for"));
            }
            self.rest = self.rest.after(&kv.key);
            bytes += kv.key.len() + kv.value.len();
            match is_text(&kv, cut) {
                true => self.entries.push(entry(kv, cut)?),
                false => self.no_text.push(kv.key.get(cut..).unwrap_or_default().to_vec().into()),
            }
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MOST_BYTES {
            return Err(Failure::Refused(format!("there is more than {MOST_BYTES} bytes to list")));
        }
        // As many as fit if they are as large as these, and not many more than there were: those that follow may be larger.
        let fitting = PAGE.checked_div(bytes / count.max(1)).unwrap_or(MOST);
        self.limit = fitting.clamp(1, MOST).min(self.limit * 2);
        Ok(!page.more)
    }
}

/// Whether a key is text, without its first `cut` bytes: what is not is no store's.
pub(super) fn is_text(kv: &KeyValue, cut: usize) -> bool {
    kv.key.get(cut..).is_some_and(|key| std::str::from_utf8(key).is_ok())
}

/// What a key has that [is text](is_text).
pub(super) fn entry(kv: KeyValue, cut: usize) -> Result<Entry, Failure> {
    let key = kv.key.get(cut..).and_then(|key| std::str::from_utf8(key).ok());
    let key = key.ok_or(Failure::Nonsense("a key is no text"))?.to_owned();
    let revision = Revision::try_from(kv.mod_revision).map_err(|_| Failure::Nonsense("a revision is none"))?;
    Ok(Entry { key, value: Bytes::from(kv.value), revision })
}

#[cfg(test)]
mod tests {
    use super::super::messages::Header;
    use super::*;

    fn page(keys: &[&str], value: usize, more: bool) -> RangeResponse {
        let kv = |key: &&str| KeyValue { key: key.as_bytes().to_vec(), mod_revision: 3, value: vec![0; value] };
        let header = Header { revision: 7, ..Header::default() };
        RangeResponse { header: Some(header), kvs: keys.iter().map(kv).collect(), more }
    }

    #[test]
    fn pages_go_on_after_the_last_key_at_the_revision_of_the_first() {
        let mut pages = Pages::new(KeyRange::of("p/"));
        assert_eq!(pages.next_request().revision, 0);
        assert!(!pages.take(page(&["p/a", "p/b"], 1, true), 2).unwrap());
        let next = pages.next_request();
        assert_eq!((next.key.as_slice(), next.range_end.as_slice(), next.revision), (&b"p/b\0"[..], &b"p0"[..], 7));
        assert!(pages.take(page(&["p/c"], 1, false), 2).unwrap());
        let keys: Vec<_> = pages.entries.iter().map(|entry| &*entry.key).collect();
        assert_eq!(keys, ["a", "b", "c"]);
    }

    #[test]
    fn a_page_has_as_many_keys_as_fit() {
        let mut pages = Pages::new(KeyRange::of("p/"));
        for (key, twice) in [("p/a", 32), ("p/b", 64), ("p/c", 128)] {
            pages.take(page(&[key], 1, true), 2).unwrap();
            assert_eq!(pages.limit, twice);
        }
        pages.take(page(&["p/d"], PAGE / 2, true), 2).unwrap();
        assert_eq!(pages.limit, 1);
    }

    #[test]
    fn what_no_server_says_is_not_taken() {
        let out_of_order = page(&["p/b", "p/a"], 1, false);
        let twice = page(&["p/a", "p/a"], 1, false);
        let elsewhere = page(&["q"], 1, false);
        let endless = page(&[], 1, true);
        let many = page(&["p/a"; FIRST + 1], 1, true);
        let timeless = RangeResponse { header: None, ..page(&["p/a"], 1, false) };
        for answer in [out_of_order, twice, elsewhere, endless, many, timeless] {
            let taken = Pages::new(KeyRange::of("p/")).take(answer.clone(), 2);
            assert!(matches!(taken, Err(Failure::Nonsense(_))), "{answer:?}");
        }
        let mut foreign = page(&["p/a"], 1, false);
        foreign.kvs[0].key = b"p/\xff".to_vec();
        let mut pages = Pages::new(KeyRange::of("p/"));
        assert!(pages.take(foreign, 2).unwrap() && pages.entries.is_empty(), "no text, and no store's");
        assert_eq!(pages.no_text, [&b"\xff"[..]]);
    }
}
