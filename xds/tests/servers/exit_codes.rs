use tonic::Status;

use super::cli::Run;
use super::origin::{Origin, Scene, nobody};
use super::{events, run, run_until};

#[test]
fn what_is_wrong_with_the_command_line_is_2() {
    let missing = "/no/such/file";
    for args in [
        &["get"][..],
        &["get", "clusterr"],
        &["get", "--output", "xml", "cluster"],
        &["get", "--timeout", "-1", "cluster"],
        &["get", "--server", "dns:///x", "cluster"],
        &["get", "--server", "unix://x", "cluster"],
        &["get", "--ca", missing, "cluster"],
        &["get", "--bootstrap", missing, "cluster"],
        &["get", "--bootstrap", missing, "--server", "a:1", "cluster"],
        &["get", "--attribute", "x", "cluster"],
        &["watch", "--bootstrap", missing, "cluster"],
        &["diff", "a:1"],
        &["diff", "dns:///x", "a:1", "cluster"],
        &["diff", "a:1", "b:1", "cluster", "xdstp://a"],
    ] {
        let run = run(args);
        assert_eq!((run.code, &*run.out), (2, ""), "{args:?}");
        assert!(!run.err.is_empty());
    }
}

#[test]
fn what_is_wrong_is_said_once_and_with_what_to_do() {
    let missing = "/no/such/file";
    let unread = format!("xds: {missing}: No such file or directory (os error 2)\n");
    for (args, words) in [
        (&["get", "--ca", missing, "cluster"][..], &*unread),
        (&["get", "--bootstrap", missing, "cluster"], &unread),
        (
            &["get", "--server", "http://a:1", "--ca", missing, "cluster"],
            "xds: --ca is for TLS, and http://a:1 is clear text; expected https:// or no scheme\n",
        ),
        (
            &["diff", "HTTP://a:1", "b:1", "--tls", "cluster"],
            "xds: --tls is for TLS, and HTTP://a:1 is clear text; expected https:// or no scheme\n",
        ),
    ] {
        let run = run(args);
        assert_eq!((run.code, &*run.err), (2, words), "{args:?}");
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_3() {
    let server = nobody();
    for command in ["get", "watch"] {
        let tried = |run: &Run| run.err.contains(&format!("xds: no stream to {server}: "));
        let run = run_until(tried, &[command, "--server", &server, "-o", "json", "cluster", "web", "*"]);
        assert_eq!(run.code, 3, "{command}");
        let errors = events(&run, "error");
        assert!(errors.iter().all(|error| error["kind"] == "unreachable" && error["server"] == server), "{errors:?}");
        // The server once, and each name.
        let names: Vec<_> = errors.iter().map(|error| error["name"].as_str()).collect();
        assert_eq!(names, [Some("*"), Some("web"), None], "{command}");
    }
}

#[test]
fn a_server_that_says_nothing_is_3_because_silence_is_no_absence() {
    let origin = Origin::play(&[Scene::Silence]);
    let run = run(&["get", "--server", &origin.address(), "--timeout", "0.3", "-o", "json", "cluster", "web"]);
    let errors = events(&run, "error");
    assert_eq!((run.code, errors.len(), &errors[0]["kind"]), (3, 1, &"timeout".into()));
    assert_eq!(run.err, "xds: no answer for web within 0.3 s\n");
}

#[test]
fn a_server_that_does_not_want_to_be_asked_is_3_and_not_waited_for() {
    for status in [Status::permission_denied("not you"), Status::unimplemented("what is that")] {
        let origin = Origin::play(&[Scene::Refuse(status.clone())]);
        let run = run(&["get", "--server", &origin.address(), "--timeout", "1e9", "-o", "json", "cluster", "web"]);
        let errors = events(&run, "error");
        assert_eq!((run.code, errors.len()), (3, 2), "{}", run.err);
        assert!(errors.iter().all(|error| error["kind"] == "refused"), "{errors:?}");
        assert!(run.err.contains(status.message()), "{}", run.err);
    }
}
