//! Tests with gem and Bundler: they push, print refusals, install, and yank. They use a hosted
//! repository, a group, and a proxy of another Packhouse.

use crate::gem;

use gem::{gem, needs};
use packhouse_tests::client_home::ClientHome;
use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::upstream::Upstream;
use packhouse_tests::{Api, Request, Server, skip};
use serde_json::json;

const FORMAT: &str = "rubygems";

/// A home with this program; `None`, with a printed reason, if it is not installed.
fn home(program: &str) -> Option<ClientHome> {
    ClientHome::with(program).map_err(|reason| skip(program, &reason)).ok()
}

fn push(repository: &FormatRepository, name: &str, version: &str, more: &str) {
    let request = Request::new("POST", &repository.path("api/v1/gems"))
        .header("Content-Type", "application/octet-stream");
    repository.client.send(request.body(gem(name, version, more))).expect(200);
}

/// Runs `gem` with this API key; `gem` installs into a folder of the home.
fn gem_as(home: &ClientHome, secret: &str, arguments: &[&str]) -> ProgramOutput {
    let gems = home.folder().join("gems");
    let gems = gems.to_str().unwrap();
    home.run("", "gem", arguments, &[("GEM_HOST_API_KEY", secret), ("GEM_HOME", gems), ("GEM_PATH", gems)])
}

fn install(home: &ClientHome, repository: &FormatRepository, secret: &str, more: &[&str]) -> ProgramOutput {
    let source = format!("{}/", repository.url_of(secret));
    let arguments =
        [&["install", "--remote", "--no-document", "--clear-sources", "--source", &source], more].concat();
    gem_as(home, "", &arguments)
}

/// The content of an installed gem's only file.
fn installed(home: &ClientHome, stem: &str) -> String {
    let name = stem.rsplit_once('-').unwrap().0;
    home.read(&format!("gems/gems/{stem}/lib/{name}.rb"))
}

#[test]
fn gem_builds_pushes_and_installs() {
    let Some(home) = home("gem") else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, FORMAT, "gems", &json!({}));
    let secret = repository.token.secret.clone();
    home.write("lib/hello_rb.rb", "HELLO = 1\n");
    for version in ["1.9", "1.10", "2.0.rc1"] {
        let spec = format!(
            "Gem::Specification.new do |s|\n  s.name = 'hello_rb'\n  s.version = '{version}'\n  s.summary = 'Says hello'\n  s.authors = ['Ann']\n  \
             s.files = ['lib/hello_rb.rb']\n  s.homepage = 'https://example.org'\n  s.license = 'MIT'\n  s.required_ruby_version = '>= 2.0'\n  \
             s.add_dependency 'dep_rb', '>= 1', '< 3'\n  s.add_development_dependency 'none'\nend\n"
        );
        home.write("hello_rb.gemspec", spec);
        home.run("", "gem", &["build", "hello_rb.gemspec"], &[]).success();
        let host = repository.url.clone();
        let output =
            gem_as(&home, &secret, &["push", &format!("hello_rb-{version}.gem"), "--host", &host]).success();
        assert!(
            output.text.contains(&format!("Successfully registered gem: hello_rb ({version})")),
            "{}",
            output.text
        );
    }
    push(&repository, "dep_rb", "1.5", "");
    push(&repository, "dep_rb", "3.0", "");
    gem_as(&home, &secret, &["push", "hello_rb-1.9.gem", "--host", &repository.url])
        .refused("already exists; push a new version");

    install(&home, &repository, &secret, &["hello_rb"]).success();
    assert_eq!(home.read("gems/gems/hello_rb-1.10/lib/hello_rb.rb"), "HELLO = 1\n");
    assert_eq!(installed(&home, "dep_rb-1.5"), "DEP_RB_VERSION = \"1.5\"\n");
    install(&home, &repository, &secret, &["hello_rb", "--version", "1.9"]).success();
    install(&home, &repository, &secret, &["hello_rb", "--pre"]).success();
    assert!(home.folder().join("gems/gems/hello_rb-2.0.rc1").is_dir());
    // `gem list` reads the older indexes.
    let source = format!("{}/", repository.url_of(&secret));
    let listed =
        gem_as(&home, "", &["list", "--remote", "--all", "--clear-sources", "--source", &source]).success();
    assert!(
        listed.text.contains("hello_rb (1.10, 1.9)") && listed.text.contains("dep_rb (3.0, 1.5)"),
        "{}",
        listed.text
    );
    let details = gem_as(
        &home,
        "",
        &["specification", "--remote", "--clear-sources", "--source", &source, "hello_rb", "homepage"],
    )
    .success();
    assert!(details.text.contains("https://example.org"), "{}", details.text);
    assert!(!server.log().contains(&secret), "a token in the log");
}

#[test]
fn a_refused_gem_user_reads_the_reason() {
    let Some(home) = home("gem") else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, FORMAT, "gems", &json!({}));
    home.write("lib-1.0.gem", gem("lib", "1.0", ""));
    let push = |secret: &str| gem_as(&home, secret, &["push", "lib-1.0.gem", "--host", &repository.url]);
    push("wrong").refused("The credential that was sent is not accepted");
    let reader = Api::sign_in(&server).create_token(&[&repository.id], &["read"], None);
    push(&reader.secret).refused("");
    repository.client.get(&repository.path("info/lib")).expect(404);
    install(&home, &repository, "wrong", &["lib"]).refused("");
    install(&home, &repository, &reader.secret, &["absent"]).refused("Could not find a valid gem 'absent'");
    home.write("bad-1.0.gem", "no gem");
    let bad = Request::new("POST", &repository.path("api/v1/gems")).body("no gem");
    assert!(repository.client.send(bad).expect(422).text().contains("This is not a valid gem"));
}

#[test]
fn a_yanked_gem_is_gone_until_it_is_restored() {
    let Some(home) = home("gem") else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, FORMAT, "gems", &json!({}));
    let secret = &repository.token.secret;
    for version in ["1.0", "1.1"] {
        push(&repository, "lib", version, "");
    }
    let output =
        gem_as(&home, secret, &["yank", "lib", "--version", "1.1", "--host", &repository.url]).success();
    assert!(output.text.contains("Successfully deleted gem: lib (1.1)"), "{}", output.text);
    install(&home, &repository, secret, &["lib"]).success();
    assert_eq!(installed(&home, "lib-1.0"), "LIB_VERSION = \"1.0\"\n");
    install(&home, &repository, secret, &["lib", "--version", "1.1"]).refused("Could not find");
    let api = Api::sign_in(&server);
    let version = format!("/v1/repositories/{}/packages/lib/versions/1.1", repository.id);
    assert_eq!(api.call("GET", &version).expect(200).json()["state"], "yanked");
    api.send("PUT", &format!("{version}/state"), &json!({"state": "", "reason": ""})).expect(200);
    install(&home, &repository, secret, &["lib", "--version", "1.1"]).success();
    api.call("DELETE", &version).expect(204);
    repository.client.get(&repository.path("gems/lib-1.1.gem")).expect(404);
}

/// Bundler resolves, locks and installs through the compact index, and again after another push.
#[test]
fn bundler_installs_by_the_compact_index() {
    let Some(home) = home("bundle") else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, FORMAT, "gems", &json!({}));
    push(&repository, "app_rb", "1.0", &needs("dep_rb", "~>", "1.0"));
    push(&repository, "dep_rb", "1.0", "");
    bundle(&home, &repository, "app_rb");
    assert!(
        home.read("Gemfile.lock").contains("    app_rb (1.0)\n      dep_rb (~> 1.0)\n    dep_rb (1.0)\n"),
        "{}",
        home.read("Gemfile.lock")
    );
    push(&repository, "dep_rb", "1.9", "");
    let _ = std::fs::remove_file(home.folder().join("Gemfile.lock"));
    bundle(&home, &repository, "app_rb");
    assert!(home.read("Gemfile.lock").contains("    dep_rb (1.9)\n"), "{}", home.read("Gemfile.lock"));
}

fn bundle(home: &ClientHome, repository: &FormatRepository, gem: &str) {
    home.write("Gemfile", format!("source \"{}/\"\ngem \"{gem}\"\n", repository.url));
    let user = repository.url_of(&repository.token.secret);
    let user = user.strip_prefix("http://").unwrap().split_once('@').unwrap().0.to_owned();
    home.run("", "bundle", &["config", "set", "--local", "path", "vendor"], &[]).success();
    home.run("", "bundle", &["config", "set", "--local", &format!("{}/", repository.url), &user], &[])
        .success();
    let output =
        home.run("", "bundle", &["install", "--verbose"], &[("BUNDLE_SILENCE_ROOT_WARNING", "1")]).success();
    assert!(
        output.text.contains("/versions") && !output.text.contains("specs.4.8.gz"),
        "by the compact index:\n{}",
        output.text
    );
}

#[test]
fn gem_and_bundler_install_through_a_proxy_and_a_group() {
    let Some(first) = home("bundle") else { return };
    let far = Server::start();
    let near = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let origin = FormatRepository::hosted(&far, FORMAT, "origin", &json!({}));
    push(&origin, "lib_rb", "1.0", "");
    push(&origin, "own_rb", "9.0", "");
    let hosted = FormatRepository::hosted(&near, FORMAT, "hosted", &json!({}));
    push(&hosted, "own_rb", "1.0", &needs("lib_rb", ">=", "1"));
    let proxy = FormatRepository::proxy_of(&near, FORMAT, "proxy", &origin, &json!({}));
    let group = FormatRepository::group(&near, FORMAT, "all", &[&hosted, &proxy]);
    bundle(&first, &group, "own_rb");
    let lock = first.read("Gemfile.lock");
    assert!(
        lock.contains("    lib_rb (1.0)\n    own_rb (1.0)\n"),
        "the hosted package takes precedence:\n{lock}"
    );
    let secret = group.token.secret.clone();
    install(&first, &group, &secret, &["own_rb"]).success();
    assert_eq!(installed(&first, "lib_rb-1.0"), "LIB_RB_VERSION = \"1.0\"\n");
    // Cached gems stay available when the upstream is gone.
    let address = far.packages();
    drop(far);
    let _gone = Upstream::start_at(address);
    let second = home("gem").unwrap();
    install(&second, &proxy, &proxy.token.secret, &["lib_rb"]).success();
    assert_eq!(installed(&second, "lib_rb-1.0"), "LIB_RB_VERSION = \"1.0\"\n");
    let refused =
        proxy.client.send(Request::new("POST", &proxy.path("api/v1/gems")).body(gem("x", "1.0", "")));
    assert_eq!(refused.status, 405, "{}", refused.text());
}

#[test]
fn gem_and_bundler_work_with_the_pasted_settings() {
    let Some(home) = home("bundle") else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, FORMAT, "gems", &json!({}));
    let text = |client: &str, purpose: &str, file: Option<&str>| {
        repository.connection_text(&server, client, purpose, file)
    };
    home.write("lib_rb-1.0.gem", gem("lib_rb", "1.0", ""));
    home.write(".gem/credentials", text("gem", "publish", Some(".gem/credentials")));
    home.shell("", &text("gem", "publish", None).replace("NAME-VERSION", "lib_rb-1.0"), &[]).success();
    let gems = home.folder().join("gems");
    let gems = [("GEM_HOME", gems.to_str().unwrap()), ("GEM_PATH", gems.to_str().unwrap())];
    let sources = text("gem", "read", None);
    home.shell(
        "",
        &format!(
            "{sources}\ngem sources --remove https://rubygems.org/\ngem install --remote --no-document lib_rb"
        ),
        &gems,
    )
    .success();
    assert_eq!(installed(&home, "lib_rb-1.0"), "LIB_RB_VERSION = \"1.0\"\n");
    home.write("app/Gemfile", text("bundler", "read", Some("Gemfile")) + "\ngem \"lib_rb\", \"1.0\"\n");
    let bundle = text("bundler", "read", None);
    home.shell("app", &format!("{bundle}\nbundle config set --local path vendor\nbundle install"), &[])
        .success();
    assert!(home.read("app/Gemfile.lock").contains("    lib_rb (1.0)\n"));
}
