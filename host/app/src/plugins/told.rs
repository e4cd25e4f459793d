//! What is kept of a component beside its bytes: what it says of itself, so that it can be shown and compared without being compiled.

use packhouse_runtime::{Description, Inspection, Plugin};
use serde::{Deserialize, Serialize};

use super::Capabilities;

/// See the module.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Told {
    /// The plugin's own version.
    pub version: String,
    /// The version of the contract that it was built for.
    pub contract: String,
    /// What it imports, as `packhouse:format/blobs@0.1.0`.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
    /// What it asks for by its description.
    pub capabilities: Capabilities,
}

impl Told {
    /// Of what was found in a file.
    pub fn of_inspection(found: &Inspection) -> Told {
        Told::of(&found.description, &found.imports, &found.abilities)
    }

    /// Of what is loaded.
    pub fn of_plugin(plugin: &Plugin) -> Told {
        Told::of(plugin.description(), plugin.imports(), plugin.abilities())
    }

    fn of(description: &Description, imports: &[String], abilities: &[String]) -> Told {
        let contract = imports.iter().find(|import| import.starts_with("packhouse:format/"));
        let contract = contract.and_then(|import| import.split_once('@')).map_or("", |(_, version)| version);
        let format = format!("packhouse:format/format@{contract}");
        Told {
            version: description.version.clone(),
            contract: contract.to_owned(),
            imports: imports.to_vec(),
            exports: std::iter::once(format).chain(abilities.iter().cloned()).collect(),
            capabilities: Capabilities::of(description),
        }
    }
}
