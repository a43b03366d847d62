//! A value as it is kept: with a checksum over it and over its key, so that what was torn, rotted or moved is told.

use bytes::Bytes;
use prost::Message;
use sha2::{Digest, Sha256};

/// Of how much of a hash a checksum is, in bytes.
const CHECKSUM: usize = 8;

/// What is written under a key.
pub(crate) fn seal(key: &str, message: &impl Message) -> Bytes {
    let mut value = message.encode_to_vec();
    let checksum = checksum(key, &value);
    value.extend_from_slice(&checksum);
    value.into()
}

/// What was written under that key.
///
/// # Errors
/// How it is not that.
pub(crate) fn unseal<M: Message + Default>(key: &str, value: &[u8]) -> Result<M, &'static str> {
    let end = value.len().checked_sub(CHECKSUM);
    let Some((message, written)) = end.and_then(|end| value.split_at_checked(end)) else { return Err("it is cut off") };
    if checksum(key, message) != written {
        return Err("its checksum is another");
    }
    M::decode(message).map_err(|_| "it is no such message")
}

fn checksum(key: &str, message: &[u8]) -> Vec<u8> {
    let hash = Sha256::new().chain_update((key.len() as u64).to_be_bytes()).chain_update(key).chain_update(message);
    hash.finalize().into_iter().take(CHECKSUM).collect()
}
