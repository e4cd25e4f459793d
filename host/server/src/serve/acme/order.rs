//! One order, from the account to the certificate (RFC 8555, section 7.4).

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

use super::client::Client;
use super::kept::{Kept, Shelf};

/// How long a proof is kept: longer than an order may take.
const PROOF: Duration = Duration::from_secs(10 * 60);
/// How long the authority may take to look, and to sign.
const PATIENCE: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(90));

/// Orders a certificate.
pub(super) async fn order(app: &App, settings: &AcmeSettings, shelf: &Shelf) -> anyhow::Result<Kept> {
    let account = account(app, settings, shelf).await?;
    let names: Vec<Identifier> = settings.domains.iter().cloned().map(Identifier::Dns).collect();
    let mut order = account.new_order(&NewOrder::new(&names)).await.context("the order was refused")?;
    prove(app, settings, &mut order).await?;
    let status = order.poll_ready(&PATIENCE).await;
    if !matches!(status, Ok(OrderStatus::Ready)) {
        let why = why_not(&mut order).await;
        return Err(match (why, status) {
            (Some(why), _) => anyhow!(why),
            (None, Ok(status)) => anyhow!("the order became {status:?}"),
            (None, Err(error)) => anyhow!(error).context("the names were not found proven"),
        });
    }
    let (key, request) = signing_request(&settings.domains)?;
    order.finalize_csr(&request).await.context("the request for the certificate was refused")?;
    let chain = order.poll_certificate(&PATIENCE).await.context("the certificate was not made")?;
    Ok(Kept { chain, key })
}

/// The account of this database at the directory; registered where there is none.
async fn account(app: &App, settings: &AcmeSettings, shelf: &Shelf) -> anyhow::Result<Account> {
    let builder = || Client::new(settings).map(|client| Account::builder_with_http(Box::new(client)));
    let reached = || format!("the directory {} cannot be used", settings.directory);
    if let Some(credentials) = shelf.account::<AccountCredentials>(&app.store, &app.sealer).await? {
        return builder()?.from_credentials(credentials).await.with_context(reached);
    }
    let contact = settings.email.as_ref().map(|email| format!("mailto:{email}"));
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let external = external_account(settings)?;
    let created = builder()?.create(&new, settings.directory.to_string(), external.as_ref()).await;
    let (account, credentials) = created.with_context(reached)?;
    shelf.keep_account(&app.store, &app.sealer, &credentials).await?;
    Ok(account)
}

fn external_account(settings: &AcmeSettings) -> anyhow::Result<Option<ExternalAccountKey>> {
    let Some((id, key)) = &settings.external_account else { return Ok(None) };
    let key = key.reveal();
    let bytes = URL_SAFE_NO_PAD.decode(key).or_else(|_| URL_SAFE.decode(key));
    // The error of the decoder shows bytes of the key.
    let bytes =
        bytes.map_err(|_| anyhow!("tls.acme.eab_key is not base64url; write it as the authority gave it"))?;
    Ok(Some(ExternalAccountKey::new(id.clone(), &bytes)))
}

/// Answers every question of the authority.
async fn prove(app: &App, settings: &AcmeSettings, order: &mut Order) -> anyhow::Result<()> {
    let kind = match settings.challenge {
        AcmeChallenge::TlsAlpn => ChallengeType::TlsAlpn01,
        AcmeChallenge::Http => ChallengeType::Http01,
    };
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.context("the authority does not say what it wants proven")?;
        match authorization.status {
            AuthorizationStatus::Pending => {}
            AuthorizationStatus::Valid => continue,
            status => bail!("a name cannot be proven: {status:?}"),
        }
        let Some(mut challenge) = authorization.challenge(kind.clone()) else {
            bail!("the authority does not offer {kind:?}; set tls.acme.challenge to another way");
        };
        let proof = AcmeProof {
            token: challenge.token.clone(),
            domain: challenge.identifier().to_string().to_ascii_lowercase(),
            key_authorization: challenge.key_authorization().as_str().to_owned(),
        };
        app.store.add_acme_proof(&proof, PROOF).await.context("failed to write the database")?;
        // Every server has to know the answer before it is asked for.
        tokio::time::sleep(PROOFS_FRESH * 2).await;
        challenge.set_ready().await.context("the authority did not take that the answer is ready")?;
    }
    Ok(())
}

/// What the authority found wrong with a name.
async fn why_not(order: &mut Order) -> Option<String> {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let name = authorization.identifier().to_string();
        let Ok(state) = authorization.refresh().await else { continue };
        let problem = state.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(problem) = problem {
            return Some(format!("{name} was not proven: {problem}"));
        }
    }
    None
}

/// A new key as PEM, and the request for its certificate as DER.
fn signing_request(domains: &[String]) -> anyhow::Result<(String, Vec<u8>)> {
    let key = KeyPair::generate().context("failed to make a key")?;
    let mut params = CertificateParams::new(domains.to_vec()).context("failed to name the hosts")?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key).context("failed to sign the request")?;
    Ok((key.serialize_pem(), request.der().to_vec()))
}
