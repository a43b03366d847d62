use super::run;

#[test]
fn the_help_of_every_command_has_an_example_that_begins_with_it() {
    for command in [
        "get",
        "watch",
        "diff",
        "conformance",
        "names parse",
        "names match",
        "names listener",
        "names run",
        "variants lint",
        "variants select",
        "variants run",
        "push",
        "rm",
    ] {
        let args: Vec<_> = command.split(' ').chain(["--help"]).collect();
        let run = run(&args);
        let (_, examples) = run.out.split_once("Example").unwrap_or_else(|| panic!("{command}: {}", run.out));
        assert!(run.code == 0 && examples.contains(&format!("xds {command} ")), "{command}: {examples}");
        assert_eq!(run.err, "");
    }
}
