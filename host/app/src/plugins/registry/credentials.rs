//! Registry credentials from a file in Docker's format: `{"auths": {"HOST": {"auth": "base64 of
//! USER:PASSWORD"}}}`.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_identity::Secret;
use packhouse_upstream::credentials::Credentials;
use serde::Deserialize;

use super::RegistryError;
use super::protocol::HELPER;

/// Maximum size of such a file, in bytes.
const FILE_BYTES: u64 = 1 << 20;

#[derive(Clone)]
pub struct RegistryLogin(Credentials);

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, AuthEntry>,
    #[serde(default, rename = "credHelpers")]
    helpers: BTreeMap<String, String>,
    #[serde(default, rename = "credsStore")]
    store: Option<String>,
}

/// Entry for one registry. `token_realm` is an extension of Packhouse: a token service on another
/// host, which may receive the password.
#[derive(Deserialize)]
struct AuthEntry {
    #[serde(default)]
    auth: Option<String>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    token_realm: Option<String>,
}

impl RegistryLogin {
    pub fn of_pair(pair: &Secret) -> Option<RegistryLogin> {
        let (username, password) = pair.reveal().trim().split_once(':')?;
        let (username, password) = (username.to_owned(), Secret::new(password));
        Some(RegistryLogin(Credentials { username, password, token_realm: None }))
    }

    /// Reads the credentials for this host from a file. Returns `None` if the file contains none.
    /// Fails if the file cannot be read, or if the credentials come from a credential helper, which
    /// the server does not run.
    pub fn of_file(file: &Path, host: &str) -> Result<Option<RegistryLogin>, RegistryError> {
        let failed = |why: &str| {
            RegistryError::new(format!("the credentials in {} cannot be used: {why}", file.display()))
        };
        let size = std::fs::metadata(file).map_err(|error| failed(&error.to_string()))?.len();
        if size > FILE_BYTES {
            return Err(failed("the file is too large"));
        }
        let text =
            std::fs::read_to_string(file).map(Secret::new).map_err(|error| failed(&error.to_string()))?;
        // The parser's message may contain parts of the file, so the error does not include it.
        let file: DockerConfig = serde_json::from_str(text.reveal())
            .map_err(|_| failed("it is not JSON in the format of Docker's config.json"))?;
        let names = [
            host.to_owned(),
            format!("https://{host}"),
            format!("https://{host}/"),
            format!("http://{host}"),
        ];
        let Some(entry) =
            names.iter().find_map(|name| file.auths.get(name)).filter(|entry| entry.has_credentials())
        else {
            let helper = file
                .helpers
                .get(host)
                .or(file.store.as_ref().filter(|_| names.iter().any(|name| file.auths.contains_key(name))));
            return match helper {
                Some(helper) => Err(failed(&format!(
                    "the password is stored in the credential helper {HELPER}{helper}, which this program \
                     does not run"
                ))),
                None => Ok(None),
            };
        };
        entry
            .login()
            .map(Some)
            .ok_or_else(|| failed(&format!("`auth` of {host} is not USER:PASSWORD in base64")))
    }

    /// Returns the credentials in the form that upstream requests use.
    pub fn credentials(self) -> Credentials {
        self.0
    }
}

impl AuthEntry {
    fn has_credentials(&self) -> bool {
        self.auth.is_some() || (self.username.is_some() && self.password.is_some())
    }

    fn login(&self) -> Option<RegistryLogin> {
        let login = match (&self.auth, &self.username, &self.password) {
            (Some(auth), _, _) => {
                let pair = STANDARD.decode(auth.trim()).ok()?;
                RegistryLogin::of_pair(&Secret::new(String::from_utf8(pair).ok()?))?
            }
            (None, Some(username), Some(password)) => RegistryLogin(Credentials {
                username: username.clone(),
                password: Secret::new(password),
                token_realm: None,
            }),
            _ => return None,
        };
        Some(RegistryLogin(Credentials { token_realm: self.token_realm.clone(), ..login.0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, host: &str) -> Result<Option<(String, String)>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let found = RegistryLogin::of_file(file.path(), host).map_err(|error| error.to_string())?;
        Ok(found.map(|login| (login.0.username, login.0.password.reveal().to_owned())))
    }

    #[test]
    fn a_host_gets_only_its_own_password() {
        let auth = STANDARD.encode("me@x.test:se:cret");
        let text = format!(
            r#"{{"auths": {{"h.test:5000": {{"auth": "{auth}"}}, "https://k.test": {{"username": "a", "password": "b"}}, "s.test": {{}}}},
                "credHelpers": {{"g.test": "gcloud"}}, "credsStore": "desktop"}}"#
        );
        let pair = |one: &str, other: &str| Ok(Some((one.to_owned(), other.to_owned())));
        assert_eq!(found(&text, "h.test:5000"), pair("me@x.test", "se:cret"));
        assert_eq!(found(&text, "k.test"), pair("a", "b"));
        assert_eq!(found(&text, "h.test"), Ok(None));
        assert_eq!(found("{}", "h.test"), Ok(None));
        assert!(found(&text, "g.test").unwrap_err().contains("docker-credential-gcloud"));
        assert!(found(&text, "s.test").unwrap_err().contains("docker-credential-desktop"));
        for wrong in ["hello secret", r#"{"auths": {"h.test": {"auth": "secret"}}}"#] {
            let error = found(wrong, "h.test").unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
