//! Bearer tokens in a file, one in a line, that count anew when the file changes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, header};
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use crate::lock::lock;
use crate::text_file;

/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// The largest file that is read.
const MOST: u64 = 1 << 20;
/// What is shorter is guessed.
const SHORTEST: usize = 16;

/// The tokens in a file. Only their hashes are kept, and compared: how long that takes says nothing of a token.
pub(crate) struct Bearers {
    file: PathBuf,
    known: Mutex<BTreeSet<[u8; 32]>>,
    /// What is wrong with the file since it was read, and was said.
    said: Mutex<Option<String>>,
}

/// A token that a call carries: no more than it takes to know it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Shown([u8; 32]);

impl Shown {
    /// What tells it from others.
    pub(crate) fn hash(&self) -> [u8; 32] {
        self.0
    }
}

/// The token that a call carries.
pub(crate) fn shown(headers: &HeaderMap) -> Option<Shown> {
    let mut said = headers.get_all(header::AUTHORIZATION).into_iter();
    // Of several it is not known which counts.
    let (Some(said), None) = (said.next(), said.next()) else { return None };
    let (_, token) = said.to_str().ok()?.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))?;
    Some(Shown(hash(token.trim())))
}

impl Bearers {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or has no tokens, in words that name it.
    pub(crate) fn load(file: &Path) -> Result<Self, String> {
        Ok(Self { file: file.to_owned(), known: Mutex::new(read(file)?), said: Mutex::default() })
    }

    /// Whether a token is one of them.
    pub(crate) fn accepts(&self, token: Option<&Shown>) -> bool {
        token.is_some_and(|Shown(token)| lock(&self.known).contains(token))
    }

    /// Whether there was anything new.
    fn look(&self) -> Result<bool, String> {
        let now = read(&self.file)?;
        let mut known = lock(&self.known);
        let changed = *known != now;
        *known = now;
        Ok(changed)
    }

    async fn follow(self: Arc<Self>) {
        let looking = self.clone();
        // A disk may not answer.
        let looked = tokio::task::spawn_blocking(move || looking.look()).await;
        let words = match looked {
            Ok(Ok(changed)) => {
                if changed {
                    tracing::info!(file = %self.file.display(), "tokens are read anew");
                }
                None
            }
            Ok(Err(words)) => Some(words),
            Err(error) => Some(error.to_string()),
        };
        let mut said = lock(&self.said);
        if let Some(words) = words.as_ref().filter(|words| said.as_ref() != Some(words)) {
            tracing::warn!("new tokens do not count, those before do: {words}");
        }
        *said = words;
    }
}

/// Reads the files there are again every so often. What is not good does not count, and is said once.
pub(crate) async fn follow(all: impl Fn() -> Vec<Arc<Bearers>>) {
    loop {
        sleep(LOOK).await;
        for bearers in all() {
            bearers.follow().await;
        }
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn read(file: &Path) -> Result<BTreeSet<[u8; 32]>, String> {
    let mut text = String::new();
    let mut read = || {
        // A FIFO has no end.
        let kind = std::fs::metadata(file)?.file_type();
        if !kind.is_file() {
            return Err(io::Error::other(format!("{}, not a file", text_file::name(kind))));
        }
        File::open(file)?.take(MOST + 1).read_to_string(&mut text)
    };
    let bad = |words: &str| format!("{}: {words}", file.display());
    read().map_err(|error: io::Error| bad(&error.to_string()))?;
    if text.len() as u64 > MOST {
        return Err(bad("it is too large for a list of tokens"));
    }
    let mut known = BTreeSet::new();
    for (at, token) in text.lines().map(str::trim).enumerate().filter(|(_, token)| !token.is_empty()) {
        if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let words = format!("line {}: expected a token of at least {SHORTEST} letters, digits and signs", at + 1);
            return Err(bad(&words));
        }
        known.insert(hash(token));
    }
    if known.is_empty() { Err(bad("there is no token in it; expected one in each line")) } else { Ok(known) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ONE: &str = "one-0123456789abcdef";
    const TWO: &str = "two-0123456789abcdef";

    fn headers(values: &[&str]) -> Option<Shown> {
        shown(&values.iter().map(|value| (header::AUTHORIZATION, value.parse().unwrap())).collect())
    }

    #[test]
    fn a_call_must_carry_one_of_the_tokens_and_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tokens");
        fs::write(&file, format!("\n {ONE}\r\n{TWO}")).unwrap();
        let bearers = Bearers::load(&file).unwrap();
        for token in [ONE, TWO] {
            assert!(bearers.accepts(headers(&[&format!("Bearer {token}")]).as_ref()));
            assert!(bearers.accepts(headers(&[&format!("bearer  {token}")]).as_ref()));
        }
        for values in [
            &[][..],
            &[ONE],
            &["Basic one-0123456789abcdef"],
            &["Bearer "],
            &["Bearer one-0123456789abcde"],
            &["Bearer one-0123456789abcdefg"],
            &["Bearer one-0123456789abcdef", "Bearer one-0123456789abcdef"],
        ] {
            assert!(!bearers.accepts(headers(values).as_ref()), "{values:?}");
        }
    }

    #[test]
    fn what_is_no_list_of_tokens_does_not_replace_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tokens");
        assert!(Bearers::load(&file).is_err_and(|words| words.starts_with(&file.display().to_string())));
        assert!(Bearers::load(directory.path()).is_err_and(|words| words.contains(": a directory, not a file")));
        fs::write(&file, ONE).unwrap();
        let bearers = Bearers::load(&file).unwrap();
        assert!(!bearers.look().unwrap());
        for (text, words) in [("", "no token"), ("short", "line 1"), ("a b c d e f g h i j", "line 1")] {
            fs::write(&file, text).unwrap();
            assert!(bearers.look().unwrap_err().contains(words));
            assert!(bearers.accepts(headers(&[&format!("Bearer {ONE}")]).as_ref()));
        }
        fs::write(&file, TWO).unwrap();
        assert!(bearers.look().unwrap());
        assert!(!bearers.accepts(headers(&[&format!("Bearer {ONE}")]).as_ref()));
    }
}
