//! Types of sign-in, token and signing calls. They contain no secrets.

/// Sign-in that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Id with which the client asks for the state of the sign-in.
    pub id: String,
    /// Address of the host's page where the person signs in.
    pub url: String,
}

/// State of a sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginState {
    /// Not finished; ask again after this many seconds.
    Waiting(u32),
    /// Finished. The text is a placeholder for the new token: the host replaces it in the response
    /// to this call, and only there.
    Granted(String),
    /// Unknown, expired, or already fetched.
    Gone,
}

/// Token of the caller, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Id of the token, for revoking the token.
    pub id: String,
    /// Name that the owner gave to the token.
    pub name: String,
    /// Part of the token that may be displayed.
    pub hint: String,
    /// Scopes: `read`, `write`.
    pub scope: Vec<String>,
    /// Creation time, as Unix time in ms.
    pub created: u64,
    /// Expiry time, as Unix time in ms.
    pub expires: Option<u64>,
}

/// Public key that verifies signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// Id of the key.
    pub id: String,
    /// Type of the key, for example `ecdsa-sha2-nistp256`.
    pub kind: String,
    /// SubjectPublicKeyInfo in base64.
    pub key: String,
    /// Expiry time, as Unix time in ms.
    pub expires: Option<u64>,
}

/// Signature by a key of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Id of the key.
    pub key_id: String,
    /// ECDSA signature over SHA-256, in ASN.1 DER.
    pub value: Vec<u8>,
}
