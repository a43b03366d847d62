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
    test_your_server = "test-your-server.md",
    machines = "machines.md",
    rules = "rules.md",
    extending = "extending.md",
}

/// As much of Envoy's types as the programs use. The crate `envoy-types` has all of them.
pub mod envoy {
    /// A cluster.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Cluster {
        /// Its name.
        #[prost(string, tag = "1")]
        pub name: String,
    }

    impl prost::Name for Cluster {
        const NAME: &'static str = "Cluster";
        const PACKAGE: &'static str = "envoy.config.cluster.v3";
    }
}
