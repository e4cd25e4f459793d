//! Merging of the file, the environment and the flags. The result is the text and the source of
//! each setting.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::config_error::ConfigError;
use super::key::{SettingKey, nearest};
use super::keys::keys;
use super::plugin_keys::PLUGIN_KEYS;
use super::setting::{Setting, Settings, Source};

#[derive(Clone, Default)]
pub struct Inputs {
    /// Path from `--config`. `None` means the path from PACKHOUSE_CONFIG, if that variable is set.
    pub file: Option<PathBuf>,
    /// All environment variables of the process.
    pub environment: Vec<(String, String)>,
    /// The given flags: the setting's name in the file, the flag, and the text.
    pub flags: Vec<(&'static str, &'static str, String)>,
}

/// Result of merging the inputs.
pub(crate) struct MergedSettings {
    pub(crate) settings: Settings,
    /// Unknown variables with the prefix that other software is known to set. They cause only a
    /// warning.
    pub(crate) foreign: Vec<String>,
    /// Errors about unknown settings and about values that cannot be read.
    pub(crate) errors: Vec<ConfigError>,
}

/// Merges the file, the environment and the flags into the defaults; the later source wins. An
/// unknown key in the file is an error that names the nearest setting. An unknown variable with the
/// prefix of settings is the same error.
pub(crate) fn merge(inputs: &Inputs) -> MergedSettings {
    let mut merged = MergedSettings { settings: defaults(), foreign: Vec::new(), errors: Vec::new() };
    let (file, named_by) = match &inputs.file {
        Some(file) => (Some(file.clone()), "flag --config"),
        None => {
            let named = inputs.environment.iter().find(|(name, _)| name == FILE_VARIABLE);
            (named.map(|(_, path)| PathBuf::from(path)), "environment PACKHOUSE_CONFIG")
        }
    };
    if let Some(path) = file {
        match std::fs::read_to_string(&path) {
            Ok(text) => merge_file(&mut merged, &path, &text),
            Err(error) => merged.errors.push(ConfigError::general(format!(
                "cannot read the configuration file {} ({named_by}): {error}; name a file that exists and \
                 that this account may read",
                path.display()
            ))),
        }
    }
    merge_environment(&mut merged, &inputs.environment);
    for (name, flag, text) in &inputs.flags {
        if let Some(key) = find(name) {
            let source = Source::Flag((*flag).to_owned());
            merged.settings.insert((*name).to_owned(), Setting { key, text: text.clone(), source });
        }
    }
    merged
}

/// Resets a setting to its default. Returns false if the setting already had its default.
pub(crate) fn forget(settings: &mut Settings, name: &str) -> bool {
    match settings.get_mut(name) {
        Some(setting) if setting.source != Source::Default => {
            setting.text = setting.key.default.to_owned();
            setting.source = Source::Default;
            true
        }
        _ => false,
    }
}

/// Environment variable that contains the path of the file.
const FILE_VARIABLE: &str = "PACKHOUSE_CONFIG";

fn defaults() -> Settings {
    let default =
        |key: &'static SettingKey| Setting { key, text: key.default.to_owned(), source: Source::Default };
    keys().map(|key| (key.name.to_owned(), default(key))).collect()
}

/// Finds the row for a name, which may also have the form `plugins.FORMAT.KEY`.
fn find(name: &str) -> Option<&'static SettingKey> {
    keys().find(|key| key.name == name).or_else(|| {
        let (_, last) = name.strip_prefix("plugins.")?.split_once('.')?;
        PLUGIN_KEYS.iter().find(|key| key.name == last)
    })
}

fn merge_file(merged: &mut MergedSettings, path: &Path, text: &str) {
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let line = line(text, error.span().map_or(0, |span| span.start));
            let why = error.message();
            return merged.errors.push(ConfigError::general(format!(
                "{}, line {line}, is not valid TOML: {why}; write strings in quotes, for example `log = \
                 \"info\"`",
                path.display()
            )));
        }
    };
    let mut found = Vec::new();
    flatten("", table.get_ref(), &mut found);
    for (name, value) in found {
        let source = Source::File(path.to_owned(), line(text, value.span().start));
        let Some(key) = find(&name) else {
            let near = nearest_name(&name).unwrap_or_default();
            merged.errors.push(ConfigError::general(format!(
                "{name} ({source}) is not a known key; the nearest one is `{near}`"
            )));
            continue;
        };
        let Some(text) = plain(value.get_ref()) else {
            merged.errors.push(ConfigError::general(format!(
                "{name} ({source}) has an unsupported type; expected a string, an integer, a boolean or a \
                 list of strings"
            )));
            continue;
        };
        merged.settings.insert(name, Setting { key, text, source });
    }
}

/// Returns the number of the line that contains the byte at this offset.
fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

fn nearest_name(name: &str) -> Option<String> {
    let plugin = name.strip_prefix("plugins.").and_then(|rest| rest.split_once('.'));
    match plugin {
        Some((format, last)) => nearest(last, PLUGIN_KEYS.iter().map(|key| key.name))
            .map(|near| format!("plugins.{format}.{near}")),
        None => nearest(name, keys().map(|key| key.name)).map(str::to_owned),
    }
}

fn flatten<'a, 'i>(
    prefix: &str,
    table: &'a DeTable<'i>,
    found: &mut Vec<(String, &'a Spanned<DeValue<'i>>)>,
) {
    for (name, value) in table {
        let name = name.get_ref();
        let name = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
        match value.get_ref() {
            DeValue::Table(inner) => flatten(&name, inner, found),
            _ => found.push((name, value)),
        }
    }
}

fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().ok().map(|number| number.to_string()),
        DeValue::Boolean(switch) => Some(switch.to_string()),
        DeValue::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
            texts.map(|texts| texts.join(","))
        }
        _ => None,
    }
}

fn merge_environment(merged: &mut MergedSettings, environment: &[(String, String)]) {
    for (variable, text) in environment.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let known = keys()
            .find(|key| key.env == variable || by_rule(key.name) == *variable)
            .map(|key| (key.name.to_owned(), key))
            .or_else(|| plugin_variable(variable));
        match known {
            Some((name, key)) => {
                let source = Source::Environment(variable.clone());
                let setting = Setting { key, text: text.clone(), source };
                let before = merged.settings.insert(name, setting);
                merged.errors.extend(two_names(before.as_ref(), variable, text));
            }
            None if variable == FILE_VARIABLE => {}
            None if is_foreign(variable, text) => merged.foreign.push(variable.clone()),
            None => {
                let near = nearest(variable, keys().map(|key| key.env)).unwrap_or_default();
                merged.errors.push(ConfigError::general(format!(
                    "unknown environment variable {variable}; the nearest known one is {near}"
                )));
            }
        }
    }
}

const PREFIX: &str = "PACKHOUSE_";

/// Returns the environment variable that the naming rule gives a setting: the name in capitals. One
/// setting also has a shorter variable.
fn by_rule(name: &str) -> String {
    format!("{PREFIX}{}", name.replace('.', "_").to_uppercase())
}

/// Returns an error if another variable already set this setting to a different value. A setting
/// may have two variables, and the server cannot know which one the operator means.
fn two_names(before: Option<&Setting>, variable: &str, text: &str) -> Option<ConfigError> {
    match before {
        Some(Setting { source: Source::Environment(other), text: first, .. }) if first != text => {
            Some(ConfigError::general(format!(
                "{other} and {variable} (environment) are the same setting with different values; remove \
                 one of them"
            )))
        }
        _ => None,
    }
}

/// Returns whether other software, and not this server, uses this variable. An orchestrator sets
/// some variables for a service with this name. Others are for clients, as their documentation
/// says, or for this project's tests.
fn is_foreign(variable: &str, text: &str) -> bool {
    let name = variable.strip_prefix(PREFIX).unwrap_or(variable);
    let of_tests = ["TEST_", "LIVE_", "CONFORMANCE"].iter().any(|prefix| name.starts_with(prefix));
    of_tests || OTHERS.contains(&name) || is_of_orchestrator(name, text)
}

/// Variables that other programs read. The last four contain credentials for commands that move
/// packages or publish components. Those commands do not read the server's settings.
const OTHERS: [&str; 7] =
    ["TOKEN", "WEED", "WASM_TOOLCHAIN", "LOGIN", "SOURCE_LOGIN", "SOURCE_TOKEN", "REGISTRY_LOGIN"];

/// Returns whether an orchestrator sets this variable for a service, such as
/// `PACKHOUSE_SERVICE_HOST`, `PACKHOUSE_PORT=tcp://…` or `PACKHOUSE_API_PORT_8081_TCP_ADDR`.
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

/// Parses a variable such as `PACKHOUSE_PLUGINS_MAVEN_MAX_FILE_BYTES`. The text between the prefix
/// and the longest known key is the format, in which `_` stands for `-`.
fn plugin_variable(variable: &str) -> Option<(String, &'static SettingKey)> {
    let rest = variable.strip_prefix("PACKHOUSE_PLUGINS_")?;
    PLUGIN_KEYS
        .iter()
        .filter_map(|key| {
            let format = rest.strip_suffix(key.env)?.strip_suffix('_').filter(|format| !format.is_empty())?;
            Some((format!("plugins.{}.{}", format.to_ascii_lowercase().replace('_', "-"), key.name), key))
        })
        .max_by_key(|(_, key)| key.env.len())
}
