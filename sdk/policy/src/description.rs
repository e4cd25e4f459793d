//! What a policy says of itself.

use serde_json::{Map, Value, json};

/// What a policy says of itself.
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
    /// A policy of this name (`a-z`, `0-9`, `-`), version and one line for people.
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

    /// It wants [`Context::names_in_use`](crate::Context::names_in_use), which costs the host a question to its database.
    #[must_use]
    pub fn wants_names(mut self) -> Description {
        self.wants.push("names");
        self
    }

    /// It never looks at [`Facts::provenance`](crate::Facts::provenance), which may then be empty: the host need not read and judge what
    /// is signed of a version.
    #[must_use]
    pub fn ignores_provenance(mut self) -> Description {
        self.ignores.push("provenance");
        self
    }

    /// It never looks at [`Facts::advisories`](crate::Facts::advisories), which may then be empty.
    #[must_use]
    pub fn ignores_advisories(mut self) -> Description {
        self.ignores.push("advisories");
        self
    }

    /// A setting: its name, its type in JSON Schema (`string`, `integer`, `boolean`), what it is for, and whether it must be given.
    #[must_use]
    pub fn setting(self, name: &str, kind: &str, about: &str, required: bool) -> Description {
        self.schema(name, json!({"type": kind, "description": about}), required)
    }

    /// A setting that is a list of texts.
    #[must_use]
    pub fn list(self, name: &str, about: &str, required: bool) -> Description {
        self.schema(
            name,
            json!({"type": "array", "items": {"type": "string"}, "description": about}),
            required,
        )
    }

    /// A setting that is a list of patterns of packages, or of `PACKAGE@VERSION`. The host spells them as the format spells names before a
    /// version is judged.
    #[must_use]
    pub fn packages(self, name: &str, about: &str, required: bool) -> Description {
        let items = json!({"type": "string", "format": "package-pattern"});
        self.schema(name, json!({"type": "array", "items": items, "description": about}), required)
    }

    /// A setting by its own JSON Schema.
    #[must_use]
    pub fn schema(mut self, name: &str, schema: Value, required: bool) -> Description {
        self.settings.insert(name.to_owned(), schema);
        if required {
            self.required.push(name.to_owned());
        }
        self
    }

    /// As the contract has it.
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

/// The JSON Schema of a setting that is one of these words.
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
