//! Setup instructions for a format's clients. The texts are templates;
//! docs/plugins/description.md lists their placeholders.

use serde::Serialize;

/// Instructions for a client that reads from or publishes to a repository.
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
    /// Instructions for reading: a shell command, unless [`Client::file`] names a file.
    pub fn read(client: &str, template: &str) -> Self {
        Self::new(client, "read", template)
    }

    /// Instructions for publishing to a hosted repository.
    pub fn publish(client: &str, template: &str) -> Self {
        Self::new(client, "publish", template)
    }

    /// Marks the text as the content of this file, in this language: `ini`, `toml`, `json`, `yaml`,
    /// `xml`, `kotlin`, `groovy`, `scala` or `text`.
    pub fn file(mut self, file: &str, language: &str) -> Self {
        (self.file, self.language) = (Some(file.to_owned()), language.to_owned());
        self
    }

    fn new(client: &str, purpose: &'static str, template: &str) -> Self {
        let (client, template) = (client.to_owned(), template.to_owned());
        Self { client, purpose, file: None, language: "shell".to_owned(), template }
    }
}

/// Instructions for installing one version of a package with a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Install {
    client: String,
    language: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<String>,
    template: String,
}

impl Install {
    /// A shell command.
    pub fn shell(client: &str, template: &str) -> Self {
        Self::new(client, "shell", template)
    }

    /// A text in another language.
    pub fn new(client: &str, language: &str, template: &str) -> Self {
        let [client, language, template] = [client, language, template].map(str::to_owned);
        Self { client, language, parts: None, template }
    }

    /// Splits the package name at this separator; the template refers to the parts as `{1}`, `{2}`.
    pub fn parts(mut self, separator: &str) -> Self {
        self.parts = Some(separator.to_owned());
        self
    }
}
