//! A headless Chromium, with scripts switched off or on. Tests drive it as a person would use it,
//! through `chromedriver` (W3C WebDriver).

use crate::clients::has;
use crate::http::{Client, Request, Response};
use crate::server::{eventually, free_port};
use base64::Engine as _;
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The key of an element reference in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Errors that the driver reports for an action while the browser replaces one page with the next.
/// The driver has then done nothing.
const LEAVING: [&str; 5] = [
    "stale element reference",
    "no such element",
    "element not interactable",
    "element click intercepted",
    "does not belong to the document",
];

/// The running browser.
#[derive(Debug)]
pub struct Chromium {
    driver: Child,
    client: Client,
    session: String,
    _home: TempDir,
}

impl Chromium {
    /// Starts a browser with scripts switched off; the error says why it did not start.
    pub fn start() -> Result<Self, String> {
        Self::begin(false)
    }

    /// Starts a browser with scripts switched on; the error says why it did not start.
    pub fn with_scripts() -> Result<Self, String> {
        Self::begin(true)
    }

    fn begin(scripts: bool) -> Result<Self, String> {
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
        // Chromium's sandbox needs rights that containers do not give. Running without it is safe,
        // because Chromium only loads pages of the server under test.
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=800,900",
        ];
        let options = json!({"args": arguments,
            "prefs": {"profile.managed_default_content_settings.javascript": if scripts { 1 } else { 2 }}});
        let payload = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"}}}});
        // Chromium sometimes fails to start on a busy machine.
        let made = eventually("chromium starts", || {
            let request = Request::new("POST", "/session").header("Content-Type", "application/json");
            let made = browser.client.send(request.body(payload.to_string()));
            (made.status == 200).then(|| made.json())
        });
        browser.session = made["value"]["sessionId"].as_str().expect("a session's id").to_owned();
        Ok(browser)
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        self.send(method, path, body).expect(200).json()["value"].clone()
    }

    /// Sends a request like `ask`, but returns `None` if the driver reports an error. While the
    /// browser leaves a page, the driver reports a missing element, a stale element or a detached
    /// frame.
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

    /// Does several actions with an element, one after the other. Starts again if the browser is
    /// leaving the page.
    #[track_caller]
    fn act(&self, find: impl Fn() -> String, deeds: &[(&str, Value)]) {
        eventually("the page stays", || {
            let element = find();
            for (deed, body) in deeds {
                let answer = self.send("POST", &format!("element/{element}/{deed}"), Some(body));
                if answer.status != 200 && LEAVING.iter().any(|reason| answer.text().contains(reason)) {
                    return None;
                }
                answer.expect(200);
            }
            Some(())
        });
    }

    /// Opens a URL.
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
        let payload = json!({"using": "css selector", "value": css});
        Some(self.try_ask("POST", "element", Some(&payload))?[ELEMENT].as_str()?.to_owned())
    }

    /// The first element that this XPath finds.
    #[track_caller]
    fn find_path(&self, path: &str) -> String {
        let payload = json!({"using": "xpath", "value": path});
        eventually(&format!("{path} is there"), || {
            Some(self.try_ask("POST", "element", Some(&payload))?[ELEMENT].as_str()?.to_owned())
        })
    }

    /// The field with this label.
    #[track_caller]
    fn labelled(&self, label: &str) -> String {
        self.find_path(&format!(
            "//*[@id=//label[normalize-space(.)='{label}']/@for] | //label[normalize-space(.)='{label}']/input"
        ))
    }

    /// Types into the field with this label and replaces its content.
    #[track_caller]
    pub fn fill(&self, label: &str, text: &str) {
        self.act(|| self.labelled(label), &[("clear", json!({})), ("value", json!({"text": text}))]);
    }

    /// Sets the date in the field with this label. `day` has the form `2030-01-31`, whatever the
    /// machine's date format is.
    #[track_caller]
    pub fn fill_date(&self, label: &str, day: &str) {
        let element = json!({ELEMENT: self.labelled(label)});
        self.run("arguments[0].value = arguments[1]", &json!([element, day]));
    }

    /// Toggles the checkbox with this label.
    #[track_caller]
    pub fn tick(&self, label: &str) {
        self.act(|| self.labelled(label), &[("click", json!({}))]);
    }

    /// Chooses a value in the field with this label.
    #[track_caller]
    pub fn choose(&self, label: &str, value: &str) {
        let element = self.labelled(label);
        let payload = json!({"using": "css selector", "value": format!("option[value=\"{value}\"]")});
        let option = self.ask("POST", &format!("element/{element}/element"), Some(&payload))[ELEMENT].clone();
        self.ask("POST", &format!("element/{}/click", option.as_str().unwrap_or_default()), Some(&json!({})));
    }

    /// Presses the button or summary whose name begins like this.
    #[track_caller]
    pub fn press(&self, name: &str) {
        let path = format!("//*[self::button or self::summary][starts-with(normalize-space(.), '{name}')]");
        self.act(|| self.find_path(&path), &[("click", json!({}))]);
    }

    /// Presses the button whose name begins like this, in the section under this heading.
    #[track_caller]
    pub fn press_under(&self, heading: &str, name: &str) {
        let path = format!(
            "//*[h2[normalize-space(.)='{heading}']]//button[starts-with(normalize-space(.), '{name}')]"
        );
        self.act(|| self.find_path(&path), &[("click", json!({}))]);
    }

    /// Presses the button whose name begins like this twice, as fast as a person can.
    #[track_caller]
    pub fn press_twice(&self, name: &str) {
        let element =
            json!({ELEMENT: self.find_path(&format!("//button[starts-with(normalize-space(.), '{name}')]"))});
        let press = [
            json!({"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": element}),
            json!({"type": "pointerDown", "button": 0}),
            json!({"type": "pointerUp", "button": 0}),
            json!({"type": "pointerDown", "button": 0}),
            json!({"type": "pointerUp", "button": 0}),
        ];
        let mouse = json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": press});
        self.run("arguments[0].scrollIntoView()", &json!([element]));
        self.ask("POST", "actions", Some(&json!({"actions": [mouse]})));
    }

    /// Follows the link with this text.
    #[track_caller]
    pub fn follow(&self, text: &str) {
        let path = format!("//a[normalize-space(.)='{text}']");
        self.act(|| self.find_path(&path), &[("click", json!({}))]);
    }

    /// Clicks the first element that this XPath finds.
    #[track_caller]
    pub fn press_at(&self, path: &str) {
        self.act(|| self.find_path(path), &[("click", json!({}))]);
    }

    /// Number of elements that this XPath finds.
    #[track_caller]
    pub fn count(&self, path: &str) -> usize {
        let payload = json!({"using": "xpath", "value": path});
        let found = eventually("a page is there", || self.try_ask("POST", "elements", Some(&payload)));
        found.as_array().map_or(0, Vec::len)
    }

    /// Returns true if this XPath finds an element on the current page, or on the page that is
    /// loading.
    #[track_caller]
    pub fn has(&self, path: &str) -> bool {
        self.count(path) > 0
    }

    /// Runs a script in the page, even if scripts are switched off there.
    #[track_caller]
    pub fn run(&self, script: &str, arguments: &Value) -> Value {
        self.ask("POST", "execute/sync", Some(&json!({"script": script, "args": arguments})))
    }

    /// Runs a script that reports its result by calling its last argument; returns that result.
    #[track_caller]
    pub fn run_to_its_end(&self, script: &str, arguments: &Value) -> Value {
        self.ask("POST", "execute/async", Some(&json!({"script": script, "args": arguments})))
    }

    /// The page's URL.
    #[track_caller]
    pub fn address(&self) -> String {
        self.ask("GET", "url", None).as_str().unwrap_or_default().to_owned()
    }

    /// Sets a screen of this width and height, in light or dark.
    #[track_caller]
    pub fn screen(&self, width: u32, height: u32, dark: bool) {
        let command = |name: &str, parameters: Value| {
            self.ask("POST", "goog/cdp/execute", Some(&json!({"cmd": name, "params": parameters})));
        };
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        command("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        command("Emulation.setEmulatedMedia", features);
    }

    /// The lines of the browser's console since the last call, including violations of a page's
    /// content security policy.
    #[track_caller]
    pub fn complaints(&self) -> Vec<String> {
        let log = self.ask("POST", "se/log", Some(&json!({"type": "browser"})));
        let lines = log.as_array().into_iter().flatten().filter_map(|entry| entry["message"].as_str());
        lines.map(str::to_owned).collect()
    }

    /// Types into an element.
    #[track_caller]
    pub fn write(&self, css: &str, text: &str) {
        self.act(|| self.find(css), &[("value", json!({"text": text}))]);
    }

    /// Clicks an element.
    #[track_caller]
    pub fn click(&self, css: &str) {
        self.act(|| self.find(css), &[("click", json!({}))]);
    }

    /// The text of an element.
    #[track_caller]
    pub fn text(&self, css: &str) -> String {
        eventually(&format!("{css} has a text"), || {
            let path = format!("element/{}/text", self.try_find(css)?);
            Some(self.try_ask("GET", &path, None)?.as_str().unwrap_or_default().to_owned())
        })
    }

    /// Role and name of an element for assistive technology, once its page has settled.
    #[track_caller]
    pub fn role_and_name(&self, css: &str) -> (String, String) {
        eventually(&format!("{css} has a role and a name"), || {
            let element = self.try_find(css)?;
            let ask = |what: &str| {
                let answer = self.try_ask("GET", &format!("element/{element}/{what}"), None)?;
                Some(answer.as_str().unwrap_or_default().to_owned())
            };
            Some((ask("computedrole")?, ask("computedlabel")?))
        })
    }

    /// A picture of the page in WebP, small enough to be stored with the sources.
    #[track_caller]
    pub fn picture_webp(&self) -> Vec<u8> {
        let payload = json!({"cmd": "Page.captureScreenshot", "params": {"format": "webp", "quality": 85}});
        let picture = self.ask("POST", "goog/cdp/execute", Some(&payload));
        let bytes = picture["data"].as_str().unwrap_or_default();
        base64::engine::general_purpose::STANDARD.decode(bytes).expect("a picture")
    }

    /// Saves a picture of the page, for people.
    #[track_caller]
    pub fn picture(&self, path: &Path) {
        let picture = self.ask("GET", "screenshot", None);
        let bytes = base64::engine::general_purpose::STANDARD.decode(picture.as_str().unwrap_or_default());
        std::fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder");
        std::fs::write(path, bytes.expect("a picture")).expect("a picture is saved");
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
