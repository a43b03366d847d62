//! `cargo xtask`: the chores of this workspace that are programs.

mod descriptor;
mod house;
mod package;
mod published;
mod readme;
mod sbom;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask descriptor|package [--check]
       cargo xtask house
       cargo xtask sbom [FEATURES]

  descriptor            write the descriptor set that the relay's file origin knows Envoy's types by
  descriptor --check    fail unless the committed set is the one this tool makes
  house                 fail unless files and functions are short, and no two files need each other
  package               write the lists of what each package holds, in ci/package
  package --check       fail unless each package holds what its list says, and its README is one for the registry
  sbom                  print what the image is made of, with these features of the relay beside the default ones (CycloneDX)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["descriptor"] => descriptor::write(),
        ["descriptor", "--check"] => descriptor::check(),
        ["house"] => house::check(),
        ["package"] => package::write(),
        ["package", "--check"] => package::check(),
        ["sbom"] => sbom::of_image(""),
        ["sbom", features] => sbom::of_image(features),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cargo xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
