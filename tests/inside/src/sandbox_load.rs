//! Loading of plugins. Each refusal states a reason and a remedy.
#![allow(dead_code, reason = "the other half of what is shared is for calls")]

use super::sandbox;

use std::path::Path;

use packhouse_runtime::{Inspection, LoadError, PluginConfig, Runtime, RuntimeConfig, inspect};
use sandbox::{hostile, plugin_folder, store};
use tempfile::TempDir;
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

#[tokio::test]
async fn a_folder_of_plugins_is_loaded() {
    let plugins = plugin_folder(&[("hostile.wasm", &hostile())]);
    std::fs::write(plugins.path().join("README.md"), "no plugin").expect("the folder can be written");
    let runtime = load(&plugins, |_| {}).await.expect("it loads");
    assert_eq!(runtime.current().plugins().len(), 1);
    let plugin = runtime.plugin("hostile").expect("it is there");
    assert_eq!((plugin.version(), plugin.has_upkeep(), plugin.has_present()), ("0.1.0", false, false));
    assert!(runtime.plugin("other").is_none());
}

#[tokio::test]
async fn compiled_plugins_are_cached() {
    let plugins = plugin_folder(&[("hostile.wasm", &hostile())]);
    let cache = tempfile::tempdir().expect("a temporary folder");
    for _ in 0..2 {
        let folder = cache.path().to_owned();
        assert!(load(&plugins, |config| config.cache = Some(folder)).await.is_ok());
    }
    let compiled = std::fs::read_dir(cache.path()).expect("the cache is there").count();
    assert!(compiled > 0);
}

#[tokio::test]
async fn two_plugins_of_one_format_are_refused() {
    let plugins = plugin_folder(&[("a.wasm", &hostile()), ("b.wasm", &hostile())]);
    let cause = refused(&plugins).await;
    assert!(
        cause.contains("two plugins implement the format hostile")
            && cause.contains("a.wasm")
            && cause.contains("b.wasm")
    );
}

#[tokio::test]
async fn a_file_that_is_not_a_component_is_refused() {
    for (bytes, cause) in [
        (&b"\0asm\x01\0\0\0"[..], "is a core module, not a component"),
        (b"<html></html>", "is not a WebAssembly component"),
        (b"", "is not a WebAssembly component"),
        (b"\0asm\x0d\0\x01\0\xff", "cannot load the plugin"),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("odd.wasm"), bytes).expect("the folder can be written");
        let message = refused(&folder).await;
        assert!(message.contains(cause) && message.contains("odd.wasm"), "{message}");
    }
}

#[tokio::test]
async fn another_version_of_the_contract_is_reported() {
    for version in ["0.0.9", "0.2.0"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("npm.wasm"), dummy(version)).expect("the folder can be written");
        let message = refused(&folder).await;
        assert!(message.contains("npm.wasm"), "{message}");
        let wants = format!("imports packhouse:format/blobs@{version}; this host offers 0.1.0");
        assert!(message.contains(&wants), "{message}");
    }
}

#[tokio::test]
async fn a_describe_that_traps_is_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("mute.wasm"), dummy("0.1.0")).expect("the folder can be written");
    let message = refused(&folder).await;
    assert!(message.contains("mute.wasm") && message.contains("`describe` failed"), "{message}");
}

#[tokio::test]
async fn a_missing_configured_plugin_is_reported() {
    let plugins = plugin_folder(&[("hostile.wasm", &hostile())]);
    let configured = |config: &mut RuntimeConfig| {
        config.per_plugin.insert("mavn".to_owned(), PluginConfig::default());
    };
    let message = load(&plugins, configured).await.err().expect("it is refused").to_string();
    assert!(message.contains("mavn") && message.contains("hostile"), "{message}");
}

#[tokio::test]
async fn the_operators_limit_bounds_a_body() {
    let plugins = plugin_folder(&[("hostile.wasm", &hostile())]);
    let limited = |config: &mut RuntimeConfig| {
        let own = PluginConfig { max_file_bytes: Some(1_000), ..PluginConfig::default() };
        config.per_plugin.insert("hostile".to_owned(), own);
    };
    let runtime = load(&plugins, limited).await.expect("it loads");
    let head = packhouse_runtime::RequestHead { path: vec!["put".to_owned()].into(), ..Default::default() };
    let plugin = runtime.plugin("hostile").expect("it is there");
    let intent =
        plugin.route("hosted", &head.into()).await.expect("it answers").expect("the plugin did not refuse");
    assert_eq!(intent.body, packhouse_runtime::BodyPlan::Body { limit: 1_000 });
}

#[test]
fn a_file_can_be_inspected_without_a_server() {
    let Inspection { description, imports, abilities, .. } = inspect(&hostile()).expect("it is a plugin");
    assert_eq!((description.format.as_str(), abilities.len()), ("hostile", 0));
    assert!(imports.contains(&"packhouse:format/blobs@0.1.0".to_owned()), "{imports:?}");
    assert!(matches!(inspect(Path::new("/nowhere.wasm")), Err(LoadError::Plugin { .. })));
}

async fn load(plugins: &TempDir, configure: impl FnOnce(&mut RuntimeConfig)) -> Result<Runtime, LoadError> {
    let data = tempfile::tempdir().expect("a temporary folder");
    let mut config = RuntimeConfig { plugins: plugins.path().to_owned(), ..RuntimeConfig::default() };
    configure(&mut config);
    Runtime::load(config, store(data.path()).await).await
}

async fn refused(plugins: &TempDir) -> String {
    load(plugins, |_| {}).await.err().expect("it is refused").to_string()
}

/// A component with the imports and exports of a plugin for this version of the contract. Every
/// function in it traps.
fn dummy(version: &str) -> Vec<u8> {
    let mut sources = wit_parser::SourceMap::new();
    let folder = packhouse_tests::checkout().join("wit/v0.1");
    for entry in std::fs::read_dir(folder).expect("the contract is there") {
        let file = entry.expect("the folder can be listed").path();
        let text = std::fs::read_to_string(&file).expect("the file can be read");
        sources.push_str(&file.display().to_string(), text.replace("@0.1.0", &format!("@{version}")));
    }
    let group = sources.parse().unwrap_or_else(|(_, error)| panic!("{error}"));
    let mut resolve = Resolve::default();
    let package = resolve.push_group(group).expect("the package resolves");
    let world = resolve.packages[package].worlds["plugin"];
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("it can be embedded");
    let encoder = ComponentEncoder::default().validate(true).module(&module);
    encoder.expect("it is a module").encode().expect("it is a component")
}
