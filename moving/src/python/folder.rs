//! Writes a simple index to a folder: HTML pages for pip, and JSON with the additional fields.

use serde_json::{Value, json};

use super::simple::PyFile;
use crate::error::MoveError;
use crate::folder::Folder;
use crate::percent;

/// Writes the page of a project.
pub(super) async fn project(
    folder: &Folder,
    name: &str,
    files: &[PyFile],
    status: Option<&Value>,
) -> Result<(), MoveError> {
    let listed: Vec<Value> = files.iter().map(listed).collect();
    let mut page = json!({"meta": {"api-version": "1.1"}, "name": name, "files": listed});
    if let (Some(status), Some(object)) = (status, page.as_object_mut()) {
        object.insert("project-status".to_owned(), status.clone());
    }
    folder.put(&format!("simple/{name}/index.json"), page.to_string()).await?;
    let links: String = files.iter().map(link).collect();
    folder.put(&format!("simple/{name}/index.html"), html(&links)).await
}

/// Writes the list of projects.
pub(super) async fn root(folder: &Folder, names: &[String]) -> Result<(), MoveError> {
    let projects: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let page = json!({"meta": {"api-version": "1.1"}, "projects": projects});
    folder.put("simple/index.json", page.to_string()).await?;
    let links: String =
        names.iter().map(|name| format!("<a href=\"{0}/\">{0}</a><br>\n", escaped(name))).collect();
    folder.put("simple/index.html", html(&links)).await
}

fn listed(file: &PyFile) -> Value {
    let mut hashes = serde_json::Map::new();
    for (name, hex) in [("sha256", &file.hashes.sha256), ("md5", &file.hashes.md5)] {
        if let Some(hex) = hex {
            hashes.insert(name.to_owned(), json!(hex));
        }
    }
    let yanked = match file.yanked.as_deref() {
        None => json!(false),
        Some("") => json!(true),
        Some(reason) => json!(reason),
    };
    let mut listed = json!({
        "filename": file.filename, "url": percent::segment(&file.filename), "hashes": hashes, "yanked": yanked,
        "requires-python": file.requires_python, "size": file.size, "gpg-sig": file.signed,
        "upload-time": file.uploaded.map(|at| at.to_string()),
    });
    if let (Some(object), true) = (listed.as_object_mut(), file.provenance.is_some()) {
        object.insert(
            "provenance".to_owned(),
            json!(format!("{}.provenance", percent::segment(&file.filename))),
        );
    }
    listed
}

fn link(file: &PyFile) -> String {
    let hash = file.hashes.sha256.as_ref().map(|hex| format!("#sha256={hex}")).unwrap_or_default();
    let attribute = |name: &str, value: &Option<String>| match value {
        Some(value) => format!(" {name}=\"{}\"", escaped(value)),
        None => String::new(),
    };
    format!(
        "<a href=\"{}{hash}\"{}{}>{}</a><br>\n",
        percent::segment(&file.filename),
        attribute("data-requires-python", &file.requires_python),
        attribute("data-yanked", &file.yanked),
        escaped(&file.filename)
    )
}

fn html(links: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html><head><meta name=\"pypi:repository-version\" content=\"1.1\"></head><body>\n{links}</body></html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
