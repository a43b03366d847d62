//! Resource errors: rule 117.

use super::*;

impl World {
    /// The errors a subscriber is told: `name:code`, `-name:code` where the name is told as removed.
    pub(super) fn errors(&mut self, id: SubscriberId) -> Vec<String> {
        let mut told = Vec::new();
        self.cache.pull_errors(id, Removals::Include, &mut |failed| {
            let removed = if failed.removed { "-" } else { "" };
            told.push(format!("{removed}{}:{}", failed.name, failed.error.code));
            ControlFlow::Continue(())
        });
        told
    }

    fn fail_by_name(&mut self, text: &str, code: i32) -> Vec<SubscriberId> {
        let mut edit = self.cache.edit(self.now);
        edit.fail_by_name(&self.of, &name(text), ResourceError::new(code, "why"));
        edit.finish().into_iter().collect()
    }
}

#[test]
fn rule_117_an_error_is_told_once_to_who_asked_for_the_name() {
    let mut world = World::authoritative();
    let ids = ["a", GLOB, "*"].map(|text| world.subscriber(&[text]));
    for id in ids {
        world.pull(id);
    }
    let [named, glob, wildcard] = ids;
    assert_eq!(world.fail("a", 7), [named]);
    assert_eq!(world.fail(MEMBER, 7), [glob]);
    assert_eq!(world.fail("a", 7), [], "the same error");
    for (id, told) in [(named, "-a:7".to_owned()), (glob, format!("-{MEMBER}:7"))] {
        assert_eq!(world.pull(id), [""; 0]);
        assert_eq!(world.errors(id), [told]);
        assert_eq!(world.errors(id), [""; 0]);
        assert!(!world.cache.has_work(id));
    }
    assert!(!world.cache.has_work(wildcard), "TP3 has no errors for a wildcard");
}

#[test]
fn rule_117_who_asks_again_is_told_again() {
    for (text, told) in [("a", "-a:7".to_owned()), (MEMBER, format!("-{MEMBER}:7")), (GLOB, format!("-{GLOB}:7"))] {
        let mut world = World::authoritative();
        let id = world.subscriber(&[text]);
        world.fail(text, 7);
        for _ in 0..2 {
            assert_eq!(world.pull(id), [""; 0]);
            assert_eq!(world.errors(id), std::slice::from_ref(&told));
            world.cache.subscribe(id, &interest(text));
        }
    }
}

#[test]
fn rule_117_of_two_errors_the_newer_is_told_once() {
    let mut world = World::authoritative();
    let id = world.subscriber(&[MEMBER, GLOB]);
    world.pull(id);
    world.fail(MEMBER, 7);
    world.pull(id);
    world.fail(MEMBER, 14);
    assert_eq!(world.errors(id), [""; 0], "not before it is pulled");
    world.pull(id);
    assert_eq!(world.errors(id), [format!("-{MEMBER}:14")]);
    world.pull(id);
    assert_eq!(world.errors(id), [""; 0]);
}

#[test]
fn rule_117_the_errors_of_a_glob_s_members_are_told_once_each() {
    let mut world = World::authoritative();
    let id = world.subscriber(&[GLOB]);
    world.pull(id);
    for text in [MEMBER, OTHER] {
        world.fail(text, 7);
        assert_eq!(world.pull(id), [""; 0]);
        assert_eq!(world.errors(id), [format!("-{text}:7")]);
    }
}

#[test]
fn rule_117_an_upsert_ends_an_error_even_if_nothing_else_changed() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let id = world.subscriber(&["a"]);
    world.pull(id);
    world.fail("a", 14);
    world.pull(id);
    assert_eq!(world.errors(id), ["a:14"], "and the resource stays");
    assert_eq!(world.put("a", "1"), [id]);
    assert_eq!(world.cache.totals().recovered, 1);
    assert_eq!(world.pull(id), ["a@1"]);
    assert_eq!(world.put("a", "1"), []);
}

#[test]
fn rule_117_who_is_sent_a_resource_again_is_told_of_the_error_beside_it_again() {
    let mut world = World::authoritative();
    world.put("a", "1");
    world.fail("a", 14);
    let id = world.subscriber(&["a"]);
    for _ in 0..2 {
        assert_eq!(world.pull(id), ["a@1"]);
        assert_eq!(world.errors(id), ["a:14"]);
        world.cache.resend(id, &name("a"));
    }
}

#[test]
fn rule_117_what_has_an_error_is_removed_with_it_and_not_twice() {
    let mut world = World::authoritative();
    world.put(MEMBER, "1");
    let id = world.subscriber(&[GLOB, MEMBER]);
    world.pull(id);
    world.fail(MEMBER, ResourceError::NOT_FOUND);
    assert!(world.cache.resource(&world.of, &name(MEMBER)).is_none());
    assert_eq!(world.pull(id), [""; 0]);
    assert_eq!(world.errors(id), [format!("-{MEMBER}:5")]);
    assert_eq!(world.pull(id), [""; 0]);
    world.remove(MEMBER);
    assert_eq!(world.pull(id), [format!("-{MEMBER}")], "it is not an error any more");
}

#[test]
fn rule_118_a_member_that_fails_no_more_is_told_whatever_was_told_of_it_before() {
    let mut world = World::authoritative();
    let (glob, wildcard) = (world.subscriber(&[GLOB]), world.subscriber(&["*"]));
    world.put(MEMBER, "1");
    world.remove(MEMBER);
    for code in [ResourceError::NOT_FOUND, 14] {
        world.pull(glob);
        world.pull(wildcard);
        world.fail(MEMBER, code);
        world.pull(glob);
        assert_eq!(world.errors(glob), [format!("-{MEMBER}:{code}")]);
        assert_eq!(world.remove(MEMBER), [glob], "to a wildcard it never failed");
        assert_eq!(world.pull(glob), [format!("-{MEMBER}")]);
    }
}

#[test]
fn rule_118_what_a_client_brought_along_is_left_to_it_while_an_error_passes() {
    for world in [&mut World::relay(), &mut World::authoritative()] {
        world.fail("a", 14);
        let id = world.subscriber(&["a"]);
        world.cache.resume(id, [(name("a"), "1".into())]);
        world.fail("a", 14);
        assert_eq!(world.pull(id), [""; 0]);
        assert_eq!(world.errors(id), ["a:14"]);
        assert_eq!(world.pull(id), [""; 0]);
        world.put("a", "1");
        assert_eq!(world.pull(id), ["a@1"], "it has it at this version, and the error");
        world.fail("a", 7);
        world.pull(id);
        assert_eq!(world.errors(id), ["a:7"]);
    }
}

#[test]
fn a_glob_that_failed_and_is_empty_after_all_is_told_as_that() {
    let mut world = World::relay();
    let id = world.subscriber(&[GLOB]);
    world.fail(GLOB, 14);
    assert_eq!(world.pull(id), [""; 0]);
    assert_eq!(world.errors(id), [format!("-{GLOB}:14")]);
    assert!(!world.cache.is_known(&world.of, &interest(GLOB)), "an error is no answer");
    assert_eq!(world.answered(GLOB), [id]);
    assert_eq!(world.pull(id), [format!("-{GLOB}")]);
    assert_eq!(world.fail(GLOB, 14), [id]);
    world.pull(id);
    world.errors(id);
    assert_eq!(world.answered(GLOB), [id], "the error is over");
    assert_eq!(world.pull(id), [format!("-{GLOB}")]);
    assert_eq!(world.answered(GLOB), []);
}

#[test]
fn rule_118_a_glob_that_fails_no_more_is_told_as_empty_if_what_came_of_it_is_gone() {
    let mut world = World::authoritative();
    let id = world.subscriber(&[GLOB]);
    world.pull(id);
    for gone in [true, false] {
        world.fail(GLOB, 7);
        world.pull(id);
        assert_eq!(world.errors(id), [format!("-{GLOB}:7")]);
        world.put(MEMBER, "1");
        let told = if gone {
            world.remove(MEMBER);
            vec![format!("-{GLOB}"), format!("-{MEMBER}")]
        } else {
            vec![format!("{MEMBER}@1")]
        };
        let mut pulled = world.pull(id);
        pulled.sort();
        assert_eq!(pulled, told);
    }
    world.remove(MEMBER);
    assert_eq!(world.pull(id), [format!("-{MEMBER}")], "rule 99");
}

#[test]
fn a_relay_keeps_no_errors_that_nobody_asked_for() {
    let mut world = World::relay();
    world.fail("a", 7);
    world.fail(MEMBER, 7);
    assert_eq!(world.cache.errors().count(), 0);
    let id = world.subscriber(&["a", GLOB]);
    for text in ["a", MEMBER, GLOB, "*"] {
        world.fail(text, 7);
    }
    assert_eq!(world.cache.errors().count(), 3);
    world.cache.close(id);
    assert!(world.cache.is_known(&world.of, &interest("a")), "until it is evicted");
    for text in ["a", GLOB] {
        world.cache.evict(&world.of, &interest(text), world.now);
    }
    assert_eq!((world.cache.errors().count(), world.cache.store.types().len()), (0, 0));
}

#[test]
fn a_relay_keeps_no_passing_error_for_who_does_not_hold_the_name() {
    let mut world = World::relay();
    let asks = world.subscriber(&["a"]);
    let other = world.subscriber(&["*"]);
    world.cache.resume(other, [(name("b"), "1".into())]);
    world.fail("a", 14);
    world.cache.close(asks);
    world.cache.evict(&world.of, &interest("a"), world.now);
    assert!(!world.cache.is_known(&world.of, &interest("a")), "who asks next has to wait for the origin");
}

#[test]
fn an_error_wakes_who_has_nothing_but_errors_to_pull_when_something_else_comes() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let id = world.subscriber(&["a", "b"]);
    world.pull(id);
    assert_eq!(world.fail("b", 7), [id]);
    world.pull(id);
    // Between the pull and that of the errors, under a lock that was given back.
    assert_eq!(world.put("a", "2"), [id]);
    assert_eq!(world.errors(id), ["-b:7"]);
    assert_eq!(world.pull(id), ["a@2"]);
}

#[test]
fn rule_158_while_removals_wait_an_error_is_told_if_it_takes_nothing_away() {
    let mut world = World::authoritative();
    world.put("held", "1");
    let id = world.subscriber(&["held"]);
    assert_eq!(world.pull(id), ["held@1"]);
    world.cache.subscribe(id, &interest("missing"));
    world.remove("held");
    world.fail("held", 7);
    world.fail("missing", 5);
    let mut told = Vec::new();
    let mut pull_errors = |world: &mut World, removals| {
        world.cache.pull(id, removals, &mut |_| ControlFlow::Continue(()));
        world.cache.pull_errors(id, removals, &mut |failed| {
            told.push(failed.name.to_string());
            ControlFlow::Continue(())
        });
        std::mem::take(&mut told)
    };
    assert_eq!(pull_errors(&mut world, Removals::Defer), ["missing"]);
    assert_eq!(pull_errors(&mut world, Removals::Defer), [""; 0]);
    assert_eq!(pull_errors(&mut world, Removals::Include), ["held"]);
}

#[test]
fn rule_158_nobody_waits_for_the_error_of_what_was_told_as_gone() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let id = world.subscriber(&["a"]);
    world.pull(id);
    world.remove("a");
    assert_eq!(world.pull(id), ["-a"]);
    assert_eq!(world.fail("a", 7), [id]);
    assert!(world.cache.has_work(id) && !world.cache.has_additions(id));
    world.pull(id);
    assert_eq!(world.errors(id), ["-a:7"]);
}

#[test]
fn an_error_says_why_and_its_code() {
    assert_eq!(ResourceError::new(7, "not yours").to_string(), "not yours (code 7)");
}

/// Whoever asks for names that are not there decides how many these are, and who wants the glob pays for them.
#[test]
fn rule_117_of_names_that_only_strangers_ask_for_not_more_errors_are_told_than_tombstones_are_kept() {
    let mut world = World::new(Options { authoritative: false, tombstones: 3, ..Options::default() });
    let [glob, stranger] = [GLOB, "a"].map(|text| world.subscriber(&[text]));
    let members: Vec<_> = (0..20).map(|number| format!("xdstp://x/T/d/{}", number + 10)).collect();
    for text in &members {
        world.cache.subscribe(stranger, &interest(text));
        world.fail_by_name(text, 7);
    }
    let told: Vec<_> = members.iter().map(|text| format!("-{text}:7")).collect();
    for (id, most) in [(glob, 3), (stranger, 20)] {
        assert_eq!(world.pull(id), [""; 0]);
        assert_eq!(world.errors(id), told[..most]);
    }
    // What the origin says by itself is for all, whatever was asked for before; and so is what it says of a member.
    world.fail(&members[10], 7);
    world.put(MEMBER, "1");
    world.fail_by_name(MEMBER, 14);
    assert_eq!(world.pull(glob), [format!("{MEMBER}@1")]);
    assert_eq!(world.errors(glob), [format!("{MEMBER}:14"), told[10].clone()]);

    world.cache.close(stranger);
    members.iter().for_each(|text| world.cache.evict(&world.of, &interest(text), world.now));
    assert_eq!(world.cache.errors().count(), 5, "of what nobody asks for any more, no more is kept than is told");
}

#[test]
fn rule_117_who_brought_along_what_only_a_stranger_asks_for_keeps_it_unless_it_may_not() {
    for (code, told) in [(14, vec![]), (7, vec![format!("-{MEMBER}")])] {
        let mut world = World::new(Options { authoritative: false, tombstones: 0, ..Options::default() });
        let [holds, may_hold] = [(); 2].map(|()| world.subscriber(&[GLOB]));
        world.bring(holds, MEMBER, "1");
        let _ = [holds, may_hold].map(|id| world.pull(id));
        let woken = world.fail_by_name(MEMBER, code);
        assert_eq!(woken, [holds][..told.len()]);
        assert_eq!(world.pull(holds), told);
        world.answered(GLOB);
        for id in [holds, may_hold] {
            assert_eq!(world.pull(id), [format!("-{GLOB}")], "an error that says nothing of it lets it stay");
        }
        world.cache.close(holds);
        assert_eq!(world.cache.errors().count(), 0);
    }
}

/// What only a stranger asks for leaves nothing behind, though somebody held it for a while.
#[test]
fn an_error_that_only_lets_somebody_keep_what_it_holds_is_forgotten_once_that_is_left() {
    let mut world = World::new(Options { authoritative: false, tombstones: 0, ..Options::default() });
    let holds = world.subscriber(&[GLOB, "a"]);
    world.bring(holds, MEMBER, "1");
    let stranger = world.subscriber(&[MEMBER]);
    world.fail_by_name(MEMBER, 14);
    world.cache.close(stranger);
    world.cache.evict(&world.of, &interest(MEMBER), world.now);
    assert_eq!(world.cache.errors().count(), 1, "it spares what is held");
    world.cache.unsubscribe(holds, &interest(GLOB));
    assert_eq!(world.cache.errors().count(), 0, "nobody is left whom it concerns");
}

#[test]
fn rule_117_who_was_not_told_of_an_error_is_not_told_of_its_end_beyond_what_is_told_of_strangers_names() {
    let mut world = World::new(Options { authoritative: false, tombstones: 3, ..Options::default() });
    let [glob, stranger] = [GLOB, "a"].map(|text| world.subscriber(&[text]));
    world.put(MEMBER, "1");
    world.answered(GLOB);
    world.pull(glob);
    world.remove(MEMBER);
    world.pull(glob);
    for number in 0..20 {
        let text = format!("xdstp://x/T/d/{}", number + 10);
        world.cache.subscribe(stranger, &interest(&text));
        world.fail_by_name(&text, 14);
    }
    world.pull(glob);
    assert_eq!(world.errors(glob).len(), 3);
    for number in 0..20 {
        world.fail_by_name(&format!("xdstp://x/T/d/{}", number + 10), 5);
    }
    let told = world.pull(glob).len() + world.errors(glob).len();
    assert!(told <= 6, "{told} of a stranger's names");
    let back = world.subscriber(&[GLOB]);
    let told = world.pull(back);
    assert!(told.contains(&format!("-{MEMBER}")), "who was away holds it for ever: {told:?}");
}

#[test]
fn rule_117_what_an_error_spared_is_gone_once_the_error_says_so_though_the_look_at_it_is_not_over() {
    let mut world = World::new(Options { authoritative: false, looks: 1, ..Options::default() });
    let _asks = world.subscriber(&["a", "b", "c"]);
    let holds = world.subscriber(&["*"]);
    for text in ["a", "b", "c"] {
        world.bring(holds, text, "1");
        world.fail(text, 14);
    }
    world.answered("*");
    world.pull(holds);
    for text in ["a", "b", "c"] {
        world.fail(text, 7);
    }
    let mut told = Vec::new();
    for _ in 0..20 {
        told.extend(world.pull(holds));
    }
    told.sort();
    assert_eq!(told, ["-a", "-b", "-c"]);
}
