//! Single sign-on: the settings of organizations, the identities of members at providers, and the
//! sign-ins that were used up.

use crate::accounts::event::remember;
use crate::accounts::members::insert;
use crate::accounts::rows::member::{member, member_columns};
use crate::accounts::{AuditEvent, MemberRow, NewMember};
use crate::boxed;
use crate::db::{Row, Transaction, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, now_ms};
use crate::store::Store;

/// Identity of a person at an identity provider.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SsoIdentity {
    /// Issuer of the identity provider.
    pub issuer: String,
    /// Subject at the provider; never reused.
    pub subject: String,
    /// E-mail address in lower case, verified by the provider.
    pub email: String,
}

/// Result of finding the member for an identity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SsoMember {
    /// A member who signed in before, or who has this e-mail address.
    Known(MemberRow),
    /// A member who was just created.
    Made(MemberRow),
    /// No member has this e-mail address, and the call created none.
    Nobody,
    /// The member with this e-mail address has another subject at this provider.
    Another,
    /// The member with this e-mail address has a password or another provider. The member must
    /// confirm that this identity is theirs.
    Unbound(MemberRow),
}

impl Store {
    /// Returns the organization's sign-in settings, as the API's JSON.
    #[boxed]
    pub async fn sso_settings(&self, organization: OrganizationId) -> Result<Option<String>, StoreError> {
        let sql = "SELECT settings FROM sso_settings WHERE organization = $1";
        let row = self.inner.db.fetch_one(sql, values![organization.0]).await?;
        row.map(|row| row.columns().text("settings")).transpose()
    }

    #[boxed]
    pub async fn set_sso_settings(
        &self,
        organization: OrganizationId,
        settings: &str,
        audit: Option<AuditEvent>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let set = "INSERT INTO sso_settings (organization, settings) VALUES ($1, $2) \
                   ON CONFLICT (organization) DO UPDATE SET settings = $2";
        transaction.execute(set, values![organization.0, settings]).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await
    }

    /// Deletes the organization's sign-in settings. Returns false if it has none.
    #[boxed]
    pub async fn delete_sso_settings(
        &self,
        organization: OrganizationId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let delete = "DELETE FROM sso_settings WHERE organization = $1";
        let deleted = transaction.execute(delete, values![organization.0]).await? == 1;
        if deleted {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(deleted)
    }

    /// Returns the members with this e-mail address, each with the sign-in settings of its
    /// organization, in one statement.
    #[boxed]
    pub async fn members_signing_in(
        &self,
        email: &str,
    ) -> Result<Vec<(MemberRow, Option<String>)>, StoreError> {
        let sql = format!(
            "SELECT {}, s.settings FROM members m \
             LEFT JOIN sso_settings s ON s.organization = m.organization \
             WHERE m.email = $1 AND m.kind = 'person' ORDER BY m.organization",
            member_columns("m")
        );
        let read = |row: &Row| Ok((member(&mut row.columns_of("m"))?, row.columns().opt_text("settings")?));
        self.inner.db.fetch(sql, values![email]).await?.iter().map(read).collect()
    }

    /// Lists the persons of an organization who have neither a password nor an identity at a
    /// provider. The first identity with the address of such a person becomes theirs without a
    /// confirmation.
    #[boxed]
    pub async fn members_without_sign_in(
        &self,
        organization: OrganizationId,
    ) -> Result<Vec<MemberRow>, StoreError> {
        let condition = "m.organization = $1 AND m.kind = 'person' AND m.password_hash = '' AND NOT EXISTS \
                         (SELECT 1 FROM sso_identities i WHERE i.member = m.id) ORDER BY m.id";
        self.members(condition, values![organization.0]).await
    }

    /// Uses up a sign-in, identified by the SHA-256 of its state. Returns true for exactly one
    /// caller. The state is stored until `expires_at` (ms since 1970). After that, the sign-in is
    /// refused because of its age.
    #[boxed]
    pub async fn spend_sso_state(
        &self,
        state_sha256: &[u8; 32],
        expires_at: i64,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        transaction.execute("DELETE FROM sso_spent WHERE expires_at <= $1", values![now_ms()]).await?;
        let insert =
            "INSERT INTO sso_spent (state_sha256, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        let first = transaction.execute(insert, values![state_sha256, expires_at]).await? == 1;
        transaction.commit().await?;
        Ok(first)
    }

    /// Finds the member linked to this identity. Otherwise links the member with the same e-mail
    /// address, or creates `new` if it is given. Writes `audit` only with a created member.
    #[boxed]
    pub async fn sso_member(
        &self,
        organization: OrganizationId,
        identity: &SsoIdentity,
        new: Option<NewMember>,
        audit: Option<AuditEvent>,
    ) -> Result<SsoMember, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let bound = "m.id = (SELECT i.member FROM sso_identities i \
                     WHERE i.organization = $1 AND i.issuer = $2 AND i.subject = $3) AND m.organization = $1";
        let known = values![organization.0, identity.issuer.as_str(), identity.subject.as_str()];
        if let Some(known) = find(&mut transaction, bound, known).await? {
            return Ok(SsoMember::Known(known));
        }
        let by_email = values![organization.0, identity.email.as_str()];
        let condition = "m.organization = $1 AND m.email = $2 AND m.kind = 'person'";
        let found = find(&mut transaction, condition, by_email).await?;
        let outcome = match (found, new) {
            (Some(member), _) if must_confirm(&mut transaction, &member, identity).await? => {
                return Ok(SsoMember::Unbound(member));
            }
            (Some(member), _) => SsoMember::Known(member),
            (None, None) => return Ok(SsoMember::Nobody),
            // Another request is creating the same member; the next sign-in finds it.
            (None, Some(new)) => match insert(&mut transaction, organization, new).await? {
                Some(member) => SsoMember::Made(member),
                None => return Ok(SsoMember::Nobody),
            },
        };
        if let SsoMember::Known(member) | SsoMember::Made(member) = &outcome
            && !bind(&mut transaction, member, identity).await?
        {
            return Ok(SsoMember::Another);
        }
        if matches!(outcome, SsoMember::Made(_)) {
            remember(&mut transaction, audit).await?;
        }
        transaction.commit().await?;
        Ok(outcome)
    }

    /// Links an identity to a member who confirmed it. Returns false if the member has another
    /// subject at this provider, or if the subject belongs to another member.
    #[boxed]
    pub async fn bind_sso(
        &self,
        member: &MemberRow,
        identity: &SsoIdentity,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        if !bind(&mut transaction, member, identity).await? {
            return Ok(false);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// Returns whether the member must confirm the identity: the member can authenticate in another way
/// and has no link to this provider yet. Otherwise an administrator who adds a provider could act
/// as any member whose address that provider asserts.
async fn must_confirm(
    transaction: &mut Transaction,
    member: &MemberRow,
    identity: &SsoIdentity,
) -> Result<bool, StoreError> {
    let find = "SELECT issuer FROM sso_identities WHERE member = $1";
    let rows = transaction.fetch(find, values![member.id.0]).await?;
    let issuers: Result<Vec<String>, StoreError> =
        rows.iter().map(|row| row.columns().text("issuer")).collect();
    let issuers = issuers?;
    let is_known_otherwise = !issuers.is_empty() || !member.password_hash.is_empty();
    Ok(is_known_otherwise && !issuers.contains(&identity.issuer))
}

async fn find(
    transaction: &mut Transaction,
    condition: &str,
    values: Vec<crate::db::Value>,
) -> Result<Option<MemberRow>, StoreError> {
    let sql = format!("SELECT {} FROM members m WHERE {condition}", member_columns("m"));
    let row = transaction.fetch_one(sql, values).await?;
    row.map(|row| member(&mut row.columns_of("m"))).transpose()
}

/// Returns false if the member has another subject at this provider.
async fn bind(
    transaction: &mut Transaction,
    member: &MemberRow,
    identity: &SsoIdentity,
) -> Result<bool, StoreError> {
    let insert = "INSERT INTO sso_identities (organization, issuer, subject, member, created_at) \
                  VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
    let (issuer, subject) = (identity.issuer.as_str(), identity.subject.as_str());
    let values = values![member.organization.0, issuer, subject, member.id.0, now_ms()];
    Ok(transaction.execute(insert, values).await? == 1)
}
