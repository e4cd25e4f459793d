//! An ACME order, from the account to the certificate (RFC 8555, section 7.4).

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeType, ExternalAccountKey, Identifier,
    NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use packhouse_app::App;
use packhouse_app::proofs::PROOFS_FRESH;
use packhouse_config::tls::{AcmeChallenge, AcmeSettings};
use packhouse_store::AcmeProof;
use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use super::client::AcmeClient;
use super::store::{AcmeStore, StoredCertificate};

/// How long a challenge response is stored: longer than an order may take.
const PROOF: Duration = Duration::from_secs(10 * 60);
/// How long the authority may take to validate, and to issue.
const PATIENCE: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(90));

/// Orders a certificate for the configured domains.
pub(super) async fn order(
    app: &App,
    settings: &AcmeSettings,
    acme_store: &AcmeStore,
) -> anyhow::Result<StoredCertificate> {
    let account = account(app, settings, acme_store).await?;
    let names: Vec<Identifier> = settings.domains.iter().cloned().map(Identifier::Dns).collect();
    let mut order = account.new_order(&NewOrder::new(&names)).await.context("the order was refused")?;
    prove(app, settings, &mut order).await?;
    let status = order.poll_ready(&PATIENCE).await;
    if !matches!(status, Ok(OrderStatus::Ready)) {
        let why = why_not(&mut order).await;
        return Err(match (why, status) {
            (Some(why), _) => anyhow!(why),
            (None, Ok(status)) => anyhow!("the order became {status:?}"),
            (None, Err(error)) => anyhow!(error).context("the authority did not validate the names"),
        });
    }
    let (key, request) = signing_request(&settings.domains)?;
    order.finalize_csr(&request).await.context("the request for the certificate was refused")?;
    let chain =
        order.poll_certificate(&PATIENCE).await.context("the authority did not issue the certificate")?;
    Ok(StoredCertificate { chain, key })
}

/// Returns this database's account at the directory, and registers a missing account.
async fn account(app: &App, settings: &AcmeSettings, acme_store: &AcmeStore) -> anyhow::Result<Account> {
    let builder = || AcmeClient::new(settings).map(|client| Account::builder_with_http(Box::new(client)));
    let reached = || format!("the directory {} cannot be used", settings.directory);
    if let Some(credentials) = acme_store.account::<AccountCredentials>(&app.store, &app.sealer).await? {
        return builder()?.from_credentials(credentials).await.with_context(reached);
    }
    let contact = settings.email.as_ref().map(|email| format!("mailto:{email}"));
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let external = external_account(settings)?;
    let created = builder()?.create(&new, settings.directory.to_string(), external.as_ref()).await;
    let (account, credentials) = created.with_context(reached)?;
    acme_store.store_account(&app.store, &app.sealer, &credentials).await?;
    Ok(account)
}

fn external_account(settings: &AcmeSettings) -> anyhow::Result<Option<ExternalAccountKey>> {
    let Some((id, key)) = &settings.external_account else { return Ok(None) };
    let key = key.reveal();
    let bytes = URL_SAFE_NO_PAD.decode(key).or_else(|_| URL_SAFE.decode(key));
    // The decoder's error would show bytes of the key.
    let bytes = bytes.map_err(|_| {
        anyhow!("tls.acme.eab_key is not valid base64url; copy it exactly as the authority provides it")
    })?;
    Ok(Some(ExternalAccountKey::new(id.clone(), &bytes)))
}

/// Prepares the responses to all challenges of an order.
async fn prove(app: &App, settings: &AcmeSettings, order: &mut Order) -> anyhow::Result<()> {
    let kind = match settings.challenge {
        AcmeChallenge::TlsAlpn => ChallengeType::TlsAlpn01,
        AcmeChallenge::Http => ChallengeType::Http01,
    };
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.context("failed to read the challenges of the authority")?;
        match authorization.status {
            AuthorizationStatus::Pending => {}
            AuthorizationStatus::Valid => continue,
            status => bail!("a name cannot be validated: {status:?}"),
        }
        let Some(mut challenge) = authorization.challenge(kind.clone()) else {
            bail!("the authority does not offer {kind:?}; set tls.acme.challenge to the other method");
        };
        let proof = AcmeProof {
            token: challenge.token.clone(),
            domain: challenge.identifier().to_string().to_ascii_lowercase(),
            key_authorization: challenge.key_authorization().as_str().to_owned(),
        };
        app.store.add_acme_proof(&proof, PROOF).await.context("failed to write the database")?;
        // Every server must know the response before the authority asks for it.
        tokio::time::sleep(PROOFS_FRESH * 2).await;
        challenge.set_ready().await.context("the authority did not accept the challenge response")?;
    }
    Ok(())
}

/// Returns the authority's error for a name, if any.
async fn why_not(order: &mut Order) -> Option<String> {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let name = authorization.identifier().to_string();
        let Ok(state) = authorization.refresh().await else { continue };
        let problem = state.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(problem) = problem {
            return Some(format!("{name} was not validated: {problem}"));
        }
    }
    None
}

/// Creates a new key as PEM, and its signing request as DER.
fn signing_request(domains: &[String]) -> anyhow::Result<(String, Vec<u8>)> {
    let key = KeyPair::generate().context("failed to generate a key")?;
    let mut params = CertificateParams::new(domains.to_vec())
        .context("failed to set the host names of the certificate request")?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key).context("failed to sign the request")?;
    Ok((key.serialize_pem(), request.der().to_vec()))
}
