//! Finds artifacts by their names, on a server that does not list folders. The versions come from
//! `maven-metadata.xml`. For each version, the search tries the names of the files that builds
//! usually produce. For a snapshot, it also tries the file names of the builds in the snapshot's
//! own metadata.

use std::sync::Arc;

use quick_xml::Reader;
use quick_xml::events::Event;

use super::file::{FileSender, MavenFile, send_file};
use crate::client::Client;
use crate::digests::Digests;
use crate::error::MoveError;
use crate::origin::Origin;
use crate::percent;

/// Usual suffixes of file names after artifact and version. Each file may have a signature.
const ENDINGS: [&str; 12] = [
    ".pom",
    ".jar",
    "-sources.jar",
    "-javadoc.jar",
    "-tests.jar",
    "-test-sources.jar",
    ".module",
    ".war",
    ".aar",
    ".ear",
    ".zip",
    ".tar.gz",
];

/// Sends the files of these artifacts to `found`. Each name has the form `group:artifact`.
pub(super) async fn walk(client: Arc<Client>, names: &[String], found: FileSender) -> Result<(), MoveError> {
    for name in names {
        let Some((group, artifact)) = name.split_once(':') else {
            return Err(MoveError::Refused(format!("`{name}` is not of the form group:artifact")));
        };
        let folder = format!("{}/{artifact}", group.replace('.', "/"));
        let versions = texts(&metadata(&client, &folder).await?, "version");
        if versions.is_empty() {
            return Err(MoveError::Refused(format!("the metadata of {name} has no version")));
        }
        for version in versions {
            let folder = format!("{folder}/{version}");
            for file in files(&client, &folder, artifact, &version).await? {
                offer(&client, format!("{folder}/{file}"), &found).await?;
            }
        }
    }
    Ok(())
}

async fn metadata(client: &Client, folder: &str) -> Result<String, MoveError> {
    let url = client.url(&format!("{}/maven-metadata.xml", percent::path(folder)))?;
    Ok(client.document(&url, "*/*").await?.text())
}

/// The possible names of a version's files.
async fn files(
    client: &Client,
    folder: &str,
    artifact: &str,
    version: &str,
) -> Result<Vec<String>, MoveError> {
    let mut names: Vec<String> =
        ENDINGS.iter().map(|ending| format!("{artifact}-{version}{ending}")).collect();
    if let Some(base) = version.strip_suffix("-SNAPSHOT") {
        let text = match metadata(client, folder).await {
            Err(MoveError::Missing(_)) => String::new(),
            text => text?,
        };
        let mut builds = texts(&text, "value");
        let newest = texts(&text, "timestamp").into_iter().zip(texts(&text, "buildNumber"));
        builds.extend(newest.map(|(time, number)| format!("{base}-{time}-{number}")));
        builds.sort();
        builds.dedup();
        names.extend(
            builds
                .iter()
                .flat_map(|build| ENDINGS.iter().map(move |ending| format!("{artifact}-{build}{ending}"))),
        );
    }
    Ok(names)
}

/// Sends a file and its signature to `found`, if they exist.
async fn offer(client: &Arc<Client>, path: String, found: &FileSender) -> Result<(), MoveError> {
    for path in [path.clone(), format!("{path}.asc")] {
        let url = client.url(&percent::path(&path))?;
        if client.head(&url, "*/*").await?.is_none() {
            // A missing file has no signature.
            return Ok(());
        }
        let origin = Origin::Url(Arc::clone(client), url);
        send_file(found, MavenFile { path, origin, stated: Digests::default(), size: None, published: None })
            .await;
    }
    Ok(())
}

/// The texts of all elements of this name.
fn texts(document: &str, name: &str) -> Vec<String> {
    let (mut reader, mut found, mut within) = (Reader::from_str(document), Vec::new(), false);
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => within = start.local_name().as_ref() == name,
            Ok(Event::End(_)) => within = false,
            Ok(Event::Text(text)) if within => {
                let text = text.trim().to_owned();
                // A text that would lead to another path is not a version.
                if !text.is_empty()
                    && !text.contains(['/', '\\', '%'])
                    && text != ".."
                    && !found.contains(&text)
                {
                    found.push(text);
                }
            }
            Ok(Event::Eof) | Err(_) => return found,
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_metadata() {
        let text = "<metadata><version>1.0</version><versioning><versions><version>1.0</version><version>../x</version>\
                    <version>1.1-SNAPSHOT</version></versions><lastUpdated>2</lastUpdated></versioning></metadata>";
        assert_eq!(texts(text, "version"), ["1.0", "1.1-SNAPSHOT"]);
        assert!(texts("<metadata><version>1</versio", "value").is_empty());
    }
}
