//! The grammar of a section's head, a record's head and a property (spec 2). Recursion follows parentheses, at most 32 deep.

use super::cursor::Cursor;
use super::expected::Rule;
use crate::ast::{FieldItem, Int, Name, Value};
use crate::lexer::Kind;
use crate::span::Span;

/// An item, without what stands in its braces.
pub(super) enum Item<'t> {
    Section { name: Name<'t>, number: Option<Int>, brace: Span },
    Record { name: Name<'t>, fields: FieldItem<'t>, brace: Option<Span> },
    Property(RawProperty<'t>),
}

/// A property before its doc is known.
pub(super) struct RawProperty<'t> {
    pub(super) path: Vec<Name<'t>>,
    pub(super) name: Name<'t>,
    pub(super) quoted: bool,
    pub(super) value: Value<'t>,
    pub(super) value_span: Span,
}

impl<'t> Cursor<'t, '_> {
    /// Reads `section`, a record or a property.
    pub(super) fn item(&mut self) -> Option<Item<'t>> {
        self.rule(Rule::Item, |c| {
            c.section_head().or_else(|| c.record_head()).or_else(|| c.property().map(Item::Property))
        })
    }

    /// Reads a property of a record's block.
    pub(super) fn block_item(&mut self) -> Option<RawProperty<'t>> {
        self.rule(Rule::BlockItem, Self::property)
    }

    /// `"section" name int "{"`
    fn section_head(&mut self) -> Option<Item<'t>> {
        self.rule(Rule::SectionHead, |c| {
            c.keyword("section", Rule::SectionWord)?;
            let name = c.name()?;
            let number = c.int()?;
            let brace = c.mark(b'{', Rule::OpenBrace)?;
            Some(Item::Section { name, number: c.drafts.is_empty().then_some(number), brace })
        })
    }

    /// `name ":" fields [ "{" | ";" ]`
    fn record_head(&mut self) -> Option<Item<'t>> {
        self.rule(Rule::RecordHead, |c| {
            let name = c.name()?;
            c.mark(b':', Rule::Colon)?;
            let fields = c.field_item()?;
            let brace = c.mark(b'{', Rule::OpenBrace);
            if brace.is_none() {
                let _optional = c.mark(b';', Rule::Semicolon);
            }
            Some(Item::Record { name, fields, brace })
        })
    }

    /// A leaf or nested record, a repetition, or a composite.
    fn field_item(&mut self) -> Option<FieldItem<'t>> {
        self.rule(Rule::FieldItem, |c| {
            let Some(count) = c.rule(Rule::Repetition, Self::name) else { return c.group() };
            if c.mark(b'*', Rule::Star).is_none() {
                return Some(FieldItem::Name(count));
            }
            let body = c.name().map(FieldItem::Name).or_else(|| c.group())?;
            Some(FieldItem::Repeat { count, body: Box::new(body) })
        })
    }

    fn group(&mut self) -> Option<FieldItem<'t>> {
        self.rule(Rule::Group, |c| {
            c.mark(b'(', Rule::OpenParen)?;
            let items = c.list(Self::field_item)?;
            c.mark(b')', Rule::CloseParen)?;
            Some(FieldItem::Group(items))
        })
    }

    /// Reads pieces with commas between them; one may follow the last.
    pub(super) fn list<T>(&mut self, piece: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut pieces = vec![piece(self)?];
        while self.mark(b',', Rule::Comma).is_some() {
            match piece(self) {
                Some(next) => pieces.push(next),
                None => break,
            }
        }
        Some(pieces)
    }

    /// `path "." name "=" value ";"`
    fn property(&mut self) -> Option<RawProperty<'t>> {
        self.rule(Rule::Property, |c| {
            let (path, name, quoted) = c.rule(Rule::Target, Self::target)?;
            c.mark(b'=', Rule::Equals)?;
            let first = c.at;
            let value = c.value(&name)?;
            let value_span = c.span_from(first);
            c.mark(b';', Rule::Semicolon)?;
            Some(RawProperty { path, name, quoted, value, value_span })
        })
    }

    /// `path "." ( name | string )`: the path, the name and whether it is quoted, as that of an annotation may be.
    fn target(&mut self) -> Option<(Vec<Name<'t>>, Name<'t>, bool)> {
        let mut path = self.path(1)?;
        if let Some(name) = self.maybe(|c| c.mark(b'.', Rule::Dot).and_then(|_| c.quoted())) {
            return Some((path, name, true));
        }
        let name = path.pop()?;
        if path.is_empty() { self.miss(Rule::Dot) } else { Some((path, name, false)) }
    }

    /// Reads a string as a name: what stands between its quotes, as it is written.
    fn quoted(&mut self) -> Option<Name<'t>> {
        let Some((text, token)) = self.peek(Kind::Text).zip(self.lexed.tokens.get(self.at)) else {
            return self.miss(Rule::String);
        };
        self.at += 1;
        Some(Name { text: text.get(1..text.len() - 1)?, span: token.span })
    }
}
