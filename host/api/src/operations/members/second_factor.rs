//! Removal of the second factor of a member who has lost it.

use super::rights;
use crate::error::ApiError;
use crate::operations::confirmations::{Action, Confirmation};
use crate::operations::{Actor, second_factor};

/// Removes a member's second factor, so that the password alone signs the member in. 403
/// `role_mismatch` if the member holds more than the actor, 404 `not_found` without a second
/// factor, 409 `second_factor_required` for the actor's own if the organization requires one.
pub async fn remove_second_factor(
    actor: &Actor,
    confirmation: &Confirmation,
    id: &str,
) -> Result<(), ApiError> {
    confirmation.judge(actor, Action::ManageMembers).await?;
    let row = rights::find_to_manage(actor, id).await?;
    rights::may_manage(actor, &row).await?;
    if rights::is_own(actor, id) {
        second_factor::check_removal_of_own(actor).await?;
    }
    second_factor::delete(actor, &row).await
}
