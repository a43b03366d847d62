//! What is kept is torn, rotted, moved, or of another version.

use super::*;

/// A store with two releases, of which one waits, and a freeze; and what is in it.
fn kept() -> (Memory, [Content; 2]) {
    let store = Memory::default();
    let contents = [1, 2].map(|byte| content([(0, vec![byte]), (1, vec![3])]));
    let mut relay = Relay::start(Arc::new(store.clone()));
    contents.iter().for_each(|content| _ = relay.publish(content).unwrap());
    relay.order(Act::Freeze).unwrap();
    (store, contents)
}

fn copy(store: &Memory, but: impl Fn(&str, Bytes) -> Option<Bytes>) -> Arc<Memory> {
    let ops = store.list("").unwrap().entries.into_iter();
    let ops: Vec<_> = ops.filter_map(|entry| Some(Op::Put(entry.key.clone(), but(&entry.key, entry.value)?))).collect();
    let copy = Memory::default();
    let _ = copy.commit(&ops, &[]).unwrap();
    Arc::new(copy)
}

/// Whatever is wrong with one value: the control value is as it was or an error says so, and what is read is what was written.
fn check(store: Arc<Memory>, contents: &[Content; 2], key: &str, control: &Control) {
    let mut stored = match Stored::open(store.clone(), SCOPE) {
        Ok(stored) => stored,
        Err(error) => {
            assert!(key.ends_with("/ctl"), "{key}: {error}");
            assert!(error.to_string().starts_with(&format!("{key} is damaged: ")), "{error}");
            return;
        }
    };
    assert!(!key.ends_with("/ctl"));
    assert_eq!(stored.control(), control);
    assert!(stored.log().unwrap().len() >= 3);
    for content in contents {
        let expected = manifest(content);
        if let Ok(manifest) = stored.manifest(expected.release()) {
            assert_eq!(manifest, expected);
            for item in manifest.items() {
                let found = stored.body(item.body);
                let is_it = found.as_ref().is_ok_and(|found| *found == frame(&content[&item.name]).any());
                assert!(is_it || found.is_err(), "{key}");
            }
        }
    }
    // It is mended when the origin says the same again.
    drop(stored);
    let mut relay = Relay::start(store.clone());
    for content in contents {
        manifest(content).items().iter().for_each(|item| _ = relay.stored.body(item.body));
        relay.save(content).unwrap();
        relay.check(content);
    }
    let mut relay = Relay::start(store);
    assert_eq!(relay.stored.damaged(), []);
    contents.iter().for_each(|content| relay.check(content));
}

#[test]
fn a_value_that_is_torn_changed_or_lost_is_told_and_mended_unless_it_is_the_control_value() {
    let (store, contents) = kept();
    let control = Stored::open(Arc::new(store.clone()), SCOPE).unwrap().control().clone();
    assert!(control.frozen().is_some());
    for entry in store.list("").unwrap().entries {
        let key = &*entry.key;
        let with = |value: Option<Bytes>| copy(&store, |at, is| if at == key { value.clone() } else { Some(is) });
        check(with(None), &contents, key, &control);
        for at in 0..entry.value.len() {
            check(with(Some(entry.value.slice(..at))), &contents, key, &control);
            let mut changed = entry.value.to_vec();
            changed[at] ^= 0x41;
            check(with(Some(changed.into())), &contents, key, &control);
        }
        check(with(Some([&entry.value[..], b"x"].concat().into())), &contents, key, &control);
    }
}

#[test]
fn a_value_under_the_key_of_another_is_damaged() {
    let (store, contents) = kept();
    let control = Stored::open(Arc::new(store.clone()), SCOPE).unwrap().control().clone();
    let entries = store.list("").unwrap().entries;
    for (to, from) in entries.iter().flat_map(|to| entries.iter().map(move |from| (to, from))) {
        if to.key != from.key && to.value != from.value {
            let swapped = copy(&store, |at, is| Some(if at == to.key { from.value.clone() } else { is }));
            check(swapped, &contents, &to.key, &control);
        }
    }
}

#[test]
fn what_is_of_a_later_version_or_another_scope_is_left_as_it_is() {
    let (store, _) = kept();
    let key = Keyspace::of(SCOPE).control();
    let entry = store.list(&key).unwrap().entries.remove(0);
    let record: ControlRecord = unseal(&key, &entry.value).unwrap();
    let (mut later, mut other) = (record.clone(), record);
    (later.format, other.scope) = (FORMAT + 1, "another".to_owned());
    for (record, words) in [
        (later, format!("{key} is of format 2, and this program reads up to 1")),
        (
            other,
            format!(
                "{key} is damaged: it is of another scope; nothing of this scope is released before it is forgotten as a whole or restored"
            ),
        ),
    ] {
        let value = crate::releases::sealed::seal(&key, &record);
        let store = copy(&store, |at, is| Some(if at == key { value.clone() } else { is }));
        let before = store.list("").unwrap();
        assert_eq!(Stored::open(store.clone(), SCOPE).map(drop).unwrap_err().to_string(), words);
        assert_eq!(store.list("").unwrap(), before);
        Stored::forget(&*store, SCOPE).unwrap();
        assert!(Stored::open(store, SCOPE).unwrap().releases().is_empty());
    }
}

/// It is heard, and told until it is written anew: by the next release that has that, be it the same one.
#[test]
fn what_is_damaged_as_it_is_heard_is_told_until_it_is_mended() {
    for kind in ["/part/", "/rel/"] {
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let mut relay = Relay::start(store.clone());
        let [one, two] = [1, 2].map(|byte| content([(0, vec![byte]), (1, vec![3])]));
        relay.publish(&one).unwrap();
        let entries = store.list("").unwrap().entries;
        let damaged: Vec<_> = entries.iter().filter(|entry| entry.key.contains(kind)).collect();
        let mut watch = store.watch("", store.list("").unwrap().revision).unwrap();
        for entry in damaged.iter().chain(&damaged) {
            let _ = store.commit(&[Op::put(&*entry.key, "torn")], &[]).unwrap();
        }
        relay.stored.hear(&watch.next(Duration::ZERO).unwrap(), &stages()).1.unwrap();
        assert_eq!(relay.stored.damaged().len(), damaged.len(), "each is told once");
        assert!(!damaged.is_empty());
        relay.publish(&two).unwrap();
        // That one writes what is its own.
        assert_eq!(relay.stored.damaged().len(), 1, "{kind}");
        relay.order(Act::Rollback { to: None }).unwrap();
        relay.save(&one).unwrap();
        assert_eq!(relay.stored.damaged(), []);
        let mut again = Relay::start(store);
        assert_eq!(again.stored.damaged(), []);
        [&one, &two].iter().for_each(|content| again.check(content));
    }
}
