//! What must be true of every input. Property tests feed these with random bytes, the fuzzer with chosen ones, and the replay test with
//! what the fuzzer kept.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

mod draft_laws;
mod laws;
mod naive;

pub(crate) use draft_laws::{draft_lint_law, draft_message_law, draft_selection_law, many_draft_variants_law};
pub(crate) use laws::{
    evaluation_law, final_lint_law, final_selection_law, many_variants_law, message_law, normal_form_law, overlap_law,
    text_law,
};

/// A constraint text, valid or not.
pub(crate) fn matcher_text(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match text.parse() {
        Ok(constraint) => {
            text_law(&constraint);
            normal_form_law(&constraint);
            message_law(&constraint);
        }
        Err(error) => assert!(text.is_char_boundary(error.offset()), "an error points at a character"),
    }
}

/// Constraints, messages and sets of variants: the first byte chooses a law, the others what it is tried on.
pub(crate) fn matcher_tree(input: &[u8]) {
    let Some((law, input)) = input.split_first() else { return };
    match law % 7 {
        _ if *law == 254 => many_variants_law(input),
        _ if *law == 255 => many_draft_variants_law(input),
        0 => evaluation_law(input),
        1 => overlap_law(input),
        2 => final_selection_law(input),
        3 => final_lint_law(input),
        4 => draft_message_law(input),
        5 => draft_selection_law(input),
        _ => draft_lint_law(input),
    }
}
