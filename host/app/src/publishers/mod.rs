//! Trusted publishing. A build service vouches for a workflow with an ID token, and the server
//! compares the token's claims with the rules of the organization's publishers. The workflow
//! exchanges the ID token for a short-lived token, or uses the ID token itself as a credential
//! until it expires.
//!
//! The server fetches nothing for an issuer that no publisher of the organization names. If an ID
//! token is not signed by its issuer, the client learns nothing else.

mod claims;
mod id_token;
mod issuers;
mod refusal;

use std::net::IpAddr;

use packhouse_identity::grants::{Grant, id_token_fingerprint, says_id_token};
use packhouse_identity::{self as identity, Secret};
use packhouse_names::Folding;
use packhouse_store::{
    AuditEvent, Mint, NewToken, OrganizationId, PUBLISHER_BACKING, PublisherRow, PublisherUse, Refusal,
    RepositoryId, Scope, TokenRow, TokenToMint,
};
use serde_json::json;

use crate::App;
pub use claims::{Provider, PublisherRule};
use id_token::{Unverified, Verified};
pub use issuers::Issuers;
pub use refusal::IdTokenRefusal;

/// Lifetime of an issued token, in seconds.
pub const TOKEN_LIFETIME_S: u32 = 15 * 60;
/// Maximum number of publishers of one issuer that the server compares.
const LOOKED_AT: u32 = 2_000;
/// Attempts to issue a token while publishers change concurrently.
const TRIES: u32 = 2;

/// An ID token, and facts about the request in which it arrived.
#[derive(Clone, Copy)]
pub struct IdTokenRequest<'a> {
    pub organization: OrganizationId,
    pub id_token: &'a Secret,
    pub audiences: &'a [String],
    /// Selects the publishers that may match the token.
    pub reach: PublisherReach<'a>,
    pub address: IpAddr,
    pub request_id: &'a str,
}

/// A token that its holder gives back because it is no longer needed.
#[derive(Clone, Copy)]
pub struct GivenBack<'a> {
    pub organization: OrganizationId,
    pub token: &'a Secret,
    /// Accepted audiences, in case the token is an ID token.
    pub audiences: &'a [String],
    pub address: IpAddr,
    pub request_id: &'a str,
}

/// Selects the publishers that may match a token.
#[derive(Clone, Copy)]
pub enum PublisherReach<'a> {
    /// All publishers of the organization.
    Organization,
    Repository(RepositoryId),
    /// Publishers of the repositories of one format. If a package is named, the token gets access
    /// only to this package.
    Format {
        format: &'a str,
        /// The package, in any spelling.
        package: Option<&'a str>,
        /// Rules by which this format normalises names.
        folding: Folding,
    },
}

pub struct MintedToken {
    /// The secret, which the client can see only once.
    pub secret: Secret,
    pub row: TokenRow,
    /// Expiry, in ms since 1970.
    pub expires_at: i64,
}

/// Returns the audience of ID tokens for the host at this address, which is the address without its
/// scheme.
#[must_use]
pub fn audience_of(base_url: &str) -> &str {
    base_url.split_once("://").map_or(base_url, |(_, rest)| rest).trim_end_matches('/')
}

impl App {
    /// Returns the audiences of ID tokens that the host at this address accepts for repositories of
    /// this format. These are the host itself, and the audiences that clients of the format
    /// request.
    pub fn id_token_audiences(&self, base_url: &str, format: Option<&str>) -> Vec<String> {
        let mut audiences = vec![audience_of(base_url).to_owned()];
        let plugin = format.and_then(|format| self.runtime.plugin(format));
        let declared = plugin.iter().filter_map(|plugin| plugin.description().trusted_publishing.as_ref());
        let templates: Vec<String> = declared
            .flat_map(|declared| declared.exchanges.iter().filter_map(|exchange| exchange.audience.clone()))
            .collect();
        for template in templates {
            audiences.push(filled_audience(&template, base_url));
        }
        audiences.dedup();
        audiences
    }

    /// Exchanges an ID token for a token of this server. The ID token is spent then.
    pub async fn exchange_id_token(
        &self,
        request: IdTokenRequest<'_>,
    ) -> Result<MintedToken, IdTokenRefusal> {
        let minted = identity::mint();
        let expires_at = self.store.now_ms() + i64::from(TOKEN_LIFETIME_S) * 1000;
        let secret = TokenSecret { sha256: minted.sha256, expires_at: Some(expires_at), spends: true };
        let row = self.mint_for(request, secret).await;
        let row = row.inspect_err(|refused| self.count_refused(&request, refused))?;
        Ok(MintedToken { secret: minted.secret, row, expires_at })
    }

    /// Accepts an ID token as a credential until it expires. Stores its hash like the hash of a
    /// token.
    pub async fn admit_id_token(&self, request: IdTokenRequest<'_>) -> Result<TokenRow, IdTokenRefusal> {
        let sha256 = id_token_fingerprint(request.organization, request.id_token.reveal());
        self.mint_for(request, TokenSecret { sha256, expires_at: None, spends: false }).await
    }

    /// Revokes a token that was issued for an ID token, because its holder no longer needs it.
    /// Ignores other credentials.
    pub async fn revoke_minted(&self, given: GivenBack<'_>) -> Result<(), IdTokenRefusal> {
        let event = AuditEvent {
            organization: given.organization,
            actor: String::new(),
            credential: String::new(),
            action: "revoke_token".to_owned(),
            subject: String::new(),
            address: given.address.to_string(),
            request_id: given.request_id.to_owned(),
            detail: String::new(),
        };
        if says_id_token(given.token.reveal()) {
            return self.revoke_id_token(given, event).await;
        }
        let Some(sha256) = identity::fingerprint(given.token.reveal()) else { return Ok(()) };
        self.store.revoke_minted(given.organization, &sha256, Some(event)).await?;
        Ok(())
    }

    /// Spends an ID token that its holder gives back. It is no longer a credential, and it can no
    /// longer be exchanged. Ignores a token that fails verification.
    async fn revoke_id_token(&self, given: GivenBack<'_>, event: AuditEvent) -> Result<(), IdTokenRefusal> {
        let text = given.token.reveal();
        let sha256 = id_token_fingerprint(given.organization, text);
        if self.store.revoke_minted(given.organization, &sha256, Some(event)).await? {
            return Ok(());
        }
        let Ok(unverified) = Unverified::read(text) else { return Ok(()) };
        let named =
            self.store.publishers_of_issuer(given.organization, unverified.issuer(), LOOKED_AT).await?;
        if named.is_empty() {
            return Ok(());
        }
        let now = self.store.now_ms();
        match self.issuers.verify(&self.providers, &unverified, given.audiences, now).await {
            Ok(verified) => Ok(self.store.spend_id_token(verified.spent()).await?),
            Err(IdTokenRefusal::Store(error)) => Err(error.into()),
            Err(_) => Ok(()),
        }
    }

    /// Counts a refusal for the audit log. The entry contains nothing from the ID token, because
    /// the token is not verified.
    fn count_refused(&self, request: &IdTokenRequest<'_>, refused: &IdTokenRefusal) {
        if matches!(refused, IdTokenRefusal::Store(_)) {
            return;
        }
        let refusal = Refusal {
            organization: Some(request.organization),
            actor: String::new(),
            credential: "id-token".to_owned(),
            address: request.address.to_string(),
            code: "invalid_id_token".to_owned(),
        };
        self.store.refused(refusal, self.store.now_ms());
    }

    async fn mint_for(
        &self,
        request: IdTokenRequest<'_>,
        secret: TokenSecret,
    ) -> Result<TokenRow, IdTokenRefusal> {
        let unverified = Unverified::read(request.id_token.reveal())?;
        let mut tries = 0;
        loop {
            let rows = self.named_publishers(&request, unverified.issuer()).await?;
            let verified = self
                .issuers
                .verify(&self.providers, &unverified, request.audiences, self.store.now_ms())
                .await?;
            let matching = matching(&request, rows, &verified)?;
            let mint = to_mint(&secret, &verified, &matching);
            let event = event(&request, &secret, &verified, &mint);
            tries += 1;
            match self.store.mint_token(request.organization, mint, Some(event)).await? {
                Mint::Made(row) => return Ok(*row),
                Mint::Spent => return Err(IdTokenRefusal::Reused),
                Mint::Changed if tries < TRIES => {}
                Mint::Changed => {
                    return Err(IdTokenRefusal::publisher(
                        "the trusted publisher was changed in the meantime",
                    ));
                }
            }
        }
    }

    /// Returns those publishers that may match and that name this issuer.
    async fn named_publishers(
        &self,
        request: &IdTokenRequest<'_>,
        issuer: &str,
    ) -> Result<Vec<PublisherRow>, IdTokenRefusal> {
        let rows = self.store.publishers_of_issuer(request.organization, issuer, LOOKED_AT).await?;
        let counts = |row: &PublisherRow| match request.reach {
            PublisherReach::Organization => true,
            PublisherReach::Repository(id) => row.repository == id,
            PublisherReach::Format { format, .. } => row.format == format,
        };
        let rows: Vec<PublisherRow> = rows.into_iter().filter(counts).collect();
        if rows.is_empty() { Err(IdTokenRefusal::UnknownIssuer) } else { Ok(rows) }
    }
}

fn filled_audience(template: &str, base_url: &str) -> String {
    let audience = audience_of(base_url);
    let host = audience.split('/').next().unwrap_or_default();
    let has_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let hostname = match host.rsplit_once(':') {
        Some((name, port)) if has_port(port) && (!name.contains(':') || name.ends_with(']')) => name,
        _ => host,
    };
    packhouse_runtime::fill_text(template, &|name| match name {
        "audience" => Some(audience.into()),
        "hostname" => Some(hostname.into()),
        _ => None,
    })
}

/// Hash and lifetime of a token that will be issued.
struct TokenSecret {
    sha256: [u8; 32],
    /// Expiry in ms since 1970; `None` means the expiry of the ID token.
    expires_at: Option<i64>,
    /// True if issuing the token spends the ID token.
    spends: bool,
}

/// A matching publisher: its grant, and the owner's id in the token.
struct Match {
    grant: Grant,
    owner_id: Option<String>,
}

/// Returns the publishers that match an ID token, with their grants.
fn matching(
    request: &IdTokenRequest<'_>,
    rows: Vec<PublisherRow>,
    verified: &Verified,
) -> Result<Vec<Match>, IdTokenRefusal> {
    let (mut found, mut why, mut foreign) = (Vec::new(), None, None);
    for row in rows {
        let Some(rule) = PublisherRule::stored(&row.provider, &row.claims) else { continue };
        match rule.judge(row.owner_id.as_deref(), verified.claims()) {
            Ok(owner_id) => {
                if let Err(refused) = claims::refuse_foreign_code(&rule, verified.claims()) {
                    foreign = Some(refused);
                    continue;
                }
                let packages = packages(request.reach, &row);
                if !packages.is_empty() {
                    let Scope { read, write } = row.scope;
                    let (publisher, repository) = (row.id.0, row.repository.0);
                    found.push(Match {
                        grant: Grant { publisher, repository, read, write, packages, id_token: None },
                        owner_id,
                    });
                }
            }
            // Report the mismatch in which the most requirements matched.
            Err(refused)
                if why.as_ref().is_none_or(|other: &claims::Mismatch| refused.depth > other.depth) =>
            {
                why = Some(refused);
            }
            Err(_) => {}
        }
    }
    if let Some(foreign) = foreign.filter(|_| found.is_empty()) {
        return Err(foreign);
    }
    match (found.is_empty(), request.reach) {
        (false, _) => Ok(found),
        (true, PublisherReach::Format { package: Some(package), .. }) if why.is_none() => {
            Err(IdTokenRefusal::publisher(&format!(
                "no trusted publisher of this workflow has access to the package {package}"
            )))
        }
        (true, _) => {
            let workflow = verified.describe_workflow();
            let reason = why.map(|why| format!(": {}", why.sentence)).unwrap_or_default();
            Err(IdTokenRefusal::publisher(&format!(
                "no trusted publisher here matches the workflow {workflow}{reason}"
            )))
        }
    }
}

/// Returns the packages that a publisher grants. If the exchange names a package, returns this
/// package or nothing.
fn packages(reach: PublisherReach<'_>, row: &PublisherRow) -> Vec<String> {
    let patterns: Vec<String> = serde_json::from_str(&row.packages).unwrap_or_default();
    match reach {
        PublisherReach::Format { package: Some(package), folding, .. } => {
            let plain = !package.contains('*');
            let covered = plain && folding.covers(&patterns, package);
            covered.then(|| package.to_owned()).into_iter().collect()
        }
        _ => patterns,
    }
}

fn to_mint(secret: &TokenSecret, verified: &Verified, matching: &[Match]) -> TokenToMint {
    // The grant of an ID token that is used as a credential contains the token's identifier. The
    // server can thereby still recognize the token as revoked when its row no longer exists.
    let id_token = (!secret.spends).then(|| hex::encode(verified.spent().sha256));
    let grants: Vec<Grant> =
        matching.iter().map(|one| Grant { id_token: id_token.clone(), ..one.grant.clone() }).collect();
    let any = |may: fn(&Grant) -> bool| grants.iter().any(may);
    let publishers = matching.iter().map(|one| PublisherUse {
        id: packhouse_store::PublisherId(one.grant.publisher),
        owner_id: one.owner_id.clone(),
    });
    let token = NewToken {
        secret_sha256: secret.sha256,
        name: verified.describe_workflow(),
        scope: Scope { read: any(|grant| grant.read), write: any(|grant| grant.write) },
        format: packhouse_identity::access::GENERIC.to_owned(),
        owner: None,
        created_by: verified.describe_workflow(),
        backing: Some(PUBLISHER_BACKING.to_owned()),
        backing_repository: None,
        repositories: grants.iter().map(|grant| RepositoryId(grant.repository)).collect(),
        expires_at: Some(secret.expires_at.unwrap_or(verified.expires_at())),
        packages: None,
    };
    TokenToMint {
        token,
        grants: json!(grants).to_string(),
        publishers: publishers.collect(),
        id_token: verified.spent(),
        spends: secret.spends,
    }
}

/// Creates the audit event with the workflow, the matching publishers, and all claims of the ID
/// token.
fn event(
    request: &IdTokenRequest<'_>,
    secret: &TokenSecret,
    verified: &Verified,
    mint: &TokenToMint,
) -> AuditEvent {
    let publishers: Vec<String> = mint.publishers.iter().map(|one| one.id.to_string()).collect();
    AuditEvent {
        organization: request.organization,
        actor: verified.describe_workflow(),
        credential: "id-token".to_owned(),
        action: if secret.spends { "exchange_id_token" } else { "use_id_token" }.to_owned(),
        subject: verified.describe_workflow(),
        address: request.address.to_string(),
        request_id: request.request_id.to_owned(),
        detail: json!({"publishers": publishers, "claims": verified.claims()}).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audience_is_an_address_without_its_scheme() {
        assert_eq!(audience_of("https://packages.example/"), "packages.example");
        assert_eq!(audience_of("http://127.0.0.1:8080"), "127.0.0.1:8080");
        for (base_url, hostname) in [
            ("https://packages.example", "x:packages.example"),
            ("http://127.0.0.1:8080/below", "x:127.0.0.1"),
            ("http://[::1]:8080", "x:[::1]"),
            ("http://[::1]", "x:[::1]"),
        ] {
            assert_eq!(filled_audience("x:{hostname}", base_url), hostname);
        }
    }
}
