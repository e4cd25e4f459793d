//! Trusted publishing: an ID token, by which a build service vouches for the workflow that runs, is judged by what the organization's
//! publishers say, and a token that lives for minutes is given out for it; or it is a credential itself until it expires.
//!
//! Nothing is fetched for an issuer that no publisher of the organization names, and who presents an ID token that is not signed by its
//! issuer learns nothing but that.

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

/// How long a token lives that is given out, in seconds.
pub const TOKEN_LIFETIME_S: u32 = 15 * 60;
/// Publishers of one issuer that are looked at.
const LOOKED_AT: u32 = 2_000;
/// How often giving a token out is begun, where a publisher changes meanwhile.
const TRIES: u32 = 2;

/// An ID token as it came, and what it is for.
#[derive(Clone, Copy)]
pub struct IdTokenRequest<'a> {
    /// The organization that the request is for.
    pub organization: OrganizationId,
    /// The ID token.
    pub id_token: &'a Secret,
    /// For whom it may be made.
    pub audiences: &'a [String],
    /// Which publishers count.
    pub reach: PublisherReach<'a>,
    /// From where it came.
    pub address: IpAddr,
    /// In which request.
    pub request_id: &'a str,
}

/// A token that was given out for an ID token, and is given back.
#[derive(Clone, Copy)]
pub struct GivenBack<'a> {
    /// The organization that the request is for.
    pub organization: OrganizationId,
    /// The token.
    pub token: &'a Secret,
    /// For whom an ID token may be made that is given back itself.
    pub audiences: &'a [String],
    /// From where it came.
    pub address: IpAddr,
    /// In which request.
    pub request_id: &'a str,
}

/// Which publishers count.
#[derive(Clone, Copy)]
pub enum PublisherReach<'a> {
    /// All of the organization.
    Organization,
    /// Those of one repository.
    Repository(RepositoryId),
    /// Those of repositories of this format, and of them one package alone where one is named.
    Format {
        /// The format.
        format: &'a str,
        /// The package, in the format's spelling or another.
        package: Option<&'a str>,
        /// Which spellings are the same.
        folding: Folding,
    },
}

/// A token that was given out.
pub struct MintedToken {
    /// The secret, shown this once.
    pub secret: Secret,
    /// Its row.
    pub row: TokenRow,
    /// When it expires, in ms since 1970.
    pub expires_at: i64,
}

/// For whom ID tokens for the host at this address are made: the address without its scheme.
#[must_use]
pub fn audience_of(base_url: &str) -> &str {
    base_url.split_once("://").map_or(base_url, |(_, rest)| rest).trim_end_matches('/')
}

impl App {
    /// For whom an ID token may be made that is shown to the host at this address for a repository of this format: the host itself, or
    /// as the format's clients have it made.
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

    /// Gives a token out for an ID token, which is spent by that.
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

    /// Lets an ID token count as a credential until it expires: its hash is that of a token from then on.
    pub async fn admit_id_token(&self, request: IdTokenRequest<'_>) -> Result<TokenRow, IdTokenRefusal> {
        let sha256 = id_token_fingerprint(request.organization, request.id_token.reveal());
        self.mint_for(request, TokenSecret { sha256, expires_at: None, spends: false }).await
    }

    /// Revokes a token that was given out for an ID token: its holder needs it no more. Whatever else is shown stays as it is.
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

    /// Spends an ID token that is given back itself: neither is it a credential any more, nor is it exchanged. One that is not to be
    /// believed is left alone.
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

    /// Counts a refusal for the audit log. The ID token's own words are in none: nobody has vouched for them.
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
                    return Err(IdTokenRefusal::publisher("the trusted publisher was changed meanwhile"));
                }
            }
        }
    }

    /// The publishers that count and that this issuer vouches for.
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

/// What a token is found by, and for how long.
struct TokenSecret {
    sha256: [u8; 32],
    /// In ms since 1970; none: as long as the ID token.
    expires_at: Option<i64>,
    /// Whether the ID token is spent.
    spends: bool,
}

/// A publisher that matches, with what it grants and the owner's number.
struct Match {
    grant: Grant,
    owner_id: Option<String>,
}

/// The publishers that an ID token is of, each with what it grants.
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
            // What is nearest to a match tells most.
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
                "no trusted publisher of this workflow reaches the package {package}"
            )))
        }
        (true, _) => {
            let told = verified.told();
            let because = why.map(|why| format!(": {}", why.sentence)).unwrap_or_default();
            Err(IdTokenRefusal::publisher(&format!(
                "no trusted publisher here is the workflow {told}{because}"
            )))
        }
    }
}

/// The packages that a publisher grants; of an exchange that names one, that one or none.
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
    // What is a credential itself is remembered by its identifier, so that its revocation outlives its row.
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
        name: verified.told(),
        scope: Scope { read: any(|grant| grant.read), write: any(|grant| grant.write) },
        format: packhouse_identity::access::GENERIC.to_owned(),
        owner: None,
        created_by: verified.told(),
        backing: Some(PUBLISHER_BACKING.to_owned()),
        backing_repository: None,
        repositories: grants.iter().map(|grant| RepositoryId(grant.repository)).collect(),
        expires_at: Some(secret.expires_at.unwrap_or(verified.expires_at())),
    };
    TokenToMint {
        token,
        grants: json!(grants).to_string(),
        publishers: publishers.collect(),
        id_token: verified.spent(),
        spends: secret.spends,
    }
}

/// What the audit log says of it: who, by which publishers, and all that the ID token claims.
fn event(
    request: &IdTokenRequest<'_>,
    secret: &TokenSecret,
    verified: &Verified,
    mint: &TokenToMint,
) -> AuditEvent {
    let publishers: Vec<String> = mint.publishers.iter().map(|one| one.id.to_string()).collect();
    AuditEvent {
        organization: request.organization,
        actor: verified.told(),
        credential: "id-token".to_owned(),
        action: if secret.spends { "exchange_id_token" } else { "use_id_token" }.to_owned(),
        subject: verified.told(),
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
