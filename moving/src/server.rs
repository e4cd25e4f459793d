//! A Packhouse server. A run signs in to its management API, creates a token for one repository,
//! and revokes the token afterwards.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, anyhow};
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use url::Url;

use crate::client::Client;
use crate::error::MoveError;
use crate::percent::segment;
use crate::secret::{Credential, CredentialKind};

/// Lifetime of the token if it is not revoked, for example because this process is killed.
const TOKEN_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Number of packages or versions per page.
const PAGE: usize = 200;

/// A repository on a server, with the clients to read and write it.
#[derive(Debug)]
pub(crate) struct Server {
    login: Client,
    session: Mutex<Client>,
    token: Option<String>,
    /// Id of the repository in the API.
    id: String,
    pub(crate) name: String,
    pub(crate) format: String,
    /// `hosted`, `proxy` or `group`.
    pub(crate) kind: String,
    /// True if the member has the permission manage-repositories.
    pub(crate) manages: bool,
    /// Client for the repository's own address, with the token.
    pub(crate) client: Arc<Client>,
}

/// A version that the API lists.
#[derive(Clone, Debug)]
pub(crate) struct ListedVersion {
    pub(crate) version: String,
    pub(crate) published: Option<Timestamp>,
}

impl Server {
    /// Signs in, finds the repository and creates a token for it.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, the login is wrong, or the repository does not exist.
    pub(crate) async fn enter(
        api: &str,
        login: &Credential,
        name: &str,
        writes: bool,
    ) -> anyhow::Result<Server> {
        let Credential(CredentialKind::Login { name: email, .. }) = login else {
            return Err(anyhow!("the login must be an e-mail address and a password: EMAIL:PASSWORD"));
        };
        let login_client = Client::new(api, Some(login.clone()))?;
        let session = sign_in(&login_client).await.context("failed to sign in to the management API")?;
        let found = find(&session, name)
            .await
            .with_context(|| format!("failed to look for the repository {name}"))?;
        let found = found.with_context(|| format!("there is no repository {name} that {email} may see"))?;
        let text = |member: &str| found.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        let manages = manages(&session).await.context("failed to read the member's permissions")?;
        let id = text("id");
        let (token, secret) =
            make_token(&session, login, &id, name, writes).await.context("failed to create a token")?;
        let basic = Credential::login(&format!("{email}:{secret}"))?;
        let client = Client::new(&text("connection_address"), Some(basic))?;
        Ok(Server {
            login: login_client,
            session: Mutex::new(session),
            token: Some(token),
            id,
            name: name.to_owned(),
            format: text("format"),
            kind: text("kind"),
            manages,
            client: Arc::new(client),
        })
    }

    /// Revokes the token and ends the session.
    pub(crate) async fn leave(&self) {
        if let Some(token) = &self.token {
            // Errors are ignored: the token expires anyway.
            let _ = self.call(Method::DELETE, &format!("v1/tokens/{token}"), &Value::Null).await;
        }
        let _ = self.call(Method::DELETE, "v1/sessions/current", &Value::Null).await;
    }

    /// Calls the management API. If the session has ended, signs in again and repeats the call
    /// once.
    async fn call(&self, method: Method, path: &str, body: &Value) -> Result<Value, MoveError> {
        let session = || self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let send = async |client: Client| {
            let url = client.url(path)?;
            match body {
                Value::Null if method == Method::GET => client.json(&url).await,
                Value::Null => client.send_json(method.clone(), &url, &json!({})).await,
                body => client.send_json(method.clone(), &url, body).await,
            }
        };
        match send(session()).await {
            Err(MoveError::Credential(_)) => {
                let fresh = sign_in(&self.login).await?;
                *self.session.lock().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
                send(fresh).await
            }
            done => done,
        }
    }

    /// The names of all packages.
    pub(crate) async fn packages(&self) -> Result<Vec<String>, MoveError> {
        let path = format!("v1/repositories/{}/packages", self.id);
        let items = self.pages(&path).await?;
        Ok(items.iter().filter_map(|item| Some(item.get("name")?.as_str()?.to_owned())).collect())
    }

    /// The versions of a package.
    pub(crate) async fn versions(&self, package: &str) -> Result<Vec<ListedVersion>, MoveError> {
        let path = format!("v1/repositories/{}/packages/{}/versions", self.id, segment(package));
        let items = match self.pages(&path).await {
            Err(MoveError::Missing(_)) => Vec::new(),
            items => items?,
        };
        let text = |item: &Value, member: &str| {
            item.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let published = |item: &Value| Timestamp::from_millisecond(item.get("published_at")?.as_i64()?).ok();
        Ok(items
            .iter()
            .map(|item| ListedVersion { version: text(item, "version"), published: published(item) })
            .collect())
    }

    async fn pages(&self, path: &str) -> Result<Vec<Value>, MoveError> {
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let after_this =
                after.as_deref().map(|after| format!("&after={}", segment(after))).unwrap_or_default();
            let page =
                self.call(Method::GET, &format!("{path}?limit={PAGE}{after_this}"), &Value::Null).await?;
            all.extend(page.get("items").and_then(Value::as_array).into_iter().flatten().cloned());
            match page.get("next").and_then(Value::as_str) {
                Some(next) => after = Some(next.to_owned()),
                None => return Ok(all),
            }
        }
    }

    /// Sets the state of a version, such as `yanked`, or clears it.
    pub(crate) async fn mark(
        &self,
        package: &str,
        version: &str,
        state: &str,
        reason: &str,
    ) -> Result<(), MoveError> {
        let (package, version) = (segment(package), segment(version));
        let path = format!("v1/repositories/{}/packages/{package}/versions/{version}/state", self.id);
        self.call(Method::PUT, &path, &json!({"state": state, "reason": reason})).await?;
        Ok(())
    }

    /// An address below the address of the repository.
    pub(crate) fn url(&self, path: &str) -> Result<Url, MoveError> {
        self.client.url(path)
    }
}

async fn sign_in(login: &Client) -> Result<Client, MoveError> {
    let Some(Credential(CredentialKind::Login { name, password })) = login.credential() else {
        return Err(MoveError::Credential("a login is required".to_owned()));
    };
    let url = login.url("v1/sessions")?;
    let body = json!({"email": name, "password": password.reveal()});
    // This client sends no basic authentication, which would be a second credential besides the
    // password in the body.
    let bare =
        Client::new(login.base().as_str(), None).map_err(|error| MoveError::Refused(error.to_string()))?;
    let answer = bare.send_once(Method::POST, &url, &body).await?;
    let session = answer.get("session").and_then(Value::as_str).unwrap_or_default();
    let session = Credential::token(session).map_err(|_| {
        MoveError::Refused(format!(
            "{url} is not the management API of a Packhouse server: its response has no session"
        ))
    })?;
    Ok(login.with_credential(session))
}

async fn find(session: &Client, name: &str) -> Result<Option<Value>, MoveError> {
    let mut after = String::new();
    loop {
        let page = session.json(&session.url(&format!("v1/repositories?limit={PAGE}{after}"))?).await?;
        let items = page.get("items").and_then(Value::as_array).into_iter().flatten();
        let found =
            items.into_iter().find(|item| item.get("name").and_then(Value::as_str) == Some(name)).cloned();
        match (found, page.get("next").and_then(Value::as_str)) {
            (Some(found), _) => return Ok(Some(found)),
            (None, Some(next)) => after = format!("&after={}", segment(next)),
            (None, None) => return Ok(None),
        }
    }
}

/// Reports whether the member has the permission `manage-repositories`.
async fn manages(session: &Client) -> Result<bool, MoveError> {
    let me = session.json(&session.url("v1/me")?).await?;
    let held = me.pointer("/permissions/organization").and_then(Value::as_array);
    Ok(held.is_some_and(|held| held.iter().any(|one| one == "manage-repositories")))
}

/// Creates a token and returns its id and its secret.
async fn make_token(
    session: &Client,
    login: &Credential,
    repository: &str,
    name: &str,
    writes: bool,
) -> Result<(String, String), MoveError> {
    let Credential(CredentialKind::Login { password, .. }) = login else {
        return Err(MoveError::Credential("a login is required".to_owned()));
    };
    let body = json!({"action": "create_token", "password": password.reveal()});
    let confirmed = session.send_json(Method::POST, &session.url("v1/confirmations")?, &body).await?;
    let expires = Timestamp::now().checked_add(TOKEN_LIFETIME).map_or(0, |at| at.as_millisecond());
    let scope: &[&str] = if writes { &["read", "write"] } else { &["read"] };
    let body = json!({
        "name": format!("{} of {name}", if writes { "import" } else { "export" }), "scope": scope, "format": "generic",
        "repositories": [repository], "expires_at": expires,
        "confirmation_token": confirmed.get("confirmation_token"),
    });
    let made = session.send_json(Method::POST, &session.url("v1/tokens")?, &body).await?;
    let text = |member: &str| made.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok((text("id"), text("secret")))
}
