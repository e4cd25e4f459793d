//! A minimal browser for sign-in. It stores cookies by host, and follows a redirect only when a
//! test requests it.

use packhouse_tests::{Client, Request, Response};
use std::collections::HashMap;
use std::net::SocketAddr;

/// The cookies of a browser.
#[derive(Clone, Default)]
pub(crate) struct Browser {
    cookies: HashMap<SocketAddr, HashMap<String, String>>,
}

impl Browser {
    /// Sends a GET to an absolute URL on 127.0.0.1.
    pub(crate) fn get(&mut self, url: &str) -> Response {
        self.send("GET", url, None)
    }

    /// Submits a form.
    pub(crate) fn post(&mut self, url: &str, form: &str) -> Response {
        self.send("POST", url, Some(form))
    }

    fn send(&mut self, method: &str, url: &str, form: Option<&str>) -> Response {
        let (host, path) = split(url);
        let mut request = Request::new(method, path);
        let known = self.cookies.entry(host).or_default();
        if !known.is_empty() {
            let pairs: Vec<String> = known.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.header("Cookie", &pairs.join("; "));
        }
        if let Some(form) = form {
            request = request.header("Content-Type", "application/x-www-form-urlencoded").body(form);
        }
        let answer = Client::new(host).send(request);
        self.keep(host, &answer);
        answer
    }

    fn keep(&mut self, host: SocketAddr, answer: &Response) {
        let known = self.cookies.entry(host).or_default();
        for (_, set) in answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
            let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
            if value.is_empty() || set.contains("Max-Age=0") || set.contains("expires=Thu, 01 Jan 1970") {
                known.remove(name);
            } else {
                known.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    /// The value of a cookie.
    pub(crate) fn cookie(&self, host: SocketAddr, name: &str) -> Option<String> {
        self.cookies.get(&host)?.get(name).cloned()
    }

    /// Sets a cookie.
    pub(crate) fn set(&mut self, host: SocketAddr, name: &str, value: &str) {
        self.cookies.entry(host).or_default().insert(name.to_owned(), value.to_owned());
    }
}

/// Splits a URL into its host and its path.
pub(crate) fn split(url: &str) -> (SocketAddr, &str) {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("{url:?} is not an address"));
    let at = rest.find('/').unwrap_or(rest.len());
    let host = rest[..at].replace("localhost", "127.0.0.1").parse();
    (host.unwrap_or_else(|_| panic!("{url:?} has no address of 127.0.0.1")), &rest[at..])
}

/// Returns the parameters of a URL's query, or of a form.
pub(crate) fn query(text: &str) -> HashMap<String, String> {
    let pairs =
        text.rsplit('?').next().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' && rest.len() >= 2 {
            bytes.extend(hex::decode(&rest[..2]).unwrap());
            rest = &rest[2..];
        } else {
            bytes.push(*byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}
