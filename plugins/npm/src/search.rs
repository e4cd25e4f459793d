//! `npm search`: finds packages by the words in their names, summaries and keywords, and filters
//! them by qualifiers such as `scope:`.

use crate::name::PackageName;
use crate::records::{PackageRecord, VersionRecord};
use crate::{manifest, proxy};
use packhouse_sdk::{
    Content, Context, Error, Failure, Params, ReadAt, Repository, Request, Response, Timestamp,
    percent_encode,
};
use serde_json::{Map, Value, json};

/// Maximum number of packages of one page.
const PAGE: u32 = 250;
/// Maximum number of bytes of an upstream's response.
const ANSWER: u64 = 4 << 20;

/// A parsed search text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Query {
    words: String,
    scope: Option<String>,
    keywords: Vec<String>,
    people: Vec<String>,
}

impl Query {
    fn parse(text: &str) -> Self {
        let mut query = Self::default();
        let mut words = Vec::new();
        for word in text.split_whitespace() {
            match word.split_once(':') {
                Some(("scope", scope)) => query.scope = Some(scope.trim_start_matches('@').to_owned()),
                Some(("keywords", list)) => {
                    query.keywords.extend(list.split([',', '+']).map(str::to_lowercase))
                }
                Some(("author" | "maintainer", person)) => query.people.push(person.to_lowercase()),
                Some(("is" | "not" | "boost-exact", _)) => {}
                _ => words.push(word),
            }
        }
        query.words = words.join(" ");
        query
    }

    /// Returns true if the query has no qualifiers.
    fn is_plain(&self) -> bool {
        self.scope.is_none() && self.keywords.is_empty() && self.people.is_empty()
    }

    fn matches(&self, found: &SearchHit) -> bool {
        let keywords: Vec<String> = found.keywords().into_iter().map(str::to_lowercase).collect();
        let keyword = |keyword: &String| keywords.contains(keyword);
        let people: Vec<String> = found.people().map(str::to_lowercase).collect();
        self.scope.as_deref().is_none_or(|scope| found.name.scope() == Some(scope))
            && (self.keywords.is_empty() || self.keywords.iter().any(keyword))
            && self.people.iter().all(|person| people.contains(person))
    }
}

/// A package with the manifest of its latest version.
struct SearchHit {
    name: PackageName,
    package: PackageRecord,
    number: String,
    /// Publication time of the latest version, in ms since 1970.
    time: u64,
    latest: Map<String, Value>,
}

impl SearchHit {
    /// Reads a found package. Returns `None` if it was removed after the search.
    fn read(repository: &Repository, name: &str) -> Result<Option<Self>, Error> {
        let Some(name) = PackageName::new(name) else { return Ok(None) };
        let Some(package) = PackageRecord::find(repository, &name)? else { return Ok(None) };
        let package = package.value;
        let number = package.tags.get("latest").cloned().unwrap_or_default();
        let Some(version) = VersionRecord::find(repository, &name, &number)? else { return Ok(None) };
        let latest = serde_json::from_str(&version.full)?;
        Ok(Some(Self { name, package, number, time: version.facts.time, latest }))
    }

    fn keywords(&self) -> Vec<&str> {
        manifest::keywords(&self.latest)
    }

    fn people(&self) -> impl Iterator<Item = &str> {
        let author = self.latest.get("author");
        let all = self.package.maintainers.iter().chain(author);
        all.filter_map(|person| person.as_str().or_else(|| person.get("name")?.as_str()))
    }

    fn object(&self) -> Value {
        let username = |person: &Value| {
            let text = |member: &str| person.get(member).cloned().unwrap_or_default();
            json!({"username": text("name"), "email": text("email")})
        };
        let maintainers: Vec<Value> = self.package.maintainers.iter().map(username).collect();
        let publisher = self.latest.get("_npmUser").map(username).or_else(|| maintainers.first().cloned());
        let publisher = publisher.unwrap_or_else(|| json!({"username": "", "email": ""}));
        let mut links = Map::new();
        for (link, member) in
            [("homepage", "/homepage"), ("repository", "/repository/url"), ("bugs", "/bugs/url")]
        {
            let value = Value::Object(self.latest.clone());
            if let Some(found) = value.pointer(member).filter(|found| found.is_string()) {
                links.insert(link.to_owned(), found.clone());
            }
        }
        let package = json!({
            "name": self.name.as_str(), "scope": self.name.scope().unwrap_or("unscoped"), "version": self.number,
            "description": self.latest.get("description").and_then(Value::as_str).unwrap_or_default(),
            "keywords": self.keywords(), "date": Timestamp::from_ms(self.time).to_rfc3339(),
            "author": self.latest.get("author").cloned().unwrap_or_default(), "links": links,
            "publisher": publisher,
            "maintainers": maintainers,
        });
        json!({"package": package, "score": {"final": 1, "detail": {"quality": 1, "popularity": 1, "maintenance": 1}},
            "searchScore": 1})
    }
}

pub(crate) fn search(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let query = Query::parse(request.query("text").unwrap_or_default());
    let number =
        |name: &str, default: u32| request.query(name).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (from, size) = (number("from", 0), number("size", 20).min(PAGE));
    let (mut objects, mut total) = (Vec::new(), 0);
    for repository in cx.hosted()? {
        let (found, count) = if query.is_plain() {
            plain(repository, &query.words, from, size)?
        } else {
            filtered(repository, &query, from as usize, size as usize)?
        };
        objects.extend(found.iter().map(SearchHit::object));
        total += count;
    }
    let mut left_out = cx.left_out();
    for proxy in cx.proxies()? {
        let answer = search_upstream(cx, request, proxy).map(Some);
        let (found, count) = left_out.unless_failed(proxy, answer)?.unwrap_or_default();
        objects.extend(found);
        total += count;
    }
    objects.truncate(size as usize);
    let time = Timestamp::from_ms(cx.now()).to_rfc3339();
    Ok(Response::json(&json!({"objects": objects, "total": total, "time": time}))?.revalidate())
}

/// Searches an upstream, and returns a page of packages and the total number. Leaves out packages
/// that the host forbids to request from the upstream. Does not send a query that contains the name
/// of such a package.
fn search_upstream(
    cx: &Context,
    request: &Request,
    proxy: &Repository,
) -> Result<(Vec<Value>, u64), Failure> {
    let words = request.query("text").unwrap_or_default().split_whitespace().map(str::to_owned);
    if !proxy.withheld(&words.collect::<Vec<_>>())?.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let Some(Content::Blob(blob)) = proxy::pass_on(cx, proxy, &target(request))? else {
        return Ok((Vec::new(), 0));
    };
    let answer: Value = serde_json::from_slice(&blob.read_all(ANSWER)?).unwrap_or_default();
    let mut objects = answer.get("objects").and_then(Value::as_array).cloned().unwrap_or_default();
    let name = |object: &Value| {
        object.pointer("/package/name").and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let withheld = proxy.withheld(&objects.iter().map(name).collect::<Vec<_>>())?;
    let before = objects.len();
    objects.retain(|object| !withheld.contains(&name(object)));
    let total = answer.get("total").and_then(Value::as_u64).unwrap_or_default();
    let left = before - objects.len();
    Ok((objects, total.saturating_sub(left as u64)))
}

/// Returns the path and query of an upstream search.
fn target(request: &Request) -> String {
    let pairs: Vec<String> = request
        .query_pairs()
        .iter()
        .map(|(name, value)| format!("{}={}", percent_encode(name), percent_encode(value)))
        .collect();
    format!("-/v1/search?{}", pairs.join("&"))
}

fn plain(repository: &Repository, words: &str, from: u32, size: u32) -> Result<(Vec<SearchHit>, u64), Error> {
    let matches = repository.search(words, from, size)?;
    Ok((read(repository, &matches.names)?, matches.total))
}

/// Searches with qualifiers. The host searches only for words. The values of qualifiers are in the
/// manifests, so this function reads the manifests of the first page of matches and filters them.
fn filtered(
    repository: &Repository,
    query: &Query,
    from: usize,
    size: usize,
) -> Result<(Vec<SearchHit>, u64), Error> {
    let matches = repository.search(&query.words, 0, PAGE)?;
    let mut found = read(repository, &matches.names)?;
    found.retain(|found| query.matches(found));
    let total = found.len() as u64;
    Ok((found.into_iter().skip(from).take(size).collect(), total))
}

fn read(repository: &Repository, names: &[String]) -> Result<Vec<SearchHit>, Error> {
    names.iter().filter_map(|name| SearchHit::read(repository, name).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_qualifiers_are_parsed() {
        let query = Query::parse("left pad scope:@s keywords:a,B author:Ann not:unstable");
        let expected = Query {
            words: "left pad".to_owned(),
            scope: Some("s".to_owned()),
            keywords: vec!["a".to_owned(), "b".to_owned()],
            people: vec!["ann".to_owned()],
        };
        assert_eq!(query, expected);
    }
}
