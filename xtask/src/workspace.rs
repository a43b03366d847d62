//! This workspace, as cargo sees it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A package that goes to the registry.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    /// By what it is found there.
    pub(crate) keywords: usize,
    pub(crate) categories: usize,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}

/// What cargo prints, run in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(root()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo {}: {said}", arguments.join(" ")).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The packages that go to the registry: all that do not say otherwise.
pub(crate) fn published() -> Result<Vec<Package>, Box<dyn Error>> {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version=1"])?)?;
    let packages = metadata.get("packages").and_then(Value::as_array).into_iter().flatten();
    let published = packages.filter(|package| package.get("publish").is_none_or(Value::is_null));
    let read = |package: &Value| {
        let text = |field| package.get(field).and_then(Value::as_str).ok_or("cargo metadata: a package without a name");
        let directory = Path::new(text("manifest_path")?).parent().map(Path::to_path_buf).unwrap_or_default();
        let count = |field| package.get(field).and_then(Value::as_array).map_or(0, Vec::len);
        let (keywords, categories) = (count("keywords"), count("categories"));
        Ok(Package { name: text("name")?.to_owned(), directory, keywords, categories })
    };
    published.map(read).collect()
}
