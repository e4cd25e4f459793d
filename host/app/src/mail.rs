//! Mail: invitations and password resets, as plain text over SMTP, where the operator has set `smtp_url`. The API returns every code
//! as well, so a mail that cannot be sent costs nothing but the mail: it is told in the log, without the code.

use std::time::Duration;

use anyhow::Context as _;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};

use packhouse_config::Config;
use packhouse_identity::Secret;

use crate::boxed;

/// How long the mail server may take. Whoever called waits for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// What somebody gets.
pub struct Letter {
    /// The e-mail address.
    pub to: String,
    /// One line.
    pub subject: String,
    /// Plain text, which may hold a code: never logged.
    pub text: Secret,
}

/// Sends letters.
pub struct Mail {
    route: Option<Route>,
}

struct Route {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Mail {
    /// By the mail server of the settings, or not at all. Fails when `smtp_url` or `smtp_from` makes no sense.
    pub fn new(config: &Config) -> anyhow::Result<Mail> {
        let Some(url) = &config.smtp_url else { return Ok(Mail { route: None }) };
        // The error of the library may repeat the address, which may hold a password.
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.reveal()).ok();
        let transport = transport
            .context("smtp_url is no address of a mail server: write as in smtps://USER:PASSWORD@HOST")?;
        let from = config.smtp_from.clone().unwrap_or_else(|| sender(config));
        let from = from.parse().with_context(|| format!("smtp_from: {from:?} is no e-mail address"))?;
        Ok(Mail { route: Some(Route { transport: transport.timeout(Some(PATIENCE)).build(), from }) })
    }

    /// Sends a letter. None where no mail server is set; else whether the server took it. Why not is in the log.
    #[boxed]
    pub async fn send(&self, letter: Letter) -> Option<bool> {
        let route = self.route.as_ref()?;
        let sent = tokio::time::timeout(PATIENCE, route.send(&letter)).await;
        let sent = sent.unwrap_or_else(|_| Err(anyhow::anyhow!("the mail server takes too long")));
        if let Err(error) = &sent {
            tracing::warn!(to = letter.to, error = %format!("{error:#}"), "a mail could not be sent");
        }
        Some(sent.is_ok())
    }
}

impl Route {
    async fn send(&self, letter: &Letter) -> anyhow::Result<()> {
        let message = Message::builder()
            .from(self.from.clone())
            .to(letter.to.parse().context("the address is none")?)
            .subject(&letter.subject)
            .header(ContentType::TEXT_PLAIN)
            .body(letter.text.reveal().to_owned())?;
        self.transport.send(message).await?;
        Ok(())
    }
}

/// Where nothing else is set: `packhouse` at the public host.
fn sender(config: &Config) -> String {
    let url = config.api_url.as_ref().or(config.base_url.as_ref());
    let host = url.and_then(|url| url.domain()).unwrap_or("localhost");
    format!("packhouse@{host}")
}

/// An invitation.
pub fn invitation(to: &str, api_url: &str, code: &Secret) -> Letter {
    let text = format!(
        "You are invited to a package repository, as {to}.\n\nWithin 7 days, accept with this code:\n\n    {code}\n\n\
         POST {api_url}/v1/invitations/{code}/accept with a JSON body of \"name\" and \"password\".\n\n\
         It works once. If you expect no invitation, do nothing.\n",
        code = code.reveal(),
    );
    Letter { to: to.to_owned(), subject: "Invitation to Packhouse".to_owned(), text: Secret::new(text) }
}

/// How members sign in has changed.
pub fn sign_in_changed(to: &str, api_url: &str, issuer: Option<&str>, by: &str) -> Letter {
    let how = match issuer {
        Some(issuer) => format!("Members sign in by the provider {issuer} from now on."),
        None => "Members sign in by password alone from now on.".to_owned(),
    };
    let text = format!(
        "{by} has changed how members of your organization sign in at {api_url}.\n\n{how}\n\n\
         If you do not expect that, look at the settings and at the audit log.\n"
    );
    Letter {
        to: to.to_owned(),
        subject: "Change of the sign-in of Packhouse".to_owned(),
        text: Secret::new(text),
    }
}

/// A password reset.
pub fn reset(to: &str, api_url: &str, code: &Secret) -> Letter {
    let text = format!(
        "Somebody who manages members has started a new password for {to}.\n\nWithin an hour, set it with this code:\n\n    \
         {code}\n\nPOST {api_url}/v1/password-resets/{code} with a JSON body of \"password\".\n\n\
         It works once. Until then your password stays as it is.\n",
        code = code.reveal(),
    );
    Letter { to: to.to_owned(), subject: "New password for Packhouse".to_owned(), text: Secret::new(text) }
}
