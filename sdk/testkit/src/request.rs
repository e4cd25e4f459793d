//! Requests that tests send, the same for every world.

/// Request as a client sends it to a repository.
#[derive(Clone, Debug, Default)]
pub struct TestRequest {
    /// Method in upper case.
    pub method: String,
    /// Target below the repository's address: a percent-encoded path that begins with `/`, and its
    /// query.
    pub target: String,
    /// Claim to which the request is sent, instead of the repository's address.
    pub claim: Option<String>,
    /// Header fields; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Bytes of the body.
    pub body: Vec<u8>,
    /// Form fields, instead of the bytes.
    pub parts: Vec<Form>,
    /// Name of the caller.
    pub caller: Option<String>,
}

/// Field of a form.
#[derive(Clone, Debug)]
pub struct Form {
    /// Name of the field.
    pub name: String,
    /// Name of the file, if the field is one.
    pub filename: Option<String>,
    /// Value of the field.
    pub value: Vec<u8>,
}

/// Path segments and query pairs.
pub(crate) type Address = (Vec<String>, Vec<(String, String)>);

impl TestRequest {
    /// Creates a request without headers or body.
    pub fn new(method: &str, target: &str) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), ..Self::default() }
    }

    /// Returns the header fields as a client sends them. A body that is not a form gets a
    /// `content-length`, unless the fields already state how the body is sent.
    pub fn sent_headers(&self) -> Vec<(String, String)> {
        let mut headers = self.headers.clone();
        let is_stated =
            |(name, _): &(String, String)| name == "content-length" || name == "transfer-encoding";
        let writes = matches!(self.method.as_str(), "PUT" | "POST" | "PATCH");
        if writes && self.parts.is_empty() && !headers.iter().any(is_stated) {
            headers.push(("content-length".to_owned(), self.body.len().to_string()));
        }
        headers
    }

    /// Returns the path and the query, decoded like in the host; `None` if the host would refuse
    /// the target.
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

/// Percent-decodes a text once.
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
