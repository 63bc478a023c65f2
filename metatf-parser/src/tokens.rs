//! Classifies the tokens of a text for syntax highlighting.

use std::ops::Range;

use crate::index::{Index, SymbolKind};
use crate::lexer::{Kind, Token};
use crate::parse::lex;
use crate::schema::InterpretationWord;
use crate::vocabulary::{OTHER, PREDICTORS, Property, REST, ROLES};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A comment.
    Comment,
    /// A string.
    Text,
    /// A number.
    Number,
    /// A keyword of the language.
    Keyword,
    /// A section name.
    Section,
    /// A record name.
    Record,
    /// A field name.
    Field,
    /// A property defined by the language.
    Property,
    /// An annotation.
    Annotation,
    /// An operator in an expression.
    Operator,
}

/// Returns the highlighted tokens in text order. Tokens without a highlight, such as brackets and unresolved names, are
/// omitted. `index` is the [index](crate::index()) of the text.
#[must_use]
pub fn tokens(text: &[u8], index: &Index) -> Vec<(Range<usize>, TokenKind)> {
    let Some((text, lexed)) = lex(text) else { return Vec::new() };
    let mut uses = index.uses.iter().peekable();
    let mut expansions = index.expansions.iter().peekable();
    let mut before: Option<&Token> = None;
    let mut out: Vec<_> = lexed.comments.iter().map(|comment| (comment.span.range(), TokenKind::Comment)).collect();
    for (at, token) in lexed.tokens.iter().enumerate() {
        while uses.next_if(|u| u.span.start < token.span.start()).is_some() {}
        while expansions.next_if(|e| e.word.start < token.span.start()).is_some() {}
        let is_type = expansions.peek().is_some_and(|e| e.word == token.span.range());
        let of_use = uses.peek().filter(|u| u.span == token.span.range()).and_then(|u| index.symbol(u.symbol));
        let follows_dot = before.is_some_and(|b| b.kind == Kind::Mark(b'.'));
        let is_assignment = before.is_some_and(|b| matches!(b.kind, Kind::Mark(b'{' | b';')));
        let is_target = (follows_dot || is_assignment)
            && lexed.tokens.get(at + 1).is_some_and(|next| next.kind == Kind::Mark(b'='));
        let word = text.get(token.span.range()).unwrap_or_default();
        let kind = match (token.kind, of_use) {
            (Kind::Name | Kind::Text, _) if is_target => {
                let known = token.kind == Kind::Name && Property::named(word).is_some();
                Some(if known { TokenKind::Property } else { TokenKind::Annotation })
            }
            (Kind::Name, Some(symbol)) => Some(match symbol.kind {
                SymbolKind::Section | SymbolKind::SectionNumber => TokenKind::Section,
                SymbolKind::Record => TokenKind::Record,
                SymbolKind::Field => TokenKind::Field,
            }),
            (Kind::Name, None) if is_type => Some(TokenKind::Keyword),
            // The name of a repetition. Every other name before a `:` is a record.
            (Kind::Name, None) if lexed.tokens.get(at + 1).is_some_and(|next| next.kind == Kind::Mark(b':')) => {
                Some(TokenKind::Field)
            }
            (Kind::Name, None) => is_word(word).then_some(TokenKind::Keyword),
            (Kind::Int, _) => Some(TokenKind::Number),
            (Kind::Text, _) => Some(TokenKind::Text),
            (Kind::Comparison | Kind::Mark(b'+' | b'-' | b'*' | b'/' | b'%'), _) => Some(TokenKind::Operator),
            _ => None,
        };
        out.extend(kind.map(|kind| (token.span.range(), kind)));
        before = Some(token);
    }
    out.sort_by_key(|(range, _)| range.start);
    out
}

/// Checks whether the word is a keyword anywhere in the language.
fn is_word(word: &str) -> bool {
    const OTHERS: [&str; 12] =
        ["section", "type", "bytes", "until", REST, "value", "width", "bit", "by", "own", "shared", OTHER];
    InterpretationWord::named(word).is_some()
        || OTHERS.contains(&word)
        || PREDICTORS.contains(&word)
        || ROLES.contains(&word)
}
