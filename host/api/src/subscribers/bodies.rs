//! The bodies that make and change subscribers and groups of subscribers.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use super::fields;
use crate::error::ApiError;
use crate::fields::{Field, given, name};
use crate::operations::key_owners::KeyOwnerRequest;

/// A body that says what a subscriber or a group is to be.
pub(crate) trait KeyOwnerBody: DeserializeOwned {
    /// What is wanted.
    fn request(self) -> Result<KeyOwnerRequest, ApiError>;
}

/// A subscriber to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateSubscriber {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// Where it can be reached.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    email: Field,
    /// Ids of repositories that the caller may read.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    repositories: Field,
}

/// What is to change; what is absent stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeSubscriber {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    /// Where it can be reached; null takes it away.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    email: Field,
    /// Ids of all its repositories from now on; the caller may read those that are new.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    repositories: Field,
}

/// A group of subscribers to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateSubscriberGroup {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// Ids of those who are in it.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    subscribers: Field,
    /// Ids of repositories that the caller may read.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    repositories: Field,
}

/// What is to change; what is absent stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeSubscriberGroup {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    /// Ids of those who are in it from now on.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    subscribers: Field,
    /// Ids of all its repositories from now on; the caller may read those that are new.
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

/// A name that may be absent.
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
