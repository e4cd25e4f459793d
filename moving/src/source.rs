//! Sources of an import or export: their kinds, and the check that the formats match.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};

use crate::client::Client;
use crate::error::MoveError;
use crate::folder::Folder;
use crate::location::SourceLocation;
use crate::maven::MavenSource;
use crate::npm::Npm;
use crate::oci::{ImageSource, Layout, Registry};
use crate::python::SimpleIndex;
use crate::secret::Credential;
use crate::server::Server;
use crate::target::MoveRun;
use crate::{artifactory, export, maven, nexus, npm, oci, python};

/// Kinds of sources, by their names on the command line.
pub const KINDS: [&str; 11] = [
    "maven",
    "pypi",
    "devpi",
    "npm",
    "verdaccio",
    "oci",
    "nexus",
    "artifactory",
    "cloudrepo",
    "packhouse",
    "export",
];

/// Formats, by their names on a Packhouse server.
const MAVEN: &str = "maven";
const PYTHON: &str = "python";
const NPM: &str = "npm";
const IMAGES: &str = "docker";

/// A source, as given on the command line.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// One of [`KINDS`].
    pub kind: String,
    /// An address or a folder.
    pub address: String,
    /// Name of the repository, if the source has several.
    pub repository: Option<String>,
    /// Credential for the source.
    pub credential: Option<Credential>,
    /// Hosts to which redirects and links of the source may lead although their addresses are
    /// internal.
    pub hosts: Vec<String>,
}

/// A source of one format.
pub(crate) struct Source {
    content: SourceFormat,
    /// Package names that the source's own API has listed. `None` if the run must list the packages
    /// by the format's protocol.
    names: Option<Vec<String>>,
    /// The Packhouse server, if the source is one.
    server: Option<Arc<Server>>,
    /// True if [`leave`](Source::leave) must end the session at that server.
    leaves: bool,
}

enum SourceFormat {
    Maven(MavenSource),
    Python(SimpleIndex),
    Npm(Npm),
    Images(ImageSource),
}

impl Source {
    /// Opens a source for a repository of this format.
    pub(crate) async fn open(options: &SourceOptions, format: &str) -> anyhow::Result<Source> {
        let SourceOptions { kind, address, repository, credential, hosts } = options;
        let named = || {
            let hint = "the source has several repositories: choose one with --source-repository";
            repository.clone().with_context(|| hint.to_owned())
        };
        let to = |address: &str| Client::leading_to(address, credential.clone(), hosts);
        let client = || to(address).map(Arc::new);
        let is_address = address.starts_with("http://") || address.starts_with("https://");
        match kind.as_str() {
            "export" => exported(Path::new(address), format),
            "packhouse" => {
                let login = credential.as_ref().context("a login for the other server is required")?;
                let server = Arc::new(Server::enter(address, login, &named()?, false).await?);
                fits(&server.format, format)?;
                hosted(&server)?;
                Ok(Source { leaves: true, ..Source::of_server(server).await? })
            }
            "nexus" if !is_address => {
                fits(MAVEN, format).context("only Maven repositories can be read from a blob store")?;
                Ok(Source::of(SourceFormat::Maven(MavenSource::BlobStore(existing(address)?, named()?))))
            }
            "nexus" => of_nexus(nexus::Repository::new(client()?, &named()?), &to, format).await,
            "artifactory" => {
                of_artifactory(artifactory::Repository::new(client()?, &named()?), &to, format).await
            }
            "cloudrepo" if format == PYTHON => {
                Ok(Source::of(SourceFormat::Python(SimpleIndex::of(SourceLocation::Server(client()?)))))
            }
            "maven" | "cloudrepo" => {
                fits(MAVEN, format)?;
                let tree = match is_address {
                    true => MavenSource::Pages(client()?),
                    false => MavenSource::Tree(existing(address)?),
                };
                Ok(Source::of(SourceFormat::Maven(tree)))
            }
            "pypi" => {
                fits(PYTHON, format)?;
                Ok(Source::of(SourceFormat::Python(SimpleIndex::of(SourceLocation::Server(client()?)))))
            }
            "devpi" => {
                fits(PYTHON, format)?;
                let index = address.trim_end_matches('/').trim_end_matches("+simple").trim_end_matches('/');
                let client = to(&format!("{index}/+simple/"))?;
                Ok(Source::of(SourceFormat::Python(
                    SimpleIndex::of(SourceLocation::Server(Arc::new(client))).at_root(),
                )))
            }
            "npm" | "verdaccio" => {
                fits(NPM, format)?;
                Ok(Source::of(SourceFormat::Npm(Npm { location: SourceLocation::Server(client()?) })))
            }
            "oci" => {
                fits(IMAGES, format)?;
                // The prefix selects a part of the registry, and is not part of the names of
                // images.
                let prefix = repository
                    .as_deref()
                    .map(|path| format!("{}/", path.trim_matches('/')))
                    .unwrap_or_default();
                let registry = Registry::new(to(address)?, &prefix);
                Ok(Source::of(SourceFormat::Images(ImageSource::Registry(Arc::new(registry)))))
            }
            other => bail!("unknown kind of source `{other}`: choose one of {}", KINDS.join(", ")),
        }
    }

    /// The source for a repository on a Packhouse server.
    pub(crate) async fn of_server(server: Arc<Server>) -> anyhow::Result<Source> {
        let location = SourceLocation::Server(Arc::clone(&server.client));
        let names = |fault: MoveError| anyhow!("{fault}");
        let content = match server.format.as_str() {
            MAVEN => SourceFormat::Maven(MavenSource::Pages(Arc::clone(&server.client))),
            PYTHON => SourceFormat::Python(SimpleIndex::below(location)),
            NPM => SourceFormat::Npm(Npm { location }),
            IMAGES => SourceFormat::Images(ImageSource::Registry(Arc::new(
                Registry::of_server(&server).map_err(names)?,
            ))),
            other => bail!("repositories of the format {other} are not supported"),
        };
        let names = match content {
            SourceFormat::Maven(_) => None,
            _ => Some(server.packages().await.map_err(names)?),
        };
        Ok(Source { content, names, server: Some(server), leaves: false })
    }

    fn of(content: SourceFormat) -> Source {
        Source { content, names: None, server: None, leaves: false }
    }

    /// Moves everything, or the selected packages.
    pub(crate) async fn carry(&self, run: &MoveRun) -> Result<(), MoveError> {
        let names = self.names.clone();
        match &self.content {
            SourceFormat::Maven(MavenSource::Pages(client))
                if !run.only.is_empty() && self.server.is_none() =>
            {
                maven::run(run, MavenSource::Named(Arc::clone(client), run.only.clone())).await
            }
            SourceFormat::Maven(source) => maven::run(run, source.clone()).await,
            SourceFormat::Python(source) => python::run(run, source.clone(), names).await,
            SourceFormat::Npm(source) => npm::run(run, source.clone(), names).await,
            SourceFormat::Images(source) => oci::run(run, source.clone(), names, self.server.clone()).await,
        }
    }

    /// Ends the session at the source, if this source has opened it.
    pub(crate) async fn leave(&self) {
        if let Some(server) = self.server.as_ref().filter(|_| self.leaves) {
            server.leave().await;
        }
    }
}

/// Checks that a repository is hosted. Other kinds show content that is stored elsewhere.
pub(crate) fn hosted(server: &Server) -> anyhow::Result<()> {
    let Server { name, kind, .. } = server;
    ensure!(
        kind == "hosted",
        "{name} is a {kind} repository, whose content is stored elsewhere: name a hosted repository"
    );
    Ok(())
}

/// Checks that the source has the format of the repository.
fn fits(brings: &str, format: &str) -> anyhow::Result<()> {
    if brings == format {
        return Ok(());
    }
    bail!("the source has packages of the format {brings}, but the repository has the format {format}")
}

fn existing(folder: &str) -> anyhow::Result<PathBuf> {
    let path = PathBuf::from(folder);
    if path.is_dir() { Ok(path) } else { bail!("`{folder}` is neither an http or https URL nor a folder") }
}

fn exported(folder: &Path, format: &str) -> anyhow::Result<Source> {
    let (head, files) = export::read(folder)?;
    fits(&head.format, format)?;
    let (files, location) = (Arc::new(files), SourceLocation::folder(folder));
    Ok(Source::of(match format {
        MAVEN => SourceFormat::Maven(MavenSource::Export(folder.to_owned(), files)),
        PYTHON => SourceFormat::Python(SimpleIndex::below(location)),
        NPM => SourceFormat::Npm(Npm { location }),
        _ => SourceFormat::Images(ImageSource::Layout(Layout::exported(Folder::new(folder), files))),
    }))
}

async fn of_nexus(
    from: nexus::Repository,
    to: &(dyn Fn(&str) -> anyhow::Result<Client> + Sync),
    format: &str,
) -> anyhow::Result<Source> {
    let of = match from.format().await {
        // Reading the repository's settings may need a right that is not needed to read its
        // content.
        Err(MoveError::Refused(_) | MoveError::Missing(_)) => String::new(),
        of => of.map_err(|fault| anyhow!("{fault}"))?,
    };
    let address = from.address().map_err(|fault| anyhow!("{fault}"))?;
    let location = SourceLocation::Server(Arc::new(to(&address)?));
    let (content, lists_names) = match of.as_str() {
        "maven2" => {
            (fits(MAVEN, format).map(|()| SourceFormat::Maven(MavenSource::Nexus(from.clone())))?, false)
        }
        "" if format == MAVEN => (SourceFormat::Maven(MavenSource::Nexus(from.clone())), false),
        "pypi" => (fits(PYTHON, format).map(|()| SourceFormat::Python(SimpleIndex::below(location)))?, true),
        "" if format == PYTHON => (SourceFormat::Python(SimpleIndex::below(location)), true),
        "npm" => (fits(NPM, format).map(|()| SourceFormat::Npm(Npm { location }))?, true),
        "" if format == NPM => (SourceFormat::Npm(Npm { location }), true),
        "" | "docker" => {
            bail!("to move images, use the address of the repository's own connector with --from oci")
        }
        other => bail!("Nexus repositories of the format {other} are not supported"),
    };
    let names = if lists_names { Some(from.names().await) } else { None };
    let names = names.transpose().map_err(|fault| anyhow!("{fault}"))?;
    Ok(Source { names, ..Source::of(content) })
}

async fn of_artifactory(
    from: artifactory::Repository,
    to: &(dyn Fn(&str) -> anyhow::Result<Client> + Sync),
    format: &str,
) -> anyhow::Result<Source> {
    let of = match from.format().await {
        Err(MoveError::Refused(_) | MoveError::Missing(_)) => String::new(),
        of => of.map_err(|fault| anyhow!("{fault}"))?,
    };
    let client = |of: &str| to(&from.address(of).map_err(|fault| anyhow!("{fault}"))?);
    let content = match of.as_str() {
        "maven" | "gradle" | "ivy" | "sbt" | "generic" => fits(MAVEN, format).map(|()| MAVEN)?,
        "pypi" => fits(PYTHON, format).map(|()| PYTHON)?,
        "npm" => fits(NPM, format).map(|()| NPM)?,
        "docker" | "oci" => fits(IMAGES, format).map(|()| IMAGES)?,
        "" => format,
        other => {
            bail!("Artifactory repositories of the package type {other} are not supported")
        }
    };
    Ok(Source::of(match content {
        PYTHON => SourceFormat::Python(SimpleIndex::below(SourceLocation::Server(Arc::new(client("pypi")?)))),
        NPM => SourceFormat::Npm(Npm { location: SourceLocation::Server(Arc::new(client("npm")?)) }),
        IMAGES => SourceFormat::Images(ImageSource::Registry(Arc::new(Registry::new(client("docker")?, "")))),
        _ => SourceFormat::Maven(MavenSource::Artifactory(from)),
    }))
}
