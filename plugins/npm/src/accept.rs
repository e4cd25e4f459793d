//! Selection of the abbreviated or the full form of a packument.

use packhouse_sdk::Accept;

/// Media type of the abbreviated form, in the exact spelling with which clients compare it.
pub(crate) const ABBREVIATED: &str = "application/vnd.npm.install-v1+json";

/// Returns true if `Accept` names the abbreviated form and does not prefer the full form.
pub(crate) fn prefers_abbreviated(accept: Option<&str>) -> bool {
    let accept = Accept::parse(accept.unwrap_or_default());
    let Some(abbreviated) = accept.named(ABBREVIATED).filter(|quality| *quality > 0) else { return false };
    accept.named("application/json").is_none_or(|full| abbreviated >= full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_the_form_that_they_ask_for() {
        for (accept, expected) in [
            ("application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*", true),
            ("application/vnd.npm.install-v1+json", true),
            ("application/json;q=0.5, Application/vnd.npm.install-v1+json;q=0.5", true),
            ("application/json", false),
            ("*/*", false),
            ("application/json, application/vnd.npm.install-v1+json;q=0.5", false),
            ("application/vnd.npm.install-v1+json;q=0, */*", false),
            ("", false),
        ] {
            assert_eq!(prefers_abbreviated(Some(accept)), expected, "{accept}");
        }
        assert!(!prefers_abbreviated(None));
    }
}
