//! What a policy is written with.
//!
//! A policy is a type that implements [`Policy`]: it describes itself, reads its settings, and judges one version after the other.
//! [`export_policy!`] makes a component of it, which imports nothing.
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
//!         Description::new("few-files", "0.1.0", "A version has few files").setting("most_files", "integer", "Files at most", true)
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

// The exporting macro's code names this crate from outside, and so does what it expands to in here.
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

/// A policy.
pub trait Policy {
    /// What an organization sets; `#[serde(deny_unknown_fields)]` tells it of what it spelt wrong.
    type Settings: serde::de::DeserializeOwned;

    /// What it is called, and which settings it has.
    fn describe() -> Description;

    /// Whether settings that can be read make sense: if not, what is wrong with them, for people.
    ///
    /// # Errors
    /// What is wrong.
    fn check(_settings: &Self::Settings) -> Result<(), String> {
        Ok(())
    }

    /// Judges a version. It must be a pure function of what it is given.
    fn judge(settings: &Self::Settings, context: &Context, version: &Facts) -> Ruling;
}

/// Reads settings.
///
/// # Errors
/// What is wrong with them, for people.
pub fn settings<P: Policy>(text: &str) -> Result<P::Settings, String> {
    let settings: P::Settings = serde_json::from_str(text).map_err(|error| {
        let said = error.to_string();
        // Settings are one line: where in it says nothing to people.
        said.split(" at line ").next().unwrap_or(&said).to_owned()
    })?;
    P::check(&settings)?;
    Ok(settings)
}

/// Exports a policy as the crate's component: `export_policy!(MyPolicy)`. Natively it only checks that the type is one.
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

/// What [`export_policy!`] expands to in Wasm.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_policy {
    ($policy:ty) => {
        type Component = $crate::__private::Component<$policy>;
        $crate::__private::export_policy_component!(Component with_types_in $crate::__private::generated);
    };
}

/// What [`export_policy!`] needs, and nobody else.
#[doc(hidden)]
pub mod __private {
    #[cfg(target_arch = "wasm32")]
    pub use crate::wasm::{Component, export_policy_component, generated, wit_bindgen};
}
