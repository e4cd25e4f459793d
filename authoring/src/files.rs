//! The files that are packed into the program: templates, contract and SDK.

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use std::collections::BTreeMap;

/// Compressed JSON object that maps paths to texts.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/files.json.gz"));

/// Contents by path of the files below a packed folder: `contract`, `sdk`, or the template of a
/// language.
///
/// # Errors
/// Fails only if the program file is damaged.
pub fn below(folder: &str) -> Result<BTreeMap<String, String>> {
    let all: BTreeMap<String, String> = serde_json::from_reader(GzDecoder::new(PACKED))
        .context("the files that are packed into the program are damaged")?;
    let prefix = format!("{folder}/");
    let below = |(path, text): (String, String)| Some((path.strip_prefix(&prefix)?.to_owned(), text));
    Ok(all.into_iter().filter_map(below).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packed_files_are_complete_and_small() {
        let sdk = below("sdk").unwrap();
        for file in [
            "Cargo.toml",
            "sdk/Cargo.toml",
            "sdk/src/lib.rs",
            "sdk/names/src/lib.rs",
            "sdk/testkit/src/lib.rs",
            "sdk/zip/src/lib.rs",
        ] {
            assert!(sdk.contains_key(file), "{file}");
        }
        assert!(below("contract").unwrap().contains_key("wit/v0.1/format.wit"));
        assert!(below("rust").unwrap()["Cargo.lock"].contains("name = \"format-my-format\""));
        assert!(PACKED.len() < 200 << 10, "{} bytes", PACKED.len());
    }
}
