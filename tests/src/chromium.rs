//! A headless Chromium with scripts switched off, driven as a person would use it (W3C WebDriver, by `chromedriver`).

use crate::clients::has;
use crate::http::{Client, Request, Response};
use crate::server::{eventually, free_port};
use base64::Engine as _;
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// By what name an element is told in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The running browser.
#[derive(Debug)]
pub struct Chromium {
    driver: Child,
    client: Client,
    session: String,
    _home: TempDir,
}

impl Chromium {
    /// Starts one; the reason where there is none.
    pub fn start() -> Result<Self, String> {
        for program in ["chromedriver", "chromium"] {
            if !has(program) {
                return Err(format!("no {program} on the path"));
            }
        }
        let home = TempDir::new().map_err(|error| error.to_string())?;
        let port = free_port();
        let mut command = Command::new("chromedriver");
        command.arg(format!("--port={port}")).env("HOME", home.path());
        let driver = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let driver = driver.map_err(|error| error.to_string())?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut browser = Self { driver, client: Client::new(address), session: String::new(), _home: home };
        eventually("chromedriver listens", || TcpStream::connect(address).ok());
        // Without its sandbox, which needs rights that containers do not give: it sees this server's pages alone.
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=800,900",
        ];
        let options = json!({"args": arguments,
            "prefs": {"profile.managed_default_content_settings.javascript": 2}});
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}});
        let request = Request::new("POST", "/session").header("Content-Type", "application/json");
        let made = browser.client.send(request.body(wanted.to_string())).expect(200).json();
        browser.session = made["value"]["sessionId"].as_str().expect("a session's id").to_owned();
        Ok(browser)
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        self.send(method, path, body).expect(200).json()["value"].clone()
    }

    /// The same, `None` while the page is being left: the driver answers then that there is no such element, that the one asked
    /// for is stale, or, as an unknown error, that its frame is detached.
    fn try_ask(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Value> {
        let answer = self.send(method, path, body);
        (answer.status == 200).then(|| answer.json()["value"].clone())
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        let mut request = Request::new(method, &format!("/session/{}/{path}", self.session));
        if let Some(body) = body {
            request = request.header("Content-Type", "application/json").body(body.to_string());
        }
        self.client.send(request)
    }

    /// Opens an address.
    #[track_caller]
    pub fn open(&self, url: &str) {
        self.ask("POST", "url", Some(&json!({"url": url})));
    }

    /// The page's title.
    #[track_caller]
    pub fn title(&self) -> String {
        let title = self.try_ask("GET", "title", None);
        title.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// Waits until the page has this title.
    #[track_caller]
    pub fn comes_to(&self, title: &str) {
        eventually(title, || (self.title() == title).then_some(()));
    }

    #[track_caller]
    fn find(&self, css: &str) -> String {
        eventually(&format!("{css} is there"), || self.try_find(css))
    }

    fn try_find(&self, css: &str) -> Option<String> {
        let wanted = json!({"using": "css selector", "value": css});
        Some(self.try_ask("POST", "element", Some(&wanted))?[ELEMENT].as_str()?.to_owned())
    }

    /// Types into an element.
    #[track_caller]
    pub fn write(&self, css: &str, text: &str) {
        self.ask("POST", &format!("element/{}/value", self.find(css)), Some(&json!({"text": text})));
    }

    /// Clicks an element.
    #[track_caller]
    pub fn click(&self, css: &str) {
        self.ask("POST", &format!("element/{}/click", self.find(css)), Some(&json!({})));
    }

    /// What stands in an element.
    #[track_caller]
    pub fn text(&self, css: &str) -> String {
        eventually(&format!("{css} has a text"), || {
            let path = format!("element/{}/text", self.try_find(css)?);
            Some(self.try_ask("GET", &path, None)?.as_str().unwrap_or_default().to_owned())
        })
    }

    /// Role and name under which assistive technology tells of an element, once the page that it is on has settled.
    #[track_caller]
    pub fn told(&self, css: &str) -> (String, String) {
        eventually(&format!("{css} is told"), || {
            let element = self.try_find(css)?;
            let ask = |what: &str| {
                let answer = self.try_ask("GET", &format!("element/{element}/{what}"), None)?;
                Some(answer.as_str().unwrap_or_default().to_owned())
            };
            Some((ask("computedrole")?, ask("computedlabel")?))
        })
    }

    /// Keeps a picture of the page, for people.
    #[track_caller]
    pub fn picture(&self, path: &Path) {
        let picture = self.ask("GET", "screenshot", None);
        let bytes = base64::engine::general_purpose::STANDARD.decode(picture.as_str().unwrap_or_default());
        std::fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder");
        std::fs::write(path, bytes.expect("a picture")).expect("a picture is kept");
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.client.try_send(Request::new("DELETE", &format!("/session/{}", self.session)));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
