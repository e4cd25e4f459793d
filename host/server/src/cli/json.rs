//! Access to members of JSON objects that the server sent.

use serde_json::Value;

/// Members of a JSON object.
pub(super) trait Members {
    /// Returns a member, or null if it is absent or the value is not an object.
    fn at(&self, name: &str) -> &Value;

    /// Sets a member. Does nothing if the value is not an object.
    fn set(&mut self, name: &str, member: Value);
}

impl Members for Value {
    fn at(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&Value::Null)
    }

    fn set(&mut self, name: &str, member: Value) {
        if let Some(members) = self.as_object_mut() {
            members.insert(name.to_owned(), member);
        }
    }
}
