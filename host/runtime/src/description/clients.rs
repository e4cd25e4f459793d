//! Texts for a format's clients: how to configure a repository, and how to install a version. Both
//! are templates that [`Template::fill`] fills.

use serde::{Deserialize, Serialize};

/// Most templates of one kind in a description.
const MOST: usize = 64;
/// Most bytes of one template.
const MAX_BYTES: usize = 8 << 10;

/// Configuration of a client for reading from or publishing to a repository.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ClientTemplate {
    pub client: String,
    pub purpose: Purpose,
    /// The file that the text belongs to, which may have placeholders. None means that the text is
    /// a command.
    #[serde(default)]
    pub file: Option<Template>,
    /// The language of the text: `shell`, `ini`, `toml`, `json`, `yaml`, `xml`, `kotlin`, `groovy`,
    /// `scala`, `text`.
    pub language: String,
    /// The text, with the placeholders of [`TemplateValues`].
    pub template: Template,
}

/// Purpose of a client template.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    Read,
    /// Publishing to a hosted repository.
    Publish,
}

/// Instructions to install one version of a package.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct InstallTemplate {
    pub client: String,
    pub language: String,
    /// Separator of the name parts `{1}`, `{2}`. None means that names have no parts.
    #[serde(default)]
    pub parts: Option<String>,
    /// The text, with the placeholders of [`TemplateValues`], `{name}`, `{version}`, `{1}` to
    /// `{4}`, and `{property:NAME}` of the version.
    pub template: Template,
}

/// A text with placeholders in braces. `{{` stands for a brace. `fill` includes a line that begins
/// with `{http}` or `{https}` only if the address has that scheme. It leaves out a line with a
/// placeholder that has no value.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Template(String);

/// Values for the placeholders of a template.
#[derive(Clone, Debug, Default)]
pub struct TemplateValues {
    /// Values by placeholder name: the repository's `address` with a trailing slash, `host` with
    /// its port, `hostname` without port, `path` without surrounding slashes, `repository`,
    /// `email`, `token`. A version has more.
    pub values: Vec<(String, String)>,
    /// True if the address is plain http.
    pub http: bool,
}

impl TemplateValues {
    /// Values for the repository `name` at this address, with `email` and `token` of the reader.
    #[must_use]
    pub fn of_repository(address: &str, name: &str, email: &str, token: &str) -> TemplateValues {
        let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        // The port comes after the last colon, unless that colon is within an IPv6 address.
        let hostname =
            host.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map_or(host, |(name, _)| name);
        let values = [
            ("address", address),
            ("host", host),
            ("hostname", hostname),
            ("path", path.trim_end_matches('/')),
            ("repository", name),
            ("email", email),
            ("token", token),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        TemplateValues { values: values.into(), http: scheme == "http" }
    }

    /// Adds one value, quoted for the language of the text.
    #[must_use]
    pub fn and(mut self, name: &str, value: &str, language: &str) -> TemplateValues {
        self.values.push((name.to_owned(), quoted(value, language)));
        self
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Template {
    /// Returns the text with its placeholders filled.
    #[must_use]
    pub fn fill(&self, values: &TemplateValues) -> String {
        let lines = self.0.lines().filter_map(|line| {
            let line = match (line.strip_prefix("{http}"), line.strip_prefix("{https}")) {
                (Some(line), _) => values.http.then_some(line)?,
                (_, Some(line)) => (!values.http).then_some(line)?,
                (None, None) => line,
            };
            filled(line, values)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Returns the line with its placeholders filled, or none if a placeholder has no value.
fn filled(line: &str, values: &TemplateValues) -> Option<String> {
    let (mut text, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(at) = rest.find('{') {
        text.push_str(rest.get(..at)?);
        rest = rest.get(at + 1..)?;
        if let Some(after) = rest.strip_prefix('{') {
            text.push('{');
            rest = after;
            continue;
        }
        let (name, after) = rest.split_once('}')?;
        text.push_str(values.get(name)?);
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

/// Quotes a value for a text of this language. Names and versions are untrusted input, and people
/// copy the text into a shell or a file.
fn quoted(value: &str, language: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@/._:+~-%=,".contains(c);
    match language {
        _ if value.chars().all(plain) => value.to_owned(),
        "shell" => format!("'{}'", value.replace('\'', r"'\''")),
        "xml" => value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"),
        "text" => value.to_owned(),
        "groovy" => value.replace('\\', r"\\").replace('\'', r"\'"),
        _ => value.replace('\\', r"\\").replace('"', r#"\""#).replace('$', r"\$"),
    }
}

/// Returns an error if these templates are too many or too long.
pub(super) fn validate(clients: &[ClientTemplate], install: &[InstallTemplate]) -> Result<(), String> {
    if clients.len() > MOST || install.len() > MOST {
        return Err(format!("`clients` and `install` may have at most {MOST} templates each"));
    }
    let clients = clients.iter().map(|one| (&one.client, &one.template));
    for (client, Template(text)) in clients.chain(install.iter().map(|one| (&one.client, &one.template))) {
        if text.len() > MAX_BYTES {
            return Err(format!("the template of {client:?} has more than {MAX_BYTES} bytes"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(address: &str) -> TemplateValues {
        TemplateValues::of_repository(address, "lib", "<EMAIL>", "<REPOSITORY_TOKEN>")
    }

    #[test]
    fn places_are_filled_and_lines_without_a_value_left_out() {
        let template =
            Template("a {host} {path}\n{http}insecure\n{https}secure\n{{ {property:x} }\n{{}}".to_owned());
        let filled = template.fill(&values("http://h:1/repositories/lib/"));
        assert_eq!(filled, "a h:1 repositories/lib\ninsecure\n{}}");
        let https = values("https://h/repositories/lib/").and("property:x", "1", "text");
        assert_eq!(template.fill(&https), "a h repositories/lib\nsecure\n{ 1 }\n{}}");
    }

    #[test]
    fn values_from_outside_stay_values() {
        let line = |value, language, template: &str| {
            Template(template.to_owned()).fill(&values("http://h/").and("name", value, language))
        };
        assert_eq!(line("a;rm -rf ~'", "shell", "get {name}"), r"get 'a;rm -rf ~'\'''");
        assert_eq!(line("a<b", "xml", "<n>{name}</n>"), "<n>a&lt;b</n>");
        assert_eq!(line("a\"$b", "kotlin", "\"{name}\""), "\"a\\\"\\$b\"");
        assert_eq!(line("@scope/name", "shell", "get {name}"), "get @scope/name");
    }
}
