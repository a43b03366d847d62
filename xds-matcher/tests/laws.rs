//! Laws that hold for all inputs, tried on random ones and on what the fuzzer has kept.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod oracles;

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_constraint_and_its_normal_form_mean_what_a_naive_evaluator_finds(bytes in vec(any::<u8>(), 0..60)) {
        oracles::evaluation_law(&bytes);
    }

    #[test]
    fn overlap_is_what_brute_force_finds(bytes in vec(any::<u8>(), 0..60)) {
        oracles::overlap_law(&bytes);
    }

    #[test]
    fn final_selection_is_what_a_scan_finds(bytes in vec(any::<u8>(), 0..80)) {
        oracles::final_selection_law(&bytes);
    }

    #[test]
    fn many_variants_are_selected_and_linted_as_brute_force_does(bytes in vec(any::<u8>(), 0..400)) {
        oracles::many_variants_law(&bytes);
    }

    #[test]
    fn of_many_draft_variants_selection_is_what_a_scan_finds(bytes in vec(any::<u8>(), 0..300)) {
        oracles::many_draft_variants_law(&bytes);
    }

    #[test]
    fn final_lint_is_what_brute_force_finds(bytes in vec(any::<u8>(), 0..60)) {
        oracles::final_lint_law(&bytes);
    }

    #[test]
    fn a_draft_message_means_what_it_says(bytes in vec(any::<u8>(), 0..40)) {
        oracles::draft_message_law(&bytes);
    }

    #[test]
    fn draft_selection_is_what_a_scan_finds(bytes in vec(any::<u8>(), 0..60)) {
        oracles::draft_selection_law(&bytes);
    }

    #[test]
    fn draft_lint_is_what_pairs_say(bytes in vec(any::<u8>(), 0..40)) {
        oracles::draft_lint_law(&bytes);
    }

    #[test]
    fn no_text_panics(text in "[a-c(),.=\"\\\\ 0-9]{0,40}|(not |and |or |a=1 |exists\\(b\\) |\\(|\\)|all\\(|n in 4..6 |,5){0,12}") {
        oracles::matcher_text(text.as_bytes());
    }

    #[test]
    fn any_string_can_be_a_key_and_a_value(key in any::<String>(), value in any::<String>()) {
        oracles::text_law(&xds_matcher::Constraint::value(key, value));
    }
}

#[test]
fn the_corpora_of_the_fuzzer_still_hold() {
    replay("matcher_text", oracles::matcher_text);
    replay("matcher_tree", oracles::matcher_tree);
}

fn replay(target: &str, oracle: fn(&[u8])) {
    // A published crate comes without the corpora.
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        oracle(&std::fs::read(entry.unwrap().path()).unwrap());
    }
}
