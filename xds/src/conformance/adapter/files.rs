//! Files that a server reads: one, of a name of its own, which is exchanged as a whole.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Change, Failure};
use crate::conformance::resources::{Item, Of};

pub(crate) struct Files {
    file: PathBuf,
    /// Written first. A server reads no file that has another ending.
    draft: PathBuf,
    /// Each name, and its variants by their constraints: none of what is for everybody.
    all: BTreeMap<(Of, String), BTreeMap<Option<String>, Item>>,
}

impl Files {
    /// # Errors
    /// There is no such directory.
    pub(crate) fn new(directory: &Path, run: &str) -> Result<Self, String> {
        if !directory.is_dir() {
            return Err(format!("{} is no directory", directory.display()));
        }
        let (file, draft) = (directory.join(format!("{run}.json")), directory.join(format!(".{run}.tmp")));
        Ok(Self { file, draft, all: BTreeMap::new() })
    }

    pub(crate) fn change(&mut self, change: &Change) -> Result<(), Failure> {
        if change.put.iter().any(|item| item.json().is_none()) {
            return Err(Failure::Unsupported("files hold types that are known".into()));
        }
        if change.put.iter().any(|item| item.parameters.is_some()) {
            return Err(Failure::Unsupported("files say variants in the final form".into()));
        }
        for gone in &change.remove {
            self.all.remove(gone);
        }
        for item in &change.put {
            let variants = self.all.entry((item.of, item.name.clone())).or_default();
            // One is for everybody, or each is for some.
            variants.retain(|constraints, _| constraints.is_some() && item.constraints.is_some());
            variants.insert(item.constraints.clone(), item.clone());
        }
        self.write().map_err(|error| Failure::Broken(format!("{}: {error}", self.file.display())))
    }

    fn write(&self) -> io::Result<()> {
        let resource = |item: &Item| -> Value {
            let mut wrapper = match &item.constraints {
                None => json!({"name": item.name, "resource": item.json()}),
                Some(constraints) => {
                    let name = json!({"name": item.name, "dynamic_parameter_constraints": constraints});
                    json!({"resource_name": name, "resource": item.json()})
                }
            };
            if let (Some(fields), Some(ttl)) = (wrapper.as_object_mut(), item.ttl) {
                fields.insert("ttl".into(), format!("{ttl}s").into());
            }
            wrapper
        };
        let all: Vec<_> = self.all.values().flat_map(BTreeMap::values).map(resource).collect();
        fs::write(&self.draft, json!({"resources": all}).to_string())?;
        fs::rename(&self.draft, &self.file)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Of what was never written there is nothing to take away.
        let _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_holds_all_there_is_and_goes_with_the_adapter() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = Files::new(directory.path(), "run").unwrap();
        let put = vec![Item::new(Of::Cluster, "a", 1), Item { ttl: Some(3), ..Item::new(Of::Route, "b", 2) }];
        files.change(&Change { put, remove: Vec::new() }).unwrap();
        files.change(&Change { put: Vec::new(), remove: vec![(Of::Cluster, "a".into())] }).unwrap();
        let read: Value = serde_json::from_slice(&fs::read(directory.path().join("run.json")).unwrap()).unwrap();
        let resource = json!({"@type": Of::Route.type_url(), "name": "b", "max_direct_response_body_size_bytes": 2});
        assert_eq!(read, json!({"resources": [{"name": "b", "ttl": "3s", "resource": resource}]}));
        let variant = |text: &str| Item { constraints: Some(text.into()), ..Item::new(Of::Route, "b", 1) };
        let held = |files: &mut Files, put: Vec<Item>, remove: &[&str]| {
            let remove = remove.iter().map(|name| (Of::Route, (*name).to_owned())).collect();
            files.change(&Change { put, remove }).unwrap();
            let read: Value = serde_json::from_slice(&fs::read(directory.path().join("run.json")).unwrap()).unwrap();
            let all = read["resources"].as_array().unwrap().iter();
            all.map(|one| one["resource_name"]["dynamic_parameter_constraints"].to_string()).collect::<Vec<_>>()
        };
        assert_eq!(held(&mut files, vec![variant("a=1"), variant("a=2")], &[]), [r#""a=1""#, r#""a=2""#]);
        assert_eq!(held(&mut files, vec![variant("not a=3")], &["b"]), [r#""not a=3""#], "what is gone is gone before");
        assert_eq!(held(&mut files, vec![Item::new(Of::Route, "b", 3)], &[]), ["null"]);
        assert_eq!(held(&mut files, vec![variant("a=1")], &[]), [r#""a=1""#]);
        drop(files);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
