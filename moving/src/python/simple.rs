//! Reads a simple index on a server or in a folder: JSON (PEP 691, 700, 714, 740, 792) or HTML
//! pages (PEP 503, 592).

use jiff::Timestamp;
use serde_json::Value;
use url::Url;

use crate::digests::Digests;
use crate::error::MoveError;
use crate::html;
use crate::location::{ReadDocument, SourceLocation};
use crate::origin::Origin;
use crate::percent;

const ACCEPT: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// File extensions that mark a link of an HTML page as a file of the project. The report names the
/// files that cannot be moved.
const FILES: [&str; 19] = [
    ".whl", ".gz", ".zip", ".tgz", ".bz2", ".tbz", ".xz", ".txz", ".lz", ".tlz", ".lzma", ".Z", ".tar",
    ".egg", ".exe", ".msi", ".rpm", ".deb", ".dmg",
];

/// Attributes of a link that describe its file.
const ATTRIBUTES: [&str; 4] = ["data-yanked", "data-requires-python", "data-gpg-sig", "data-provenance"];

/// A simple index of Python projects.
#[derive(Clone, Debug)]
pub(crate) struct SimpleIndex {
    location: SourceLocation,
    /// True if the location is the list of projects itself, false if the list is in `simple/`.
    is_root: bool,
}

/// The page of a project.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProjectPage {
    pub(crate) files: Vec<PyFile>,
    /// The status object of PEP 792.
    pub(crate) status: Option<Value>,
}

/// A file of a project.
#[derive(Clone, Debug)]
pub(crate) struct PyFile {
    pub(crate) filename: String,
    pub(crate) origin: Origin,
    pub(crate) hashes: Digests,
    pub(crate) size: Option<u64>,
    pub(crate) uploaded: Option<Timestamp>,
    /// Reason for the yank, which may be empty. `None` if the file is not yanked.
    pub(crate) yanked: Option<String>,
    pub(crate) requires_python: Option<String>,
    pub(crate) signed: bool,
    /// Origin of the file's provenance.
    pub(crate) provenance: Option<Origin>,
}

impl SimpleIndex {
    /// An index at a server's address, or in a folder.
    pub(crate) fn of(location: SourceLocation) -> SimpleIndex {
        let is_root = match &location {
            SourceLocation::Server(client) => client.base().path().trim_end_matches('/').ends_with("simple"),
            SourceLocation::Folder(_) => false,
        };
        SimpleIndex { location, is_root }
    }

    /// An index whose pages are below `simple/`, independent of the address.
    pub(crate) fn below(location: SourceLocation) -> SimpleIndex {
        SimpleIndex { location, is_root: false }
    }

    /// Makes the location the list of projects itself, independent of the address.
    pub(crate) fn at_root(self) -> SimpleIndex {
        SimpleIndex { is_root: true, ..self }
    }

    fn path(&self, rest: &str) -> String {
        let file = if matches!(self.location, SourceLocation::Folder(_)) { "index.json" } else { "" };
        if self.is_root { format!("{rest}{file}") } else { format!("simple/{rest}{file}") }
    }

    /// The names of all projects.
    pub(crate) async fn projects(&self) -> Result<Vec<String>, MoveError> {
        let page = self.location.read(&self.path(""), ACCEPT).await?;
        if let Some(json) = json(&page)? {
            let all = json.get("projects").and_then(Value::as_array).into_iter().flatten();
            return Ok(all.filter_map(|one| Some(one.get("name")?.as_str()?.to_owned())).collect());
        }
        let name = |link: &html::Link| {
            let path = link.href.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
            let name = percent::decode(path.rsplit('/').next().unwrap_or_default());
            // A link to the parent, or with only a query, is not a project.
            (!name.is_empty() && !matches!(name.as_str(), "." | "..") && !link.href.starts_with('?'))
                .then_some(name)
        };
        Ok(html::links(&page.text, &[]).iter().filter_map(name).collect())
    }

    /// Reads the page of a project.
    pub(crate) async fn project(&self, name: &str) -> Result<ProjectPage, MoveError> {
        let folder = format!("{}/", percent::segment(name));
        let page = self.location.read(&self.path(&folder), ACCEPT).await?;
        match json(&page)? {
            Some(json) => self.of_json(&page, &json, &folder),
            None => self.of_links(&page, &folder),
        }
    }

    fn of_json(&self, page: &ReadDocument, json: &Value, folder: &str) -> Result<ProjectPage, MoveError> {
        let mut files = Vec::new();
        for file in json.get("files").and_then(Value::as_array).into_iter().flatten() {
            let text = |member: &str| file.get(member).and_then(Value::as_str);
            let (Some(filename), Some(url)) = (text("filename"), text("url")) else { continue };
            let yanked = match file.get("yanked") {
                Some(Value::Bool(true)) => Some(String::new()),
                Some(Value::String(reason)) => Some(reason.clone()),
                _ => None,
            };
            files.push(PyFile {
                filename: filename.to_owned(),
                origin: self.origin(page, folder, url)?,
                hashes: file.get("hashes").map(Digests::of_object).unwrap_or_default(),
                size: file.get("size").and_then(Value::as_u64),
                uploaded: text("upload-time").and_then(time),
                yanked,
                requires_python: text("requires-python").map(str::to_owned),
                signed: file.get("gpg-sig") == Some(&Value::Bool(true)),
                provenance: text("provenance").map(|url| self.origin(page, folder, url)).transpose()?,
            });
        }
        let status = json.get("project-status").filter(|status| status.is_object());
        Ok(ProjectPage { files, status: status.cloned() })
    }

    fn of_links(&self, page: &ReadDocument, folder: &str) -> Result<ProjectPage, MoveError> {
        let mut files = Vec::new();
        for link in html::links(&page.text, &ATTRIBUTES) {
            let (address, fragment) = link.href.split_once('#').unwrap_or((&link.href, ""));
            let path = address.split('?').next().unwrap_or_default();
            let filename = percent::decode(path.rsplit('/').next().unwrap_or_default());
            if !FILES.iter().any(|end| filename.ends_with(end)) {
                continue;
            }
            let mut hashes = Digests::default();
            for (algorithm, hex) in fragment.split('&').filter_map(|part| part.split_once('=')) {
                hashes.add(algorithm, hex);
            }
            files.push(PyFile {
                origin: self.origin(page, folder, address)?,
                filename,
                hashes,
                size: None,
                uploaded: None,
                yanked: link.attribute("data-yanked").map(str::to_owned),
                requires_python: link.attribute("data-requires-python").map(str::to_owned),
                signed: link.attribute("data-gpg-sig") == Some("true"),
                provenance: link
                    .attribute("data-provenance")
                    .map(|url| self.origin(page, folder, url))
                    .transpose()?,
            });
        }
        Ok(ProjectPage { files, status: None })
    }

    fn origin(&self, page: &ReadDocument, folder: &str, link: &str) -> Result<Origin, MoveError> {
        match (&self.location, &page.url) {
            (SourceLocation::Server(client), Some(url)) => {
                let address = url.join(link).map_err(|error| {
                    MoveError::Refused(format!("`{link}` is not a valid address: {error}"))
                })?;
                Ok(Origin::Url(client.clone(), without_fragment(address)))
            }
            _ => {
                self.location.origin(&format!("simple/{}{}", percent::decode(folder), percent::decode(link)))
            }
        }
    }
}

fn without_fragment(mut url: Url) -> Url {
    url.set_fragment(None);
    url
}

/// Parses an upload time. PEP 700 requires a `Z`; some servers omit the zone and mean UTC.
fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| format!("{text}Z").parse().ok())
}

/// Parses a page as JSON. `None` if it is HTML.
fn json(page: &ReadDocument) -> Result<Option<Value>, MoveError> {
    if page.url.is_some() && !page.media_type.ends_with("json") {
        return Ok(None);
    }
    let read = serde_json::from_str(&page.text);
    read.map(Some).map_err(|error| MoveError::Refused(format!("a page of the index is not JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::client::Client;

    fn page(text: &str, media_type: &str) -> ReadDocument {
        let url = Some(Url::parse("http://host/simple/demo/").unwrap());
        ReadDocument { text: text.to_owned(), media_type: media_type.to_owned(), url }
    }

    fn index() -> SimpleIndex {
        SimpleIndex::of(SourceLocation::Server(Arc::new(Client::new("http://host/simple/", None).unwrap())))
    }

    #[test]
    fn json_and_html_give_the_same_files() {
        let sha256 = crate::digests::sha256(b"x");
        let json = serde_json::json!({"files": [{"filename": "demo-1.0.tar.gz", "url": "../../f/demo-1.0.tar.gz",
            "hashes": {"sha256": sha256}, "yanked": "broken", "upload-time": "2020-01-02T03:04:05.000000Z", "size": 3}]});
        let html = format!(
            "<a href='../../f/demo-1.0.tar.gz#sha256={sha256}' data-yanked='broken'>demo-1.0.tar.gz</a><a href='..'>up</a>"
        );
        let of_json = index().of_json(&page("", ""), &json, "demo/").unwrap().files;
        let of_links = index().of_links(&page(&html, "text/html"), "demo/").unwrap().files;
        for files in [&of_json, &of_links] {
            assert_eq!(files.len(), 1);
            let file = &files[0];
            assert_eq!((file.filename.as_str(), file.yanked.as_deref()), ("demo-1.0.tar.gz", Some("broken")));
            assert_eq!(file.hashes, Digests::sha256(&sha256));
            let Origin::Url(_, url) = &file.origin else { panic!() };
            assert_eq!(url.as_str(), "http://host/f/demo-1.0.tar.gz");
        }
        assert_eq!(of_json[0].uploaded.unwrap().to_string(), "2020-01-02T03:04:05Z");
        assert_eq!(time("2020-01-02T03:04:05.5").unwrap().to_string(), "2020-01-02T03:04:05.5Z");
    }

    #[test]
    fn all_listed_files_are_found() {
        let names = ["demo-1.0.tar.bz2", "demo-1.0.tgz", "demo-1.0.tar.xz", "demo-1.0.msi", "demo-1.0-1.rpm"];
        let html: String = names.iter().map(|name| format!("<a href='{name}'>{name}</a>")).collect();
        let html = format!("<a href='../'>up</a>{html}<a href='?C=N'>sort</a>");
        let files = index().of_links(&page(&html, "text/html"), "demo/").unwrap().files;
        assert_eq!(files.iter().map(|file| file.filename.as_str()).collect::<Vec<_>>(), names);
    }

    #[test]
    fn links_do_not_lead_out_of_a_folder() {
        let index = SimpleIndex::of(SourceLocation::folder(Path::new("/x")));
        let page = ReadDocument { url: None, ..page("", "") };
        assert!(index.origin(&page, "demo/", "../../../etc/passwd").is_err());
        assert!(index.origin(&page, "demo/", "demo-1.0.tar.gz").is_ok());
        assert_eq!(index.path("demo/"), "simple/demo/index.json");
    }
}
