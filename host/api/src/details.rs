//! A version with all that is known of it, and how clients reach a repository, as the API shows them.

use std::collections::BTreeMap;

use packhouse_runtime::{Dependency, Image, Purpose};
use serde::Serialize;
use utoipa::ToSchema;

use crate::advisories::AdvisoryMark;
use crate::attestations::{AttestationView, views};
use crate::documents::DocumentView;
use crate::operations::connection::{ClientText, Connection, InstallText};
use crate::operations::packages::VersionPage;

/// The property of a version that says why it is in its state.
pub(crate) const REASON: &str = "reason";

/// A version with all that is known of it.
#[derive(Serialize, ToSchema)]
pub(crate) struct VersionDetailsView {
    version: String,
    /// Empty, or why it should not be used: `yanked`, `deprecated`, `withdrawn`.
    state: String,
    reason: String,
    published_at: Option<u64>,
    /// An e-mail address; null where nobody knows.
    published_by: Option<String>,
    /// One line.
    summary: String,
    /// The format's own facts.
    properties: BTreeMap<String, String>,
    files: Vec<CountedFileView>,
    /// How often it was fetched.
    downloads: u64,
    last_downloaded_at: Option<i64>,
    readme: Option<ReadmeView>,
    /// How clients install it.
    install: Vec<InstallView>,
    dependencies: Vec<DependencyView>,
    /// Of a container image: platforms, layers, history, labels and what refers to it.
    #[schema(value_type = Option<Object>)]
    image: Option<Image>,
    /// Signed statements about it and its files: who built them and from what, and whether that holds.
    attestations: Vec<AttestationView>,
    /// Documents that came with it and describe what it is made of: bills of materials.
    documents: Vec<DocumentView>,
    /// What is known to be wrong with it, the worst first.
    advisories: Vec<AdvisoryMark>,
}

/// A file of a version.
#[derive(Serialize, ToSchema)]
pub(crate) struct CountedFileView {
    path: String,
    /// In bytes.
    size: u64,
    /// `sha256:` and hexadecimal digits.
    digest: String,
    /// How often it was fetched.
    downloads: u64,
    /// True if the stored bytes are known to be missing or damaged. Publishing the same file again repairs them.
    damaged: bool,
}

/// What the author says of a package: text that nobody has checked.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReadmeView {
    /// `text/markdown`, `text/x-rst` or `text/plain`.
    media_type: String,
    text: String,
}

/// How a client installs a version.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstallView {
    client: String,
    language: String,
    text: String,
}

/// What a version needs.
#[derive(Serialize, ToSchema)]
pub(crate) struct DependencyView {
    name: String,
    /// Which versions, in the format's words.
    requirement: String,
    /// For what, in the format's words; empty: always.
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

/// How clients reach a repository.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConnectionView {
    /// With a slash at its end.
    address: String,
    clients: Vec<ClientView>,
}

/// What a client needs.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClientView {
    client: String,
    /// `read` or `publish`.
    #[schema(value_type = String)]
    purpose: Purpose,
    /// Where the text stands; null: it is a command.
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
