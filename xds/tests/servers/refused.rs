//! A wildcard or a glob that its server does not send.

use super::origin::{Origin, Scene};
use super::{GLOB, events, objects, run, run_until};

const PROTOCOLS: [&str; 2] = ["delta", "sotw"];

#[test]
fn a_collection_that_is_refused_is_an_error_with_its_words_and_3() {
    for asked in ["*", GLOB] {
        for protocol in PROTOCOLS {
            let origin = Origin::play(&[Scene::withholding(asked, &[])]);
            let args =
                ["get", "--server", &origin.address(), "--protocol", protocol, "--timeout", "1e9", "cluster", asked];
            let text = run(&args);
            let words = format!("xds: {asked}: refused (code 7): ask for each by its name\n");
            assert_eq!((text.code, &*text.err), (3, &*words), "{protocol}");
            let json = run(&[&args[..], &["-o", "json"]].concat());
            let errors = events(&json, "error");
            assert_eq!((json.code, errors.len()), (3, 1), "{}", json.out);
            assert_eq!((&errors[0]["name"], &errors[0]["kind"]), (&asked.into(), &"refused".into()));
        }
    }
}

/// What was asked for by its own name is there.
#[test]
fn what_is_asked_for_beside_a_collection_that_is_refused_is_printed() {
    for protocol in PROTOCOLS {
        let origin = Origin::play(&[Scene::withholding(GLOB, &["web"])]);
        let args = ["get", "--server", &origin.address(), "--protocol", protocol, "-o", "json", "cluster", "web", GLOB];
        let run = run(&args);
        assert_eq!((run.code, events(&run, "error").len()), (3, 1), "{}", run.err);
        assert_eq!(events(&run, "put")[0]["name"], "web");
    }
}

#[test]
fn a_watch_prints_the_refusal_as_an_event() {
    for asked in ["*", GLOB] {
        for protocol in PROTOCOLS {
            let origin = Origin::play(&[Scene::withholding(asked, &[])]);
            let args = ["watch", "--server", &origin.address(), "--protocol", protocol, "-o", "json", "cluster", asked];
            let run = run_until(|run| !run.out.is_empty(), &args);
            let told: Vec<_> = objects(&run).iter().map(|told| told["event"].to_string()).collect();
            assert_eq!((run.code, told), (3, vec!["\"error\"".to_owned()]), "{protocol} {asked}: {}", run.out);
        }
    }
}
