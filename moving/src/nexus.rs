//! Sonatype Nexus 3 by its REST API: `/service/rest/v1/components`, a page at a time with a continuation token.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::client::Client;
use crate::digests::Digests;
use crate::fault::Fault;
use crate::maven::file::{Found, MavenFile, hand_on};
use crate::origin::Origin;
use crate::percent;

/// A repository of Nexus.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    client: Arc<Client>,
    name: String,
}

/// A page of components.
struct Page {
    items: Vec<Value>,
    next: Option<String>,
}

impl Repository {
    /// The repository of this name.
    pub(crate) fn new(client: Arc<Client>, name: &str) -> Repository {
        Repository { client, name: name.to_owned() }
    }

    async fn page(&self, after: Option<&str>) -> Result<Page, Fault> {
        let token =
            after.map(|token| format!("&continuationToken={}", percent::segment(token))).unwrap_or_default();
        let path = format!("service/rest/v1/components?repository={}{token}", percent::segment(&self.name));
        let page = self.client.json(&self.client.url(&path)?).await?;
        let Some(items) = page.get("items").and_then(Value::as_array) else {
            return Err(Fault::Refused(
                "this is no REST API of Nexus 3: it answers without `items`".to_owned(),
            ));
        };
        let next = page.get("continuationToken").and_then(Value::as_str).map(str::to_owned);
        Ok(Page { items: items.clone(), next })
    }

    /// The format of the repository as Nexus calls it: `maven2`, `pypi`, `npm`, `docker`.
    pub(crate) async fn format(&self) -> Result<String, Fault> {
        let url =
            self.client.url(&format!("service/rest/v1/repositories/{}", percent::segment(&self.name)))?;
        let repository = self.client.json(&url).await?;
        Ok(repository.get("format").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// Where clients of the format find it.
    pub(crate) fn address(&self) -> Result<String, Fault> {
        Ok(self.client.url(&format!("repository/{}/", percent::segment(&self.name)))?.to_string())
    }

    /// Hands on every asset as a file of a tree.
    pub(crate) async fn files(&self, found: Found) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let page = self.page(after.as_deref()).await?;
            let assets = page.items.iter().filter_map(|item| item.get("assets")?.as_array()).flatten();
            for asset in assets {
                if let Some(file) = self.file(asset)? {
                    hand_on(&found, file).await;
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    fn file(&self, asset: &Value) -> Result<Option<MavenFile>, Fault> {
        let text = |member: &str| asset.get(member).and_then(Value::as_str);
        let Some(path) =
            text("path").map(|path| path.trim_start_matches('/')).filter(|path| !path.is_empty())
        else {
            return Ok(None);
        };
        let address = match text("downloadUrl") {
            Some(address) => self.client.url(address)?,
            None => self.client.url(&format!("{}{}", self.address()?, percent::path(path)))?,
        };
        // `blobCreated` is when the bytes came; a server's own upkeep moves `lastModified`.
        let published = ["blobCreated", "lastModified"].iter().find_map(|member| time(text(member)?));
        Ok(Some(MavenFile {
            path: path.to_owned(),
            origin: Origin::Url(Arc::clone(&self.client), address),
            stated: asset.get("checksum").map(Digests::of_object).unwrap_or_default(),
            size: asset.get("fileSize").and_then(Value::as_u64),
            published,
        }))
    }

    /// The names of all components, with their groups before them where the format has such (`@scope/name`).
    pub(crate) async fn names(&self) -> Result<Vec<String>, Fault> {
        let (mut names, mut after) = (BTreeSet::new(), None);
        loop {
            let page = self.page(after.as_deref()).await?;
            for item in &page.items {
                let text =
                    |member: &str| item.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
                let Some(name) = text("name") else { continue };
                names.insert(match text("group") {
                    Some(scope) => format!("@{}/{name}", scope.trim_start_matches('@')),
                    None => name.to_owned(),
                });
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(names.into_iter().collect()),
            }
        }
    }
}

/// Nexus writes `2024-03-15T10:30:00.000+00:00`, and Artifactory the same with `+0000` in some versions.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| Timestamp::strptime("%Y-%m-%dT%H:%M:%S%.f%z", text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_is_a_file() {
        let client = Arc::new(Client::new("http://nexus/", None).unwrap());
        let repository = Repository::new(client, "releases");
        let asset = serde_json::json!({"path": "/o/l/1/l-1.jar", "fileSize": 3, "lastModified": "2024-03-15T10:30:00.000+00:00",
            "checksum": {"sha1": "a9993e364706816aba3e25717850c26c9cd0d89d", "md5": "x"}});
        let file = repository.file(&asset).unwrap().unwrap();
        assert_eq!((file.path.as_str(), file.size, file.stated.md5), ("o/l/1/l-1.jar", Some(3), None));
        assert_eq!(file.published.unwrap().to_string(), "2024-03-15T10:30:00Z");
        let Origin::Url(_, url) = file.origin else { panic!() };
        assert_eq!(url.as_str(), "http://nexus/repository/releases/o/l/1/l-1.jar");
        assert_eq!(time("2024-03-15T10:30:00.000+0000").unwrap().to_string(), "2024-03-15T10:30:00Z");
    }
}
