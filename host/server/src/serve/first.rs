//! The first start creates an organization and its owner in an empty database. If the database has
//! a single organization, every start also gives it the public address from the settings. If the
//! setting was removed, the start removes the address that the setting had given.

use std::io::Write as _;

use anyhow::Context;
use packhouse_store::{NewMember, NewOrganization, OrganizationRow};

use packhouse_app::App;
use packhouse_app::public_url::{host, text};
use packhouse_identity::permissions::Permissions;
use packhouse_identity::{Secret, random_password};

/// Key under which the database stores the last public address from the settings.
const CONFIGURED: &str = "configured_base_url";
/// Name of the first organization.
const ORGANIZATION: &str = "default";

/// Creates organization and owner in an empty database, and updates the public address.
pub(crate) async fn prepare(app: &App) -> anyhow::Result<()> {
    let organizations = app.store.organizations().await.context("failed to read the organizations")?;
    match organizations.as_slice() {
        [] => create_first(app).await,
        [only] => update_address(app, only).await,
        _ => Ok(()),
    }
}

async fn create_first(app: &App) -> anyhow::Result<()> {
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
    let made = app.store.bootstrap(organization, member).await.context("failed to create the first owner")?;
    if made.is_some() && random {
        print_password(&owner.email, &password).with_context(|| {
            format!(
                "failed to print the password of {0}; set one with `packhouse member set-password {0}`",
                owner.email
            )
        })?;
    }
    Ok(())
}

/// Prints the password once, on the terminal and never in the log. The caller has already bound the
/// ports. Otherwise a start that cannot bind them would use up the only display of the password.
fn print_password(email: &str, password: &Secret) -> std::io::Result<()> {
    let mut terminal = std::io::stdout().lock();
    writeln!(
        terminal,
        "The first owner is {email}, with the password {}\nIt is not shown again.",
        password.reveal()
    )?;
    terminal.flush()
}

async fn update_address(app: &App, only: &OrganizationRow) -> anyhow::Result<()> {
    let configured = app.config.base_url.as_ref();
    let (base_url, host) = (configured.map(text), configured.and_then(host));
    let before = app.store.replace_fact(CONFIGURED, base_url.as_deref()).await;
    let before = before.context("failed to read the public address")?;
    if configured.is_none() && (before.is_none() || before != only.base_url) {
        // The organization's address was not set by the settings.
        return Ok(());
    }
    if only.base_url == base_url && only.host == host {
        return Ok(());
    }
    if let (None, Some(gone)) = (&base_url, &before) {
        tracing::info!(base_url = gone, "base_url is no longer set; links use the host name of each request");
    }
    let set = app.store.set_base_url(only.id, base_url.as_deref(), host.as_deref(), None).await;
    set.context("failed to set the public address").map(|_| ())
}
