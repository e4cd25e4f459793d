//! Description of a policy.

use serde_json::{Map, Value, json};

/// Name, settings and needs of a policy.
#[derive(Clone, Debug)]
pub struct Description {
    name: String,
    version: String,
    summary: String,
    wants: Vec<&'static str>,
    ignores: Vec<&'static str>,
    required: Vec<String>,
    settings: Map<String, Value>,
}

impl Description {
    /// Creates a description with this name (`a-z`, `0-9`, `-`), version and one line for people.
    #[must_use]
    pub fn new(name: &str, version: &str, summary: &str) -> Description {
        Description {
            name: name.to_owned(),
            version: version.to_owned(),
            summary: summary.to_owned(),
            wants: Vec::new(),
            ignores: Vec::new(),
            required: Vec::new(),
            settings: Map::new(),
        }
    }

    /// Requests [`Context::names_in_use`](crate::Context::names_in_use). Without this request the
    /// list is empty, because the host needs a database query for it.
    #[must_use]
    pub fn wants_names(mut self) -> Description {
        self.wants.push("names");
        self
    }

    /// Declares that the policy never uses [`Facts::provenance`](crate::Facts::provenance), which
    /// may then be empty. The host then does not need to read and verify signed statements.
    #[must_use]
    pub fn ignores_provenance(mut self) -> Description {
        self.ignores.push("provenance");
        self
    }

    /// Declares that the policy never uses [`Facts::advisories`](crate::Facts::advisories), which
    /// may then be empty.
    #[must_use]
    pub fn ignores_advisories(mut self) -> Description {
        self.ignores.push("advisories");
        self
    }

    /// Adds a setting: its name, its JSON Schema type (`string`, `integer`, `boolean`), its
    /// purpose, and whether it is required.
    #[must_use]
    pub fn setting(self, name: &str, kind: &str, about: &str, required: bool) -> Description {
        self.schema(name, json!({"type": kind, "description": about}), required)
    }

    /// Adds a setting that is a list of texts.
    #[must_use]
    pub fn list(self, name: &str, about: &str, required: bool) -> Description {
        self.schema(
            name,
            json!({"type": "array", "items": {"type": "string"}, "description": about}),
            required,
        )
    }

    /// Adds a setting that is a list of patterns for packages or for `PACKAGE@VERSION`. The host
    /// converts the patterns to the format's spelling before it passes the settings to
    /// [`judge`](crate::Policy::judge).
    #[must_use]
    pub fn packages(self, name: &str, about: &str, required: bool) -> Description {
        let items = json!({"type": "string", "format": "package-pattern"});
        self.schema(name, json!({"type": "array", "items": items, "description": about}), required)
    }

    /// Adds a setting with its own JSON Schema.
    #[must_use]
    pub fn schema(mut self, name: &str, schema: Value, required: bool) -> Description {
        self.settings.insert(name.to_owned(), schema);
        if required {
            self.required.push(name.to_owned());
        }
        self
    }

    /// Returns the JSON object that the contract defines.
    #[must_use]
    pub fn to_json(&self) -> String {
        json!({
            "name": self.name, "version": self.version, "summary": self.summary, "wants": self.wants,
            "ignores": self.ignores,
            "settings": {
                "type": "object", "properties": self.settings, "required": self.required, "additionalProperties": false,
            },
        })
        .to_string()
    }
}

/// Returns the JSON Schema of a setting that is one of these words.
#[must_use]
pub fn one_of(words: &[&str], about: &str) -> Value {
    json!({"type": "string", "enum": words, "description": about})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_a_json_object() {
        let described = Description::new("a", "1.0.0", "b").wants_names().list("allow", "which", true);
        let described = described.ignores_provenance();
        let value: Value = serde_json::from_str(&described.to_json()).unwrap();
        assert_eq!((&value["wants"], &value["ignores"]), (&json!(["names"]), &json!(["provenance"])));
        assert_eq!(value["settings"]["required"], json!(["allow"]));
        assert_eq!(value["settings"]["properties"]["allow"]["type"], "array");
    }
}
