//! Connection Settings: what a repository's clients are told, by the templates of its format.

use packhouse_runtime::{Description, Places, Purpose};
use packhouse_store::{RepositoryRow, VersionDetails};

use super::{Actor, loaded, repositories};
use crate::error::ApiError;

/// What stands where the reader's e-mail address belongs.
pub const EMAIL: &str = "<EMAIL>";
/// What stands where a token belongs.
pub const TOKEN: &str = "<REPOSITORY_TOKEN>";

/// How clients reach a repository.
#[derive(Debug)]
pub struct Connection {
    /// The repository.
    pub repository: RepositoryRow,
    /// Its address, with a slash at its end.
    pub address: String,
    /// User names that go with any token, where the format refuses those that are not its owner's; none where it does not.
    pub checked_usernames: Option<Vec<String>>,
    /// What each client needs.
    pub clients: Vec<ClientText>,
}

/// What a client needs.
#[derive(Clone, Debug)]
pub struct ClientText {
    /// The client, as people call it.
    pub client: String,
    /// Whether to read or to publish.
    pub purpose: Purpose,
    /// The file in which it stands; none: it is a command.
    pub file: Option<String>,
    /// The language of the text.
    pub language: String,
    /// The text, with [`EMAIL`] and [`TOKEN`] where those belong.
    pub text: String,
}

/// How a client installs a version.
#[derive(Clone, Debug)]
pub struct InstallText {
    /// The client, as people call it.
    pub client: String,
    /// The language of the text.
    pub language: String,
    /// The text.
    pub text: String,
}

/// How clients reach the repository of this id. How to publish is told of a hosted one alone. Needs read there.
pub async fn connection(actor: &Actor, id: &str) -> Result<Connection, ApiError> {
    let repository = repositories::readable(actor, id).await?;
    let address = repositories::address(actor, &repository).await?;
    let plugin = loaded::plugin_of(&actor.app, &repository)?;
    let description = plugin.as_ref().map(|plugin| plugin.description());
    let clients = description.map(|description| clients(description, &repository, &address));
    let checks = description.filter(|description| description.checks_username);
    let checked_usernames = checks.map(|description| description.token_usernames.clone());
    Ok(Connection { repository, address, checked_usernames, clients: clients.unwrap_or_default() })
}

fn clients(description: &Description, repository: &RepositoryRow, address: &str) -> Vec<ClientText> {
    let places = Places::of_repository(address, &repository.name, EMAIL, TOKEN);
    let publishes = repository.kind == "hosted";
    let told = description.clients.iter().filter(|one| publishes || one.purpose == Purpose::Read);
    let texts = told.map(|one| ClientText {
        client: one.client.clone(),
        purpose: one.purpose,
        file: one.file.as_ref().map(|file| file.fill(&places)),
        language: one.language.clone(),
        text: one.template.fill(&places),
    });
    texts.filter(|one| !one.text.is_empty()).collect()
}

/// How clients install a version.
pub(super) fn install(
    description: &Description,
    repository: &RepositoryRow,
    address: &str,
    details: &VersionDetails,
) -> Vec<InstallText> {
    let version = &details.version;
    let texts = description.install.iter().map(|one| {
        let language = one.language.as_str();
        let mut places = Places::of_repository(address, &repository.name, EMAIL, TOKEN)
            .and("name", &version.name, language)
            .and("version", &version.version, language);
        if let Some(separator) = &one.parts {
            for (number, part) in (1..=4).zip(version.name.split(separator.as_str())) {
                places = places.and(&number.to_string(), part, language);
            }
        }
        for (name, value) in &version.properties {
            places = places.and(&format!("property:{name}"), value, language);
        }
        let text = one.template.fill(&places);
        InstallText { client: one.client.clone(), language: language.to_owned(), text }
    });
    texts.filter(|one| !one.text.is_empty()).collect()
}
