//! What a format's clients are told. The texts are templates: docs/PLUGINS.md lists their places.

use serde::Serialize;

/// What a client needs to read from or publish to a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Client {
    client: String,
    purpose: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    language: String,
    template: String,
}

impl Client {
    /// What this client needs to read: a command in the shell, unless [`Client::file`] says another place.
    pub fn read(client: &str, template: &str) -> Self {
        Self::new(client, "read", template)
    }

    /// What this client needs to publish to a hosted repository.
    pub fn publish(client: &str, template: &str) -> Self {
        Self::new(client, "publish", template)
    }

    /// It stands in this file, in this language: `ini`, `toml`, `json`, `yaml`, `xml`, `kotlin`, `groovy`, `scala`, `text`.
    pub fn file(mut self, file: &str, language: &str) -> Self {
        (self.file, self.language) = (Some(file.to_owned()), language.to_owned());
        self
    }

    fn new(client: &str, purpose: &'static str, template: &str) -> Self {
        let (client, template) = (client.to_owned(), template.to_owned());
        Self { client, purpose, file: None, language: "shell".to_owned(), template }
    }
}

/// How a client installs one version of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Install {
    client: String,
    language: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<String>,
    template: String,
}

impl Install {
    /// A line for the shell.
    pub fn shell(client: &str, template: &str) -> Self {
        Self::new(client, "shell", template)
    }

    /// A text in another language.
    pub fn new(client: &str, language: &str, template: &str) -> Self {
        let [client, language, template] = [client, language, template].map(str::to_owned);
        Self { client, language, parts: None, template }
    }

    /// The name has parts with this between them, which the template names as `{1}`, `{2}`.
    pub fn parts(mut self, separator: &str) -> Self {
        self.parts = Some(separator.to_owned());
        self
    }
}
