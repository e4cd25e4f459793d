//! The Simple API's HTML (PEP 503, and the attributes of later PEPs).

use super::{API_VERSION, address, provenance};
use crate::index::{MetadataFile, ProjectFile};
use crate::status::{Marker, Status};
use packhouse_sdk::{Error, Output, Request};

/// The end of each page.
pub(super) const END: &str = "</body>\n</html>\n";

/// Writes the list of projects.
pub(super) fn list(out: &mut Output<'_>, names: &[String]) -> Result<(), Error> {
    out.push(&head("Simple index", ""))?;
    for name in names {
        out.push(&format!("<a href=\"{name}/\">{name}</a><br>\n"))?;
    }
    out.push(END)
}

/// Writes the start of a project's page, up to its links.
pub(super) fn begin_project(out: &mut Output<'_>, project: &str, status: &Status) -> Result<(), Error> {
    let mut meta = String::new();
    if status.status != Marker::Active {
        let word = serde_json::to_value(status.status).unwrap_or_default();
        meta += &tag("pypi:project-status", word.as_str().unwrap_or_default());
    }
    if let Some(reason) = &status.reason {
        meta += &tag("pypi:project-status-reason", reason);
    }
    out.push(&head(&format!("Links for {project}"), &meta))
}

fn head(title: &str, meta: &str) -> String {
    let title = escape(title);
    let version = tag("pypi:repository-version", API_VERSION);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n{version}{meta}<title>{title}</title>\n</head>\n<body>\n<h1>{title}</h1>\n"
    )
}

fn tag(name: &str, content: &str) -> String {
    format!("<meta name=\"{name}\" content=\"{}\">\n", escape(content))
}

/// Renders the link to a file.
pub(super) fn link(project: &str, file: &ProjectFile, request: &Request) -> String {
    let mut link = format!("<a href=\"{}", escape(&address(project, &file.version, &file.filename)));
    if let Some((algorithm, hex)) = file.hashes.get_key_value("sha256").or(file.hashes.iter().next()) {
        link += &format!("#{algorithm}={hex}");
    }
    link.push('"');
    let mut attribute = |name: &str, value: &str| link += &format!(" {name}=\"{}\"", escape(value));
    if let Some(requires) = &file.requires_python {
        attribute("data-requires-python", requires);
    }
    let metadata = match &file.metadata {
        MetadataFile::Absent => None,
        MetadataFile::Unchecked => Some("true".to_owned()),
        MetadataFile::Sha256(hex) => Some(format!("sha256={hex}")),
    };
    if let Some(metadata) = metadata {
        attribute("data-core-metadata", &metadata);
        attribute("data-dist-info-metadata", &metadata);
    }
    if let Some(reason) = &file.yanked {
        attribute("data-yanked", reason);
    }
    if file.signature {
        attribute("data-gpg-sig", "true");
    }
    if file.provenance {
        attribute("data-provenance", &provenance(request, project, &file.version, &file.filename));
    }
    link + &format!(">{}</a><br>\n", escape(&file.filename))
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for symbol in text.chars() {
        match symbol {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
