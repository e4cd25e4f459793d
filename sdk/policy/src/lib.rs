//! SDK for policies.
//!
//! A policy is a type that implements [`Policy`]: it describes itself, reads its settings, and
//! judges versions one by one. [`export_policy!`] makes a component of the type. The component
//! imports nothing.
//!
//! ```
//! use packhouse_policy::{Context, Description, Facts, Policy, Ruling};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct Settings {
//!     most_files: usize,
//! }
//!
//! struct FewFiles;
//!
//! impl Policy for FewFiles {
//!     type Settings = Settings;
//!
//!     fn describe() -> Description {
//!         Description::new("few-files", "0.1.0", "A version has few files")
//!             .setting("most_files", "integer", "Largest number of files", true)
//!     }
//!
//!     fn judge(settings: &Settings, _context: &Context, version: &Facts) -> Ruling {
//!         if version.files.len() <= settings.most_files {
//!             return Ruling::Allow;
//!         }
//!         Ruling::deny(format!("{} has {} files", version.title(), version.files.len()))
//!     }
//! }
//!
//! packhouse_policy::export_policy!(FewFiles);
//!
//! let settings = packhouse_policy::settings::<FewFiles>(r#"{"most_files": 0}"#).unwrap();
//! let version = Facts { name: "lib".to_owned(), version: "1.0".to_owned(), ..Facts::default() };
//! assert_eq!(FewFiles::judge(&settings, &Context::default(), &version), Ruling::Allow);
//! ```

#![warn(missing_docs)]

// The exporting macro refers to this crate by its name. Without this line, the name would be
// unknown where the macro expands inside this crate.
extern crate self as packhouse_policy;

mod description;
mod facts;
mod pattern;
#[cfg(target_arch = "wasm32")]
mod wasm;

pub use description::{Description, one_of};
pub use facts::{Advisory, Context, Facts, File, Provenance, Purpose, Ruling};
pub use pattern::{fits, fits_any};
pub use serde_json::Value;

/// Policy that judges versions.
pub trait Policy {
    /// Settings of an organization. Use `#[serde(deny_unknown_fields)]` to report misspelled
    /// settings.
    type Settings: serde::de::DeserializeOwned;

    /// Describes the policy and its settings.
    fn describe() -> Description;

    /// Checks settings that were parsed.
    ///
    /// # Errors
    /// A text for people that says what is wrong with the settings.
    fn check(_settings: &Self::Settings) -> Result<(), String> {
        Ok(())
    }

    /// Judges a version. The result must depend only on the arguments.
    fn judge(settings: &Self::Settings, context: &Context, version: &Facts) -> Ruling;
}

/// Parses and checks settings.
///
/// # Errors
/// A text for people that says what is wrong with the settings.
pub fn settings<P: Policy>(text: &str) -> Result<P::Settings, String> {
    let settings: P::Settings = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        // The settings are JSON in one line, so the position of an error does not help people.
        message.split(" at line ").next().unwrap_or(&message).to_owned()
    })?;
    P::check(&settings)?;
    Ok(settings)
}

/// Exports a policy as the crate's component: `export_policy!(MyPolicy)`. On targets other than
/// Wasm, the macro only checks that the type implements [`Policy`].
#[macro_export]
macro_rules! export_policy {
    ($policy:ty) => {
        const _: () = {
            const fn is_policy<P: $crate::Policy>() {}
            is_policy::<$policy>();
            #[cfg(target_arch = "wasm32")]
            $crate::__export_policy!($policy);
        };
    };
}

/// Expansion of [`export_policy!`] in Wasm.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_policy {
    ($policy:ty) => {
        type Component = $crate::__private::Component<$policy>;
        $crate::__private::export_policy_component!(Component with_types_in $crate::__private::generated);
    };
}

/// Items for the expansion of [`export_policy!`]; not part of the API.
#[doc(hidden)]
pub mod __private {
    #[cfg(target_arch = "wasm32")]
    pub use crate::wasm::{Component, export_policy_component, generated, wit_bindgen};
}
