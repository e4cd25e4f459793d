//! A policy that limits the size of files.

use packhouse_policy::{Context, Description, Facts, Policy, Ruling};
use serde::Deserialize;

/// Settings of the policy.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Maximum size of a file in bytes.
    most_bytes: u64,
}

/// Denies versions with a file that is too large.
pub struct MyPolicy;

impl Policy for MyPolicy {
    type Settings = Settings;

    fn describe() -> Description {
        Description::new("my-policy", "0.1.0", "Limits the size of files").setting(
            "most_bytes",
            "integer",
            "Maximum size of a file in bytes",
            true,
        )
    }

    fn judge(settings: &Settings, _context: &Context, version: &Facts) -> Ruling {
        match version.files.iter().find(|file| file.size > settings.most_bytes) {
            Some(file) => Ruling::deny(format!("{} has a file of {} bytes", version.title(), file.size)),
            None => Ruling::Allow,
        }
    }
}

packhouse_policy::export_policy!(MyPolicy);

#[cfg(test)]
mod tests {
    use packhouse_policy::File;

    use super::*;

    fn ruling(size: u64) -> Ruling {
        let settings = packhouse_policy::settings::<MyPolicy>(r#"{"most_bytes": 10}"#).unwrap();
        let files = vec![File { size, ..File::default() }];
        let version = Facts { name: "lib".to_owned(), version: "1.0".to_owned(), files, ..Facts::default() };
        MyPolicy::judge(&settings, &Context::default(), &version)
    }

    #[test]
    fn a_large_file_is_denied() {
        assert_eq!(ruling(10), Ruling::Allow);
        assert_eq!(ruling(11), Ruling::deny("lib 1.0 has a file of 11 bytes"));
    }

    #[test]
    fn misspelled_settings_are_named() {
        let wrong = packhouse_policy::settings::<MyPolicy>(r#"{"most_byte": 1}"#);
        assert!(wrong.err().unwrap().contains("most_byte"));
    }
}
