//! Links of a page, as indexes for people and for old clients have them.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// An `a` with its attributes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Link {
    pub(crate) href: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Link {
    /// An attribute; none where it is not there.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct Found {
    links: RefCell<Vec<Link>>,
    within: RefCell<bool>,
}

impl TokenSink for Found {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) if &*tag.name == "a" => {
                let begins = tag.kind == TagKind::StartTag;
                *self.within.borrow_mut() = begins;
                if begins {
                    let pair = |attribute: &html5ever::Attribute| {
                        (attribute.name.local.to_string(), attribute.value.to_string())
                    };
                    let attributes: Vec<_> = tag.attrs.iter().map(pair).collect();
                    let href = attributes.iter().find(|(name, _)| name == "href");
                    let href = href.map(|(_, value)| value.trim().to_owned()).unwrap_or_default();
                    self.links.borrow_mut().push(Link { href, attributes, text: String::new() });
                }
            }
            Token::CharacterTokens(text) if *self.within.borrow() => {
                if let Some(link) = self.links.borrow_mut().last_mut() {
                    link.text.push_str(&text);
                }
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// The links of a page that lead somewhere, in their order.
pub(crate) fn links(page: &str) -> Vec<Link> {
    let tokenizer = Tokenizer::new(Found::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(page));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let links = tokenizer.sink.links.into_inner();
    links.into_iter().filter(|link| !link.href.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_attributes_and_text() {
        let page = "<html><a href='x.whl#sha256=1' data-yanked=\"bad &amp; ugly\" data-requires-python=&gt;=3>x<br>y</a><a>no</a>\
                    <!-- <a href=c>c</a> --><A HREF=z>Z</A>";
        let found = links(page);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].href.as_str(), found[0].text.as_str()), ("x.whl#sha256=1", "xy"));
        assert_eq!(found[0].attribute("data-yanked"), Some("bad & ugly"));
        assert_eq!(found[0].attribute("data-requires-python"), Some(">=3"));
        assert_eq!(found[1].href, "z");
    }
}
