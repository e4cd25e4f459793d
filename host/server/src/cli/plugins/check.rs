//! `packhouse plugins check`: describes a plugin file and the server settings that it needs.

use packhouse_runtime::{Inspection, Limits, Purpose, SettingKind};

/// Describes a plugin, one property a line.
pub(super) fn describe(found: &Inspection) -> String {
    let description = &found.description;
    let claims: Vec<String> = description.claims.iter().map(|claim| claim.path.clone()).collect();
    let lines = [
        ("format", description.format.clone()),
        ("version", description.version.clone()),
        ("kinds", description.kinds.join(", ")),
        ("imports", list(&found.imports)),
        ("optional interfaces", list(&found.abilities)),
        ("memory", memory(found)),
        ("server settings", list(&needs(found))),
        ("paths at the root", list(&claims)),
        ("repository settings", list(&settings(found))),
        ("clients", list(&clients(found))),
    ];
    let lines: Vec<String> = lines.iter().map(|(name, value)| format!("\n{name:20} {value}")).collect();
    format!("{} is a plugin for this server{}", found.file.display(), lines.concat())
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

fn memory(found: &Inspection) -> String {
    let mib = |bytes: usize| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let least = found.memory_bytes.map_or("unknown".to_owned(), mib);
    format!("{least} at start; the default limit is {}", mib(Limits::default().memory_bytes))
}

/// Lists the server settings that the plugin needs.
fn needs(found: &Inspection) -> Vec<String> {
    let format = &found.description.format;
    let mut needs = Vec::new();
    if found.imports_wasi() {
        needs.push(format!("wasi = true under [plugins.{format}], and the file name {format}.wasm"));
    }
    let usual = Limits::default().memory_bytes;
    if let Some(bytes) = found.memory_bytes.filter(|bytes| *bytes > usual) {
        needs.push(format!("memory_bytes = {bytes} or more under [plugins.{format}]"));
    }
    needs
}

fn settings(found: &Inspection) -> Vec<String> {
    let one = |(name, setting): (&String, &packhouse_runtime::Setting)| {
        let kind = match setting.kind {
            SettingKind::Choice => setting.choices.join("|"),
            SettingKind::Boolean => "boolean".to_owned(),
            SettingKind::Integer => "integer".to_owned(),
            SettingKind::Text => "text".to_owned(),
            SettingKind::List => "list".to_owned(),
        };
        format!("{name} ({kind}, {})", setting.default)
    };
    found.description.settings.iter().map(one).collect()
}

/// Lists each client once, with the tasks for which the plugin describes it.
fn clients(found: &Inspection) -> Vec<String> {
    let mut known: Vec<(&str, Vec<&str>)> = Vec::new();
    let described = found.description.clients.iter();
    let purposes = described.map(|client| {
        (client.client.as_str(), if client.purpose == Purpose::Read { "read" } else { "publish" })
    });
    let installs = found.description.install.iter().map(|install| (install.client.as_str(), "install"));
    for (client, purpose) in purposes.chain(installs) {
        match known.iter_mut().find(|(name, _)| *name == client) {
            Some((_, purposes)) if purposes.contains(&purpose) => {}
            Some((_, purposes)) => purposes.push(purpose),
            None => known.push((client, vec![purpose])),
        }
    }
    known.iter().map(|(client, purposes)| format!("{client} ({})", purposes.join(", "))).collect()
}
