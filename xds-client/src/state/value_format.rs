//! How values under keys are written down, and read again.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use prost::Message;

use crate::state::format::{Moment, OWNERS, ScopeId, ScopeRecord, seal, unseal};
use crate::state::kept_values::KeptValue;
use crate::state::keys::Keys;
use crate::state::read::Read;
use crate::state::saver::Saver;
use crate::state::store::{Op, Store, StoreError};
use crate::state::unwanted::UNUSED;

const VALUES: &str = "xds-relay/v1/value/";

/// A value under a key.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ValueRecord {
    #[prost(bytes = "bytes", tag = "1")]
    value: Bytes,
    #[prost(string, tag = "2")]
    beside: String,
    /// Such a record, encrypted: there is nothing beside.
    #[prost(bytes = "vec", optional, tag = "3")]
    encrypted: Option<Vec<u8>>,
    /// Of a secret that is not kept: there is no value.
    #[prost(string, repeated, tag = "4")]
    outline: Vec<String>,
}

/// What was read of the values of one owner.
#[derive(Default)]
pub(crate) struct ReadValues {
    pub(crate) record: Option<ScopeRecord>,
    pub(crate) values: BTreeMap<String, ReadValue>,
}

pub(crate) enum ReadValue {
    Good {
        value: KeptValue,
        /// By another key than before.
        is_to_be_encrypted: bool,
    },
    /// It is damaged, or a secret that cannot be read.
    Unread,
    /// A secret, which is not to be kept any more.
    Omitted,
}

impl ReadValues {
    /// But for which keys there are.
    pub(crate) fn forget(&mut self) {
        self.values.values_mut().for_each(|value| *value = ReadValue::Unread);
    }
}

/// What their owner is written under.
pub(crate) fn owner_key(id: &ScopeId) -> String {
    format!("{OWNERS}{}", id.clone().into_text())
}

/// What a key of an owner is written under.
pub(crate) fn key_of(id: &ScopeId, key: &str) -> String {
    format!("{VALUES}{}/{key}", id.clone().into_text())
}

fn read_key(stored: &str) -> Option<(ScopeId, &str)> {
    let (id, key) = stored.strip_prefix(VALUES)?.split_once('/')?;
    Some((ScopeId::read(id), key))
}

impl ValueRecord {
    /// As it is written: none of a secret that cannot be encrypted and has no outline.
    pub(crate) fn sealed(
        stored: &str,
        KeptValue { value, beside, is_secret, outline, is_outline }: &KeptValue,
        keys: Option<&Keys>,
    ) -> Option<Bytes> {
        let record = Self { value: value.clone(), beside: beside.clone(), ..Self::default() };
        if !is_secret {
            return Some(seal(stored, &record));
        }
        let record = Self { outline: outline.clone(), ..record };
        if keys.is_none() || *is_outline {
            return (!outline.is_empty()).then(|| seal(stored, &Self { value: Bytes::new(), ..record }));
        }
        let encrypted = Some(keys?.encrypt(stored, record.encode_to_vec())?);
        Some(seal(stored, &Self { encrypted, ..Self::default() }))
    }

    fn read(self, stored: &str, keys: Option<&Keys>) -> Option<ReadValue> {
        let good = |Self { value, beside, outline, .. }, is_secret, is_to_be_encrypted| ReadValue::Good {
            value: KeptValue::new(value, beside).secret(is_secret).outlined(outline),
            is_to_be_encrypted,
        };
        if !self.outline.is_empty() {
            let value = KeptValue::new(Bytes::new(), self.beside).secret(true).outlined(self.outline);
            return Some(ReadValue::Good { value: KeptValue { is_outline: true, ..value }, is_to_be_encrypted: false });
        }
        let Some(encrypted) = &self.encrypted else { return Some(good(self, false, false)) };
        let Some(keys) = keys else { return Some(ReadValue::Omitted) };
        let (plain, is_current) = keys.decrypt(stored, encrypted)?;
        Some(good(Self::decode(&*plain).ok()?, true, !is_current))
    }
}

impl Read {
    /// Reads what is kept of values. What nobody has had a use for in a week goes; what cannot be read stays until it is heard
    /// what is in its place.
    pub(super) fn read_values(&mut self, store: &dyn Store, at: Moment, saver: &mut Saver) -> Result<(), StoreError> {
        let mut owners: HashMap<ScopeId, ReadValues> = HashMap::new();
        for entry in store.list(OWNERS)?.entries {
            let id = entry.key.strip_prefix(OWNERS).map(ScopeId::read);
            match unseal::<ScopeRecord>(&entry.key, &entry.value).zip(id) {
                Some((record, id)) if record.used.saturating_add(UNUSED) >= at.seconds() => {
                    let record = self.since_then(&entry.key, record, saver);
                    owners.insert(id, ReadValues { record: Some(record), ..ReadValues::default() });
                }
                Some(_) => saver.add(Op::delete(entry.key)),
                None => {
                    self.damaged += 1;
                    self.read_damaged(entry.key, at, &mut owners, saver);
                }
            }
        }
        for entry in store.list(VALUES)?.entries {
            let of = read_key(&entry.key).and_then(|(id, key)| Some((owners.get_mut(&id)?, key.to_owned())));
            let Some((owner, key)) = of else {
                saver.add(Op::delete(entry.key));
                continue;
            };
            let record = unseal::<ValueRecord>(&entry.key, &entry.value);
            let read = record.and_then(|record| record.read(&entry.key, saver.keys()));
            self.damaged += usize::from(read.is_none());
            owner.values.insert(key, read.unwrap_or(ReadValue::Unread));
        }
        self.values = owners;
        Ok(())
    }

    /// Whether its values are what they were, each says itself, and that they were all is so of nearly every owner. What else was said of it is
    /// not known: it ages from now on.
    fn read_damaged(&self, key: String, at: Moment, owners: &mut HashMap<ScopeId, ReadValues>, saver: &mut Saver) {
        let Some(id) = key.strip_prefix(OWNERS).map(ScopeId::read) else { return };
        let record = self.since_then(
            &key,
            ScopeRecord { used: at.seconds(), is_complete: true, ..ScopeRecord::default() },
            saver,
        );
        owners.insert(id, ReadValues { record: Some(record), ..ReadValues::default() });
    }

    /// Nobody says of them that they are so until somebody does.
    fn since_then(&self, key: &str, mut record: ScopeRecord, saver: &mut Saver) -> ScopeRecord {
        if record.stale_since.is_none() {
            record.stale_since = Some(self.saved);
            saver.add(Op::Put(key.to_owned(), seal(key, &record)));
        }
        record
    }
}
