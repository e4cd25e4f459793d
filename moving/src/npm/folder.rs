//! Packages in a folder. The packument of each package is in a file next to the package's tarballs.

use serde_json::{Map, Value, json};

use super::publish::file;
use crate::error::MoveError;
use crate::folder::Folder;

/// Writes the packument of a package. The packument has only the versions whose tarballs were
/// saved, with the new locations of the tarballs.
pub(super) async fn packument(
    folder: &Folder,
    name: &str,
    packument: &Value,
    saved: &[&str],
) -> Result<(), MoveError> {
    let mut packument = packument.clone();
    if let Some(versions) = packument.get_mut("versions").and_then(Value::as_object_mut) {
        let moved: Map<String, Value> = std::mem::take(versions)
            .into_iter()
            .filter(|(number, _)| saved.contains(&number.as_str()))
            .map(|(number, mut manifest)| {
                if let Some(dist) = manifest.get_mut("dist").and_then(Value::as_object_mut) {
                    dist.insert("tarball".to_owned(), json!(format!("-/{}", file(name, &number))));
                    if let Some(url) = dist.get_mut("attestations").and_then(|all| all.get_mut("url")) {
                        *url = json!(format!("-/{}.attestations.json", file(name, &number)));
                    }
                }
                (number, manifest)
            })
            .collect();
        *versions = moved;
    }
    folder.put(&format!("{name}/packument.json"), packument.to_string()).await
}

/// Writes the list of packages.
pub(super) async fn names(folder: &Folder, names: &[String]) -> Result<(), MoveError> {
    folder.put("packages.json", json!(names).to_string()).await
}
