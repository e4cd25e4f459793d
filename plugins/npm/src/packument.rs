//! The packument: all that is known of a package, in the two forms that clients ask for. It is made of the records of the
//! versions as they are read, a page at a time.

use crate::name::Name;
use crate::output::Output;
use crate::records::{self, Package, Version};
use crate::{accept, instant};
use packhouse_sdk::{Content, Context, Entry, Error, Repository, Response};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What the full form repeats of the latest version.
const OF_LATEST: [&str; 8] =
    ["description", "homepage", "keywords", "repository", "contributors", "author", "bugs", "license"];

/// Which form of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// What installing needs.
    Abbreviated,
    /// All of it.
    Full,
}

impl Form {
    /// As a client's `Accept` has it.
    pub(crate) fn wanted(accept: Option<&str>) -> Self {
        if accept::abbreviated(accept) { Self::Abbreviated } else { Self::Full }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Abbreviated => accept::ABBREVIATED,
            Self::Full => "application/json",
        }
    }
}

/// Renders the packument of a package whose record was read.
pub(crate) fn render(
    cx: &Context,
    repository: &Repository,
    address: &str,
    name: &Name,
    package: &Entry<Package>,
    form: Form,
) -> Result<Response, Error> {
    let mut rendering = Rendering { out: Output::new(cx), address, name, form };
    rendering.document(repository, package)?;
    let content = rendering.out.finish()?;
    Ok(response(content, form).modified(package.value.modified))
}

/// The answer that carries a packument.
pub(crate) fn response(content: Content, form: Form) -> Response {
    Response::ok().content_type(form.content_type()).header("vary", "accept").revalidate().content(content)
}

/// One version as a document of its own.
pub(crate) fn version(
    cx: &Context,
    address: &str,
    name: &Name,
    number: &str,
    version: &Version,
    deprecated: Option<&str>,
) -> Result<Content, Error> {
    let mut rendering = Rendering { out: Output::new(cx), address, name, form: Form::Full };
    rendering.version(number, version, deprecated)?;
    rendering.out.finish()
}

struct Rendering<'a> {
    out: Output<'a>,
    address: &'a str,
    name: &'a Name,
    form: Form,
}

impl Rendering<'_> {
    fn document(&mut self, repository: &Repository, package: &Entry<Package>) -> Result<(), Error> {
        self.out.push("{\"name\":")?;
        self.out.json(self.name.as_str())?;
        if self.form == Form::Full {
            self.out.push(",\"_id\":")?;
            self.out.json(self.name.as_str())?;
            self.out.push(&format!(",\"_rev\":\"{}\"", package.revision))?;
        }
        let latest = package.value.tags.get("latest").map_or("", String::as_str);
        let (times, latest) = self.versions(repository, latest)?;
        self.times(&package.value, &times)?;
        let tags = package.value.tags.iter().filter(|(_, number)| times.contains_key(*number));
        self.member("dist-tags", &tags.collect::<BTreeMap<_, _>>())?;
        match self.form {
            Form::Abbreviated => self.member("modified", &instant::text(package.value.modified))?,
            Form::Full => self.rest(repository, &package.value, &latest)?,
        }
        self.out.push("}")
    }

    fn member(&mut self, member: &str, value: &impl serde::Serialize) -> Result<(), Error> {
        self.out.push(",")?;
        self.out.json(member)?;
        self.out.push(":")?;
        self.out.json(value)
    }

    /// All versions; answers when each was published, and what the latest says of itself.
    fn versions(
        &mut self,
        repository: &Repository,
        latest: &str,
    ) -> Result<(BTreeMap<String, u64>, Map<String, Value>), Error> {
        let deprecations = deprecations(repository, self.name)?;
        let prefix = records::versions(self.name);
        let (mut times, mut of_latest) = (BTreeMap::new(), Map::new());
        self.out.push(",\"versions\":{")?;
        for entry in repository.scan(&prefix) {
            let Entry { key, value, .. } = entry?;
            let number = key.get(prefix.len()..).unwrap_or_default().to_owned();
            let version = Version::read(&key, value)?;
            if !times.is_empty() {
                self.out.push(",")?;
            }
            self.out.json(&number)?;
            self.out.push(":")?;
            self.version(&number, &version, deprecations.get(&number).map(String::as_str))?;
            if self.form == Form::Full && number == latest {
                of_latest = serde_json::from_str(&version.full)?;
            }
            times.insert(number, version.facts.time);
        }
        self.out.push("}")?;
        Ok((times, of_latest))
    }

    /// A kept manifest with what depends on who asks, and when.
    fn version(&mut self, number: &str, version: &Version, deprecated: Option<&str>) -> Result<(), Error> {
        let manifest = match self.form {
            Form::Abbreviated => &version.abbreviated,
            Form::Full => &version.full,
        };
        self.out.push(manifest.strip_suffix('}').unwrap_or(manifest))?;
        if let Some(deprecated) = deprecated {
            self.member("deprecated", &deprecated)?;
        }
        self.out.push(",\"dist\":{\"tarball\":")?;
        self.out.json(&format!("{}/{}", self.address, self.name.path(number)))?;
        if let Some(predicate) = &version.facts.provenance {
            let url = format!("{}/-/npm/v1/attestations/{}@{number}", self.address, self.name);
            let attestations = serde_json::json!({"url": url, "provenance": {"predicateType": predicate}});
            self.member("attestations", &attestations)?;
        }
        let dist = version.dist.strip_prefix('{').unwrap_or(&version.dist);
        if dist != "}" {
            self.out.push(",")?;
        }
        self.out.push(dist)?;
        self.out.push("}")
    }

    fn times(&mut self, package: &Package, times: &BTreeMap<String, u64>) -> Result<(), Error> {
        let mut all = Map::new();
        all.insert("created".to_owned(), instant::text(package.created).into());
        all.insert("modified".to_owned(), instant::text(package.modified).into());
        all.extend(times.iter().map(|(number, time)| (number.clone(), instant::text(*time).into())));
        self.member("time", &all)
    }

    fn rest(
        &mut self,
        repository: &Repository,
        package: &Package,
        latest: &Map<String, Value>,
    ) -> Result<(), Error> {
        self.member("maintainers", &package.maintainers)?;
        for member in OF_LATEST {
            if let Some(value) = latest.get(member) {
                self.member(member, value)?;
            }
        }
        let readme = repository.get(&records::readme(self.name))?;
        self.member("readme", &readme.map(|entry| records::text(entry.value)).unwrap_or_default())
    }
}

/// Why versions should not be used, by number.
pub(crate) fn deprecations(repository: &Repository, name: &Name) -> Result<BTreeMap<String, String>, Error> {
    let prefix = records::deprecations(name);
    let number = |key: &str| key.get(prefix.len()..).unwrap_or_default().to_owned();
    repository
        .scan(&prefix)
        .map(|entry| entry.map(|entry| (number(&entry.key), records::text(entry.value))))
        .collect()
}
