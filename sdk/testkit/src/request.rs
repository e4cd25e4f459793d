//! A request of a test, the same for every world.

/// A request, as a client sends it to a repository.
#[derive(Clone, Debug, Default)]
pub struct TestRequest {
    /// In upper case.
    pub method: String,
    /// Below the repository's address: a path that begins with `/`, percent-encoded, and its query.
    pub target: String,
    /// The claim that it goes to, in place of the repository's address.
    pub claim: Option<String>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its bytes.
    pub body: Vec<u8>,
    /// A form's fields, in place of the bytes.
    pub parts: Vec<Form>,
    /// Who asks.
    pub caller: Option<String>,
}

/// A field of a form.
#[derive(Clone, Debug)]
pub struct Form {
    /// The field's name.
    pub name: String,
    /// The file's name, where it is one.
    pub filename: Option<String>,
    /// Its value.
    pub value: Vec<u8>,
}

/// A path's segments and a query's pairs.
pub(crate) type Address = (Vec<String>, Vec<(String, String)>);

impl TestRequest {
    /// A request without headers or body.
    pub fn new(method: &str, target: &str) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), ..Self::default() }
    }

    /// The header fields as a client sends them: with the length of a body that is no form, unless they say how it comes.
    pub fn sent_headers(&self) -> Vec<(String, String)> {
        let mut headers = self.headers.clone();
        let told = |(name, _): &(String, String)| name == "content-length" || name == "transfer-encoding";
        let writes = matches!(self.method.as_str(), "PUT" | "POST" | "PATCH");
        if writes && self.parts.is_empty() && !headers.iter().any(told) {
            headers.push(("content-length".to_owned(), self.body.len().to_string()));
        }
        headers
    }

    /// The path and the query decoded as the host does it; none when it would refuse them.
    pub(crate) fn address(&self) -> Option<Address> {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let path = path.strip_prefix('/')?;
        let segments = path.split('/').filter(|_| !path.is_empty());
        let path = segments.map(segment).collect::<Option<_>>()?;
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(&name.replace('+', " "))?, decode(&value.replace('+', " "))?))
        };
        Some((path, pairs.map(pair).collect::<Option<_>>()?))
    }
}

fn segment(encoded: &str) -> Option<String> {
    let segment = decode(encoded)?;
    let refused = segment == "." || segment == ".." || segment.chars().any(char::is_control);
    (!refused).then_some(segment)
}

/// Percent-decoded once.
fn decode(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}
