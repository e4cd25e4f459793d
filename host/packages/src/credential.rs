//! The credential that a request presents.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use packhouse_identity::grants::says_id_token;
use packhouse_identity::{self as identity, Secret};
use packhouse_runtime::{AuthorizationForm, Description};

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum PresentedCredential {
    /// The request has no credential.
    Nothing,
    /// A value that the server cannot read. It matches no credential.
    Unreadable,
    Bearer(Secret),
    /// A token without the name of a scheme before it.
    Bare(Secret),
    Basic {
        /// The part before the colon.
        username: String,
        /// The part after the colon.
        password: Secret,
    },
}

impl PresentedCredential {
    /// Reads the header `Authorization`. `Basic` with an empty user name and an empty password
    /// means no credential, because some clients send it to express that.
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

    /// Reads a token without a scheme. The name of a scheme without a value is not a token.
    fn bare(word: &str) -> Option<Self> {
        let is_scheme = word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic");
        (!is_scheme && !word.is_empty()).then(|| Self::Bare(Secret::new(word)))
    }

    /// Reports whether this is a bearer token that a token service issued.
    pub(crate) fn is_of_token_service(&self) -> bool {
        matches!(self, Self::Bearer(secret) if identity::says_bearer(secret.reveal()))
    }

    /// Returns the form in which the credential came. Returns `None` without a credential, and for
    /// a form that no format accepts.
    pub(crate) fn form(&self) -> Option<AuthorizationForm> {
        match self {
            Self::Nothing | Self::Unreadable => None,
            Self::Bearer(_) => Some(AuthorizationForm::Bearer),
            Self::Bare(_) => Some(AuthorizationForm::Bare),
            Self::Basic { .. } => Some(AuthorizationForm::Basic),
        }
    }

    /// Returns `Unreadable` if the format does not accept this form, otherwise the unchanged
    /// credential.
    pub(crate) fn taken_by(self, description: &Description) -> Self {
        match self.form() {
            Some(form) if !counts(form, Some(description)) => Self::Unreadable,
            _ => self,
        }
    }

    /// Returns `Unreadable` if only some formats accept this form, otherwise the unchanged
    /// credential. For requests whose format is not known.
    pub(crate) fn of_any_format(self) -> Self {
        match self.form() {
            Some(form) if !counts(form, None) => Self::Unreadable,
            _ => self,
        }
    }

    /// Returns the token or the password in the credential.
    pub(crate) fn secret(&self) -> Option<&Secret> {
        match self {
            Self::Nothing | Self::Unreadable => None,
            Self::Bearer(secret) | Self::Bare(secret) | Self::Basic { password: secret, .. } => Some(secret),
        }
    }

    /// Returns the secret if it looks like an ID token.
    pub(crate) fn id_token(&self) -> Option<&Secret> {
        self.secret().filter(|secret| says_id_token(secret.reveal()))
    }

    /// Returns the hash of the secret if it may be a token.
    pub(crate) fn fingerprint(&self) -> Option<[u8; 32]> {
        self.secret().and_then(|secret| identity::fingerprint(secret.reveal()))
    }
}

/// Reports whether a format accepts this form of `Authorization`. If the format is not known,
/// `Basic` and `Bearer` are accepted.
pub(crate) fn counts(form: AuthorizationForm, description: Option<&Description>) -> bool {
    description.map_or(form != AuthorizationForm::Bare, |description| description.takes(form))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn read(fields: &[&str]) -> PresentedCredential {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(AUTHORIZATION, HeaderValue::from_str(field).unwrap());
        }
        PresentedCredential::read(&headers)
    }

    fn basic(username: &str, password: &str) -> PresentedCredential {
        PresentedCredential::Basic { username: username.to_owned(), password: Secret::new(password) }
    }

    #[test]
    fn credentials_are_read() {
        let encode = |text: &str| format!("Basic {}", STANDARD.encode(text));
        assert!(read(&[]) == PresentedCredential::Nothing);
        assert!(read(&["Basic Og=="]) == PresentedCredential::Nothing);
        assert!(read(&[&encode("me@example.com:a:b")]) == basic("me@example.com", "a:b"));
        assert!(read(&[&encode(":token")]) == basic("", "token"));
        assert!(read(&[&encode("user:")]) == basic("user", ""));
        assert!(read(&[encode("a:b").trim_end_matches('=')]) == basic("a", "b"));
        assert!(read(&["bEARER  token "]) == PresentedCredential::Bearer(Secret::new("token")));
        assert!(read(&["pkh_token "]) == PresentedCredential::Bare(Secret::new("pkh_token")));
        assert!(read(&["pkh_token"]).of_any_format() == PresentedCredential::Unreadable);
        for odd in ["Basic !!", "Basic", "Digest x", "Basic YQ==", "Basic /w=="] {
            assert!(read(&[odd]) == PresentedCredential::Unreadable, "{odd}");
        }
        assert!(read(&["Bearer a", "Bearer b"]) == PresentedCredential::Unreadable);
    }
}
