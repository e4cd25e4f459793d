//! What sign-in, token and signing calls speak in. No secret is among it.

/// A sign-in that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// What the client asks for afterwards.
    pub id: String,
    /// The host's page at which a person signs in.
    pub url: String,
}

/// Where a sign-in stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginState {
    /// Ask again after so many seconds.
    Waiting(u32),
    /// Stands for the new token: the host puts the token in its place in this call's answer, and there alone.
    Granted(String),
    /// Unknown, too old, or fetched already.
    Gone,
}

/// One of the caller's tokens, as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// By which it is revoked.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// As much of it as may be shown.
    pub hint: String,
    /// `read`, `write`.
    pub scope: Vec<String>,
    /// Ms since 1970.
    pub created: u64,
    /// Ms since 1970.
    pub expires: Option<u64>,
}

/// A key by which signatures may be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// Its name.
    pub id: String,
    /// As in `ecdsa-sha2-nistp256`.
    pub kind: String,
    /// Its SubjectPublicKeyInfo in base64.
    pub key: String,
    /// Ms since 1970.
    pub expires: Option<u64>,
}

/// A signature by one of the host's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Which key.
    pub key_id: String,
    /// ECDSA over SHA-256, in ASN.1 DER.
    pub value: Vec<u8>,
}
