//! JFrog Artifactory, read through its REST API. The file list of the storage API has sizes, SHA-1,
//! SHA-256 and times. Some editions, such as the free one, do not offer this list; AQL queries then
//! replace it.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Client, checked, whole};
use crate::digests::Digests;
use crate::error::{MoveError, again};
use crate::maven::file::{FileSender, MavenFile, send_file};
use crate::nexus::time;
use crate::origin::Origin;
use crate::percent;

/// Number of items per query.
const PAGE: usize = 1000;

/// A repository in Artifactory. The client's address ends with `/artifactory/`.
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

    /// The repository's format by Artifactory's name: `maven`, `pypi`, `npm`, `docker`.
    pub(crate) async fn format(&self) -> Result<String, MoveError> {
        let repositories = self.client.json(&self.client.url("api/repositories")?).await?;
        let mut all = repositories.as_array().into_iter().flatten();
        let found = all.find(|one| one.get("key").and_then(Value::as_str) == Some(&self.name));
        let format = found.and_then(|one| one.get("packageType")?.as_str()).unwrap_or_default();
        Ok(format.to_ascii_lowercase())
    }

    /// The address for clients of a format.
    pub(crate) fn address(&self, format: &str) -> Result<String, MoveError> {
        let path = match format {
            "pypi" | "npm" => format!("api/{format}/{}/", percent::segment(&self.name)),
            "docker" | "oci" => format!("api/docker/{}/", percent::segment(&self.name)),
            _ => format!("{}/", percent::segment(&self.name)),
        };
        Ok(self.client.url(&path)?.to_string())
    }

    /// Sends every file of the repository to `found`.
    pub(crate) async fn files(&self, found: FileSender) -> Result<(), MoveError> {
        let path = format!("api/storage/{}?list&deep=1&listFolders=0", percent::segment(&self.name));
        let listed = self.client.json(&self.client.url(&path)?).await;
        let items = match listed {
            Ok(listed) => listed.get("files").and_then(Value::as_array).cloned().unwrap_or_default(),
            // Some editions answer 400 or 403 with a message about their licence.
            Err(MoveError::Refused(_) | MoveError::Missing(_)) => return self.queried(&found).await,
            Err(fault) => return Err(fault),
        };
        for item in &items {
            let path = item.get("uri").and_then(Value::as_str).unwrap_or_default().trim_start_matches('/');
            if let Some(file) = self.file(path, item, "lastModified")? {
                send_file(&found, file).await;
            }
        }
        Ok(())
    }

    async fn queried(&self, found: &FileSender) -> Result<(), MoveError> {
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
                    send_file(found, file).await;
                }
            }
            if results.len() < PAGE {
                break;
            }
        }
        Ok(())
    }

    fn file(&self, path: &str, item: &Value, time_in: &str) -> Result<Option<MavenFile>, MoveError> {
        // Some versions write booleans and numbers as text. A folder has the size -1.
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
    fn items_are_files_unless_they_are_folders() {
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
