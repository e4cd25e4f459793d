//! Which of a packument's two forms a client asks for.

use packhouse_sdk::Accept;

/// The media type of the abbreviated form. Clients compare it letter by letter.
pub(crate) const ABBREVIATED: &str = "application/vnd.npm.install-v1+json";

/// Whether `Accept` asks for the abbreviated form: it names it, and wants nothing else more.
pub(crate) fn abbreviated(accept: Option<&str>) -> bool {
    let accept = Accept::parse(accept.unwrap_or_default());
    let Some(wanted) = accept.named(ABBREVIATED).filter(|quality| *quality > 0) else { return false };
    accept.named("application/json").is_none_or(|full| wanted >= full)
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
            assert_eq!(abbreviated(Some(accept)), expected, "{accept}");
        }
        assert!(!abbreviated(None));
    }
}
