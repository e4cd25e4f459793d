//! A simple index: JSON (PEP 691, 700, 714, 740, 792) or pages (PEP 503, 592), on a server or in a folder.

use jiff::Timestamp;
use serde_json::Value;
use url::Url;

use crate::digests::Digests;
use crate::fault::Fault;
use crate::html;
use crate::origin::Origin;
use crate::percent;
use crate::place::{Place, Read};

const ACCEPT: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// How the files end that an index lists: what cannot be moved of them is reported.
const FILES: [&str; 19] = [
    ".whl", ".gz", ".zip", ".tgz", ".bz2", ".tbz", ".xz", ".txz", ".lz", ".tlz", ".lzma", ".Z", ".tar",
    ".egg", ".exe", ".msi", ".rpm", ".deb", ".dmg",
];

/// What the link to a file says of it besides its address.
const ATTRIBUTES: [&str; 4] = ["data-yanked", "data-requires-python", "data-gpg-sig", "data-provenance"];

/// A simple index.
#[derive(Clone, Debug)]
pub(crate) struct Simple {
    place: Place,
    /// Whether the place is the list of projects itself, and not what `simple/` lies in.
    is_root: bool,
}

/// A project's page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Project {
    pub(crate) files: Vec<PyFile>,
    /// PEP 792's object.
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
    /// Why it was yanked, if it was; the reason may be empty.
    pub(crate) yanked: Option<String>,
    pub(crate) requires_python: Option<String>,
    pub(crate) signed: bool,
    /// Where its provenance is read from.
    pub(crate) provenance: Option<Origin>,
}

impl Simple {
    /// An index below a server's address, or in a folder.
    pub(crate) fn of(place: Place) -> Simple {
        let is_root = match &place {
            Place::Server(client) => client.base().path().trim_end_matches('/').ends_with("simple"),
            Place::Folder(_) => false,
        };
        Simple { place, is_root }
    }

    /// An index whose pages lie below `simple/`, whatever the address is called.
    pub(crate) fn below(place: Place) -> Simple {
        Simple { place, is_root: false }
    }

    /// A server whose address is the list of projects, whatever it is called.
    pub(crate) fn at_root(self) -> Simple {
        Simple { is_root: true, ..self }
    }

    fn path(&self, rest: &str) -> String {
        let file = if matches!(self.place, Place::Folder(_)) { "index.json" } else { "" };
        if self.is_root { format!("{rest}{file}") } else { format!("simple/{rest}{file}") }
    }

    /// The names of all projects.
    pub(crate) async fn projects(&self) -> Result<Vec<String>, Fault> {
        let page = self.place.read(&self.path(""), ACCEPT).await?;
        if let Some(json) = json(&page)? {
            let all = json.get("projects").and_then(Value::as_array).into_iter().flatten();
            return Ok(all.filter_map(|one| Some(one.get("name")?.as_str()?.to_owned())).collect());
        }
        let name = |link: &html::Link| {
            let path = link.href.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
            let name = percent::decode(path.rsplit('/').next().unwrap_or_default());
            // A link up, or to somewhere else, is no project's.
            (!name.is_empty() && !matches!(name.as_str(), "." | "..") && !link.href.starts_with('?'))
                .then_some(name)
        };
        Ok(html::links(&page.text, &[]).iter().filter_map(name).collect())
    }

    /// A project's files.
    pub(crate) async fn project(&self, name: &str) -> Result<Project, Fault> {
        let folder = format!("{}/", percent::segment(name));
        let page = self.place.read(&self.path(&folder), ACCEPT).await?;
        match json(&page)? {
            Some(json) => self.of_json(&page, &json, &folder),
            None => self.of_links(&page, &folder),
        }
    }

    fn of_json(&self, page: &Read, json: &Value, folder: &str) -> Result<Project, Fault> {
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
        Ok(Project { files, status: status.cloned() })
    }

    fn of_links(&self, page: &Read, folder: &str) -> Result<Project, Fault> {
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
        Ok(Project { files, status: None })
    }

    fn origin(&self, page: &Read, folder: &str, link: &str) -> Result<Origin, Fault> {
        match (&self.place, &page.url) {
            (Place::Server(client), Some(url)) => {
                let address = url
                    .join(link)
                    .map_err(|error| Fault::Refused(format!("`{link}` is no address: {error}")))?;
                Ok(Origin::Url(client.clone(), without_fragment(address)))
            }
            _ => self.place.origin(&format!("simple/{}{}", percent::decode(folder), percent::decode(link))),
        }
    }
}

fn without_fragment(mut url: Url) -> Url {
    url.set_fragment(None);
    url
}

/// PEP 700 has a fraction and a `Z`; some servers leave the zone out, which is UTC then.
fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| format!("{text}Z").parse().ok())
}

/// The page as JSON; none where it is for people.
fn json(page: &Read) -> Result<Option<Value>, Fault> {
    if page.url.is_some() && !page.media_type.ends_with("json") {
        return Ok(None);
    }
    let read = serde_json::from_str(&page.text);
    read.map(Some).map_err(|error| Fault::Refused(format!("a page of the index is no JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::client::Client;

    fn page(text: &str, media_type: &str) -> Read {
        let url = Some(Url::parse("http://host/simple/demo/").unwrap());
        Read { text: text.to_owned(), media_type: media_type.to_owned(), url }
    }

    fn index() -> Simple {
        Simple::of(Place::Server(Arc::new(Client::new("http://host/simple/", None).unwrap())))
    }

    #[test]
    fn both_shapes_say_the_same() {
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
    fn whatever_a_page_lists_is_told() {
        let names = ["demo-1.0.tar.bz2", "demo-1.0.tgz", "demo-1.0.tar.xz", "demo-1.0.msi", "demo-1.0-1.rpm"];
        let html: String = names.iter().map(|name| format!("<a href='{name}'>{name}</a>")).collect();
        let html = format!("<a href='../'>up</a>{html}<a href='?C=N'>sort</a>");
        let files = index().of_links(&page(&html, "text/html"), "demo/").unwrap().files;
        assert_eq!(files.iter().map(|file| file.filename.as_str()).collect::<Vec<_>>(), names);
    }

    #[test]
    fn a_folders_links_stay_in_it() {
        let index = Simple::of(Place::folder(Path::new("/x")));
        let page = Read { url: None, ..page("", "") };
        assert!(index.origin(&page, "demo/", "../../../etc/passwd").is_err());
        assert!(index.origin(&page, "demo/", "demo-1.0.tar.gz").is_ok());
        assert_eq!(index.path("demo/"), "simple/demo/index.json");
    }
}
