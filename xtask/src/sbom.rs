//! What the image is made of, as CycloneDX says it: the packages that are linked into the relay and the tool, with their licences,
//! checksums and dependencies. Without a time or a number of its own, so that the same sources say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;

use serde_json::{Value, json};

use crate::workspace;

/// Whom the document is about, and whom it is with.
const PROGRAM: &str = "xds-relay";
const TOOL: &str = "xds-cli";

/// The document, of a relay with these features more than the default ones, as it runs on Linux.
pub(crate) fn of_image(features: &str) -> Result<String, Box<dyn Error>> {
    let kinds = "no-build,no-dev,no-proc-macro";
    let target = "x86_64-unknown-linux-gnu";
    let mut tree =
        vec!["tree", "--locked", "--package", PROGRAM, "--package", TOOL, "--edges", kinds, "--target", target];
    let features: Vec<_> = features.split_terminator(',').map(|feature| format!("{PROGRAM}/{feature}")).collect();
    let features = features.join(",");
    tree.extend(["--prefix", "depth", "--format", "|{p}|{l}", "--features", &features]);
    let packages = packages(&workspace::cargo(&tree)?)?;
    let checksums = checksums(&fs::read_to_string(workspace::root().join("Cargo.lock"))?);
    Ok(format!("{:#}", document(&packages, &checksums)?))
}

/// What cargo says of a package.
#[derive(Debug, Default, PartialEq, Eq)]
struct Package {
    licence: String,
    needs: BTreeSet<Id>,
}

/// Name and version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id(String, String);

impl Id {
    fn purl(&self) -> String {
        format!("pkg:cargo/{}@{}", self.0, self.1.replace('+', "%2B"))
    }
}

/// Reads lines `DEPTH|NAME vVERSION …|LICENCE`: what a package needs is deeper by one, once for each package.
fn packages(tree: &str) -> Result<BTreeMap<Id, Package>, Box<dyn Error>> {
    let mut packages: BTreeMap<Id, Package> = BTreeMap::new();
    let mut above: Vec<Id> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let read = || {
            let (depth, rest) = line.split_once('|')?;
            let (package, licence) = rest.split_once('|')?;
            let (name, version) = package.split_once(" v")?;
            let version = version.split(' ').next()?;
            Some((depth.parse::<usize>().ok()?, Id(name.to_owned(), version.to_owned()), licence))
        };
        let (depth, id, licence) = read().ok_or_else(|| format!("cargo tree: {line}"))?;
        let licence = licence.trim_end_matches(" (*)").replace('/', " OR ");
        packages.entry(id.clone()).or_default().licence = licence.split_whitespace().collect::<Vec<_>>().join(" ");
        above.truncate(depth);
        if let Some(parent) = above.last().and_then(|parent| packages.get_mut(parent)) {
            parent.needs.insert(id.clone());
        }
        above.push(id);
    }
    Ok(packages)
}

/// Those of the lock file: what is of this workspace has none.
fn checksums(lock: &str) -> BTreeMap<Id, String> {
    let field = |package: &str, name: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let packages = lock.split("[[package]]");
    let read = |package| Some((Id(field(package, "name")?, field(package, "version")?), field(package, "checksum")?));
    packages.filter_map(read).collect()
}

fn document(packages: &BTreeMap<Id, Package>, checksums: &BTreeMap<Id, String>) -> Result<Value, Box<dyn Error>> {
    let mut components = Vec::new();
    let mut program = None;
    for (id, package) in packages {
        let mut component = json!({
            "type": "library", "bom-ref": id.purl(), "name": id.0, "version": id.1, "purl": id.purl(),
            "licenses": [{ "expression": package.licence }],
        });
        if let (Some(checksum), Some(fields)) = (checksums.get(id), component.as_object_mut()) {
            fields.insert("hashes".to_owned(), json!([{ "alg": "SHA-256", "content": checksum }]));
        }
        if [PROGRAM, TOOL].contains(&id.0.as_str())
            && let Some(fields) = component.as_object_mut()
        {
            fields.insert("type".to_owned(), json!("application"));
        }
        if id.0 == PROGRAM {
            program = Some(component);
        } else {
            components.push(component);
        }
    }
    let program = program.ok_or("cargo tree: there is no relay")?;
    let dependencies = packages.iter().map(|(id, package)| {
        json!({ "ref": id.purl(), "dependsOn": package.needs.iter().map(Id::purl).collect::<Vec<_>>() })
    });
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": { "component": program },
        "components": components, "dependencies": dependencies.collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0|xds-relay v0.1.0 (/src/xds-relay)|Apache-2.0\n1|a v1.0.0|MIT / Apache-2.0\n\
                        2|b v2.0.0+c.5|MIT\n1|b v2.0.0+c.5|MIT (*)\n";
    const LOCK: &str = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"0f\"\n";

    #[test]
    fn a_tree_says_who_needs_whom() {
        let packages = packages(TREE).unwrap_or_default();
        let needs = |name: &str| {
            let of = packages.iter().find(|(id, _)| id.0 == name).map(|(_, package)| &package.needs);
            of.into_iter().flatten().map(Id::purl).collect::<Vec<_>>()
        };
        assert_eq!(needs(PROGRAM), ["pkg:cargo/a@1.0.0", "pkg:cargo/b@2.0.0%2Bc.5"]);
        assert_eq!(needs("a"), ["pkg:cargo/b@2.0.0%2Bc.5"]);
        assert_eq!(needs("b"), [""; 0]);
        assert!(super::packages("0 a v1.0.0 MIT\n").is_err(), "no such line");
    }

    #[test]
    fn what_is_of_the_registry_has_its_checksum_and_one_expression_of_licences() {
        let document = document(&packages(TREE).unwrap_or_default(), &checksums(LOCK)).unwrap_or_default();
        assert_eq!(document["metadata"]["component"]["type"], "application");
        let [a, b] = [0, 1].map(|index| &document["components"][index]);
        assert_eq!(a["hashes"], json!([{ "alg": "SHA-256", "content": "0f" }]));
        assert_eq!(a["licenses"], json!([{ "expression": "MIT OR Apache-2.0" }]));
        assert_eq!((&b["version"], &b["hashes"]), (&json!("2.0.0+c.5"), &Value::Null));
    }
}
