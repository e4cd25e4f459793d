//! Identify: the credential that came with a request, and what the store knows of it and of the repository, read in one
//! statement. The secret itself ends here: what goes on is a hash and a row.

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use packhouse_runtime::{AuthorizationForm, Description};
use packhouse_store::{LookUp, MemberId, MemberRow, OrganizationId, Reached, RepositoryId};

use crate::members;
use crate::shape::Refused;
use packhouse_app::App;
use packhouse_app::sso;
use packhouse_identity::access::{KeyFacts, Presented, Rights, TokenFacts};
use packhouse_identity::permissions::Permissions;
use packhouse_identity::{self as identity, Grant, Holder, Secret};

/// A credential as it was presented.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Credential {
    /// None at all.
    Nothing,
    /// Something that no scheme here reads; nobody knows it.
    Unreadable,
    /// `Bearer`.
    Bearer(Secret),
    /// A word without a scheme before it.
    Bare(Secret),
    /// `Basic`.
    Basic {
        /// What stands before the colon.
        username: String,
        /// What stands behind it.
        password: Secret,
    },
}

impl Credential {
    /// Reads the field. An empty user name with an empty password counts as none: some clients send it to say so.
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let mut fields = headers.get_all(AUTHORIZATION).iter();
        match (fields.next(), fields.next()) {
            (None, _) => Self::Nothing,
            (Some(field), None) => field.to_str().ok().and_then(Self::parse).unwrap_or(Self::Unreadable),
            (Some(_), Some(_)) => Self::Unreadable,
        }
    }

    fn parse(field: &str) -> Option<Self> {
        let Some((scheme, value)) = field.trim().split_once(' ') else { return Self::bare(field.trim()) };
        let value = value.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(Self::Bearer(Secret::new(value)));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let bytes = STANDARD.decode(value).or_else(|_| STANDARD_NO_PAD.decode(value)).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (username, password) = text.split_once(':')?;
        if username.is_empty() && password.is_empty() {
            return Some(Self::Nothing);
        }
        Some(Self::Basic { username: username.to_owned(), password: Secret::new(password) })
    }

    /// A scheme without what belongs to it is no token.
    fn bare(word: &str) -> Option<Self> {
        let is_scheme = word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic");
        (!is_scheme && !word.is_empty()).then(|| Self::Bare(Secret::new(word)))
    }

    /// The form in which it came; none where there is none, or none that any format takes.
    pub(crate) fn form(&self) -> Option<AuthorizationForm> {
        match self {
            Self::Nothing | Self::Unreadable => None,
            Self::Bearer(_) => Some(AuthorizationForm::Bearer),
            Self::Bare(_) => Some(AuthorizationForm::Bare),
            Self::Basic { .. } => Some(AuthorizationForm::Basic),
        }
    }

    /// The same, or something that nobody knows where the format does not take its form.
    pub(crate) fn taken_by(self, description: &Description) -> Self {
        match self.form() {
            Some(form) if !counts(form, Some(description)) => Self::Unreadable,
            _ => self,
        }
    }

    /// The same where no format is known: a bare word is then nothing that anybody knows.
    pub(crate) fn of_any_format(self) -> Self {
        match self.form() {
            Some(form) if !counts(form, None) => Self::Unreadable,
            _ => self,
        }
    }

    /// The hash of what may be a token.
    pub(crate) fn fingerprint(&self) -> Option<[u8; 32]> {
        match self {
            Self::Nothing | Self::Unreadable => None,
            Self::Bearer(secret) | Self::Bare(secret) | Self::Basic { password: secret, .. } => {
                identity::fingerprint(secret.reveal())
            }
        }
    }
}

/// Whether this form of `Authorization` counts in a format. Where no format is known, `Basic` and `Bearer` do.
pub(crate) fn counts(form: AuthorizationForm, description: Option<&Description>) -> bool {
    description.map_or(form != AuthorizationForm::Bare, |description| description.takes(form))
}

/// What is known of a request's credential and repository.
pub struct Known {
    /// As the store has them.
    pub facts: Arc<LookUp>,
    /// The credential, as access is decided on it.
    pub presented: Presented,
    /// Who asks, as it may be shown to a plugin.
    pub caller: Option<String>,
    /// Names the credential in the log; never a part of it.
    pub credential: Option<String>,
    /// The member whose account it is, or whose token.
    pub member: Option<MemberRow>,
    /// What a bearer leaves of the credential's rights.
    pub bearing: Bearing,
}

/// Whether a credential came by itself, or in a bearer that a token service gave out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Bearing {
    /// By itself.
    Direct,
    /// In a bearer that is not taken.
    Refused,
    /// In a bearer that grants this and no more.
    Granted(Vec<Grant>),
}

/// Looks up the repository of this name and the credential, which may be a bearer where the request is below a claim of
/// `service`'s format. 429 for a password that was guessed at too often, 503 when the store cannot be read.
pub(crate) async fn identify(
    app: &App,
    organization: OrganizationId,
    repository: &str,
    (credential, peer): (Credential, IpAddr),
    service: Option<&str>,
) -> Result<Known, Refused> {
    if let (Credential::Bearer(secret), Some(format)) = (&credential, service)
        && identity::says_bearer(secret.reveal())
    {
        return by_bearer(app, organization, repository, secret, format).await;
    }
    let fingerprint = credential.fingerprint();
    let facts = app.store.look_up(organization, repository, fingerprint.as_ref()).await?;
    if let Some(known) = recognized(&facts, &credential) {
        return Ok(known);
    }
    let Credential::Basic { username, password } = credential else {
        let presented = match credential {
            Credential::Nothing => Presented::Nothing,
            _ => Presented::Unknown,
        };
        return Ok(nobody(facts, presented));
    };
    // A build with an old token asks again and again: that is no guessing, and must not hold up its owner's sign-in.
    if identity::says_token(password.reveal()) {
        return Ok(nobody(facts, Presented::Unknown));
    }
    match members::sign_in(app, organization, &username, password, peer).await? {
        Some(member) if sso::allows_password(facts.sign_in.as_deref(), &member) => Ok(account(facts, member)),
        _ => Ok(nobody(facts, Presented::Unknown)),
    }
}

/// A bearer's credential, looked up anew.
async fn by_bearer(
    app: &App,
    organization: OrganizationId,
    repository: &str,
    secret: &Secret,
    format: &str,
) -> Result<Known, Refused> {
    let now = packhouse_store::now_ms();
    let bearer = app.bearers.verify(&app.store, &app.sealer, secret.reveal(), now).await?;
    let bearer = bearer.filter(|bearer| bearer.organization == organization.0 && bearer.format == format);
    let holder = bearer.as_ref().map(|bearer| &bearer.holder);
    let fingerprint = match holder {
        Some(Holder::Token(hash)) => hex::decode(hash).ok().and_then(|hash| <[u8; 32]>::try_from(hash).ok()),
        _ => None,
    };
    let facts = app.store.look_up(organization, repository, fingerprint.as_ref()).await?;
    let known = match holder {
        None => None,
        Some(Holder::Nobody) => Some(nobody(facts.clone(), Presented::Nothing)),
        Some(Holder::Token(_)) => token(&facts, &Credential::Bearer(secret.clone())).or_else(|| key(&facts)),
        Some(holder @ Holder::Member(id, _)) => {
            let member = app.store.find_member(organization, MemberId(*id)).await?;
            let still = |member: &MemberRow| {
                holder.is(member) && sso::allows_password(facts.sign_in.as_deref(), member)
            };
            member.filter(still).map(|member| account(facts.clone(), member))
        }
    };
    Ok(match (known, bearer) {
        (Some(known), Some(bearer)) => Known { bearing: Bearing::Granted(bearer.grants), ..known },
        _ => Known { bearing: Bearing::Refused, ..nobody(facts, Presented::Unknown) },
    })
}

/// Most tokens of a request whose ids are looked up.
const MAX_TOKENS: usize = 4;

/// The tokens of this host's that stand in a path or a query, each with its id: a plugin is to see that and no more.
pub(crate) async fn tokens_in(
    app: &App,
    known: &Known,
    organization: OrganizationId,
    (path, query): (&[String], &[(String, String)]),
) -> Result<Vec<(String, String)>, Refused> {
    let texts = path.iter().chain(query.iter().map(|(_, value)| value));
    let mut found = Vec::new();
    for text in texts.filter(|text| identity::says_token(text)).take(MAX_TOKENS) {
        let Some(hash) = identity::fingerprint(text) else { continue };
        let own =
            known.facts.token.as_ref().filter(|token| token.secret_sha256 == hash).map(|token| token.id);
        let id = match own {
            Some(id) => Some(id),
            None => {
                let facts = app.store.look_up(organization, "", Some(&hash)).await?;
                facts.token.as_ref().map(|token| token.id)
            }
        };
        found.extend(id.map(|id| (text.clone(), id.to_string())));
    }
    Ok(found)
}

fn nobody(facts: Arc<LookUp>, presented: Presented) -> Known {
    Known { facts, presented, caller: None, credential: None, member: None, bearing: Bearing::Direct }
}

/// A member's own account.
fn account(facts: Arc<LookUp>, member: MemberRow) -> Known {
    let rights = facts.repository.as_ref().map(|row| rights(&member, row.id)).unwrap_or_default();
    Known {
        caller: Some(member.email.clone()),
        credential: Some(format!("member:{}", member.id)),
        member: Some(member),
        ..nobody(facts, Presented::Member(rights))
    }
}

/// The token or access key that was found.
pub(super) fn recognized(facts: &Arc<LookUp>, credential: &Credential) -> Option<Known> {
    token(facts, credential).or_else(|| key(facts))
}

/// The token that was found, as access is decided on it.
fn token(facts: &Arc<LookUp>, credential: &Credential) -> Option<Known> {
    let row = facts.token.as_ref()?;
    let username = match credential {
        Credential::Basic { username, .. } => Some(username.clone()),
        _ => None,
    };
    let owner = facts.owner.as_ref().map(|member| match &facts.repository {
        Some(repository) => rights(member, repository.id),
        None => Rights::default(),
    });
    // A service key's user name is that of who made it; a legacy token works with any.
    let shown = match (&facts.owner, row.backing.as_deref()) {
        (Some(owner), _) => Some(owner.email.clone()),
        (None, Some("legacy")) => None,
        (None, _) => Some(row.created_by.clone()),
    };
    let presented = TokenFacts {
        read: row.scope.read,
        write: row.scope.write,
        format: row.format.clone(),
        revoked_at: row.revoked_at,
        expires_at: row.expires_at,
        ends_at: row.ends_at,
        listed: facts.reaches,
        // An owner who is gone has no rights left.
        owner: owner.or(row.owner.map(|_| Rights::default())),
        usernames: shown.iter().cloned().collect(),
    };
    Some(Known {
        facts: Arc::clone(facts),
        presented: Presented::Token(presented, username),
        caller: shown.or_else(|| Some(row.name.clone())),
        credential: Some(format!("token:{}", row.id)),
        member: facts.owner.clone(),
        bearing: Bearing::Direct,
    })
}

/// The access key that was found, as access is decided on it. Any user name goes with it.
fn key(facts: &Arc<LookUp>) -> Option<Known> {
    let row = facts.key.as_ref()?;
    let presented = KeyFacts {
        revoked_at: row.revoked_at,
        expires_at: row.expires_at,
        ends_at: row.ends_at,
        given: facts.reaches,
    };
    Some(Known {
        facts: Arc::clone(facts),
        presented: Presented::Key(presented),
        caller: facts.key_owner.clone(),
        credential: Some(format!("access-key:{}", row.id)),
        member: None,
        bearing: Bearing::Direct,
    })
}

impl Known {
    /// The same credential as access to another repository is decided on it.
    pub fn presented_to(&self, other: &Reached) -> Presented {
        let rights = || self.member.as_ref().map(|member| rights(member, other.row.id)).unwrap_or_default();
        match &self.presented {
            Presented::Token(token, username) => {
                let owner = token.owner.map(|_| rights());
                Presented::Token(
                    TokenFacts { listed: other.reaches, owner, ..token.clone() },
                    username.clone(),
                )
            }
            Presented::Key(key) => Presented::Key(KeyFacts { given: other.reaches, ..key.clone() }),
            Presented::Member(_) => Presented::Member(rights()),
            nothing => nothing.clone(),
        }
    }
}

fn rights(member: &MemberRow, repository: RepositoryId) -> Rights {
    Permissions::read(&member.permissions).rights(repository)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn read(fields: &[&str]) -> Credential {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(AUTHORIZATION, HeaderValue::from_str(field).unwrap());
        }
        Credential::read(&headers)
    }

    fn basic(username: &str, password: &str) -> Credential {
        Credential::Basic { username: username.to_owned(), password: Secret::new(password) }
    }

    #[test]
    fn credentials_are_read() {
        let encode = |text: &str| format!("Basic {}", STANDARD.encode(text));
        assert!(read(&[]) == Credential::Nothing);
        assert!(read(&["Basic Og=="]) == Credential::Nothing);
        assert!(read(&[&encode("me@example.com:a:b")]) == basic("me@example.com", "a:b"));
        assert!(read(&[&encode(":token")]) == basic("", "token"));
        assert!(read(&[&encode("user:")]) == basic("user", ""));
        assert!(read(&[encode("a:b").trim_end_matches('=')]) == basic("a", "b"));
        assert!(read(&["bEARER  token "]) == Credential::Bearer(Secret::new("token")));
        assert!(read(&["pkh_token "]) == Credential::Bare(Secret::new("pkh_token")));
        assert!(read(&["pkh_token"]).of_any_format() == Credential::Unreadable);
        for odd in ["Basic !!", "Basic", "Digest x", "Basic YQ==", "Basic /w=="] {
            assert!(read(&[odd]) == Credential::Unreadable, "{odd}");
        }
        assert!(read(&["Bearer a", "Bearer b"]) == Credential::Unreadable);
    }
}
