//! Bodies that create and change subscribers and subscriber groups.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use super::fields;
use crate::error::ApiError;
use crate::fields::{Field, given, name};
use crate::operations::key_owners::KeyOwnerRequest;

/// Body that creates or changes a subscriber or a group.
pub(crate) trait KeyOwnerBody: DeserializeOwned {
    fn request(self) -> Result<KeyOwnerRequest, ApiError>;
}

/// A new subscriber.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateSubscriber {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// Contact e-mail address.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    email: Field,
    /// Ids of repositories that the caller may read.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    repositories: Field,
}

/// Changes; absent fields stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeSubscriber {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    /// Contact e-mail address; null removes it.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    email: Field,
    /// Ids of all its repositories from now on; the caller must be able to read the added ones.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    repositories: Field,
}

/// A new subscriber group.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateSubscriberGroup {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// Ids of its subscribers.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    subscribers: Field,
    /// Ids of repositories that the caller may read.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    repositories: Field,
}

/// Changes; absent fields stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeSubscriberGroup {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    /// Ids of all its subscribers from now on.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    subscribers: Field,
    /// Ids of all its repositories from now on; the caller must be able to read the added ones.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    repositories: Field,
}

impl KeyOwnerBody for CreateSubscriber {
    fn request(self) -> Result<KeyOwnerRequest, ApiError> {
        of_subscriber(Some(name(&self.name)?), &self.email, &self.repositories)
    }
}

impl KeyOwnerBody for ChangeSubscriber {
    fn request(self) -> Result<KeyOwnerRequest, ApiError> {
        of_subscriber(changed_name(&self.name)?, &self.email, &self.repositories)
    }
}

impl KeyOwnerBody for CreateSubscriberGroup {
    fn request(self) -> Result<KeyOwnerRequest, ApiError> {
        of_group(Some(name(&self.name)?), &self.subscribers, &self.repositories)
    }
}

impl KeyOwnerBody for ChangeSubscriberGroup {
    fn request(self) -> Result<KeyOwnerRequest, ApiError> {
        of_group(changed_name(&self.name)?, &self.subscribers, &self.repositories)
    }
}

/// Reads a name that may be absent.
fn changed_name(field: &Field) -> Result<Option<String>, ApiError> {
    field.is_some().then(|| name(field)).transpose()
}

fn of_subscriber(
    name: Option<String>,
    email: &Field,
    repositories: &Field,
) -> Result<KeyOwnerRequest, ApiError> {
    Ok(KeyOwnerRequest {
        name,
        email: email.as_ref().map(fields::email).transpose()?,
        repositories: fields::maybe_ids(repositories, "repositories")?,
        subscribers: None,
    })
}

fn of_group(
    name: Option<String>,
    subscribers: &Field,
    repositories: &Field,
) -> Result<KeyOwnerRequest, ApiError> {
    Ok(KeyOwnerRequest {
        name,
        email: None,
        repositories: fields::maybe_ids(repositories, "repositories")?,
        subscribers: fields::maybe_ids(subscribers, "subscribers")?,
    })
}
