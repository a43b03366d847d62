//! The source of a published crate, unpacked by cargo, without compiling it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of `name` at exactly `version`.
///
/// A throw-away package that depends on the crate is made under `scratch`;
/// `cargo metadata` on it downloads the source, checks it against the registry's
/// checksum, and says where it is. Nothing of it enters this workspace's lock file.
pub(crate) fn source(name: &str, version: &str, scratch: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let package = scratch.join(format!("{name}-{version}"));
    std::fs::create_dir_all(package.join("src"))?;
    std::fs::write(package.join("src/lib.rs"), "")?;
    let manifest = package.join("Cargo.toml");
    let text = format!(
        "[package]\nname = \"scratch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n{name} = \"={version}\"\n"
    );
    std::fs::write(&manifest, text)?;

    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output =
        Command::new(cargo).args(["metadata", "--format-version=1", "--manifest-path"]).arg(&manifest).output()?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    metadata
        .get("packages")
        .and_then(serde_json::Value::as_array)
        .into_iter()
        .flatten()
        .find(|package| package.get("name").and_then(serde_json::Value::as_str) == Some(name))
        .and_then(|package| package.get("manifest_path")?.as_str())
        .and_then(|manifest| Path::new(manifest).parent())
        .map(Path::to_path_buf)
        .ok_or_else(|| format!("cargo metadata does not list {name}").into())
}
