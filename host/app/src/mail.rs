//! Mail for invitations and password resets: plain text over SMTP, if the operator sets `smtp_url`.
//!
//! The API also returns every code, so a mail that cannot be sent is only logged, without the code.

use std::time::Duration;

use anyhow::Context as _;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};

use packhouse_config::Config;
use packhouse_identity::Secret;

use crate::boxed;

/// Timeout for the mail server, because the caller waits for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// One mail to one recipient.
pub struct Letter {
    pub to: String,
    /// Subject in one line.
    pub subject: String,
    /// Plain text. It may contain a code, so it is never logged.
    pub text: Secret,
}

pub struct Mail {
    route: Option<Route>,
}

struct Route {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Mail {
    /// Creates the sender from the settings. Without `smtp_url`, the sender sends nothing. Fails if
    /// `smtp_url` or `smtp_from` is invalid.
    pub fn new(config: &Config) -> anyhow::Result<Mail> {
        let Some(url) = &config.smtp_url else { return Ok(Mail { route: None }) };
        // The library's error may contain the address, and thereby a password.
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.reveal()).ok();
        let transport = transport
            .context("smtp_url is not the address of a mail server; expected smtps://USER:PASSWORD@HOST")?;
        let from = config.smtp_from.clone().unwrap_or_else(|| sender(config));
        let from = from.parse().with_context(|| format!("smtp_from = {from:?} is not an e-mail address"))?;
        Ok(Mail { route: Some(Route { transport: transport.timeout(Some(PATIENCE)).build(), from }) })
    }

    /// Sends a letter. Returns whether the mail server accepted it, or `None` if no mail server is
    /// configured. Logs the reason of a failure.
    #[boxed]
    pub async fn send(&self, letter: Letter) -> Option<bool> {
        let route = self.route.as_ref()?;
        let sent = tokio::time::timeout(PATIENCE, route.send(&letter)).await;
        let sent = sent.unwrap_or_else(|_| Err(anyhow::anyhow!("the mail server did not answer in time")));
        if let Err(error) = &sent {
            tracing::warn!(to = letter.to, error = %format!("{error:#}"), "sending mail failed");
        }
        Some(sent.is_ok())
    }
}

impl Route {
    async fn send(&self, letter: &Letter) -> anyhow::Result<()> {
        let message = Message::builder()
            .from(self.from.clone())
            .to(letter.to.parse().context("the recipient's address is invalid")?)
            .subject(&letter.subject)
            .header(ContentType::TEXT_PLAIN)
            .body(letter.text.reveal().to_owned())?;
        self.transport.send(message).await?;
        Ok(())
    }
}

/// Returns the default sender: `packhouse` at the host of the public address.
fn sender(config: &Config) -> String {
    let url = config.api_url.as_ref().or(config.base_url.as_ref());
    let host = url.and_then(|url| url.domain()).unwrap_or("localhost");
    format!("packhouse@{host}")
}

pub fn invitation(to: &str, api_url: &str, code: &Secret) -> Letter {
    let text = format!(
        "You are invited to a package repository, as {to}.\n\nAccept the invitation within 7 days with \
         this code:\n\n    {code}\n\nPOST {api_url}/v1/invitations/{code}/accept with a JSON body of \
         \"name\" and \"password\".\n\nThe code works once. If you do not expect an invitation, ignore this \
         mail.\n",
        code = code.reveal(),
    );
    Letter { to: to.to_owned(), subject: "Invitation to Packhouse".to_owned(), text: Secret::new(text) }
}

/// Creates the mail that reports changed sign-in settings.
pub fn sign_in_changed(to: &str, api_url: &str, issuer: Option<&str>, by: &str) -> Letter {
    let how = match issuer {
        Some(issuer) => format!("From now on, members sign in through the provider {issuer}."),
        None => "From now on, members sign in with a password only.".to_owned(),
    };
    let text = format!(
        "{by} changed how members of your organization sign in at {api_url}.\n\n{how}\n\nIf you do not \
         expect this, check the settings and the audit log.\n"
    );
    Letter {
        to: to.to_owned(),
        subject: "Packhouse: sign-in settings changed".to_owned(),
        text: Secret::new(text),
    }
}

pub fn reset(to: &str, api_url: &str, code: &Secret) -> Letter {
    let text = format!(
        "A member with the right to manage members requested a password reset for {to}.\n\nSet a new \
         password within an hour with this code:\n\n    {code}\n\nPOST {api_url}/v1/password-resets/{code} \
         with a JSON body of \"password\".\n\nThe code works once. Your present password is valid until you \
         set a new one.\n",
        code = code.reveal(),
    );
    Letter { to: to.to_owned(), subject: "New password for Packhouse".to_owned(), text: Secret::new(text) }
}
