//! The first start: one organization and its owner in an empty database. And on every start the public address, where
//! there is one organization alone and the address comes from the settings, or came from there and is gone.

use std::io::Write as _;

use anyhow::Context;
use packhouse_store::{NewMember, NewOrganization, OrganizationRow};

use packhouse_app::App;
use packhouse_app::public_url::{host, text};
use packhouse_identity::permissions::Permissions;
use packhouse_identity::{Secret, random_password};

/// Under which name the database keeps the public address that the settings last had.
const CONFIGURED: &str = "configured_base_url";
/// The name of the organization that an empty database gets.
const ORGANIZATION: &str = "default";

/// Makes organization and owner where there are none, and brings the public address up to date.
pub(crate) async fn prepare(app: &App) -> anyhow::Result<()> {
    let organizations = app.store.organizations().await.context("failed to read the organizations")?;
    match organizations.as_slice() {
        [] => found(app).await,
        [only] => address(app, only).await,
        _ => Ok(()),
    }
}

async fn found(app: &App) -> anyhow::Result<()> {
    let owner = &app.config.owner;
    let (password, random) = match &owner.password {
        Some(password) => (password.clone(), false),
        None => (random_password(), true),
    };
    let permissions = serde_json::to_string(&Permissions::everything())?;
    let member = NewMember {
        email: owner.email.clone(),
        name: String::new(),
        password_hash: app.passwords.hash(password.clone()).await?,
        permissions,
    };
    let base_url = app.config.base_url.as_ref();
    let organization = NewOrganization {
        name: ORGANIZATION.to_owned(),
        base_url: base_url.map(text),
        host: base_url.and_then(host),
    };
    app.store.replace_fact(CONFIGURED, organization.base_url.as_deref()).await?;
    let made = app.store.bootstrap(organization, member).await.context("failed to make the first owner")?;
    if made.is_some() && random {
        show(&owner.email, &password).with_context(|| {
            format!(
                "failed to print the password of {0}; set one with `packhouse member set-password {0}`",
                owner.email
            )
        })?;
    }
    Ok(())
}

/// Printed once, on the terminal and never in the log, and once the ports are bound: nobody can read it again.
fn show(email: &str, password: &Secret) -> std::io::Result<()> {
    let mut terminal = std::io::stdout().lock();
    writeln!(
        terminal,
        "The first owner is {email}, with the password {}\nIt is not shown again.",
        password.reveal()
    )?;
    terminal.flush()
}

async fn address(app: &App, only: &OrganizationRow) -> anyhow::Result<()> {
    let configured = app.config.base_url.as_ref();
    let (base_url, host) = (configured.map(text), configured.and_then(host));
    let before = app.store.replace_fact(CONFIGURED, base_url.as_deref()).await;
    let before = before.context("failed to read the public address")?;
    if configured.is_none() && (before.is_none() || before != only.base_url) {
        // Somebody gave the organization its address otherwise than by the settings.
        return Ok(());
    }
    if only.base_url == base_url && only.host == host {
        return Ok(());
    }
    if let (None, Some(gone)) = (&base_url, &before) {
        tracing::info!(
            base_url = gone,
            "base_url is not set any more; links follow the host that a client asks"
        );
    }
    let set = app.store.set_base_url(only.id, base_url.as_deref(), host.as_deref(), None).await;
    set.context("failed to set the public address").map(|_| ())
}
