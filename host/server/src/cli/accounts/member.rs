//! `packhouse member`: members of an organization, including recovery from a lost password or lost
//! permissions.

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use packhouse_store::{MemberChange, MemberRow, NewMember, OrganizationRow};
use serde_json::{Value, json};

use super::{CliContext, CommandOutput, Common, email_address, password, with};
use packhouse_identity::Passwords;
use packhouse_identity::permissions::{Permission, Permissions, RepositoryAction, RepositoryPermission};

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
    /// Actions in one repository or in all, such as libs=read,publish,delete or *=read
    #[arg(long = "repository", value_name = "NAME=ACTIONS")]
    repositories: Vec<String>,
}

const COLUMNS: &[&str] = &["id", "email", "name", "password"];

impl MemberCommand {
    pub(in crate::cli) async fn run(self) -> anyhow::Result<()> {
        match self {
            MemberCommand::Create { email, name, password_stdin, granted, common } => {
                create(CliContext::open(*common).await?, &email, name, password_stdin, granted).await
            }
            MemberCommand::List { common } => list(CliContext::open(*common).await?).await,
            MemberCommand::SetPassword { email, password_stdin, common } => {
                set_password(CliContext::open(*common).await?, &email, password_stdin).await
            }
            MemberCommand::Grant { email, granted, common } => {
                grant(CliContext::open(*common).await?, &email, granted).await
            }
        }
    }
}

async fn create(
    context: CliContext,
    email: &str,
    name: String,
    stdin: bool,
    granted: Granted,
) -> anyhow::Result<()> {
    let email = email_address(email)?;
    let organization = context.organization().await?;
    let permissions = added(&context, &organization, Permissions::default(), granted).await?;
    let (password, random) = password(stdin)?;
    let new = NewMember {
        email: email.clone(),
        name,
        password_hash: Passwords::new().hash(password.clone()).await?,
        permissions: serde_json::to_string(&permissions)?,
    };
    let event = context.event(&organization, "create_member", &email);
    let made = context.store.create_member(organization.id, new, event).await?;
    let row = made.with_context(|| format!("{email} is already a member of {}", organization.name))?;
    context.finish(COLUMNS, CommandOutput::One(view(&row, random.then(|| password.reveal())))).await
}

async fn list(context: CliContext) -> anyhow::Result<()> {
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
    context
        .finish(
            &["id", "email", "name"],
            CommandOutput::List(rows.iter().map(|row| view(row, None)).collect()),
        )
        .await
}

async fn set_password(context: CliContext, email: &str, stdin: bool) -> anyhow::Result<()> {
    let organization = context.organization().await?;
    let member = context.member(&organization, email).await?;
    let (password, random) = password(stdin)?;
    let hash = Passwords::new().hash(password.clone()).await?;
    let event = context.event(&organization, "set_password", &member.email);
    let set = context.store.set_member_password(organization.id, member.id, &hash, event).await?;
    ensure!(set, "{} was deleted meanwhile", member.email);
    context.finish(COLUMNS, CommandOutput::One(view(&member, random.then(|| password.reveal())))).await
}

async fn grant(context: CliContext, email: &str, granted: Granted) -> anyhow::Result<()> {
    let organization = context.organization().await?;
    let member = context.member(&organization, email).await?;
    let before = Permissions::read(&member.permissions);
    let permissions = serde_json::to_string(&added(&context, &organization, before, granted).await?)?;
    let event = context.event(&organization, "set_permissions", &member.email);
    // Granting removes no permission, so no other owner has to remain.
    match context.store.set_member_permissions(&member, &permissions, |_| false, event).await? {
        MemberChange::Done => {}
        MemberChange::Changed | MemberChange::LastOwner => {
            bail!("{} was changed meanwhile; try again", member.email)
        }
    }
    let member = MemberRow { permissions, ..member };
    context.finish(COLUMNS, CommandOutput::One(view(&member, None))).await
}

fn view(row: &MemberRow, password: Option<&str>) -> Value {
    let view = json!({
        "id": row.id.to_string(), "email": row.email, "name": row.name, "created_at": row.created_at,
        "permissions": Permissions::read(&row.permissions),
    });
    match password {
        Some(password) => with(view, "password", password),
        None => view,
    }
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
        permissions.repositories.push(RepositoryPermission { repository, actions });
    }
    Ok(permissions)
}

fn action(name: &str) -> anyhow::Result<RepositoryAction> {
    let found = serde_json::from_value(Value::from(name.trim()));
    found.with_context(|| format!("{name:?} is not an action; the actions are read, publish and delete"))
}
