//! File, environment and flags laid over each other: which text each setting has, and where it came from.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::{Key, nearest};
use super::keys::keys;
use super::mistake::Mistake;
use super::plugin_keys::PLUGIN_KEYS;
use super::setting::{Setting, Settings, Source};

/// What the caller read: flags as (name in the file, flag, text), the environment, and the file's path.
#[derive(Clone, Default)]
pub struct Inputs {
    /// `--config`, or else PACKHOUSE_CONFIG.
    pub file: Option<PathBuf>,
    /// Every variable of the process.
    pub environment: Vec<(String, String)>,
    /// The flags that were given.
    pub flags: Vec<(&'static str, &'static str, String)>,
}

/// What came of laying the inputs over each other.
pub(crate) struct Laid {
    /// Every setting.
    pub(crate) settings: Settings,
    /// Variables that somebody else is known to set: they are worth a warning and no more.
    pub(crate) of_others: Vec<String>,
    /// What is no setting, and what cannot be read.
    pub(crate) mistakes: Vec<Mistake>,
}

/// Lays file, environment and flags over the defaults, later ones winning. A variable that looks like a setting and is none is a
/// mistake that names the nearest one, as a key of the file is.
pub(crate) fn lay(inputs: &Inputs) -> Laid {
    let mut laid = Laid { settings: defaults(), of_others: Vec::new(), mistakes: Vec::new() };
    let (file, named_by) = match &inputs.file {
        Some(file) => (Some(file.clone()), "flag --config"),
        None => {
            let named = inputs.environment.iter().find(|(name, _)| name == FILE_VARIABLE);
            (named.map(|(_, path)| PathBuf::from(path)), "environment PACKHOUSE_CONFIG")
        }
    };
    if let Some(path) = file {
        match std::fs::read_to_string(&path) {
            Ok(text) => lay_file(&mut laid, &path, &text),
            Err(error) => laid.mistakes.push(Mistake::general(format!(
                "the configuration file {} ({named_by}) cannot be read: {error}; name one that is there and that this account may read",
                path.display()
            ))),
        }
    }
    lay_environment(&mut laid, &inputs.environment);
    for (name, flag, text) in &inputs.flags {
        if let Some(key) = find(name) {
            let source = Source::Flag((*flag).to_owned());
            laid.settings.insert((*name).to_owned(), Setting { key, text: text.clone(), source });
        }
    }
    laid
}

/// Takes away what was written for a setting; false where nothing was.
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

/// The variable that names the file.
const FILE_VARIABLE: &str = "PACKHOUSE_CONFIG";

fn defaults() -> Settings {
    let default = |key: &'static Key| Setting { key, text: key.default.to_owned(), source: Source::Default };
    keys().map(|key| (key.name.to_owned(), default(key))).collect()
}

/// The row for a name, `plugins.FORMAT.KEY` among them.
fn find(name: &str) -> Option<&'static Key> {
    keys().find(|key| key.name == name).or_else(|| {
        let (_, last) = name.strip_prefix("plugins.")?.split_once('.')?;
        PLUGIN_KEYS.iter().find(|key| key.name == last)
    })
}

fn lay_file(laid: &mut Laid, path: &Path, text: &str) {
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let line = line(text, error.span().map_or(0, |span| span.start));
            let why = error.message();
            return laid.mistakes.push(Mistake::general(format!(
                "{}, line {line}, is not TOML: {why}; write as in `log = \"info\"`, texts between quotes",
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
            laid.mistakes.push(Mistake::general(format!(
                "{name} ({source}) is an unknown key; the nearest known one is `{near}`"
            )));
            continue;
        };
        let Some(text) = plain(value.get_ref()) else {
            laid.mistakes.push(Mistake::general(format!(
                "{name} ({source}) is none of what a setting may be; write a text, a whole number, true or false, or a list of texts"
            )));
            continue;
        };
        laid.settings.insert(name, Setting { key, text, source });
    }
}

/// The line in which this byte stands.
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

fn lay_environment(laid: &mut Laid, environment: &[(String, String)]) {
    for (variable, text) in environment.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let known = keys()
            .find(|key| key.env == variable || by_rule(key.name) == *variable)
            .map(|key| (key.name.to_owned(), key))
            .or_else(|| plugin_variable(variable));
        match known {
            Some((name, key)) => {
                let source = Source::Environment(variable.clone());
                let setting = Setting { key, text: text.clone(), source };
                let before = laid.settings.insert(name, setting);
                laid.mistakes.extend(two_names(before.as_ref(), variable, text));
            }
            None if variable == FILE_VARIABLE => {}
            None if is_of_others(variable, text) => laid.of_others.push(variable.clone()),
            None => {
                let near = nearest(variable, keys().map(|key| key.env)).unwrap_or_default();
                laid.mistakes.push(Mistake::general(format!(
                    "unknown environment variable {variable}; the nearest known one is {near}"
                )));
            }
        }
    }
}

const PREFIX: &str = "PACKHOUSE_";

/// The variable that a key has by the rule: its name in capitals. One key has a shorter one besides.
fn by_rule(name: &str) -> String {
    format!("{PREFIX}{}", name.replace('.', "_").to_uppercase())
}

/// A key may have two variables; which of two that differ is meant, nobody can tell.
fn two_names(before: Option<&Setting>, variable: &str, text: &str) -> Option<Mistake> {
    match before {
        Some(Setting { source: Source::Environment(other), text: first, .. }) if first != text => {
            Some(Mistake::general(format!(
                "{other} and {variable} (environment) are one setting, and their values differ; leave one of them out"
            )))
        }
        _ => None,
    }
}

/// What is set beside the server's own: by an orchestrator for a service of this name, by people who follow the documentation of
/// clients, and for this project's tests.
fn is_of_others(variable: &str, text: &str) -> bool {
    let name = variable.strip_prefix(PREFIX).unwrap_or(variable);
    let of_tests = ["TEST_", "LIVE_", "CONFORMANCE"].iter().any(|prefix| name.starts_with(prefix));
    of_tests || OTHERS.contains(&name) || is_of_orchestrator(name, text)
}

/// The last four are credentials of commands that move packages and publish components, which have no settings.
const OTHERS: [&str; 7] =
    ["TOKEN", "WEED", "WASM_TOOLCHAIN", "LOGIN", "SOURCE_LOGIN", "SOURCE_TOKEN", "REGISTRY_LOGIN"];

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
