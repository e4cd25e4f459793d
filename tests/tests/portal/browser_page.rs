//! The real `npm login` with a browser in which scripts are disabled.

use packhouse_tests::chromium::Chromium;
use packhouse_tests::server::{OWNER, PASSWORD, eventually};
use packhouse_tests::{Api, Server, checkout, clients, skip};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};

fn npm(home: &Path, registry: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.env("HOME", home).current_dir(home).env_remove("npm_config_userconfig");
    command.args(arguments).args(["--registry", registry, "--no-update-notifier"]);
    command
}

#[test]
fn npm_login_is_finished_in_a_browser_without_scripts() {
    if !clients::has("npm") {
        return skip("npm", "no npm on the path");
    }
    let browser = match Chromium::start() {
        Ok(browser) => browser,
        Err(reason) => return skip("chromium", &reason),
    };
    let server = Server::start();
    let body = json!({"name": "js", "format": "npm", "kind": "hosted"});
    Api::sign_in(&server).post("/v1/repositories", &body).expect(201);
    let home = tempfile::tempdir().unwrap();
    let registry = format!("{}/repositories/js/", server.base_url());
    let output_file = home.path().join("output");
    let mut login = npm(home.path(), &registry, &["login", "--auth-type=web"]);
    let output = std::fs::File::create(&output_file).unwrap();
    login.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
    let mut login = login.spawn().unwrap();
    let page = eventually("npm prints the sign-in address", || {
        let text = std::fs::read_to_string(&output_file).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        words.iter().find(|word| word.contains("/npm-login/")).map(|word| (*word).to_owned())
    });

    browser.open("data:text/html,<title>without</title><script>document.title='with'</script>");
    assert_eq!(browser.title(), "without", "scripts are off");
    let pictures = checkout().join("target/pictures");
    browser.open(&page);
    browser.comes_to("Sign in - Packhouse");
    for (field, expected) in [
        ("#email", ("textbox", "E-mail")),
        ("main button", ("button", "Sign in")),
        ("h1", ("heading", "Sign in")),
    ] {
        let (role, name) = browser.role_and_name(field);
        assert_eq!((role.as_str(), name.as_str()), expected, "{field}");
    }
    browser.fill("E-mail", OWNER);
    browser.fill("Password", "wrong");
    browser.press("Sign in");
    eventually("the page names the error", || browser.has("//*[@role='alert']").then_some(()));
    browser.picture(&pictures.join("npm-sign-in.png"));
    // Keyboard only: U+E007 is Enter.
    browser.fill("Password", &format!("{PASSWORD}\u{e007}"));
    browser.comes_to("Confirm the sign-in - Packhouse");
    assert!(browser.text("dl").contains("read, publish and delete packages"), "{}", browser.text("dl"));
    assert_eq!(browser.role_and_name("#days").1, "The token works for");
    browser.picture(&pictures.join("npm-confirm.png"));
    browser.choose("The token works for", "7");
    browser.fill("Password", &format!("{PASSWORD}\u{e007}"));
    browser.comes_to("Signed in - Packhouse");
    assert!(browser.text("[role=status]").contains("The client is signed in"));
    browser.picture(&pictures.join("npm-signed-in.png"));

    let ended = eventually("npm has its token", || login.try_wait().unwrap());
    assert!(ended.success(), "{}", std::fs::read_to_string(&output_file).unwrap());
    assert!(std::fs::read_to_string(home.path().join(".npmrc")).unwrap().contains(":_authToken=pkh_"));
    let who = npm(home.path(), &registry, &["whoami"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&who.stdout).trim(), OWNER);
}
