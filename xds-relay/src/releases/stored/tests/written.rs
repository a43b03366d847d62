//! What is written: as every version before wrote it, and what a later one wrote is left alone.

use super::*;
use crate::hex::hex;
use crate::releases::records::ControlRecord;
use crate::releases::sealed::{seal, unseal};
use crate::releases::stored::log::{self, Logged};

fn relay() -> Relay {
    let mut relay = Relay::start(Arc::new(Memory::default()));
    relay.publish(&content([(1, vec![1])])).unwrap();
    relay.publish(&content([(1, vec![2])])).unwrap();
    relay
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn what_is_written_is_what_was_written_before() {
    let mut relay = relay();
    relay.order(Act::Hold).unwrap();
    relay.order(Act::Freeze).unwrap();
    let control = relay.stored.store.list(&relay.stored.keys.control()).unwrap().entries.remove(0);
    assert_eq!(hex(&control.value), HELD_AND_FROZEN);
    let before: ControlRecord = unseal(&relay.stored.keys.control(), &bytes_of(HELD_AND_FROZEN_BEFORE)).unwrap();
    assert_eq!((before.control().as_ref(), before.count()), (Some(relay.stored.control()), relay.stored.count()));
    relay.order(Act::Rollback { to: None }).unwrap();
    relay.publish(&content([(1, vec![2])])).unwrap();
    let written = relay.stored.store.list("").unwrap().entries;
    let written: Vec<_> = written.iter().map(|entry| format!("{} {}", entry.key, hex(&entry.value))).collect();
    assert_eq!(written.join("\n"), WRITTEN.trim());
    // An earlier version did not say what was taken back.
    let entry = |value: &[u8]| log::logged(ROLLED_BACK, value).unwrap();
    let log = relay.stored.log().unwrap();
    let rolled_back = log.iter().find(|entry| entry.number == 5).unwrap();
    assert!(rolled_back.taken_back.is_some());
    let before = Logged { taken_back: None, ..rolled_back.clone() };
    assert_eq!(entry(&bytes_of(ROLLED_BACK_BEFORE)), before);
}

/// Relays of two versions on one store: the older one goes on with what it knows, and writes nothing over what it cannot read.
#[test]
fn a_control_value_of_a_later_format_leaves_who_hears_it_as_it_is() {
    let mut relay = relay();
    let (before, key) = (relay.stored.control().clone(), relay.stored.keys.control());
    let mut later = ControlRecord::of(SCOPE, &before, relay.stored.count());
    (later.format, later.changes) = (2, 99);
    let later = seal(&key, &later);
    let store = relay.stored.store.clone();
    let mut watch = store.watch("", store.list("").unwrap().revision).unwrap();
    let _ = store.commit(&[Op::put(&*key, later.clone())], &[]).unwrap();
    let (is_free, heard) = relay.stored.hear(&watch.next(Duration::ZERO).unwrap(), &stages());
    assert!(!is_free && matches!(heard, Err(StoredError::Format { format: 2, .. })), "{heard:?}");
    assert_eq!(relay.stored.control(), &before);
    let bad = Some(Damage::new(&*key, "it is of a later format"));
    assert_eq!(relay.stored.bad_control(), bad.as_ref());
    let refused = [relay.order(Act::Freeze).map(drop), relay.stored.refresh(&stages())];
    for done in refused {
        assert!(matches!(done, Err(StoredError::Format { format: 2, .. })), "{done:?}");
    }
    assert_eq!(relay.stored.control(), &before);
    let there = relay.stored.store.list(&key).unwrap().entries.remove(0);
    assert_eq!(there.value, later, "it is as it was written");
    assert_eq!(relay.stored.bad_control(), bad.as_ref());
    let good = seal(&key, &ControlRecord::of(SCOPE, &before, relay.stored.count()));
    let _ = store.commit(&[Op::put(&*key, good)], &[]).unwrap();
    relay.stored.refresh(&stages()).unwrap();
    assert_eq!(relay.stored.bad_control(), None);
}

const ROLLED_BACK: &str =
    "xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/log/0000000001000000-0000000000000005";
const ROLLED_BACK_BEFORE: &str = "080512120a03616e6e12076265636175736518c0843d1a0b726f6c6c6564206261636b22104bbead43a4afcdb4ae020f6d4280991ac4dd21cbc5261180";

const WRITTEN: &str = "
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/body/c265ace9f211e830cfa579becc4088a9085075a396cfb70c6729cb1ae2987d0c/0000 0a33747970652e676f6f676c65617069732e636f6d2f656e766f792e636f6e6669672e636c75737465722e76332e436c7573746572120102
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/body/dbfad38a9266ebfce183a38217f06ae5c4fa793988d8d6a54a2d42549eb10cce/0000 0a33747970652e676f6f676c65617069732e636f6d2f656e766f792e636f6e6669672e636c75737465722e76332e436c7573746572120101
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/ctl 0801121378647374703a2f2f6578616d706c652e636f6d180722104bbead43a4afcdb4ae020f6d4280991a32120a03616e6e12076265636175736518c0843d3a10dd0b7fd0e6e96efa79884d1eb8650709420b090100000000000000100149010000000000000052160a10dd0b7fd0e6e96efa79884d1eb865070910c0843d6a202790b329f2b8ddfc182e5cd5d34d2f587ba03bfca4fca7951c5dd55d837eabbc51ebb8ba59d1824f
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/log/0000000001000000-0000000000000000 121c0a1672656c6179203030303030303030303030303030303118c0843d1a09746f6f6b206f7665726dd089df9dbf370e
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/log/0000000001000000-0000000000000001 080112250a1672656c6179203030303030303030303030303030303112076265636175736518c0843d1a0870726f6d6f74656422104bbead43a4afcdb4ae020f6d4280991a5e578ea017f643ee
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/log/0000000001000000-0000000000000002 080212250a1672656c6179203030303030303030303030303030303112076265636175736518c0843d1a066f70656e65642210dd0b7fd0e6e96efa79884d1eb8650709d4ba1c8bcb83f91c
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/log/0000000001000000-0000000000000003 080312120a03616e6e12076265636175736518c0843d1a0468656c642210dd0b7fd0e6e96efa79884d1eb8650709ff87331cbc0659a2
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/log/0000000001000000-0000000000000004 080412120a03616e6e12076265636175736518c0843d1a0666726f7a656e2210dd0b7fd0e6e96efa79884d1eb86507091434c0bf187fe9c5
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/log/0000000001000000-0000000000000005 080512120a03616e6e12076265636175736518c0843d1a0b726f6c6c6564206261636b22104bbead43a4afcdb4ae020f6d4280991a2a10dd0b7fd0e6e96efa79884d1eb8650709b8e4798b524979b5
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/log/0000000001000000-0000000000000006 080612250a1672656c6179203030303030303030303030303030303112076265636175736518c0843d1a096e6f742074616b656e2210dd0b7fd0e6e96efa79884d1eb86507096fc1df6ef7d874ef
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/part/6bfba8f389dab1f743b2012b83bf43e1783f4743ca693bedfd1d3ad69659bd5c 0a620a33747970652e676f6f676c65617069732e636f6d2f656e766f792e636f6e6669672e636c75737465722e76332e436c757374657212066e616d652d312201313a20c265ace9f211e830cfa579becc4088a9085075a396cfb70c6729cb1ae2987d0c
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/part/ab1f3af376958848bc59bd05677b7a6b305aa0c07db18e33dd69ee5a9dfce64f 0a620a33747970652e676f6f676c65617069732e636f6d2f656e766f792e636f6e6669672e636c75737465722e76332e436c757374657212066e616d652d312201313a20dbfad38a9266ebfce183a38217f06ae5c4fa793988d8d6a54a2d42549eb10cce
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/rel/4bbead43a4afcdb4ae020f6d4280991a 080110c0843d1a0474657374200128013220ab1f3af376958848bc59bd05677b7a6b305aa0c07db18e33dd69ee5a9dfce64f3801ccb9cda1091fe062
xds-relay/releases/v1/640c99e6b57fa5e9d2702e35bbf7a658/rel/dd0b7fd0e6e96efa79884d1eb8650709 080110c0843d1a04746573742002280132206bfba8f389dab1f743b2012b83bf43e1783f4743ca693bedfd1d3ad69659bd5c3801d4d33744929da28f
";

const HELD_AND_FROZEN: &str = "0801121378647374703a2f2f6578616d706c652e636f6d180522104bbead43a4afcdb4ae020f6d4280991a2a2a0a10dd0b7fd0e6e96efa79884d1eb865070918c0843d22120a03616e6e12076265636175736518c0843d32120a03616e6e12076265636175736518c0843d420b09010000000000000010014901000000000000006a182790b329f2b8ddfc182e5cd5d34d2f587ba03bfca4fca7950acce65200e13c93";
/// As it was written before it was said what people ordered.
const HELD_AND_FROZEN_BEFORE: &str = "0801121378647374703a2f2f6578616d706c652e636f6d180522104bbead43a4afcdb4ae020f6d4280991a2a2a0a10dd0b7fd0e6e96efa79884d1eb865070918c0843d22120a03616e6e12076265636175736518c0843d32120a03616e6e12076265636175736518c0843d420b09010000000000000010014901000000000000003f1ff3dda5e34820";
