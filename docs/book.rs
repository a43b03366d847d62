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
    secure = "secure.md",
    programs = "programs.md",
    test_your_server = "test-your-server.md",
    operate = "operate.md",
    scale = "scale.md",
    etcd_origin = "etcd-origin.md",
    kubernetes_origin = "kubernetes-origin.md",
    machines = "machines.md",
    rules = "rules.md",
}

#[allow(clippy::panic, reason = "a program of the book fails by panicking")]
pub mod asking;
#[allow(clippy::panic, reason = "as above")]
pub mod certificates;

/// As much of Envoy's types as the programs use. The crate `envoy-types` has all of them.
pub mod envoy {
    /// A cluster.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Cluster {
        /// Its name.
        #[prost(string, tag = "1")]
        pub name: String,
        /// What it is called in statistics.
        #[prost(string, tag = "28")]
        pub alt_stat_name: String,
    }

    impl prost::Name for Cluster {
        const NAME: &'static str = "Cluster";
        const PACKAGE: &'static str = "envoy.config.cluster.v3";
    }
}

/// Stands for the crate `envoy-types`, which takes minutes to build: what the programs show is the path there.
pub mod envoy_types {
    #[allow(missing_docs, reason = "modules of another crate")]
    pub mod pb {
        pub mod envoy {
            pub mod config {
                pub mod cluster {
                    pub mod v3 {
                        pub use crate::envoy::Cluster;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    const MANIFEST: &str = include_str!("../Cargo.toml");

    /// What a chapter tells its reader to depend on is what its programs were compiled with.
    #[test]
    fn dependencies_are_of_the_versions_that_are_used_here() {
        for (chapter, of) in [
            (include_str!("control-plane.md"), &["envoy-types", "prost", "tonic", "tokio"][..]),
            (include_str!("programs.md"), &["envoy-types", "prost", "tokio"]),
        ] {
            assert_eq!(compared(chapter), of);
        }
    }

    /// What is shown of a program that is compiled and run elsewhere is what that has.
    #[test]
    fn the_adapter_is_shown_as_it_is() {
        let (chapter, program) = (include_str!("test-your-server.md"), include_str!("../xds/examples/adapter.rs"));
        let shown: Vec<_> =
            chapter.split("```rust,ignore\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
        assert_eq!(shown.len(), 2);
        let (_, behind) = program.split_once("use xdstp_uri::ResourceName;\n\n").unwrap();
        assert_eq!(shown.join("\n\n") + "\n", behind);
    }

    /// How little a control plane takes: what `main` has in it, and of the other all but what it knows of Envoy's types.
    #[test]
    fn the_examples_of_control_planes_are_short() {
        let main = |program: &str| {
            let (_, behind) = program.split_once("async fn main() ").unwrap_or_default();
            behind.lines().skip(1).take_while(|line| *line != "}").filter(|line| !line.is_empty()).count()
        };
        let plane = main(include_str!("../xds-transport/examples/control_plane.rs"));
        assert!((1..=15).contains(&plane), "control_plane.rs: {plane} lines in main");
        let groups = include_str!("../xds-transport/examples/node_groups.rs");
        assert!((1..=15).contains(&main(groups)), "node_groups.rs: {} lines in main", main(groups));
        let (own, _) = groups.split_once("\n/// As much of Envoy's types as is used here.").unwrap();
        let lines = own.lines().filter(|line| !line.is_empty() && !line.starts_with("//!")).count();
        assert!(lines <= 40, "node_groups.rs: {lines} lines");
    }

    /// What a reader copies names no crate that he cannot have.
    #[test]
    fn no_program_shows_the_book_s_own_crate() {
        for entry in std::fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "md") {
                let text = std::fs::read_to_string(&path).unwrap();
                let shown = |line: &&str| line.contains("xds_federation_book") && !line.starts_with('#');
                assert_eq!(text.lines().find(shown), None, "{}", path.display());
            }
        }
    }

    /// Files that a reader is sent to are there.
    #[test]
    fn where_new_things_go_there_is_a_file() {
        let guide = include_str!("../ARCHITECTURE.md").split("## Where things go").nth(1).unwrap_or_default();
        let table = guide.split("## ").next().unwrap_or_default();
        let is_path = |word: &&str| word.contains('/') && word.ends_with(".rs");
        let paths: Vec<_> = table.split('`').filter(is_path).collect();
        assert!(paths.len() > 10, "{paths:?}");
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let missing: Vec<_> = paths.iter().filter(|path| !root.join(path).is_file()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    /// What a chapter lists and is used here, in the same version.
    fn compared(chapter: &str) -> Vec<String> {
        let listed = chapter.split("```toml\n[dependencies]\n").nth(1).and_then(|rest| rest.split("```").next());
        let version = |line: &str| line.split('"').nth(1).map(str::to_owned);
        let mut compared = Vec::new();
        for line in listed.unwrap_or_default().lines() {
            let name = line.split(' ').next().unwrap_or_default();
            let used = MANIFEST.lines().find(|used| used.starts_with(&format!("{name} = ")));
            let used = used.and_then(version).filter(|used| used.starts_with(char::is_numeric));
            // A shorter version takes all that a longer one does.
            if let (Some(used), Some(listed)) = (used, version(line)) {
                assert!(used.starts_with(&listed), "{name}: {listed}, and here {used}");
                compared.push(name.to_owned());
            }
        }
        compared
    }
}
