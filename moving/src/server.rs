//! A Packhouse server: signed in at its management API, with a token made for one repository and ended afterwards.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, anyhow};
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use url::Url;

use crate::client::Client;
use crate::fault::Fault;
use crate::percent::segment;
use crate::secret::{Credential, Shown};

/// How long the token lives if nobody ends it, as when this process is killed.
const TOKEN_LIVES: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Packages and versions a page.
const PAGE: usize = 200;

/// A repository of a server, with what is needed to read and to write there.
#[derive(Debug)]
pub(crate) struct Server {
    login: Client,
    session: Mutex<Client>,
    token: Option<String>,
    /// Its id in the API.
    id: String,
    pub(crate) name: String,
    pub(crate) format: String,
    /// `hosted`, `proxy`, `group`.
    pub(crate) kind: String,
    /// Whether the member manages repositories.
    pub(crate) manages: bool,
    /// At the repository's own address, with the token.
    pub(crate) client: Arc<Client>,
}

/// A version as the API shows it.
#[derive(Clone, Debug)]
pub(crate) struct ShownVersion {
    pub(crate) version: String,
    pub(crate) published: Option<Timestamp>,
}

impl Server {
    /// Signs in, finds the repository and makes a token for it.
    ///
    /// # Errors
    /// A sentence for an address that does not answer, a login that is wrong, and a repository that is not there.
    pub(crate) async fn enter(
        api: &str,
        login: &Credential,
        name: &str,
        writes: bool,
    ) -> anyhow::Result<Server> {
        let Credential(Shown::Login { name: email, .. }) = login else {
            return Err(anyhow!("a member signs in with an e-mail address and a password: EMAIL:PASSWORD"));
        };
        let login_client = Client::new(api, Some(login.clone()))?;
        let session = sign_in(&login_client).await.context("failed to sign in at the management API")?;
        let found = find(&session, name)
            .await
            .with_context(|| format!("failed to look for the repository {name}"))?;
        let found = found.with_context(|| format!("there is no repository {name} that {email} may see"))?;
        let text = |member: &str| found.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        let manages = manages(&session).await.context("failed to ask what the member may do")?;
        let id = text("id");
        let (token, secret) =
            make_token(&session, login, &id, name, writes).await.context("failed to make a token")?;
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

    /// Ends the token and the session.
    pub(crate) async fn leave(&self) {
        if let Some(token) = &self.token {
            // Whatever goes wrong: it ends by itself.
            let _ = self.call(Method::DELETE, &format!("v1/tokens/{token}"), &Value::Null).await;
        }
        let _ = self.call(Method::DELETE, "v1/sessions/current", &Value::Null).await;
    }

    /// A call of the management API. A session that has ended is begun anew once.
    async fn call(&self, method: Method, path: &str, body: &Value) -> Result<Value, Fault> {
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
            Err(Fault::Credential(_)) => {
                let fresh = sign_in(&self.login).await?;
                *self.session.lock().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
                send(fresh).await
            }
            done => done,
        }
    }

    /// The names of all packages.
    pub(crate) async fn packages(&self) -> Result<Vec<String>, Fault> {
        let path = format!("v1/repositories/{}/packages", self.id);
        let items = self.pages(&path).await?;
        Ok(items.iter().filter_map(|item| Some(item.get("name")?.as_str()?.to_owned())).collect())
    }

    /// The versions of a package.
    pub(crate) async fn versions(&self, package: &str) -> Result<Vec<ShownVersion>, Fault> {
        let path = format!("v1/repositories/{}/packages/{}/versions", self.id, segment(package));
        let items = match self.pages(&path).await {
            Err(Fault::Missing(_)) => Vec::new(),
            items => items?,
        };
        let text = |item: &Value, member: &str| {
            item.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let published = |item: &Value| Timestamp::from_millisecond(item.get("published_at")?.as_i64()?).ok();
        Ok(items
            .iter()
            .map(|item| ShownVersion { version: text(item, "version"), published: published(item) })
            .collect())
    }

    async fn pages(&self, path: &str) -> Result<Vec<Value>, Fault> {
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

    /// Says of a version that it should not be used, or takes that back.
    pub(crate) async fn mark(
        &self,
        package: &str,
        version: &str,
        state: &str,
        reason: &str,
    ) -> Result<(), Fault> {
        let (package, version) = (segment(package), segment(version));
        let path = format!("v1/repositories/{}/packages/{package}/versions/{version}/state", self.id);
        self.call(Method::PUT, &path, &json!({"state": state, "reason": reason})).await?;
        Ok(())
    }

    /// An address below the repository's.
    pub(crate) fn url(&self, path: &str) -> Result<Url, Fault> {
        self.client.url(path)
    }
}

async fn sign_in(login: &Client) -> Result<Client, Fault> {
    let Some(Credential(Shown::Login { name, password })) = login.credential() else {
        return Err(Fault::Credential("there is no login".to_owned()));
    };
    let url = login.url("v1/sessions")?;
    let body = json!({"email": name, "password": password.reveal()});
    // Basic beside it would be a second credential.
    let bare = Client::new(login.base().as_str(), None).map_err(|error| Fault::Refused(error.to_string()))?;
    let answer = bare.send_once(Method::POST, &url, &body).await?;
    let session = answer.get("session").and_then(Value::as_str).unwrap_or_default();
    let session = Credential::token(session).map_err(|_| {
        Fault::Refused(format!("{url} is no management API of Packhouse: it answers without a session"))
    })?;
    Ok(login.showing(session))
}

async fn find(session: &Client, name: &str) -> Result<Option<Value>, Fault> {
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

/// Whether the member holds `manage-repositories`.
async fn manages(session: &Client) -> Result<bool, Fault> {
    let me = session.json(&session.url("v1/me")?).await?;
    let held = me.pointer("/permissions/organization").and_then(Value::as_array);
    Ok(held.is_some_and(|held| held.iter().any(|one| one == "manage-repositories")))
}

/// The token's id and secret.
async fn make_token(
    session: &Client,
    login: &Credential,
    repository: &str,
    name: &str,
    writes: bool,
) -> Result<(String, String), Fault> {
    let Credential(Shown::Login { password, .. }) = login else {
        return Err(Fault::Credential("there is no login".to_owned()));
    };
    let body = json!({"action": "create_token", "password": password.reveal()});
    let confirmed = session.send_json(Method::POST, &session.url("v1/confirmations")?, &body).await?;
    let expires = Timestamp::now().checked_add(TOKEN_LIVES).map_or(0, |at| at.as_millisecond());
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
