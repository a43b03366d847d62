//! The book's programs, as `cargo test` finds them: one module a chapter.

macro_rules! chapters {
    ($($name:ident = $file:literal),* $(,)?) => {
        $(#[doc = include_str!($file)] pub mod $name {})*
    };
}

chapters! {
    concepts = "concepts.md",
    life_of_an_update = "life-of-an-update.md",
    control_plane = "control-plane.md",
    machines = "machines.md",
    rules = "rules.md",
    extending = "extending.md",
}
