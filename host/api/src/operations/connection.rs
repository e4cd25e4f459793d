//! Connection settings for a repository's clients, from the templates of its format.

use packhouse_runtime::{Description, Purpose, TemplateValues};
use packhouse_store::{RepositoryRow, VersionDetails};

use super::{Actor, loaded, repositories};
use crate::error::ApiError;

/// Placeholder of the reader's e-mail address.
pub const EMAIL: &str = "<EMAIL>";
/// Placeholder of a token in client configuration.
pub const TOKEN: &str = "<REPOSITORY_TOKEN>";

/// Connection settings for the clients of a repository.
#[derive(Debug)]
pub struct Connection {
    pub repository: RepositoryRow,
    /// Address of the repository, with a trailing slash.
    pub address: String,
    /// User names that work with any token, if the format otherwise requires the name of the
    /// token's owner; `None` if it does not check user names.
    pub checked_usernames: Option<Vec<String>>,
    pub clients: Vec<ClientText>,
}

#[derive(Clone, Debug)]
pub struct ClientText {
    /// Display name of the client.
    pub client: String,
    /// Purpose: to read or to publish.
    pub purpose: Purpose,
    /// File for the text; `None` if the text is a command.
    pub file: Option<String>,
    pub language: String,
    /// Text with the placeholders [`EMAIL`] and [`TOKEN`].
    pub text: String,
}

/// The way in which a client installs a version.
#[derive(Clone, Debug)]
pub struct InstallText {
    /// Display name of the client.
    pub client: String,
    pub language: String,
    pub text: String,
}

/// Returns the connection settings of a repository. Only a hosted one has settings for publishing.
/// Needs read access to it.
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
    let values = TemplateValues::of_repository(address, &repository.name, EMAIL, TOKEN);
    let publishes = repository.kind == "hosted";
    let offered = description.clients.iter().filter(|one| publishes || one.purpose == Purpose::Read);
    let texts = offered.map(|one| ClientText {
        client: one.client.clone(),
        purpose: one.purpose,
        file: one.file.as_ref().map(|file| file.fill(&values)),
        language: one.language.clone(),
        text: one.template.fill(&values),
    });
    texts.filter(|one| !one.text.is_empty()).collect()
}

/// Installation commands for a version.
pub(super) fn install(
    description: &Description,
    repository: &RepositoryRow,
    address: &str,
    details: &VersionDetails,
) -> Vec<InstallText> {
    let version = &details.version;
    let texts = description.install.iter().map(|one| {
        let language = one.language.as_str();
        let mut values = TemplateValues::of_repository(address, &repository.name, EMAIL, TOKEN)
            .and("name", &version.name, language)
            .and("version", &version.version, language);
        if let Some(separator) = &one.parts {
            for (number, part) in (1..=4).zip(version.name.split(separator.as_str())) {
                values = values.and(&number.to_string(), part, language);
            }
        }
        for (name, value) in &version.properties {
            values = values.and(&format!("property:{name}"), value, language);
        }
        let text = one.template.fill(&values);
        InstallText { client: one.client.clone(), language: language.to_owned(), text }
    });
    texts.filter(|one| !one.text.is_empty()).collect()
}
