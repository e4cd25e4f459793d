//! Sonatype Nexus 3, read through its REST API: the pages of `/service/rest/v1/components`, with
//! continuation tokens.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::client::Client;
use crate::digests::Digests;
use crate::error::MoveError;
use crate::maven::file::{FileSender, MavenFile, send_file};
use crate::origin::Origin;
use crate::percent;

/// A repository in Nexus.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    client: Arc<Client>,
    name: String,
}

/// A page of components.
struct ComponentPage {
    items: Vec<Value>,
    next: Option<String>,
}

impl Repository {
    /// The repository of this name.
    pub(crate) fn new(client: Arc<Client>, name: &str) -> Repository {
        Repository { client, name: name.to_owned() }
    }

    async fn page(&self, after: Option<&str>) -> Result<ComponentPage, MoveError> {
        let token =
            after.map(|token| format!("&continuationToken={}", percent::segment(token))).unwrap_or_default();
        let path = format!("service/rest/v1/components?repository={}{token}", percent::segment(&self.name));
        let page = self.client.json(&self.client.url(&path)?).await?;
        let Some(items) = page.get("items").and_then(Value::as_array) else {
            return Err(MoveError::Refused(
                "this is not the REST API of Nexus 3: the response has no `items`".to_owned(),
            ));
        };
        let next = page.get("continuationToken").and_then(Value::as_str).map(str::to_owned);
        Ok(ComponentPage { items: items.clone(), next })
    }

    /// The repository's format by Nexus's name: `maven2`, `pypi`, `npm`, `docker`.
    pub(crate) async fn format(&self) -> Result<String, MoveError> {
        let url =
            self.client.url(&format!("service/rest/v1/repositories/{}", percent::segment(&self.name)))?;
        let repository = self.client.json(&url).await?;
        Ok(repository.get("format").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// The address for clients of the format.
    pub(crate) fn address(&self) -> Result<String, MoveError> {
        Ok(self.client.url(&format!("repository/{}/", percent::segment(&self.name)))?.to_string())
    }

    /// Sends every asset to `found` as a file of a tree.
    pub(crate) async fn files(&self, found: FileSender) -> Result<(), MoveError> {
        let mut after = None;
        loop {
            let page = self.page(after.as_deref()).await?;
            let assets = page.items.iter().filter_map(|item| item.get("assets")?.as_array()).flatten();
            for asset in assets {
                if let Some(file) = self.file(asset)? {
                    send_file(&found, file).await;
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    fn file(&self, asset: &Value) -> Result<Option<MavenFile>, MoveError> {
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
        // `blobCreated` is the time of the upload. The server's own maintenance may change
        // `lastModified`.
        let published = ["blobCreated", "lastModified"].iter().find_map(|member| time(text(member)?));
        Ok(Some(MavenFile {
            path: path.to_owned(),
            origin: Origin::Url(Arc::clone(&self.client), address),
            stated: asset.get("checksum").map(Digests::of_object).unwrap_or_default(),
            size: asset.get("fileSize").and_then(Value::as_u64),
            published,
        }))
    }

    /// The names of all components, with their group as a prefix if they have one (`@scope/name`).
    pub(crate) async fn names(&self) -> Result<Vec<String>, MoveError> {
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

/// Parses a time. Nexus writes `2024-03-15T10:30:00.000+00:00`; some versions of Artifactory write
/// the zone as `+0000`.
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
