//! What a format's clients are told: what to write where, so that they use a repository, and how each installs a version. Both are
//! templates; [`Template::fill`] puts in what is known.

use serde::{Deserialize, Serialize};

/// Templates of one kind in a description.
const MOST: usize = 64;
/// Bytes of one template.
const MAX_BYTES: usize = 8 << 10;

/// What a client needs to read from or publish to a repository.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ClientTemplate {
    /// The client, as people call it.
    pub client: String,
    /// For which it is.
    pub purpose: Purpose,
    /// The file in which it stands, with places too; none: it is a command.
    #[serde(default)]
    pub file: Option<Template>,
    /// The language of the text: `shell`, `ini`, `toml`, `json`, `yaml`, `xml`, `kotlin`, `groovy`, `scala`, `text`.
    pub language: String,
    /// The text. Places as in [`Places`].
    pub template: Template,
}

/// What a client is told about.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Reading.
    Read,
    /// Publishing, to a hosted repository.
    Publish,
}

/// How a client installs one version of a package.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct InstallTemplate {
    /// The client, as people call it.
    pub client: String,
    /// The language of the text.
    pub language: String,
    /// What separates the parts of a name that the template names as `{1}`, `{2}`; none: there are no parts.
    #[serde(default)]
    pub parts: Option<String>,
    /// The text. Places as in [`Places`], with `{name}`, `{version}`, `{1}` to `{4}`, and `{property:NAME}` of the version.
    pub template: Template,
}

/// A text with places in braces. `{{` is a brace. A line that begins with `{http}` or `{https}` is there where the address begins so;
/// one with a place that nothing is known of is left out.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Template(String);

/// What is put into the places.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// By the place's name: the repository's `address` with a slash at its end, `host` with its port, `hostname` without, `path` without slashes around
    /// it, `repository`, `email`, `token`; for a version more.
    pub values: Vec<(String, String)>,
    /// Whether the address is plain http.
    pub http: bool,
}

impl Places {
    /// What is known of the repository `name` at this address, with `email` and `token` for whoever reads it.
    #[must_use]
    pub fn of_repository(address: &str, name: &str, email: &str, token: &str) -> Places {
        let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        // A port is what stands behind the last colon, unless that is within an IPv6 address.
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
        Places { values: values.into(), http: scheme == "http" }
    }

    /// The same with one more, in the language in which it is to stand.
    #[must_use]
    pub fn and(mut self, name: &str, value: &str, language: &str) -> Places {
        self.values.push((name.to_owned(), quoted(value, language)));
        self
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Template {
    /// The text with what is known in its places.
    #[must_use]
    pub fn fill(&self, places: &Places) -> String {
        let lines = self.0.lines().filter_map(|line| {
            let line = match (line.strip_prefix("{http}"), line.strip_prefix("{https}")) {
                (Some(line), _) => places.http.then_some(line)?,
                (_, Some(line)) => (!places.http).then_some(line)?,
                (None, None) => line,
            };
            filled(line, places)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The line with its places filled; none where one is not known.
fn filled(line: &str, places: &Places) -> Option<String> {
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
        text.push_str(places.get(name)?);
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

/// A value as it may stand in a text of this language: names and versions come from outside, and people copy the text.
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

/// What is wrong with these templates.
pub(super) fn validate(clients: &[ClientTemplate], install: &[InstallTemplate]) -> Result<(), String> {
    if clients.len() > MOST || install.len() > MOST {
        return Err(format!("`clients` and `install` have at most {MOST} templates each"));
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

    fn places(address: &str) -> Places {
        Places::of_repository(address, "lib", "<EMAIL>", "<REPOSITORY_TOKEN>")
    }

    #[test]
    fn places_are_filled_and_lines_without_a_value_left_out() {
        let template =
            Template("a {host} {path}\n{http}insecure\n{https}secure\n{{ {property:x} }\n{{}}".to_owned());
        let filled = template.fill(&places("http://h:1/repositories/lib/"));
        assert_eq!(filled, "a h:1 repositories/lib\ninsecure\n{}}");
        let https = places("https://h/repositories/lib/").and("property:x", "1", "text");
        assert_eq!(template.fill(&https), "a h repositories/lib\nsecure\n{ 1 }\n{}}");
    }

    #[test]
    fn values_from_outside_stay_values() {
        let line = |value, language, template: &str| {
            Template(template.to_owned()).fill(&places("http://h/").and("name", value, language))
        };
        assert_eq!(line("a;rm -rf ~'", "shell", "get {name}"), r"get 'a;rm -rf ~'\'''");
        assert_eq!(line("a<b", "xml", "<n>{name}</n>"), "<n>a&lt;b</n>");
        assert_eq!(line("a\"$b", "kotlin", "\"{name}\""), "\"a\\\"\\$b\"");
        assert_eq!(line("@scope/name", "shell", "get {name}"), "get @scope/name");
    }
}
