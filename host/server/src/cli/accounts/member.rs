//! `packhouse member`: members of an organization, including recovery from a lost password or lost
//! permissions.

mod remote;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use packhouse_store::{MemberChange, MemberRow, NewMember, OrganizationRow};
use serde_json::{Value, json};

use super::{CliContext, CommandOutput, CommandTarget, Common, email_address, password, with};
use packhouse_identity::permissions::{Permission, Permissions, RepositoryAction, RepositoryPermission};
use packhouse_identity::{Passwords, Secret};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum MemberCommand {
    /// Create a member; without --password-stdin a random password is printed
    Create {
        /// E-mail address of the member
        email: String,
        /// Display name
        #[arg(long, default_value = "")]
        name: String,
        /// Read the password from the first line of standard input
        #[arg(long)]
        password_stdin: bool,
        #[command(flatten)]
        granted: Granted,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// List the members
    List {
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Set a password and end the member's sessions; without --password-stdin a random password is
    /// printed
    SetPassword {
        /// E-mail address of the member
        email: String,
        /// Read the password from the first line of standard input
        #[arg(long)]
        password_stdin: bool,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Remove the second factor of a member who has lost the app and the recovery codes
    RemoveSecondFactor {
        /// E-mail address of the member
        email: String,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Give a member additional permissions
    Grant {
        /// E-mail address of the member
        email: String,
        #[command(flatten)]
        granted: Granted,
        #[command(flatten)]
        common: Box<Common>,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Granted {
    /// All permissions
    #[arg(long)]
    owner: bool,
    /// A permission in the organization, such as manage-members
    #[arg(long = "permission", value_name = "PERMISSION")]
    permissions: Vec<String>,
    /// Actions in one repository or in all, such as libs=read,publish,delete,manage or *=read
    #[arg(long = "repository", value_name = "NAME=ACTIONS")]
    repositories: Vec<String>,
}

const COLUMNS: &[&str] = &["id", "email", "name", "password"];

impl MemberCommand {
    pub(in crate::cli) async fn run(self) -> anyhow::Result<()> {
        match self {
            MemberCommand::Create { email, name, password_stdin, granted, common } => {
                create(CommandTarget::open(*common).await?, &email, name, password_stdin, granted).await
            }
            MemberCommand::List { common } => list(CommandTarget::open(*common).await?).await,
            MemberCommand::SetPassword { email, password_stdin, common } => {
                set_password(CommandTarget::open(*common).await?, &email, password_stdin).await
            }
            MemberCommand::RemoveSecondFactor { email, common } => {
                remove_second_factor(CommandTarget::open(*common).await?, &email).await
            }
            MemberCommand::Grant { email, granted, common } => {
                grant(CommandTarget::open(*common).await?, &email, granted).await
            }
        }
    }
}

async fn create(
    target: CommandTarget,
    email: &str,
    name: String,
    stdin: bool,
    granted: Granted,
) -> anyhow::Result<()> {
    let email = email_address(email)?;
    let (password, random) = password(stdin)?;
    let made = match &target {
        CommandTarget::Database(context) => {
            create_in_database(context, email, name, &password, granted).await?
        }
        CommandTarget::Server(server) => remote::create(server, &email, &name, &password, &granted).await?,
    };
    finish(target, made, random.then_some(&password)).await
}

/// Prints a member, with the password if it was generated.
async fn finish(target: CommandTarget, member: Value, password: Option<&Secret>) -> anyhow::Result<()> {
    let member = match password {
        Some(password) => with(member, "password", password.reveal()),
        None => member,
    };
    target.finish(COLUMNS, CommandOutput::One(member)).await
}

async fn create_in_database(
    context: &CliContext,
    email: String,
    name: String,
    password: &Secret,
    granted: Granted,
) -> anyhow::Result<Value> {
    let organization = context.organization().await?;
    let permissions = added(context, &organization, Permissions::default(), granted).await?;
    let new = NewMember {
        email: email.clone(),
        name,
        password_hash: Passwords::new().hash(password.clone()).await?,
        permissions: serde_json::to_string(&permissions)?,
    };
    let event = context.event(&organization, "create_member", &email);
    let made = context.store.create_member(organization.id, new, event).await?;
    let row = made.with_context(|| format!("{email} is already a member of {}", organization.name))?;
    Ok(view(&row))
}

async fn list(target: CommandTarget) -> anyhow::Result<()> {
    let items = match &target {
        CommandTarget::Database(context) => list_in_database(context).await?,
        CommandTarget::Server(server) => remote::list(server).await?,
    };
    target.finish(&["id", "email", "name"], CommandOutput::List(items)).await
}

async fn list_in_database(context: &CliContext) -> anyhow::Result<Vec<Value>> {
    let organization = context.organization().await?;
    let mut rows = Vec::new();
    loop {
        let page = context
            .store
            .list_members(organization.id, rows.last().map(|row: &MemberRow| row.id), 500)
            .await?;
        let last = page.len() < 500;
        rows.extend(page);
        if last {
            break;
        }
    }
    Ok(rows.iter().map(view).collect())
}

async fn set_password(target: CommandTarget, email: &str, stdin: bool) -> anyhow::Result<()> {
    let email = email_address(email)?;
    let (password, random) = password(stdin)?;
    let member = match &target {
        CommandTarget::Database(context) => set_in_database(context, &email, &password).await?,
        CommandTarget::Server(server) => remote::set_password(server, &email, &password).await?,
    };
    finish(target, member, random.then_some(&password)).await
}

async fn set_in_database(context: &CliContext, email: &str, password: &Secret) -> anyhow::Result<Value> {
    let organization = context.organization().await?;
    let member = context.member(&organization, email).await?;
    let hash = Passwords::new().hash(password.clone()).await?;
    let event = context.event(&organization, "set_password", &member.email);
    let set = context.store.set_member_password(organization.id, member.id, &hash, event).await?;
    ensure!(set, "{} was deleted meanwhile", member.email);
    Ok(view(&member))
}

async fn remove_second_factor(target: CommandTarget, email: &str) -> anyhow::Result<()> {
    let email = email_address(email)?;
    let member = match &target {
        CommandTarget::Database(context) => remove_factor_in_database(context, &email).await?,
        CommandTarget::Server(server) => remote::remove_second_factor(server, &email).await?,
    };
    finish(target, member, None).await
}

async fn remove_factor_in_database(context: &CliContext, email: &str) -> anyhow::Result<Value> {
    let organization = context.organization().await?;
    let member = context.member(&organization, email).await?;
    let event = context.event(&organization, "remove_second_factor", &member.email);
    let removed = context.store.delete_totp(organization.id, member.id, event).await?;
    ensure!(removed, "{} has no second factor", member.email);
    Ok(view(&member))
}

async fn grant(target: CommandTarget, email: &str, granted: Granted) -> anyhow::Result<()> {
    let email = email_address(email)?;
    let member = match &target {
        CommandTarget::Database(context) => grant_in_database(context, &email, granted).await?,
        CommandTarget::Server(server) => remote::grant(server, &email, &granted).await?,
    };
    finish(target, member, None).await
}

async fn grant_in_database(context: &CliContext, email: &str, granted: Granted) -> anyhow::Result<Value> {
    let organization = context.organization().await?;
    let member = context.member(&organization, email).await?;
    let before = Permissions::read(&member.permissions);
    let permissions = serde_json::to_string(&added(context, &organization, before, granted).await?)?;
    let event = context.event(&organization, "set_permissions", &member.email);
    // Granting removes no permission, so no other owner has to remain.
    match context.store.set_member_permissions(&member, &permissions, |_| false, event).await? {
        MemberChange::Done => {}
        MemberChange::Changed | MemberChange::LastOwner => {
            bail!("{} was changed meanwhile; try again", member.email)
        }
    }
    Ok(view(&MemberRow { permissions, ..member }))
}

fn view(row: &MemberRow) -> Value {
    json!({
        "id": row.id.to_string(), "email": row.email, "name": row.name, "created_at": row.created_at,
        "active": row.active,
        "permissions": Permissions::read(&row.permissions),
    })
}

async fn added(
    context: &CliContext,
    organization: &OrganizationRow,
    before: Permissions,
    granted: Granted,
) -> anyhow::Result<Permissions> {
    if granted.owner {
        return Ok(Permissions::everything());
    }
    let mut permissions = before;
    for name in &granted.permissions {
        let all = || Permission::ALL.map(Permission::name).join(", ");
        let found = Permission::ALL.into_iter().find(|permission| permission.name() == name);
        let found =
            found.with_context(|| format!("{name:?} is not a permission; the permissions are {}", all()))?;
        if !permissions.holds(found) {
            permissions.organization.push(found);
        }
    }
    for text in &granted.repositories {
        let (name, actions) = text
            .split_once('=')
            .context("--repository must be NAME=ACTIONS, such as libs=read,publish,delete")?;
        let actions = actions.split(',').map(action).collect::<anyhow::Result<_>>()?;
        let repository = match name {
            "*" => name.to_owned(),
            name => context.repository(organization, name).await?.id.to_string(),
        };
        permissions.repositories.push(RepositoryPermission {
            repository: Some(repository),
            repository_name: None,
            actions,
            packages: None,
        });
    }
    if permissions.needs_new_servers() {
        ensure!(
            context.store.servers_know_access().await?,
            "a server of the previous version still uses this database and does not know these permissions; \
             update it first"
        );
    }
    Ok(permissions)
}

fn action(name: &str) -> anyhow::Result<RepositoryAction> {
    let found = serde_json::from_value(Value::from(name.trim()));
    found.with_context(|| {
        format!("{name:?} is not an action; the actions are read, publish, delete and manage")
    })
}
