//! The plugins: whether each file can be loaded, and whether every repository has one.

use std::collections::BTreeSet;

use packhouse_app::attestations;
use packhouse_app::plugins::signatures::TrustedKeys;
use packhouse_config::Config;
use packhouse_runtime::component_files;
use packhouse_store::Store;

use super::Findings;
use crate::cli::compiled::inspected;

/// Looks at the trusted keys, at each file of the folder, and at the formats of repositories where the database is current.
pub(super) async fn examine(config: &Config, current: bool, findings: &mut Findings) {
    let (folder, before) = (&config.runtime.plugins, findings.faults());
    if let Err(error) = TrustedKeys::read(&config.trusted_keys) {
        let label = config.sources.label("plugins.trusted_keys");
        findings.wrong(format!("{label}: {error}; name PEM files of public keys, or none"));
    }
    if let Err(error) = attestations::read(config) {
        findings.wrong(format!("{error:#}"));
    }
    let label = config.sources.label("plugins.dir");
    let files = match component_files(folder) {
        Ok(files) => files,
        Err(error) => {
            return findings.wrong(format!(
                "{label}: the folder {} cannot be read: {error}; name the folder of the .wasm files with --plugins",
                folder.display()
            ));
        }
    };
    if files.is_empty() {
        return findings.wrong(format!(
            "{label}: no .wasm or .wasm.zst file is in the folder {}, so no format is served; name the folder of the plugins with --plugins",
            folder.display()
        ));
    }
    let mut formats = BTreeSet::new();
    for file in files {
        let name = file.display().to_string();
        match inspected(config, file).await {
            Ok(Ok(found)) if !formats.insert(found.description.format.clone()) => findings.wrong(format!(
                "{label}: {name} is a second plugin of the format {}; take one of them away",
                found.description.format
            )),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                findings.wrong(format!(
                    "{label}: {name} cannot be loaded: {error}; put a plugin in its place, or take it away"
                ));
            }
            Err(error) => findings.wrong(format!("{label}: {name} cannot be loaded: {error}")),
        }
    }
    for format in config.runtime.per_plugin.keys().filter(|format| !formats.contains(*format)) {
        findings
            .note(format!("plugins.{format} sets what no plugin in {} has the format of", folder.display()));
    }
    if current {
        used(config, &formats, findings).await;
    }
    let formats: Vec<String> = formats.into_iter().collect();
    findings.well_unless(before, format!("plugins: {}", formats.join(", ")));
}

async fn used(config: &Config, formats: &BTreeSet<String>, findings: &mut Findings) {
    let Ok(store) = Store::open(config.store.clone()).await else { return };
    if let Ok(used) = store.formats_in_use(None).await {
        for (format, repositories) in used.into_iter().filter(|(format, _)| !formats.contains(format)) {
            findings.wrong(format!(
                "no plugin of the format {format} is in the folder {}, and {repositories} repositories need it; put it there",
                config.runtime.plugins.display()
            ));
        }
    }
    store.close().await;
}
