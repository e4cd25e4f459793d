//! Resolves the addresses in an upstream's documents (RFC 3986, section 5). The host decides which
//! addresses may be fetched.

/// Returns the absolute address of `reference` in a document that was fetched from `base`, without
/// a fragment. `None` for a scheme other than http and https, and for a reference with whitespace
/// or control characters.
#[must_use]
pub fn join(base: &str, reference: &str) -> Option<String> {
    let reference = reference.trim().split('#').next().unwrap_or_default();
    if reference.contains(|symbol: char| symbol.is_control() || symbol.is_whitespace()) {
        return None;
    }
    let (scheme, rest) = base.split_once("://")?;
    let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if let Some(rest) = reference.strip_prefix("//") {
        return Some(format!("{scheme}://{rest}"));
    }
    let leading = reference.split(['/', '?']).next().unwrap_or_default();
    if let Some((other, _)) = leading.split_once(':') {
        let web = other.eq_ignore_ascii_case("http") || other.eq_ignore_ascii_case("https");
        return web.then(|| reference.to_owned());
    }
    let (target, query) =
        reference.split_once('?').map_or((reference, None), |(path, query)| (path, Some(query)));
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let merged = match target.strip_prefix('/') {
        Some(absolute) => absolute.to_owned(),
        None if folder.is_empty() => target.to_owned(),
        None => format!("{folder}/{target}"),
    };
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    Some(format!("{scheme}://{host}/{}{query}", without_dots(&merged)))
}

/// Returns `address` relative to `upstream` if `address` lies below it; otherwise returns `address`
/// unchanged. The host sends the upstream's credentials only with relative targets.
#[must_use]
pub fn below<'a>(upstream: &str, address: &'a str) -> &'a str {
    let rest = address.strip_prefix(upstream.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
    rest.filter(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains("://")).unwrap_or(address)
}

fn without_dots(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    let last = path.rsplit('/').next().unwrap_or_default();
    for segment in path.split('/') {
        match segment {
            "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    if matches!(last, "." | "..") {
        segments.push("");
    }
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::{below, join};
    use proptest::prelude::*;

    #[test]
    fn addresses_are_made_absolute() {
        let base = "https://a.test/x/simple/demo/";
        for (reference, expected) in [
            ("../../packages/f.whl#sha256=1", Some("https://a.test/x/packages/f.whl")),
            ("f.whl", Some("https://a.test/x/simple/demo/f.whl")),
            ("./f.whl?a=/b", Some("https://a.test/x/simple/demo/f.whl?a=/b")),
            ("/f.whl", Some("https://a.test/f.whl")),
            ("../../../../../f.whl", Some("https://a.test/f.whl")),
            ("//b.test/f.whl", Some("https://b.test/f.whl")),
            ("http://b.test/f%20g.whl", Some("http://b.test/f%20g.whl")),
            ("javascript:alert(1)", None),
            ("file:///etc/passwd", None),
            ("a b", None),
            ("a\nb", None),
        ] {
            assert_eq!(join(base, reference).as_deref(), expected, "{reference}");
        }
        assert_eq!(join("https://a.test", "f").as_deref(), Some("https://a.test/f"));
        assert_eq!(join("nothing", "f"), None);
    }

    #[test]
    fn an_address_below_the_upstream_is_relative() {
        for (upstream, address, target) in [
            ("https://a.test/x", "https://a.test/x/f.tgz", "f.tgz"),
            ("https://a.test/x/", "https://a.test/x/y/f.tgz?z=1", "y/f.tgz?z=1"),
            ("https://a.test/x", "https://a.test/xy/f.tgz", "https://a.test/xy/f.tgz"),
            ("https://a.test/x", "https://b.test/x/f.tgz", "https://b.test/x/f.tgz"),
            ("https://a.test", "https://a.test//f", "https://a.test//f"),
            ("https://a.test", "https://a.test/https://b.test/f", "https://a.test/https://b.test/f"),
        ] {
            assert_eq!(below(upstream, address), target, "{upstream} {address}");
        }
    }

    proptest! {
        #[test]
        fn any_reference_is_read(base in "https?://[a-z.]{1,8}(/[a-z./]{0,12})?|.{0,20}", reference in ".{0,30}") {
            let _ = join(&base, &reference);
        }
    }
}
