//! A sign-in in progress. The browser keeps its sealed state in a cookie. This binds the sign-in to
//! the browser. Unauthenticated clients that start sign-ins do not use storage of the server.
//!
//! The server records which sign-ins have returned, so that each can be completed only once.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use packhouse_identity::{SealError, Sealer, Secret};

/// Maximum duration of a sign-in: 10 minutes, in ms.
pub const FLOW_MS: i64 = 10 * 60 * 1000;

/// Sealing purpose of the flow's cookie.
const FLOW: &str = "sso flow";
/// Sealing purpose of a ticket.
const TICKET: &str = "sso ticket";
/// Sealing purpose of a link.
const LINK: &str = "sso link";

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Aim {
    Session,
    /// Confirmation of one action by this member.
    Confirmation {
        member: String,
        action: String,
        /// True if a page of this host requested the confirmation. The page then finds the
        /// confirmation in a cookie.
        #[serde(default)]
        page: bool,
    },
}

/// A sign-in in progress. It does not implement `Debug`, because it contains secrets.
#[derive(Deserialize, Serialize)]
pub struct Flow {
    pub organization: String,
    /// The provider at which the user signs in.
    pub issuer: String,
    /// Value that the provider must send back in the query.
    pub state: String,
    /// Value that the provider must put into the ID token.
    pub nonce: String,
    /// Verifier of PKCE. It proves to the provider that the client which redeems the code also
    /// requested it.
    pub verifier: String,
    /// Path on this host at which the browser continues after the sign-in.
    pub return_to: Option<String>,
    pub aim: Aim,
    /// Time at which the sign-in began, in ms since 1970.
    pub began_at: i64,
}

/// Permission to start a sign-in that confirms an action.
#[derive(Deserialize, Serialize)]
pub struct Ticket {
    pub organization: String,
    pub member: String,
    pub action: String,
    /// Path of the page on this host that requested the confirmation. The page works without
    /// scripts, so it gets the confirmation in a cookie.
    #[serde(default)]
    pub page: Option<String>,
    /// Expiry, in ms since 1970.
    pub expires_at: i64,
}

/// Identity at a provider that the server links to a member after the member confirms this.
#[derive(Deserialize, Serialize)]
pub struct Link {
    pub organization: String,
    pub member: String,
    pub issuer: String,
    /// The member's subject at the provider.
    pub subject: String,
    pub email: String,
    /// Groups of the user at the provider that some team names; `None` if they are unknown.
    #[serde(default)]
    pub groups: Option<Vec<String>>,
    /// Path on this host at which the browser continues after the sign-in.
    pub return_to: Option<String>,
    /// Expiry, in ms since 1970.
    pub expires_at: i64,
}

impl Link {
    /// Seals the link for its cookie.
    pub fn seal(&self, sealer: &Sealer) -> anyhow::Result<Secret> {
        seal(sealer, LINK, self)
    }

    /// Opens a link from its cookie. Returns `None` if this server did not seal the cookie, or if
    /// the link has expired.
    pub fn open(sealer: &Sealer, cookie: &Secret, now: i64) -> Option<Link> {
        open::<Link>(sealer, LINK, cookie.reveal()).filter(|link| now < link.expires_at)
    }
}

impl Flow {
    /// Seals the flow for its cookie.
    pub fn seal(&self, sealer: &Sealer) -> anyhow::Result<Secret> {
        seal(sealer, FLOW, self)
    }

    /// Opens a flow from its cookie. Returns `None` if this server did not seal the cookie, or if
    /// the flow is older than 10 minutes.
    pub fn open(sealer: &Sealer, cookie: &Secret, now: i64) -> Option<Flow> {
        open::<Flow>(sealer, FLOW, cookie.reveal()).filter(|flow| now < flow.ends_at())
    }

    /// Returns the expiry, in ms since 1970.
    pub fn ends_at(&self) -> i64 {
        self.began_at.saturating_add(FLOW_MS)
    }
}

impl Ticket {
    /// Seals the ticket, so that it can be part of an address.
    pub fn seal(&self, sealer: &Sealer) -> anyhow::Result<Secret> {
        seal(sealer, TICKET, self)
    }

    /// Opens a ticket from an address. Returns `None` if this server did not seal it, or if it has
    /// expired.
    pub fn open(sealer: &Sealer, text: &str, now: i64) -> Option<Ticket> {
        open::<Ticket>(sealer, TICKET, text).filter(|ticket| now < ticket.expires_at)
    }
}

/// Returns 256 random bits in URL-safe base64.
pub fn random() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// Reports whether this is a path on this host. Browsers read a path that begins with `//` or `/\`
/// as an address on another host.
pub fn is_own_path(path: &str) -> bool {
    let plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    path.starts_with('/') && !path.starts_with("//") && plain && path.len() <= 1024 && !path.contains('#')
}

fn seal(sealer: &Sealer, purpose: &str, value: &impl Serialize) -> anyhow::Result<Secret> {
    let text = Secret::new(serde_json::to_string(value)?);
    Ok(Secret::new(sealer.seal(purpose, &text)?))
}

fn open<T: DeserializeOwned>(sealer: &Sealer, purpose: &str, text: &str) -> Option<T> {
    let opened = match sealer.open(purpose, text) {
        Err(error @ SealError::Key { .. }) => {
            tracing::error!(%error, "sign-in failed");
            return None;
        }
        opened => opened.ok()?,
    };
    serde_json::from_str(opened.reveal()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_back_stays_on_this_host() {
        for own in ["/", "/npm-login/1?x=2", "/a//b"] {
            assert!(is_own_path(own), "{own}");
        }
        for other in
            ["", "x", "//evil.example", "/\\evil.example", "https://evil.example", "/a b", "/a\nb", "/#x"]
        {
            assert!(!is_own_path(other), "{other:?}");
        }
    }

    #[test]
    fn a_ticket_is_no_flow_and_ends() {
        let sealer = Sealer::new(Some(Secret::new("a key of some length")), std::path::Path::new("/nowhere"));
        let ticket = Ticket {
            organization: "1".to_owned(),
            member: "2".to_owned(),
            action: "create_token".to_owned(),
            page: None,
            expires_at: 100,
        };
        let sealed = ticket.seal(&sealer).unwrap();
        assert_eq!(Ticket::open(&sealer, sealed.reveal(), 99).unwrap().action, "create_token");
        assert!(Ticket::open(&sealer, sealed.reveal(), 100).is_none());
        assert!(Flow::open(&sealer, &sealed, 99).is_none());
    }
}
