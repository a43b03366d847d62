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
    all: BTreeMap<(Of, String), Item>,
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
        if change.put.iter().any(|item| item.constraints.is_some()) {
            return Err(Failure::Unsupported("files hold no variants".into()));
        }
        for item in &change.put {
            self.all.insert((item.of, item.name.clone()), item.clone());
        }
        for gone in &change.remove {
            self.all.remove(gone);
        }
        self.write().map_err(|error| Failure::Broken(format!("{}: {error}", self.file.display())))
    }

    fn write(&self) -> io::Result<()> {
        let resource = |item: &Item| -> Value {
            let mut wrapper = json!({"name": item.name, "resource": item.json()});
            if let (Some(fields), Some(ttl)) = (wrapper.as_object_mut(), item.ttl) {
                fields.insert("ttl".into(), format!("{ttl}s").into());
            }
            wrapper
        };
        let all: Vec<_> = self.all.values().map(resource).collect();
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
        let variant = Item { constraints: Some("a=b".into()), ..Item::new(Of::Cluster, "a", 1) };
        let refused = files.change(&Change { put: vec![variant], remove: Vec::new() });
        assert!(matches!(refused, Err(Failure::Unsupported(_))));
        drop(files);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
