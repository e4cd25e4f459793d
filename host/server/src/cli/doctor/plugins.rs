//! Checks that each plugin file loads and that every repository has a plugin.

use std::collections::BTreeSet;

use packhouse_app::attestations;
use packhouse_app::plugins::signatures::TrustedKeys;
use packhouse_config::Config;
use packhouse_runtime::component_files;
use packhouse_store::Store;

use super::Findings;
use crate::cli::compiled::inspected;

/// Checks the trusted keys and each file of the folder. If the database schema is current, also
/// checks the formats of repositories.
pub(super) async fn examine(config: &Config, current: bool, findings: &mut Findings) {
    let (folder, before) = (&config.runtime.plugins, findings.faults());
    if let Err(error) = TrustedKeys::read(&config.trusted_keys) {
        let label = config.sources.label("plugins.trusted_keys");
        findings.wrong(format!("{label}: {error}; set it to PEM files of public keys, or remove it"));
    }
    if let Err(error) = attestations::read(config) {
        findings.wrong(format!("{error:#}"));
    }
    let label = config.sources.label("plugins.dir");
    let files = match component_files(folder) {
        Ok(files) => files,
        Err(error) => {
            return findings.wrong(format!(
                "{label}: the folder {} cannot be read: {error}; set the folder of the .wasm files with --plugins",
                folder.display()
            ));
        }
    };
    if files.is_empty() {
        return findings.wrong(format!(
            "{label}: the folder {} contains no .wasm or .wasm.zst file, so no format is served; set the plugin folder with --plugins",
            folder.display()
        ));
    }
    let mut formats = BTreeSet::new();
    for file in files {
        let name = file.display().to_string();
        match inspected(config, file).await {
            Ok(Ok(found)) if !formats.insert(found.description.format.clone()) => findings.wrong(format!(
                "{label}: {name} is a second plugin for the format {}; remove one of them",
                found.description.format
            )),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                findings.wrong(format!("{label}: {name} cannot be loaded: {error}; replace or remove it"));
            }
            Err(error) => findings.wrong(format!("{label}: {name} cannot be loaded: {error}")),
        }
    }
    for format in config.runtime.per_plugin.keys().filter(|format| !formats.contains(*format)) {
        findings.note(format!(
            "plugins.{format} is set, but no plugin in {} serves this format",
            folder.display()
        ));
    }
    if current {
        used(config, &formats, findings).await;
    }
    let formats: Vec<String> = formats.into_iter().collect();
    findings.ok_unless(before, format!("plugins: {}", formats.join(", ")));
}

async fn used(config: &Config, formats: &BTreeSet<String>, findings: &mut Findings) {
    let Ok(store) = Store::open(config.store.clone()).await else { return };
    if let Ok(used) = store.formats_in_use(None).await {
        for (format, repositories) in used.into_iter().filter(|(format, _)| !formats.contains(format)) {
            findings.wrong(format!(
                "the format {format} has no plugin in the folder {}, and {repositories} repositories need it; add its plugin",
                config.runtime.plugins.display()
            ));
        }
    }
    store.close().await;
}
