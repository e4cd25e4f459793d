//! Views of a version with all its details, and of a repository's connection settings.

use std::collections::BTreeMap;

use packhouse_runtime::{Dependency, Image, Purpose};
use serde::Serialize;
use utoipa::ToSchema;

use crate::advisories::AdvisoryMark;
use crate::attestations::{AttestationView, views};
use crate::documents::DocumentView;
use crate::operations::connection::{ClientText, Connection, InstallText};
use crate::operations::packages::VersionPage;

/// Property of a version with the reason for its state.
pub(crate) const REASON: &str = "reason";

/// A version with all its details.
#[derive(Serialize, ToSchema)]
pub(crate) struct VersionDetailsView {
    version: String,
    /// Reason against its use: `yanked`, `deprecated` or `withdrawn`; otherwise empty.
    state: String,
    reason: String,
    published_at: Option<u64>,
    /// An e-mail address; null if unknown.
    published_by: Option<String>,
    /// One line of text.
    summary: String,
    /// Properties that the format defines.
    properties: BTreeMap<String, String>,
    files: Vec<CountedFileView>,
    /// Number of downloads.
    downloads: u64,
    last_downloaded_at: Option<i64>,
    readme: Option<ReadmeView>,
    /// Installation commands for clients.
    install: Vec<InstallView>,
    dependencies: Vec<DependencyView>,
    /// For a container image: platforms, layers, history, labels and referrers.
    #[schema(value_type = Option<Object>)]
    image: Option<Image>,
    /// Signed statements about it and its files: builder, source and verdict.
    attestations: Vec<AttestationView>,
    /// Bills of materials that were published with it.
    documents: Vec<DocumentView>,
    /// Advisories about it, the most severe first.
    advisories: Vec<AdvisoryMark>,
}

/// A file of a version.
#[derive(Serialize, ToSchema)]
pub(crate) struct CountedFileView {
    path: String,
    /// Size in bytes.
    size: u64,
    /// `sha256:` and hexadecimal digits.
    digest: String,
    /// Number of downloads.
    downloads: u64,
    /// True if the stored bytes are known to be missing or damaged. Publishing the same file again
    /// repairs them.
    damaged: bool,
}

/// The author's text about a package, unchecked.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReadmeView {
    /// `text/markdown`, `text/x-rst` or `text/plain`.
    media_type: String,
    text: String,
}

/// The way in which a client installs a version.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstallView {
    client: String,
    language: String,
    text: String,
}

/// A dependency of a version.
#[derive(Serialize, ToSchema)]
pub(crate) struct DependencyView {
    name: String,
    /// Required versions, in the format's syntax.
    requirement: String,
    /// Purpose, in the format's words; empty if it always applies.
    group: String,
}

impl From<VersionPage> for VersionDetailsView {
    fn from(page: VersionPage) -> VersionDetailsView {
        let VersionPage { details, install, presented, attestations, documents, advisories, .. } = page;
        let (counted, damaged) = (details.file_downloads, details.damaged_files);
        let version = details.version;
        let files = version.files.into_iter().map(|file| CountedFileView {
            downloads: counted.get(&file.path).copied().unwrap_or_default(),
            damaged: damaged.contains(&file.path),
            digest: file.digest.to_string(),
            path: file.path,
            size: file.size,
        });
        let mut properties: BTreeMap<String, String> = version.properties.into_iter().collect();
        let readme =
            presented.readme.map(|readme| ReadmeView { media_type: readme.media_type, text: readme.text });
        VersionDetailsView {
            version: version.version,
            state: version.state,
            reason: properties.remove(REASON).unwrap_or_default(),
            published_at: version.published,
            published_by: Some(details.published_by).filter(|by| !by.is_empty()),
            summary: version.summary,
            properties,
            files: files.collect(),
            downloads: details.downloads,
            last_downloaded_at: details.last_downloaded_at,
            readme,
            install: install.into_iter().map(InstallView::from).collect(),
            dependencies: presented.dependencies.into_iter().map(DependencyView::from).collect(),
            image: presented.image,
            attestations: views(attestations, presented.attestations),
            documents: documents.into_iter().map(DocumentView::from).collect(),
            advisories: advisories.into_iter().map(AdvisoryMark::from).collect(),
        }
    }
}

impl From<InstallText> for InstallView {
    fn from(InstallText { client, language, text }: InstallText) -> InstallView {
        InstallView { client, language, text }
    }
}

impl From<Dependency> for DependencyView {
    fn from(Dependency { name, requirement, group }: Dependency) -> DependencyView {
        DependencyView { name, requirement, group }
    }
}

/// Connection settings for the clients of a repository.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConnectionView {
    /// Address of the repository, with a slash at its end.
    address: String,
    clients: Vec<ClientView>,
}

/// Configuration of one client.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClientView {
    client: String,
    /// `read` or `publish`.
    #[schema(value_type = String)]
    purpose: Purpose,
    /// File that contains the text; null if the text is a command.
    file: Option<String>,
    language: String,
    text: String,
}

impl From<Connection> for ConnectionView {
    fn from(Connection { address, clients, .. }: Connection) -> ConnectionView {
        let clients = clients.into_iter().map(|ClientText { client, purpose, file, language, text }| {
            ClientView { client, purpose, file, language, text }
        });
        ConnectionView { address, clients: clients.collect() }
    }
}
