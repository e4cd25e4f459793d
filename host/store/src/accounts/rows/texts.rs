//! Columns that hold a JSON list of texts.

use crate::error::StoreError;

/// Returns the JSON list of these texts.
pub(crate) fn list_json(texts: &[String]) -> String {
    serde_json::json!(texts).to_string()
}

/// Parses a JSON list of texts. `Corrupt` names the column.
pub(crate) fn read_list(json: &str, column: &str) -> Result<Vec<String>, StoreError> {
    serde_json::from_str(json)
        .map_err(|problem| StoreError::Corrupt(format!("the list in the column {column}: {problem}")))
}
