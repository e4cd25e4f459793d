//! File, environment and flags laid over each other: which text each setting has, and where it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::key::{Key, nearest};
use super::keys::KEYS;
use super::plugin_keys::PLUGIN_KEYS;

/// Where a setting's text came from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// Nothing set it.
    Default,
    /// The file.
    File(PathBuf),
    /// This environment variable.
    Environment(String),
    /// This flag of the command line.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File(path) => write!(f, "file {}", path.display()),
            Source::Environment(name) => write!(f, "environment {name}"),
            Source::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// One setting's text and source.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The row of the table.
    pub key: &'static Key,
    /// What was written.
    pub text: String,
    /// Where.
    pub source: Source,
}

/// Every setting by its name in the file.
pub type Settings = BTreeMap<String, Setting>;

/// What the caller read: flags as (name in the file, flag, text), the environment, and the file's path.
#[derive(Default)]
pub struct Inputs {
    /// `--config`, or else PACKHOUSE_CONFIG.
    pub file: Option<PathBuf>,
    /// Every variable of the process.
    pub environment: Vec<(String, String)>,
    /// The flags that were given.
    pub flags: Vec<(&'static str, &'static str, String)>,
}

/// Lays file, environment and flags over the defaults, later ones winning. A variable that looks like a setting and is none is an
/// error that names the nearest one, as a key of the file is. The second value names those that somebody else is known to set:
/// they are worth a warning and no more.
pub(crate) fn lay(inputs: &Inputs) -> anyhow::Result<(Settings, Vec<String>)> {
    let mut settings = defaults();
    let file = inputs.file.clone().or_else(|| {
        inputs.environment.iter().find(|(name, _)| name == FILE_VARIABLE).map(|(_, path)| PathBuf::from(path))
    });
    if let Some(path) = file {
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("failed to read the configuration file {}", path.display()))?;
        lay_file(&mut settings, &path, &text)?;
    }
    let unknown = lay_environment(&mut settings, &inputs.environment)?;
    for (name, flag, text) in &inputs.flags {
        if let Some(key) = find(name) {
            let source = Source::Flag((*flag).to_owned());
            settings.insert((*name).to_owned(), Setting { key, text: text.clone(), source });
        }
    }
    Ok((settings, unknown))
}

/// The variable that names the file.
const FILE_VARIABLE: &str = "PACKHOUSE_CONFIG";

fn defaults() -> Settings {
    let default = |key: &'static Key| Setting { key, text: key.default.to_owned(), source: Source::Default };
    KEYS.iter().map(|key| (key.name.to_owned(), default(key))).collect()
}

/// The row for a name, `plugins.FORMAT.KEY` among them.
fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name).or_else(|| {
        let (_, last) = name.strip_prefix("plugins.")?.split_once('.')?;
        PLUGIN_KEYS.iter().find(|key| key.name == last)
    })
}

pub(super) fn lay_file(settings: &mut Settings, path: &Path, text: &str) -> anyhow::Result<()> {
    let table: toml::Table = text.parse().with_context(|| format!("{} is not TOML", path.display()))?;
    let mut found = Vec::new();
    flatten("", &table, &mut found);
    for (name, value) in found {
        let Some(key) = find(&name) else {
            let near = nearest_name(&name).unwrap_or_default();
            bail!("{}: unknown key `{name}`; the nearest known one is `{near}`", path.display());
        };
        let Some(text) = plain(&value) else {
            bail!("{}: `{name}` wants a text, a number, true or false, or a list of texts", path.display());
        };
        settings.insert(name, Setting { key, text, source: Source::File(path.to_owned()) });
    }
    Ok(())
}

fn nearest_name(name: &str) -> Option<String> {
    let plugin = name.strip_prefix("plugins.").and_then(|rest| rest.split_once('.'));
    match plugin {
        Some((format, last)) => nearest(last, PLUGIN_KEYS.iter().map(|key| key.name))
            .map(|near| format!("plugins.{format}.{near}")),
        None => nearest(name, KEYS.iter().map(|key| key.name)).map(str::to_owned),
    }
}

fn flatten(prefix: &str, table: &toml::Table, found: &mut Vec<(String, toml::Value)>) {
    for (name, value) in table {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten(&name, inner, found),
            other => found.push((name, other.clone())),
        }
    }
}

fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(switch) => Some(switch.to_string()),
        toml::Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            texts.map(|texts| texts.join(","))
        }
        _ => None,
    }
}

fn lay_environment(settings: &mut Settings, environment: &[(String, String)]) -> anyhow::Result<Vec<String>> {
    let mut others = Vec::new();
    for (variable, text) in environment.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let known = KEYS
            .iter()
            .find(|key| key.env == variable || by_rule(key.name) == *variable)
            .map(|key| (key.name.to_owned(), key))
            .or_else(|| plugin_variable(variable));
        match known {
            Some((name, key)) => {
                let source = Source::Environment(variable.clone());
                let setting = Setting { key, text: text.clone(), source };
                let before = settings.insert(name, setting);
                refuse_two_names(before.as_ref(), variable, text)?;
            }
            None if variable == FILE_VARIABLE => {}
            None if is_of_others(variable, text) => others.push(variable.clone()),
            None => {
                let near = nearest(variable, KEYS.iter().map(|key| key.env)).unwrap_or_default();
                bail!("unknown environment variable {variable}; the nearest known one is {near}");
            }
        }
    }
    Ok(others)
}

const PREFIX: &str = "PACKHOUSE_";

/// The variable that a key has by the rule: its name in capitals. One key has a shorter one besides.
fn by_rule(name: &str) -> String {
    format!("{PREFIX}{}", name.replace('.', "_").to_uppercase())
}

/// A key may have two variables; which of two that differ is meant, nobody can tell.
fn refuse_two_names(before: Option<&Setting>, variable: &str, text: &str) -> anyhow::Result<()> {
    match before {
        Some(Setting { source: Source::Environment(other), text: first, .. }) if first != text => {
            bail!("{other} and {variable} are one setting, and their values differ; leave one of them out")
        }
        _ => Ok(()),
    }
}

/// What is set beside the server's own: by an orchestrator for a service of this name, by people who follow the documentation of
/// clients, and for this project's tests.
fn is_of_others(variable: &str, text: &str) -> bool {
    let name = variable.strip_prefix(PREFIX).unwrap_or(variable);
    let of_tests = ["TEST_", "LIVE_", "CONFORMANCE"].iter().any(|prefix| name.starts_with(prefix));
    of_tests || OTHERS.contains(&name) || is_of_orchestrator(name, text)
}

const OTHERS: [&str; 3] = ["TOKEN", "WEED", "WASM_TOOLCHAIN"];

/// `PACKHOUSE_SERVICE_HOST`, `PACKHOUSE_PORT=tcp://…`, `PACKHOUSE_API_PORT_8081_TCP_ADDR` and their like.
fn is_of_orchestrator(name: &str, text: &str) -> bool {
    let service = name.ends_with("SERVICE_HOST") || name.contains("SERVICE_PORT");
    let link = name.ends_with("PORT") && text.contains("://");
    let part = name.split_once("PORT_").is_some_and(|(_, rest)| {
        let (port, protocol) = rest.split_once('_').unwrap_or((rest, ""));
        let number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        number && ["TCP", "UDP", "SCTP"].iter().any(|known| protocol.starts_with(known))
    });
    service || link || part
}

/// `PACKHOUSE_PLUGINS_MAVEN_MAX_FILE_BYTES`: the format stands between the prefix and the longest known key; `_` in
/// it is `-` of the format.
fn plugin_variable(variable: &str) -> Option<(String, &'static Key)> {
    let rest = variable.strip_prefix("PACKHOUSE_PLUGINS_")?;
    PLUGIN_KEYS
        .iter()
        .filter_map(|key| {
            let format = rest.strip_suffix(key.env)?.strip_suffix('_').filter(|format| !format.is_empty())?;
            Some((format!("plugins.{}.{}", format.to_ascii_lowercase().replace('_', "-"), key.name), key))
        })
        .max_by_key(|(_, key)| key.env.len())
}
