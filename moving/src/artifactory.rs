//! JFrog Artifactory by its REST API: the file list of the storage API, which gives sizes, SHA-1, SHA-256 and times; and where that is not
//! offered, as in the free edition, a query by AQL.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Client, checked, whole};
use crate::digests::Digests;
use crate::fault::{Fault, again};
use crate::maven::file::{Found, MavenFile, hand_on};
use crate::nexus::time;
use crate::origin::Origin;
use crate::percent;

/// Items that one query answers.
const PAGE: usize = 1000;

/// A repository of Artifactory. The client's address ends with `/artifactory/`.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    client: Arc<Client>,
    name: String,
}

impl Repository {
    /// The repository of this name.
    pub(crate) fn new(client: Arc<Client>, name: &str) -> Repository {
        Repository { client, name: name.to_owned() }
    }

    /// The format of the repository as Artifactory calls it: `maven`, `pypi`, `npm`, `docker`.
    pub(crate) async fn format(&self) -> Result<String, Fault> {
        let repositories = self.client.json(&self.client.url("api/repositories")?).await?;
        let mut all = repositories.as_array().into_iter().flatten();
        let found = all.find(|one| one.get("key").and_then(Value::as_str) == Some(&self.name));
        let format = found.and_then(|one| one.get("packageType")?.as_str()).unwrap_or_default();
        Ok(format.to_ascii_lowercase())
    }

    /// Where clients of a format find it.
    pub(crate) fn address(&self, format: &str) -> Result<String, Fault> {
        let path = match format {
            "pypi" | "npm" => format!("api/{format}/{}/", percent::segment(&self.name)),
            "docker" | "oci" => format!("api/docker/{}/", percent::segment(&self.name)),
            _ => format!("{}/", percent::segment(&self.name)),
        };
        Ok(self.client.url(&path)?.to_string())
    }

    /// Hands on every file.
    pub(crate) async fn files(&self, found: Found) -> Result<(), Fault> {
        let path = format!("api/storage/{}?list&deep=1&listFolders=0", percent::segment(&self.name));
        let listed = self.client.json(&self.client.url(&path)?).await;
        let items = match listed {
            Ok(listed) => listed.get("files").and_then(Value::as_array).cloned().unwrap_or_default(),
            // Some editions answer 400 or 403 with a sentence about their licence.
            Err(Fault::Refused(_) | Fault::Missing(_)) => return self.queried(&found).await,
            Err(fault) => return Err(fault),
        };
        for item in &items {
            let path = item.get("uri").and_then(Value::as_str).unwrap_or_default().trim_start_matches('/');
            if let Some(file) = self.file(path, item, "lastModified")? {
                hand_on(&found, file).await;
            }
        }
        Ok(())
    }

    async fn queried(&self, found: &Found) -> Result<(), Fault> {
        let url = self.client.url("api/search/aql")?;
        for page in 0.. {
            let query = format!(
                "items.find({}).include(\"path\",\"name\",\"size\",\"created\",\"actual_sha1\",\"actual_md5\",\"sha256\")\
                 .sort({{\"$asc\":[\"path\",\"name\"]}}).offset({}).limit({PAGE})",
                json!({"repo": self.name, "type": "file"}),
                page * PAGE
            );
            let request = || {
                self.client
                    .request(Method::POST, &url)
                    .header("content-type", "text/plain")
                    .body(query.clone())
            };
            let answer = again(|| async { whole(checked(request()).await?).await }).await?.json()?;
            let results = answer.get("results").and_then(Value::as_array).cloned().unwrap_or_default();
            for item in &results {
                let text = |member: &str| item.get(member).and_then(Value::as_str).unwrap_or_default();
                let path = match text("path") {
                    "." => text("name").to_owned(),
                    folder => format!("{folder}/{}", text("name")),
                };
                if let Some(file) = self.file(&path, item, "created")? {
                    hand_on(found, file).await;
                }
            }
            if results.len() < PAGE {
                break;
            }
        }
        Ok(())
    }

    fn file(&self, path: &str, item: &Value, time_in: &str) -> Result<Option<MavenFile>, Fault> {
        // A folder has the size -1, and some versions write truth and numbers as text.
        let is = |member: &str| {
            item.get(member).is_some_and(|value| *value == json!(true) || *value == json!("true"))
        };
        if path.is_empty() || is("folder") {
            return Ok(None);
        }
        let mut stated = Digests::default();
        for (member, algorithm) in [
            ("sha1", "sha1"),
            ("actual_sha1", "sha1"),
            ("sha2", "sha256"),
            ("sha256", "sha256"),
            ("actual_md5", "md5"),
        ] {
            stated.add(algorithm, item.get(member).and_then(Value::as_str).unwrap_or_default());
        }
        let size = item.get("size").and_then(|size| size.as_u64().or_else(|| size.as_str()?.parse().ok()));
        let url = self.client.url(&format!("{}/{}", percent::segment(&self.name), percent::path(path)))?;
        Ok(Some(MavenFile {
            path: path.to_owned(),
            origin: Origin::Url(Arc::clone(&self.client), url),
            stated,
            size,
            published: item.get(time_in).and_then(Value::as_str).and_then(time),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_a_file_and_a_folder_is_none() {
        let client = Arc::new(Client::new("http://host/artifactory", None).unwrap());
        let repository = Repository::new(client, "libs");
        let item = json!({"size": "3", "lastModified": "2020-01-02T03:04:05.000Z", "folder": "false",
            "sha1": "a9993e364706816aba3e25717850c26c9cd0d89d"});
        let file = repository.file("o/l+1.jar", &item, "lastModified").unwrap().unwrap();
        assert_eq!((file.size, file.stated.sha1.is_some()), (Some(3), true));
        let Origin::Url(_, url) = file.origin else { panic!() };
        assert_eq!(url.as_str(), "http://host/artifactory/libs/o/l%2B1.jar");
        assert!(
            repository.file("o", &json!({"size": "-1", "folder": "true"}), "lastModified").unwrap().is_none()
        );
    }
}
