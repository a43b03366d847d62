//! What secrets are kept with: encrypted, by keys from a file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};

/// How long a key is, in bytes.
const KEY: usize = 32;

/// The keys of a file, the first of which encrypts.
pub struct Keys {
    keys: Vec<LessSafeKey>,
    random: SystemRandom,
}

/// What secrets are to be kept with is not good.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The file cannot be read.
    #[error("{}: {reason}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: Arc<io::Error>,
    },
    /// What is in it are no keys. What came instead is not said: it may be most of one.
    #[error("{}:{line}: {problem}", file.display())]
    Bad {
        /// The file.
        file: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong and what was expected.
        problem: &'static str,
    },
}

impl Keys {
    /// Those in the text of a file: one in each line.
    ///
    /// # Errors
    /// Which line is none.
    pub fn parse(file: &Path, text: &str) -> Result<Self, KeysError> {
        const EXPECTED: &str = "expected 64 hexadecimal digits, as `openssl rand -hex 32` writes them";
        let bad = |line, problem| KeysError::Bad { file: file.to_owned(), line, problem };
        let mut keys = Vec::new();
        for (at, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = bytes(line).and_then(|key| UnboundKey::new(&AES_256_GCM, &key).ok());
            keys.push(LessSafeKey::new(key.ok_or_else(|| bad(at + 1, EXPECTED))?));
        }
        if keys.is_empty() {
            return Err(bad(1, "no key; expected one in each line, of which the first encrypts"));
        }
        Ok(Self { keys, random: SystemRandom::new() })
    }

    /// Encrypts what is kept under a name, by the first key: none if the system has no random numbers.
    pub(crate) fn encrypt(&self, name: &str, plain: Vec<u8>) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let mut sealed = plain;
        let as_is = Nonce::assume_unique_for_key(nonce);
        self.keys.first()?.seal_in_place_append_tag(as_is, Aad::from(name), &mut sealed).ok()?;
        Some([&nonce[..], &sealed].concat())
    }

    /// What was encrypted under that name, and whether that was by the first key; none if it was not, or by no key that there
    /// still is.
    pub(crate) fn decrypt(&self, name: &str, encrypted: &[u8]) -> Option<(Vec<u8>, bool)> {
        let (nonce, sealed) = encrypted.split_first_chunk::<NONCE_LEN>()?;
        self.keys.iter().enumerate().find_map(|(at, key)| {
            let mut plain = sealed.to_vec();
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let length = key.open_in_place(nonce, Aad::from(name), &mut plain).ok()?.len();
            plain.truncate(length);
            Some((plain, at == 0))
        })
    }
}

fn bytes(digits: &str) -> Option<[u8; KEY]> {
    let mut bytes = [0; KEY];
    let digits = digits.as_bytes();
    if digits.len() != 2 * KEY {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let [high, low] = pair else { return None };
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(bytes)
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Keys, String> {
        Keys::parse(Path::new("keys"), text).map_err(|error| error.to_string())
    }

    fn key(digit: char) -> String {
        digit.to_string().repeat(2 * KEY)
    }

    #[test]
    fn what_is_encrypted_by_a_key_is_read_by_it_under_its_name_alone() {
        let old = load(&key('a')).unwrap();
        let new = load(&format!("# of this week\n{}\n\n {} \n", key('B'), key('A'))).unwrap();
        let encrypted = old.encrypt("name", b"secret".to_vec()).unwrap();
        assert_ne!(encrypted, old.encrypt("name", b"secret".to_vec()).unwrap(), "no two are alike");
        assert_eq!(old.decrypt("name", &encrypted), Some((b"secret".to_vec(), true)));
        assert_eq!(new.decrypt("name", &encrypted), Some((b"secret".to_vec(), false)));
        assert_eq!(old.decrypt("name", &new.encrypt("name", Vec::new()).unwrap()), None);
        assert_eq!(old.decrypt("other", &encrypted), None);
        for at in 0..encrypted.len() {
            let mut bad = encrypted.clone();
            bad[at] ^= 1;
            assert_eq!((old.decrypt("name", &bad), old.decrypt("name", &encrypted[..at])), (None, None));
        }
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_shown() {
        let expected = "expected 64 hexadecimal digits, as `openssl rand -hex 32` writes them";
        for (text, words) in [
            (String::new(), "keys:1: no key; expected one in each line, of which the first encrypts".to_owned()),
            (format!("{}\nabc\n", key('a')), format!("keys:2: {expected}")),
            (key('g'), format!("keys:1: {expected}")),
            (key('a') + "0", format!("keys:1: {expected}")),
            ("ä".repeat(KEY), format!("keys:1: {expected}")),
        ] {
            assert_eq!(load(&text).map(drop).unwrap_err(), words);
        }
        assert!(!format!("{:?}", load(&key('a')).unwrap()).contains("aa"));
    }
}
