//! A person at the portal, simulated over plain HTTP: it stores cookies and fills in forms. It does
//! not follow redirects by itself.

use crate::http::{Client, Request, Response};
use crate::server::{OWNER, PASSWORD, Server};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A person with a browser.
#[derive(Clone, Debug)]
pub struct Person {
    host: SocketAddr,
    cookies: BTreeMap<String, String>,
}

impl Person {
    /// A person who has not signed in.
    pub fn new(server: &Server) -> Person {
        Person { host: server.api(), cookies: BTreeMap::new() }
    }

    /// The owner, signed in.
    #[track_caller]
    pub fn owner(server: &Server) -> Person {
        Person::signed_in(server, OWNER, PASSWORD)
    }

    /// A member, signed in through the page.
    #[track_caller]
    pub fn signed_in(server: &Server, email: &str, password: &str) -> Person {
        let mut person = Person::new(server);
        person.send_form("/sign-in", &[("email", email), ("password", password)]).expect(303);
        person
    }

    /// Sends a request with the stored cookies, and stores new ones.
    #[track_caller]
    pub fn send(&mut self, mut request: Request) -> Response {
        if !self.cookies.is_empty() {
            let pairs: Vec<String> =
                self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.header("Cookie", &pairs.join("; "));
        }
        let answer = Client::new(self.host).send(request);
        for (_, set) in answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
            let (name, value) = set.split(';').next().unwrap_or_default().split_once('=').expect("a cookie");
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    /// GET of a page.
    #[track_caller]
    pub fn get(&mut self, path: &str) -> Response {
        self.send(Request::new("GET", path))
    }

    /// POST of a form with exactly these fields.
    #[track_caller]
    pub fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Response {
        self.send(form(path, fields))
    }

    /// The CSRF token of a page's forms.
    #[track_caller]
    pub fn csrf(&mut self, path: &str) -> String {
        let page = self.get(path).text();
        hidden(&page, "csrf").unwrap_or_else(|| panic!("no form at {path}: {page}"))
    }

    /// Sends a form of the page at this path: these fields and the page's CSRF token.
    #[track_caller]
    pub fn send_form(&mut self, path: &str, fields: &[(&str, &str)]) -> Response {
        let csrf = self.csrf(path);
        let path = path.split('?').next().unwrap_or_default();
        self.post(path, &[&[("csrf", csrf.as_str())], fields].concat())
    }

    /// Sends a form together with the fields of the confirmation page, such as the owner's
    /// password.
    #[track_caller]
    pub fn confirm_form(&mut self, path: &str, fields: &[(&str, &str)]) -> Response {
        self.send_form(path, &[fields, &[("confirm", "yes"), ("password", PASSWORD)]].concat())
    }

    /// Deletes a cookie, as a browser does when it is closed.
    pub fn forget(&mut self, cookie: &str) {
        self.cookies.remove(cookie);
    }

    /// A cookie's value.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.get(name).map(String::as_str)
    }
}

/// The request that sends a form.
pub fn form(path: &str, fields: &[(&str, &str)]) -> Request {
    let encoded = |text: &str| -> String {
        text.bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
                other => format!("%{other:02X}"),
            })
            .collect()
    };
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    Request::new("POST", path)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(pairs.join("&"))
}

/// The value of a page's first hidden field of this name.
pub fn hidden(page: &str, name: &str) -> Option<String> {
    let begin = format!("name=\"{name}\" value=\"");
    let rest = page.split(&begin).nth(1)?;
    Some(unescaped(rest.split('"').next()?))
}

/// The content of the page's first element with this attribute.
pub fn inside(page: &str, attribute: &str) -> Option<String> {
    let rest = page.split(&format!(" {attribute}")).nth(1)?;
    let rest = rest.split_once('>')?.1;
    Some(unescaped(rest.split('<').next()?))
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
