//! Requests that a description opens to anybody: a method and a pattern of the path below a
//! repository's address. Root paths of trusted publishing use the same grammar.

use crate::description::Description;
use crate::path_pattern::{is_at, matches};

impl Description {
    /// Returns true if the description lists this request as open. `HEAD` counts as `GET`. Returns
    /// false if the description has no list: then only `route` decides.
    #[must_use]
    pub fn may_open(&self, method: &str, path: &[String]) -> bool {
        let method = if method == "HEAD" { "GET" } else { method };
        self.open_requests.iter().flatten().any(|request| is_of(request, method, path))
    }

    /// Returns true if a listed request is valid.
    pub(crate) fn validate_open_request(request: &str) -> bool {
        let Some((method, pattern)) = request.split_once(" /") else { return false };
        !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase()) && rest_is_last(pattern)
    }

    /// Returns true if the format's clients exchange ID tokens at this root path.
    #[must_use]
    pub fn exchanges_identities_at(&self, path: &[String]) -> bool {
        self.trusted_publishing
            .iter()
            .flat_map(|declared| declared.all_paths())
            .any(|pattern| is_at(pattern, path))
    }

    /// Returns true if a root path is valid. Its first segment must be a literal that the host does
    /// not reserve.
    pub(crate) fn validate_root_path(path: &str) -> bool {
        let Some(pattern) = path.strip_prefix('/') else { return false };
        let first = pattern.split('/').next().unwrap_or_default();
        !first.is_empty() && !first.starts_with('{') && first != "repositories" && rest_is_last(pattern)
    }
}

fn rest_is_last(pattern: &str) -> bool {
    pattern.split('/').rev().skip(1).all(|word| !word.ends_with("..}"))
}

fn is_of(request: &str, method: &str, path: &[String]) -> bool {
    let Some((own, pattern)) = request.split_once(" /") else { return false };
    own == method && matches(pattern, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(requests: &str) -> Description {
        Description::parse(&format!(r#"{{"format": "x", "version": "1", "open_requests": {requests}}}"#))
            .unwrap()
    }

    #[test]
    fn open_requests_match_by_method_and_path() {
        let declared =
            description(r#"["POST /-/v1/login", "GET /-/v1/login/{id}", "PUT /-/user/{user..}", "GET /"]"#);
        let may = |method: &str, path: &str| {
            let path: Vec<String> = path.split('/').skip(1).map(str::to_owned).collect();
            declared.may_open(method, if path == [""] { &[] } else { &path })
        };
        for (method, path) in [
            ("POST", "/-/v1/login"),
            ("GET", "/-/v1/login/x"),
            ("HEAD", "/-/v1/login/x"),
            ("PUT", "/-/user/a/b"),
            ("GET", "/"),
        ] {
            assert!(may(method, path), "{method} {path}");
        }
        for (method, path) in [
            ("GET", "/-/v1/login"),
            ("POST", "/-/v1/login/"),
            ("GET", "/-/v1/login/"),
            ("GET", "/-/v1/login/x/y"),
            ("PUT", "/-/user"),
            ("PUT", "/"),
        ] {
            assert!(!may(method, path), "{method} {path}");
        }
        let silent = Description::parse(r#"{"format": "x", "version": "1"}"#).unwrap();
        assert!(silent.open_requests.is_none() && !silent.may_open("GET", &[]));
    }

    #[test]
    fn identities_are_exchanged_at_the_paths_that_are_declared() {
        let declared = r#"{"format": "x", "version": "1", "trusted_publishing":
            {"paths": ["/_/oidc/{rest..}", "/-/{scope}/v1/oidc", "/-/{scope}/v1/oidc/{rest..}"]}}"#;
        let description = Description::parse(declared).unwrap();
        let exchanges = |path: &str| {
            let path: Vec<String> = path.split('/').skip(1).map(str::to_owned).collect();
            description.exchanges_identities_at(&path)
        };
        for path in ["/_/oidc/audience", "/_/oidc/mint-token", "/-/any/v1/oidc/token/exchange/package/p"] {
            assert!(exchanges(path), "{path}");
        }
        for path in ["/_/oidc", "/-/any/v1/search", "/x/oidc/audience"] {
            assert!(!exchanges(path), "{path}");
        }
        let silent = Description::parse(r#"{"format": "x", "version": "1"}"#).unwrap();
        assert!(!silent.exchanges_identities_at(&["_".to_owned(), "oidc".to_owned(), "audience".to_owned()]));
    }

    #[test]
    fn invalid_requests_are_refused() {
        for wrong in ["GET", "get /x", " /x", "GET x", "GET /{a..}/b"] {
            let text = format!(r#"{{"format": "x", "version": "1", "open_requests": ["{wrong}"]}}"#);
            assert!(Description::parse(&text).is_err(), "{wrong}");
        }
    }
}
