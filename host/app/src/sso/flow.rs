//! A sign-in under way. What must come back unchanged lies in the browser, sealed, in a cookie: so it is bound to that browser, and
//! a stranger who begins sign-ins makes nothing grow here. That it came back is remembered, so that none counts twice.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use packhouse_identity::{SealError, Sealer, Secret};

/// How long a sign-in may take: 10 minutes in ms.
pub const FLOW_MS: i64 = 10 * 60 * 1000;

/// For what the flow's cookie is sealed.
const FLOW: &str = "sso flow";
/// For what a ticket is sealed.
const TICKET: &str = "sso ticket";
/// For what a link is sealed.
const LINK: &str = "sso link";

/// What a sign-in is for.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Aim {
    /// A session.
    Session,
    /// The confirmation of one action by this member.
    Confirmation {
        /// The member's id.
        member: String,
        /// The action.
        action: String,
        /// Whether a page of this host asked, which finds the confirmation in a cookie.
        #[serde(default)]
        page: bool,
    },
}

/// A sign-in under way. No `Debug`: it is made of secrets.
#[derive(Deserialize, Serialize)]
pub struct Flow {
    /// The organization's id.
    pub organization: String,
    /// The provider that was asked.
    pub issuer: String,
    /// What must come back in the query.
    pub state: String,
    /// What must come back in the ID token.
    pub nonce: String,
    /// Shows the provider that the code is brought by who asked for it (PKCE).
    pub verifier: String,
    /// Where the browser goes on, a path of this host.
    pub return_to: Option<String>,
    /// What it is for.
    pub aim: Aim,
    /// ms since 1970.
    pub began_at: i64,
}

/// Leave to begin a sign-in that ends in a confirmation.
#[derive(Deserialize, Serialize)]
pub struct Ticket {
    /// The organization's id.
    pub organization: String,
    /// The member's id.
    pub member: String,
    /// The action.
    pub action: String,
    /// The page of this host that asks, as a path; it works without a script, and so finds the confirmation in a cookie.
    #[serde(default)]
    pub page: Option<String>,
    /// ms since 1970.
    pub expires_at: i64,
}

/// A provider's identity that becomes a member's once the member confirms it.
#[derive(Deserialize, Serialize)]
pub struct Link {
    /// The organization's id.
    pub organization: String,
    /// The member's id.
    pub member: String,
    /// The provider.
    pub issuer: String,
    /// The member's subject there.
    pub subject: String,
    /// The member's e-mail.
    pub email: String,
    /// Where the browser goes on, a path of this host.
    pub return_to: Option<String>,
    /// In ms since 1970.
    pub expires_at: i64,
}

impl Link {
    /// For the cookie.
    pub fn seal(&self, sealer: &Sealer) -> anyhow::Result<Secret> {
        seal(sealer, LINK, self)
    }

    /// From the cookie; none for one that is not this server's or has expired.
    pub fn open(sealer: &Sealer, cookie: &Secret, now: i64) -> Option<Link> {
        open::<Link>(sealer, LINK, cookie.reveal()).filter(|link| now < link.expires_at)
    }
}

impl Flow {
    /// For the cookie.
    pub fn seal(&self, sealer: &Sealer) -> anyhow::Result<Secret> {
        seal(sealer, FLOW, self)
    }

    /// From the cookie; none for one that is not this server's or older than 10 minutes.
    pub fn open(sealer: &Sealer, cookie: &Secret, now: i64) -> Option<Flow> {
        open::<Flow>(sealer, FLOW, cookie.reveal()).filter(|flow| now < flow.ends_at())
    }

    /// When it is too old, in ms since 1970.
    pub fn ends_at(&self) -> i64 {
        self.began_at.saturating_add(FLOW_MS)
    }
}

impl Ticket {
    /// For an address.
    pub fn seal(&self, sealer: &Sealer) -> anyhow::Result<Secret> {
        seal(sealer, TICKET, self)
    }

    /// From an address; none for one that is not this server's or has expired.
    pub fn open(sealer: &Sealer, text: &str, now: i64) -> Option<Ticket> {
        open::<Ticket>(sealer, TICKET, text).filter(|ticket| now < ticket.expires_at)
    }
}

/// 256 random bits, as they stand in addresses.
pub fn random() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// Whether this is a path of this host, which leads nowhere else: browsers take `//` and `/\` for another host.
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
            tracing::error!(%error, "a sign-in could not be gone on with");
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
