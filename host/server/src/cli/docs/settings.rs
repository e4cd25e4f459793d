//! The page of all settings.

use packhouse_config::reference::{SettingKey, ValueKind, is_reloadable, plugin_settings, settings};

use super::markdown::{cell, code, table};

const INTRO: &str = "\
# Settings

This page lists every setting of the server: its name in the configuration file, its type, its default and its purpose.

A setting comes from a flag of the command line, an environment variable, or the file that `--config` or
`PACKHOUSE_CONFIG` names, in this order of priority. The environment variable of a setting is `PACKHOUSE_` followed by
its name in capitals, with `_` in place of `.`: `limits.idle_ms` is `PACKHOUSE_LIMITS_IDLE_MS`. `plugins.dir` can also be
set with `PACKHOUSE_PLUGINS`.
[Settings as flags](command-line.md#settings-as-flags) lists the flags. `packhouse config show` prints the values in
force and their sources.

A setting with \u{201c}yes\u{201d} under *reload* takes effect without a restart when the server reads its settings again, on
`SIGHUP` or `POST /v1/reload`. Sizes are a number of bytes or have a unit: KB, MB and GB are powers of 1000; KiB, MiB
and GiB are powers of 1024. A list can also be written as one text with commas.

";

const PLUGINS: &str = "\
## Settings of one plugin

They are in the table `plugins.FORMAT`, so the first one is `plugins.FORMAT.enabled`. Its environment variable is
`PACKHOUSE_PLUGINS_FORMAT_ENABLED`, with the name of the format in capitals.

";

/// Makes the page of all settings.
pub(super) fn page() -> String {
    let mut text = INTRO.to_owned();
    let mut keys: Vec<&SettingKey> = settings().collect();
    // Sorts by table of the file. The general settings, which are in no table, come first.
    keys.sort_by_key(|key| group(key.name));
    for keys in keys.chunk_by(|one, other| group(one.name) == group(other.name)) {
        let title = keys.first().map(|key| group(key.name)).filter(|group| !group.is_empty());
        text.push_str(&format!("## {}\n\n", title.unwrap_or("General settings")));
        text.push_str(&rows(keys.iter().copied()));
    }
    text + PLUGINS + &rows(plugin_settings())
}

/// The table of the file that has a setting; empty for a general one.
fn group(name: &str) -> &str {
    name.split_once('.').map_or("", |(group, _)| group)
}

fn rows(keys: impl Iterator<Item = &'static SettingKey>) -> String {
    let row = |key: &SettingKey| {
        let default = if key.default.is_empty() { "not set".to_owned() } else { cell(&code(key.default)) };
        let reload = if is_reloadable(key.name) { "yes" } else { "" };
        [code(key.name), kind(key.kind).to_owned(), default, reload.to_owned(), cell(key.about)]
    };
    table(["setting", "type", "default", "reload", "purpose"], &keys.map(row).collect::<Vec<_>>())
}

fn kind(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Text => "text",
        ValueKind::Path => "path",
        ValueKind::Address => "`HOST:PORT`",
        ValueKind::Url => "URL",
        ValueKind::Bytes => "size",
        ValueKind::Millis => "milliseconds",
        ValueKind::Count => "number",
        ValueKind::Switch => "`true` or `false`",
        ValueKind::Networks => "networks",
        ValueKind::Secret => "secret",
    }
}
