//! Where something comes from: the kinds of sources, and which of them fits the target's format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};

use crate::client::Client;
use crate::fault::Fault;
use crate::folder::Folder;
use crate::maven::MavenSource;
use crate::npm::Npm;
use crate::oci::{Images, Layout, Registry};
use crate::place::Place;
use crate::python::Simple;
use crate::secret::Credential;
use crate::server::Server;
use crate::target::Run;
use crate::{artifactory, export, maven, nexus, npm, oci, python};

/// Kinds of sources, as a command line names them.
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

/// Formats as our server calls them.
const MAVEN: &str = "maven";
const PYTHON: &str = "python";
const NPM: &str = "npm";
const IMAGES: &str = "docker";

/// A source as a command line says it.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// One of [`KINDS`].
    pub kind: String,
    /// An address, or a folder.
    pub address: String,
    /// The repository's name there, where the source has several.
    pub repository: Option<String>,
    /// What is shown there.
    pub credential: Option<Credential>,
    /// Hosts to which its redirects and links may lead, although their addresses are internal.
    pub hosts: Vec<String>,
}

/// A source of one format.
pub(crate) struct Source {
    what: What,
    /// Names that the source told by another way than the format's; none to ask by the format's.
    names: Option<Vec<String>>,
    /// The server of ours that it is, if it is one.
    server: Option<Arc<Server>>,
    leaves: bool,
}

enum What {
    Maven(MavenSource),
    Python(Simple),
    Npm(Npm),
    Images(Images),
}

impl Source {
    /// Opens a source for a repository of this format.
    pub(crate) async fn open(options: &SourceOptions, format: &str) -> anyhow::Result<Source> {
        let SourceOptions { kind, address, repository, credential, hosts } = options;
        let named = || {
            let said = "say with --source-repository which of its repositories is meant";
            repository.clone().with_context(|| said.to_owned())
        };
        let to = |address: &str| Client::leading_to(address, credential.clone(), hosts);
        let client = || to(address).map(Arc::new);
        let is_address = address.starts_with("http://") || address.starts_with("https://");
        match kind.as_str() {
            "export" => exported(Path::new(address), format),
            "packhouse" => {
                let login = credential.as_ref().context("sign in at the other server: give its login")?;
                let server = Arc::new(Server::enter(address, login, &named()?, false).await?);
                fits(&server.format, format)?;
                hosted(&server)?;
                Ok(Source { leaves: true, ..Source::of_server(server).await? })
            }
            "nexus" if !is_address => {
                fits(MAVEN, format).context("of a blob store trees alone are read")?;
                Ok(Source::of(What::Maven(MavenSource::BlobStore(existing(address)?, named()?))))
            }
            "nexus" => of_nexus(nexus::Repository::new(client()?, &named()?), &to, format).await,
            "artifactory" => {
                of_artifactory(artifactory::Repository::new(client()?, &named()?), &to, format).await
            }
            "cloudrepo" if format == PYTHON => {
                Ok(Source::of(What::Python(Simple::of(Place::Server(client()?)))))
            }
            "maven" | "cloudrepo" => {
                fits(MAVEN, format)?;
                let tree = match is_address {
                    true => MavenSource::Pages(client()?),
                    false => MavenSource::Tree(existing(address)?),
                };
                Ok(Source::of(What::Maven(tree)))
            }
            "pypi" => {
                fits(PYTHON, format)?;
                Ok(Source::of(What::Python(Simple::of(Place::Server(client()?)))))
            }
            "devpi" => {
                fits(PYTHON, format)?;
                let index = address.trim_end_matches('/').trim_end_matches("+simple").trim_end_matches('/');
                let client = to(&format!("{index}/+simple/"))?;
                Ok(Source::of(What::Python(Simple::of(Place::Server(Arc::new(client))).at_root())))
            }
            "npm" | "verdaccio" => {
                fits(NPM, format)?;
                Ok(Source::of(What::Npm(Npm { place: Place::Server(client()?) })))
            }
            "oci" => {
                fits(IMAGES, format)?;
                // Images of a part of a registry are called here by what stands behind it.
                let prefix = repository
                    .as_deref()
                    .map(|path| format!("{}/", path.trim_matches('/')))
                    .unwrap_or_default();
                let registry = Registry::new(to(address)?, &prefix);
                Ok(Source::of(What::Images(Images::Registry(Arc::new(registry)))))
            }
            other => bail!("`{other}` is no kind of source: it is one of {}", KINDS.join(", ")),
        }
    }

    /// A repository of a server of ours.
    pub(crate) async fn of_server(server: Arc<Server>) -> anyhow::Result<Source> {
        let place = Place::Server(Arc::clone(&server.client));
        let names = |fault: Fault| anyhow!("{fault}");
        let what = match server.format.as_str() {
            MAVEN => What::Maven(MavenSource::Pages(Arc::clone(&server.client))),
            PYTHON => What::Python(Simple::below(place)),
            NPM => What::Npm(Npm { place }),
            IMAGES => What::Images(Images::Registry(Arc::new(Registry::of_server(&server).map_err(names)?))),
            other => bail!("a repository of the format {other} is not moved by this program"),
        };
        let names = match what {
            What::Maven(_) => None,
            _ => Some(server.packages().await.map_err(names)?),
        };
        Ok(Source { what, names, server: Some(server), leaves: false })
    }

    fn of(what: What) -> Source {
        Source { what, names: None, server: None, leaves: false }
    }

    /// Moves all of it, or what is wanted.
    pub(crate) async fn carry(&self, run: &Run) -> Result<(), Fault> {
        let names = self.names.clone();
        match &self.what {
            What::Maven(MavenSource::Pages(client)) if !run.only.is_empty() && self.server.is_none() => {
                maven::run(run, MavenSource::Named(Arc::clone(client), run.only.clone())).await
            }
            What::Maven(source) => maven::run(run, source.clone()).await,
            What::Python(source) => python::run(run, source.clone(), names).await,
            What::Npm(source) => npm::run(run, source.clone(), names).await,
            What::Images(source) => oci::run(run, source.clone(), names, self.server.clone()).await,
        }
    }

    /// Ends what was begun at the source.
    pub(crate) async fn leave(&self) {
        if let Some(server) = self.server.as_ref().filter(|_| self.leaves) {
            server.leave().await;
        }
    }
}

/// What a repository of another kind shows is held elsewhere.
pub(crate) fn hosted(server: &Server) -> anyhow::Result<()> {
    let Server { name, kind, .. } = server;
    ensure!(
        kind == "hosted",
        "{name} is a {kind}, and what it shows is held elsewhere: name a hosted repository"
    );
    Ok(())
}

/// A source of one format goes into a repository of the same.
fn fits(brings: &str, format: &str) -> anyhow::Result<()> {
    if brings == format {
        return Ok(());
    }
    bail!("the source holds packages of the format {brings}, and the repository is for {format}")
}

fn existing(folder: &str) -> anyhow::Result<PathBuf> {
    let path = PathBuf::from(folder);
    if path.is_dir() { Ok(path) } else { bail!("`{folder}` is no address of http or https, and no folder") }
}

fn exported(folder: &Path, format: &str) -> anyhow::Result<Source> {
    let (head, files) = export::read(folder)?;
    fits(&head.format, format)?;
    let (files, place) = (Arc::new(files), Place::folder(folder));
    Ok(Source::of(match format {
        MAVEN => What::Maven(MavenSource::Export(folder.to_owned(), files)),
        PYTHON => What::Python(Simple::below(place)),
        NPM => What::Npm(Npm { place }),
        _ => What::Images(Images::Layout(Layout::exported(Folder::new(folder), files))),
    }))
}

async fn of_nexus(
    from: nexus::Repository,
    to: &(dyn Fn(&str) -> anyhow::Result<Client> + Sync),
    format: &str,
) -> anyhow::Result<Source> {
    let of = match from.format().await {
        // The list of repositories may need a right that reading one does not.
        Err(Fault::Refused(_) | Fault::Missing(_)) => String::new(),
        of => of.map_err(|fault| anyhow!("{fault}"))?,
    };
    let address = from.address().map_err(|fault| anyhow!("{fault}"))?;
    let place = Place::Server(Arc::new(to(&address)?));
    let (what, told) = match of.as_str() {
        "maven2" => (fits(MAVEN, format).map(|()| What::Maven(MavenSource::Nexus(from.clone())))?, false),
        "" if format == MAVEN => (What::Maven(MavenSource::Nexus(from.clone())), false),
        "pypi" => (fits(PYTHON, format).map(|()| What::Python(Simple::below(place)))?, true),
        "" if format == PYTHON => (What::Python(Simple::below(place)), true),
        "npm" => (fits(NPM, format).map(|()| What::Npm(Npm { place }))?, true),
        "" if format == NPM => (What::Npm(Npm { place }), true),
        "" | "docker" => {
            bail!("images are moved from the address of the repository's own connector: --from oci")
        }
        other => bail!("a repository of Nexus with the format {other} is not moved by this program"),
    };
    let names = if told { Some(from.names().await) } else { None };
    let names = names.transpose().map_err(|fault| anyhow!("{fault}"))?;
    Ok(Source { names, ..Source::of(what) })
}

async fn of_artifactory(
    from: artifactory::Repository,
    to: &(dyn Fn(&str) -> anyhow::Result<Client> + Sync),
    format: &str,
) -> anyhow::Result<Source> {
    let of = match from.format().await {
        Err(Fault::Refused(_) | Fault::Missing(_)) => String::new(),
        of => of.map_err(|fault| anyhow!("{fault}"))?,
    };
    let client = |of: &str| to(&from.address(of).map_err(|fault| anyhow!("{fault}"))?);
    let what = match of.as_str() {
        "maven" | "gradle" | "ivy" | "sbt" | "generic" => fits(MAVEN, format).map(|()| MAVEN)?,
        "pypi" => fits(PYTHON, format).map(|()| PYTHON)?,
        "npm" => fits(NPM, format).map(|()| NPM)?,
        "docker" | "oci" => fits(IMAGES, format).map(|()| IMAGES)?,
        "" => format,
        other => {
            bail!("a repository of Artifactory with the package type {other} is not moved by this program")
        }
    };
    Ok(Source::of(match what {
        PYTHON => What::Python(Simple::below(Place::Server(Arc::new(client("pypi")?)))),
        NPM => What::Npm(Npm { place: Place::Server(Arc::new(client("npm")?)) }),
        IMAGES => What::Images(Images::Registry(Arc::new(Registry::new(client("docker")?, "")))),
        _ => What::Maven(MavenSource::Artifactory(from)),
    }))
}
