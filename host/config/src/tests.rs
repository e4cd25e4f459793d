//! Tests of precedence, strictness and the example file.

use std::path::{Path, PathBuf};

use super::keys::keys;
use super::layers;
use super::plugin_keys::PLUGIN_KEYS;
use super::setting::Source;
use super::*;

fn program() -> &'static Path {
    Path::new("/opt/packhouse/packhouse")
}

fn environment(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packhouse.toml");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn load(text: &str) -> anyhow::Result<Config> {
    let (_folder, path) = file(text);
    Config::load(&Inputs { file: Some(path), ..Inputs::default() }, program()).map(|(config, _)| config)
}

#[test]
fn defaults_are_those_of_the_description() {
    let (config, _) = Config::load(&Inputs::default(), program()).unwrap();
    assert_eq!(config.data, Path::new("./data"));
    assert_eq!(config.packages_listen, "127.0.0.1:8080");
    assert_eq!(config.api_listen, "127.0.0.1:8081");
    assert_eq!(config.runtime.plugins, Path::new("/opt/packhouse/plugins"));
    assert_eq!(config.store.gc_grace, Duration::from_hours(24));
    assert_eq!(config.limits.api_body_bytes, 1 << 20);
    assert_eq!(config.limits.api_json_tokens, 10_000);
    assert_eq!(config.limits.body_idle, Duration::from_secs(30));
}

#[test]
fn a_flag_beats_the_environment_and_the_environment_the_file() {
    let (_folder, path) = file("data = 'file'\nbase_url = 'http://file'\napi_url = 'http://file'\n");
    let inputs = Inputs {
        file: Some(path.clone()),
        environment: environment(&[
            ("PACKHOUSE_BASE_URL", "http://env"),
            ("PACKHOUSE_API_URL", "http://env"),
        ]),
        flags: vec![("api_url", "--api-url", "http://flag".to_owned())],
    };
    let settings = layers::merge(&inputs).settings;
    let from = |name: &str| (settings[name].text.as_str(), settings[name].source.clone());
    assert_eq!(from("data"), ("file", Source::File(path, 1)));
    assert_eq!(from("base_url"), ("http://env", Source::Environment("PACKHOUSE_BASE_URL".to_owned())));
    assert_eq!(from("api_url"), ("http://flag", Source::Flag("--api-url".to_owned())));
    assert_eq!(from("log"), ("info", Source::Default));
}

#[test]
fn the_environment_can_name_the_file() {
    let (_folder, path) = file("log = 'debug'");
    let inputs = Inputs {
        environment: environment(&[("PACKHOUSE_CONFIG", path.to_str().unwrap())]),
        ..Inputs::default()
    };
    assert_eq!(Config::load(&inputs, program()).unwrap().0.log, "debug");
}

#[test]
fn an_unknown_key_is_an_error_that_names_the_nearest() {
    for (text, near) in [
        ("packges_listen = '127.0.0.1:1'", "packages_listen"),
        ("[limits]\napi_body_byte = 3", "limits.api_body_bytes"),
        ("[plugins.maven]\nmax_file_byte = 3", "plugins.maven.max_file_bytes"),
    ] {
        let error = load(text).unwrap_err().to_string();
        assert!(error.contains(&format!("`{near}`")), "{error}");
    }
}

#[test]
fn a_wrong_value_is_an_error_that_says_where_it_came_from() {
    for text in
        ["packages_listen = '8080'", "base_url = 'ftp://x'", "[gc]\ngrace_ms = 'soon'", "blobs = 'disk'"]
    {
        let error = load(text).unwrap_err().to_string();
        assert!(error.contains("packhouse.toml"), "{error}");
    }
    assert!(load("data = { a = 1.5 }").is_err());
    assert!(load("database_url = 'mysql://x'").is_err());
}

#[test]
fn an_unknown_variable_is_an_error_that_names_the_nearest() {
    for (variable, near) in [
        ("PACKHOUSE_PACKGES_LISTEN", "PACKHOUSE_PACKAGES_LISTEN"),
        ("PACKHOUSE_OWNER_PASWORD", "PACKHOUSE_OWNER_PASSWORD"),
        ("PACKHOUSE_DATABASE_UR", "PACKHOUSE_DATABASE_URL"),
    ] {
        let inputs = Inputs { environment: environment(&[(variable, "secret text")]), ..Inputs::default() };
        let error = Config::load(&inputs, program()).unwrap_err().to_string();
        assert!(error.contains(variable) && error.ends_with(near) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn a_variable_that_others_set_is_a_warning() {
    for (variable, text) in [
        ("PACKHOUSE_PORT", "tcp://10.0.0.1:80"),
        ("PACKHOUSE_SERVICE_HOST", "10.0.0.1"),
        ("PACKHOUSE_SERVICE_PORT_HTTP", "80"),
        ("PACKHOUSE_API_PORT_8081_TCP_ADDR", "10.0.0.1"),
        ("PACKHOUSE_TEST_LONG", "1"),
        ("PACKHOUSE_LIVE_NPM", "https://registry.example"),
        ("PACKHOUSE_CONFORMANCE_VERSION", "v1.1.0"),
        ("PACKHOUSE_TOKEN", "pkh_x"),
    ] {
        let inputs = Inputs { environment: environment(&[(variable, text)]), ..Inputs::default() };
        let (_, warnings) = Config::load(&inputs, program()).unwrap();
        assert_eq!(warnings.len(), 1, "{variable}");
        assert!(warnings[0].contains(variable) && !warnings[0].contains(text), "{warnings:?}");
    }
}

#[test]
fn the_plugin_folder_has_two_variables_that_must_agree() {
    let folder = |pairs: &[(&str, &str)]| {
        let inputs = Inputs { environment: environment(pairs), ..Inputs::default() };
        Config::load(&inputs, program()).map(|(config, _)| config.runtime.plugins)
    };
    let (short, long) = ("PACKHOUSE_PLUGINS", "PACKHOUSE_PLUGINS_DIR");
    for pairs in [&[(short, "/a")][..], &[(long, "/a")], &[(short, "/a"), (long, "/a")]] {
        assert_eq!(folder(pairs).unwrap(), Path::new("/a"));
    }
    let error = folder(&[(short, "/a"), (long, "/b")]).unwrap_err().to_string();
    assert!(error.contains(long) && error.contains("PACKHOUSE_PLUGINS "), "{error}");
}

#[test]
fn an_owners_password_and_a_log_level_are_checked() {
    for (name, text) in [("PACKHOUSE_OWNER_PASSWORD", "a"), ("PACKHOUSE_LOG", "verbose")] {
        let inputs = Inputs { environment: environment(&[(name, text)]), ..Inputs::default() };
        let error = Config::load(&inputs, program()).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn a_concurrency_that_is_the_default_counts_as_set() {
    let set = |text: &str| load(text).unwrap().runtime.per_plugin["maven"].concurrency_is_set;
    assert!(set("[plugins.maven]\nconcurrency = 250"));
    assert!(!set("[plugins.maven]\nmemory_bytes = '32 MiB'"));
}

#[test]
fn a_plugin_is_limited_by_the_file_and_by_the_environment() {
    let (_folder, path) =
        file("[plugins.maven]\nmax_file_bytes = '50 GB'\nmemory_bytes = '32 MiB'\nenabled = false");
    let inputs = Inputs {
        file: Some(path),
        environment: environment(&[
            ("PACKHOUSE_PLUGINS_MAVEN_MAX_FILE_BYTES", "1000"),
            ("PACKHOUSE_PLUGINS_FIFTH_ONE_WASI", "true"),
        ]),
        ..Inputs::default()
    };
    let (config, warnings) = Config::load(&inputs, program()).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let maven = &config.runtime.per_plugin["maven"];
    assert_eq!(maven.max_file_bytes, Some(1000));
    assert_eq!(maven.limits.as_ref().unwrap().memory_bytes, 32 << 20);
    assert!(config.runtime.per_plugin["fifth-one"].wasi);
    assert_eq!(config.disabled, ["maven"]);
}

#[test]
fn the_output_hides_secrets_and_names_the_sources() {
    let inputs = Inputs {
        environment: environment(&[
            ("PACKHOUSE_OWNER_PASSWORD", "canary-password"),
            ("PACKHOUSE_DATABASE_URL", "postgres://user:canary-password@db/x"),
        ]),
        ..Inputs::default()
    };
    for json in [false, true] {
        let output = show(&inputs, program(), json).unwrap();
        assert!(!output.contains("canary"), "{output}");
        assert!(output.contains("PACKHOUSE_OWNER_PASSWORD"), "{output}");
    }
    let json: serde_json::Value = serde_json::from_str(&show(&inputs, program(), true).unwrap()).unwrap();
    assert_eq!(json["owner.password"]["value"], "***");
    assert_eq!((&json["data"]["value"], &json["data"]["source"]), (&"./data".into(), &"default".into()));
    let (config, _) = Config::load(&inputs, program()).unwrap();
    assert!(!format!("{config:?}").contains("canary"));
}

/// The example contains every setting as `#key = default`, below the header of its table. It stays
/// valid if an operator uncomments these lines.
#[test]
fn the_example_file_lists_every_key_with_its_default() {
    let example = include_str!("../../../packhouse.example.toml");
    load(example).expect("the example as it stands");
    let uncommented: String = example
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line))
        .fold(String::new(), |text, line| text + line + "\n");
    let (_folder, path) = file(&uncommented);
    let merged = layers::merge(&Inputs { file: Some(path), ..Inputs::default() });
    assert!(merged.errors.is_empty(), "{:?}", merged.errors);
    let settings = merged.settings;
    let plugin = PLUGIN_KEYS.iter().map(|key| (format!("plugins.maven.{}", key.name), key));
    for (name, key) in keys().map(|key| (key.name.to_owned(), key)).chain(plugin) {
        let setting = settings.get(&name).unwrap_or_else(|| panic!("the example lacks {name}"));
        assert!(matches!(setting.source, Source::File(..)), "the example lacks {name}");
        assert_eq!(setting.text, key.default, "{name}");
        assert!(example.contains(key.about), "the example does not say what {name} is for");
    }
}

#[test]
fn identities_are_pairs() {
    let of = |text: &str| load(&format!("[attestations]\nidentities = {text}\n"));
    let config = of("['https://issuer.example *@example.com', 'a b']").unwrap();
    let pair = |issuer: &str, identity: &str| [issuer.to_owned(), identity.to_owned()];
    assert_eq!(
        config.attestations.identities,
        [pair("https://issuer.example", "*@example.com"), pair("a", "b")]
    );
    for wrong in ["'alone'", "'a b c'"] {
        assert!(
            of(wrong).unwrap_err().to_string().contains("expected both with a space between them"),
            "{wrong}"
        );
    }
}

/// The server reports all errors at once. Each error contains the setting's name, its value, the
/// line of the file, and the expected form.
#[test]
fn all_errors_are_reported_with_their_source() {
    let (_folder, path) =
        file("log = 'loud'\n[limits]\nheader_ms = 'soon'\nunknown = 1\n\n[tls]\ncert = 'a.pem'\n");
    let inputs = Inputs {
        file: Some(path),
        environment: environment(&[("PACKHOUSE_SEALING_KEY", "canary")]),
        flags: vec![("base_url", "--base-url", "ftp://x".to_owned())],
    };
    let error = Config::load(&inputs, program()).unwrap_err();
    let ConfigErrors(errors) = error.downcast_ref().expect("mistakes");
    let sentences: Vec<&str> = errors.iter().map(|error| error.sentence.as_str()).collect();
    for words in [
        &["limits.unknown", "line 4", "nearest"][..],
        &["log = \"loud\"", "line 1", "expected one of"],
        &["limits.header_ms = \"soon\"", "line 3", "use digits only"],
        &["base_url = \"ftp://x\"", "flag --base-url", "expected for example"],
        &["sealing_key (environment PACKHOUSE_SEALING_KEY)", "at least 16"],
        &["tls.cert = \"a.pem\"", "line 7", "set tls.key"],
    ] {
        assert!(
            sentences.iter().any(|line| words.iter().all(|word| line.contains(word))),
            "{words:?}: {sentences:#?}"
        );
    }
    assert_eq!(errors.len(), 6, "{sentences:#?}");
    assert!(!error.to_string().contains("canary"));
}
