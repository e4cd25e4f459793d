//! `packhouse member`: members of an organization, and the rescue of one who lost the password or the rights.

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use packhouse_store::{MemberChange, MemberRow, NewMember, OrganizationRow};
use serde_json::{Value, json};

use super::{Common, Desk, Shown, email_address, password, with};
use packhouse_identity::Passwords;
use packhouse_identity::permissions::{Permission, Permissions, RepositoryAction, RepositoryPermission};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum MemberCommand {
    /// Make a member; without --password-stdin a random password is printed
    Create {
        /// The e-mail address
        email: String,
        /// As people see it
        #[arg(long, default_value = "")]
        name: String,
        /// Take the password from the first line of standard input
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
    /// Set a password and end the member's sessions; without --password-stdin a random one is printed
    SetPassword {
        /// The e-mail address
        email: String,
        /// Take the password from the first line of standard input
        #[arg(long)]
        password_stdin: bool,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// Add to what a member may do
    Grant {
        /// The e-mail address
        email: String,
        #[command(flatten)]
        granted: Granted,
        #[command(flatten)]
        common: Box<Common>,
    },
}

/// What a member may do.
#[derive(Debug, Args)]
pub(in crate::cli) struct Granted {
    /// Everything
    #[arg(long)]
    owner: bool,
    /// A permission in the organization, such as manage-members
    #[arg(long = "permission", value_name = "PERMISSION")]
    permissions: Vec<String>,
    /// Actions in a repository or in all, as *=read or libs=read,publish,delete
    #[arg(long = "repository", value_name = "NAME=ACTIONS")]
    repositories: Vec<String>,
}

const COLUMNS: &[&str] = &["id", "email", "name", "password"];

impl MemberCommand {
    /// Does it.
    pub(in crate::cli) async fn run(self) -> anyhow::Result<()> {
        match self {
            MemberCommand::Create { email, name, password_stdin, granted, common } => {
                create(Desk::open(*common).await?, &email, name, password_stdin, granted).await
            }
            MemberCommand::List { common } => list(Desk::open(*common).await?).await,
            MemberCommand::SetPassword { email, password_stdin, common } => {
                set_password(Desk::open(*common).await?, &email, password_stdin).await
            }
            MemberCommand::Grant { email, granted, common } => {
                grant(Desk::open(*common).await?, &email, granted).await
            }
        }
    }
}

async fn create(desk: Desk, email: &str, name: String, stdin: bool, granted: Granted) -> anyhow::Result<()> {
    let email = email_address(email)?;
    let organization = desk.organization().await?;
    let permissions = added(&desk, &organization, Permissions::default(), granted).await?;
    let (password, random) = password(stdin)?;
    let new = NewMember {
        email: email.clone(),
        name,
        password_hash: Passwords::new().hash(password.clone()).await?,
        permissions: serde_json::to_string(&permissions)?,
    };
    let event = desk.event(&organization, "create_member", &email);
    let made = desk.store.create_member(organization.id, new, event).await?;
    let row = made.with_context(|| format!("{email} is a member of {} already", organization.name))?;
    desk.done(COLUMNS, Shown::One(view(&row, random.then(|| password.reveal())))).await
}

async fn list(desk: Desk) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let mut rows = Vec::new();
    loop {
        let page =
            desk.store.list_members(organization.id, rows.last().map(|row: &MemberRow| row.id), 500).await?;
        let last = page.len() < 500;
        rows.extend(page);
        if last {
            break;
        }
    }
    desk.done(&["id", "email", "name"], Shown::List(rows.iter().map(|row| view(row, None)).collect())).await
}

async fn set_password(desk: Desk, email: &str, stdin: bool) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let member = desk.member(&organization, email).await?;
    let (password, random) = password(stdin)?;
    let hash = Passwords::new().hash(password.clone()).await?;
    let event = desk.event(&organization, "set_password", &member.email);
    let set = desk.store.set_member_password(organization.id, member.id, &hash, event).await?;
    ensure!(set, "{} was deleted meanwhile", member.email);
    desk.done(COLUMNS, Shown::One(view(&member, random.then(|| password.reveal())))).await
}

async fn grant(desk: Desk, email: &str, granted: Granted) -> anyhow::Result<()> {
    let organization = desk.organization().await?;
    let member = desk.member(&organization, email).await?;
    let before = Permissions::read(&member.permissions);
    let permissions = serde_json::to_string(&added(&desk, &organization, before, granted).await?)?;
    let event = desk.event(&organization, "set_permissions", &member.email);
    // Nothing is taken away, so nobody is needed to remain.
    match desk.store.set_member_permissions(&member, &permissions, |_| false, event).await? {
        MemberChange::Done => {}
        MemberChange::Changed | MemberChange::Last => {
            bail!("{} was changed meanwhile; try again", member.email)
        }
    }
    let member = MemberRow { permissions, ..member };
    desk.done(COLUMNS, Shown::One(view(&member, None))).await
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
    desk: &Desk,
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
        let found = found.with_context(|| format!("{name:?} is no permission: there are {}", all()))?;
        if !permissions.holds(found) {
            permissions.organization.push(found);
        }
    }
    for text in &granted.repositories {
        let (name, actions) = text.split_once('=').context("write --repository NAME=read,publish,delete")?;
        let actions = actions.split(',').map(action).collect::<anyhow::Result<_>>()?;
        let repository = match name {
            "*" => name.to_owned(),
            name => desk.repository(organization, name).await?.id.to_string(),
        };
        permissions.repositories.push(RepositoryPermission { repository, actions });
    }
    Ok(permissions)
}

fn action(name: &str) -> anyhow::Result<RepositoryAction> {
    let found = serde_json::from_value(Value::from(name.trim()));
    found.with_context(|| format!("{name:?} is no action: there are read, publish and delete"))
}
