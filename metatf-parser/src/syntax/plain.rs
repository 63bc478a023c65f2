//! Fast path that parses the most common constructs directly from tokens. These are record heads such as
//! `name: (a, b, n*c) {`, and statements such as `path.property = value;` with a simple value. A simple value is a
//! decimal number, a string without escapes, a reference, or an interpretation with decimal numbers or a reference. The
//! grammar produces the same nodes but takes many times as long. It parses all other constructs, and reports all
//! mistakes.

use super::build::{Item, RawProperty};
use super::expected::is_reserved;
use crate::ast::{
    Argument, Aspect, Count, Expression, FieldItem, Int, Interpretation, Name, Reference, Step, Typed, Value,
};
use crate::lexer::{Kind, Lexed, Token};
use crate::schema::{self, InterpretationWord};
use crate::span::Span;

/// Parses the statement that starts at a token. Returns the statement and the index after its `;`.
pub(super) fn property<'t>(text: &'t str, lexed: &Lexed, first: usize) -> Option<(RawProperty<'t>, usize)> {
    if lexed.statement_is_bad(first) {
        return None;
    }
    let mut tokens = Tokens { text, lexed, at: first, types: Vec::new() };
    let mut path = tokens.path()?;
    tokens.next(Kind::Mark(b'='))?;
    let name = path.pop().filter(|_| !path.is_empty())?;
    let (value, value_span) = tokens.value()?;
    tokens.next(Kind::Mark(b';'))?;
    Some((RawProperty { path, name, quoted: false, value, value_span }, tokens.at))
}

/// Parses the record head that starts at a token. Returns the head and the index after its `{` or `;`.
pub(super) fn record<'t>(text: &'t str, lexed: &Lexed, first: usize) -> Option<(Item<'t>, usize)> {
    if lexed.statement_is_bad(first) {
        return None;
    }
    let mut tokens = Tokens { text, lexed, at: first, types: Vec::new() };
    let name = tokens.name()?;
    tokens.next(Kind::Mark(b':'))?;
    let fields = tokens.field_item()?;
    let brace = tokens.next(Kind::Mark(b'{')).map(|(_, span)| span);
    if brace.is_none() {
        tokens.next(Kind::Mark(b';'))?;
    }
    let at = tokens.at;
    Some((Item::Record { name, fields, types: tokens.types, brace }, at))
}

struct Tokens<'t, 'l> {
    text: &'t str,
    lexed: &'l Lexed,
    at: usize,
    /// The fields with a type.
    types: Vec<Typed<'t>>,
}

impl<'t> Tokens<'t, '_> {
    /// Consumes the next token if it has this kind.
    fn next(&mut self, kind: Kind) -> Option<(&'t str, Span)> {
        let Token { span, .. } = self.lexed.tokens.get(self.at).copied().filter(|token| token.kind == kind)?;
        self.at += 1;
        Some((self.text.get(span.range())?, span))
    }

    fn name(&mut self) -> Option<Name<'t>> {
        let (text, span) = self.next(Kind::Name).filter(|(name, _)| !is_reserved(name))?;
        Some(Name { text, span })
    }

    /// Parses dot-separated names.
    fn path(&mut self) -> Option<Vec<Name<'t>>> {
        let mut path = Vec::with_capacity(2); // Most paths have a field and a property.
        loop {
            path.push(self.name()?);
            if self.next(Kind::Mark(b'.')).is_none() {
                return Some(path);
            }
        }
    }

    /// Parses an item of a field list. The recursion follows parentheses, which nest at most 32 levels deep.
    fn field_item(&mut self) -> Option<FieldItem<'t>> {
        if self.next(Kind::Mark(b'(')).is_some() {
            return self.group();
        }
        let name = self.name()?;
        if self.next(Kind::Mark(b'*')).is_none() {
            return Some(FieldItem::Name(name));
        }
        let body = match self.next(Kind::Mark(b'(')) {
            Some(_) => self.group()?,
            None => FieldItem::Name(self.name()?),
        };
        Some(FieldItem::Repeat { own: None, count: Count::Name(name), body: Box::new(body) })
    }

    /// Parses an item of a group, which may be a repetition with a name.
    fn list_item(&mut self) -> Option<FieldItem<'t>> {
        if self.lexed.tokens.get(self.at + 1)?.kind != Kind::Mark(b':') {
            return self.field_item();
        }
        let name = self.name()?;
        self.next(Kind::Mark(b':'))?;
        let start = self.at;
        match self.field_item()? {
            FieldItem::Repeat { count, body, .. } => Some(FieldItem::Repeat { own: Some(Box::new(name)), count, body }),
            // The grammar parses a length or an interpretation after the word.
            FieldItem::Name(word) if matches!(self.lexed.tokens.get(self.at)?.kind, Kind::Mark(b',' | b')')) => {
                debug_assert_eq!(self.at, start + 1);
                let word = Some(word);
                self.types.push(Typed {
                    name,
                    item: name.span.start(),
                    word,
                    has_length: false,
                    settings: Vec::new(),
                    doc: None,
                });
                Some(FieldItem::Name(name))
            }
            _ => None,
        }
    }

    /// Parses the rest of a group after its `(`. The grammar parses counts that are expressions in parentheses.
    fn group(&mut self) -> Option<FieldItem<'t>> {
        let mut items = vec![self.list_item()?];
        while self.next(Kind::Mark(b',')).is_some() {
            if self.next(Kind::Mark(b')')).is_some() {
                return Some(FieldItem::Group(items));
            }
            items.push(self.list_item()?);
        }
        self.next(Kind::Mark(b')'))?;
        Some(FieldItem::Group(items))
    }

    /// Parses `path.value` or `path.width`.
    fn reference(&mut self) -> Option<Reference<'t>> {
        let mut path = self.path()?;
        let (first, last) = (*path.first()?, path.pop()?);
        let of = match last.text {
            "value" => Aspect::Value,
            "width" => Aspect::Width,
            _ => return None,
        };
        (!path.is_empty()).then(|| Reference { path, of, span: first.span.to(last.span) })
    }

    fn int(&mut self) -> Option<Int> {
        let (digits, span) = self.next(Kind::Int).filter(|(text, _)| text.bytes().all(|b| b.is_ascii_digit()))?;
        Some(Int { negative: false, magnitude: digits.parse().ok()?, span })
    }

    fn value(&mut self) -> Option<(Value<'t>, Span)> {
        if let Some((quoted, span)) = self.next(Kind::Text) {
            let text = quoted.strip_prefix('"')?.strip_suffix('"').filter(|text| !text.contains('\\'))?;
            return Some((Value::Text(text.to_owned()), span));
        }
        let before = self.at;
        let Some((word, span)) = self.next(Kind::Name) else {
            let int = self.int()?;
            return Some((Value::Expression(Expression { steps: vec![Step::Int(int)] }), int.span));
        };
        let Some(word) = InterpretationWord::named(word) else {
            self.at = before;
            let reference = self.reference()?;
            let span = reference.span;
            return Some((Value::Expression(Expression { steps: vec![Step::Reference(reference)] }), span));
        };
        let mut end = span;
        let mut arguments = Vec::with_capacity(word.arguments().len());
        for kind in word.arguments() {
            let argument = match (kind, self.int()) {
                (schema::Argument::Model, _) => return None,
                (schema::Argument::Base, None) => {
                    let base = self.reference().filter(|base| base.of == Aspect::Value && base.path.len() > 1)?;
                    end = base.span;
                    Argument::Base(base)
                }
                (_, int) => {
                    end = int?.span;
                    Argument::Number(int?)
                }
            };
            arguments.push(argument);
        }
        Some((Value::Interpretation(Interpretation { word, arguments }), span.to(end)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test")]
mod tests {
    use super::{Item, Lexed, property, record};
    use crate::diagnostic::Reporter;
    use crate::lexer::{Kind, lex};
    use crate::span::Source;
    use crate::syntax::build::Builder;
    use crate::syntax::{Grammar, Rule};
    use pest::Parser as _;

    fn shown(item: &Item) -> String {
        match item {
            Item::Property(raw) => {
                format!("{:?} {:?} {} {:?} {:?}", raw.path, raw.name, raw.quoted, raw.value, raw.value_span)
            }
            Item::Record { name, fields, types, brace } => format!("{name:?} {fields:?} {types:?} {brace:?}"),
            Item::Section { .. } | Item::Type { .. } => panic!("a section or a type"),
        }
    }

    /// Returns the item as the grammar parses it.
    fn by_grammar(text: &str, lexed: &Lexed, first: usize, source: &Source) -> String {
        let base = lexed.tokens[first].span.start();
        let mut report = Reporter::new(source);
        let pair = Grammar::parse(Rule::item, &text[base..]).unwrap().next().unwrap();
        let mut builder = Builder { text, base, lexed, report: &mut report, broken: false };
        shown(&builder.item(pair.into_inner().next().unwrap()).unwrap())
    }

    /// Compares both parsers. Returns the number of items parsed by the fast path and the number of all items that
    /// start after `;`, `{` or `}`.
    fn compare(text: &str) -> (usize, usize) {
        let source = Source::new(text.as_bytes());
        let mut report = Reporter::new(&source);
        let Some(lexed) = lex(text, source.start, &mut report) else { return (0, 0) };
        let (mut plain, mut all) = (0, 0);
        for first in 0..lexed.tokens.len() {
            let begins = |before: usize| matches!(lexed.tokens[before].kind, Kind::Mark(b';' | b'{' | b'}'));
            if first.checked_sub(1).is_none_or(begins) {
                all += 1;
                let of_property = property(text, &lexed, first).map(|(raw, behind)| (Item::Property(raw), behind));
                if let Some((item, behind)) = of_property.or_else(|| record(text, &lexed, first)) {
                    plain += 1;
                    assert_eq!(shown(&item), by_grammar(text, &lexed, first, &source));
                    assert!(matches!(lexed.tokens[behind - 1].kind, Kind::Mark(b';' | b'{')));
                }
            }
        }
        (plain, all)
    }

    #[test]
    fn items_are_those_of_the_grammar() {
        let text = "a.width = 4; a /* c */ . b.width\n=\n007 /* d */; a.interpretation = stride 1 2; a.doc = \"\"; a.x = \"é\"; a.value = 1_0; \
                    a.interpretation = delta -1; a.interpretation = predicted 1 stride 2; a.interpretation = none; a.previous = own; \
                    delta.width = 1; a.width = 99999999999999999999; a.\"b\" = 1; a.width = 4 + 1; a.width == 4; a.doc = \"\\n\";";
        assert_eq!(compare(text), (6, 16));
        let text = "a.interpretation = baseOffset b /* c */ . c\n.value; a.interpretation = baseOffset b.value; a.width = b.c.width; \
                    a.width = value; a.width = b.bit 3; a.width = b.value + 1; a.interpretation = baseOffset 7; a.interpretation = delta b.c.value;";
        assert_eq!(compare(text), (3, 8));
        let text = "a: b { c: (d, e*f, g * (h, (i),),) ; } section: vfield; a: (b.value)*c; a: (2)*c; a: none; a: (b)*c; a: (); a: b*c*d; \
                    a: (none*b); a: b, c; a: (b, c: d*e, f: g*(h)); a: (b: (2)*c); a: (b: c); a: b: c*d; a: (b:);";
        assert_eq!(compare(text), (5, 17));
        let text = "a: (b: u8, c: d, e*(f: u8)); a: (b: u8 delta 0); a: (b: delta); a: (b: bytes 4); a: (b: bytes c.value); \
                    a: (b*c: u8); a: (b: u8 delta, c);";
        assert_eq!(compare(text), (1, 7));
    }

    #[test]
    fn of_random_tokens() {
        let words = [
            "a",
            "b",
            "value",
            "width",
            "section",
            "none",
            "delta",
            "baseOffset",
            "7",
            "0x7",
            "-",
            "(",
            ")",
            "(",
            ")",
            ",",
            "*",
            ".",
            ".",
            ":",
            ":",
            "=",
            "=",
            ";",
            ";",
            "{",
            "}",
            "+",
            "\"x\"",
            "/* c */",
        ];
        let (mut plain, mut all, mut state) = (0, 0, 1_u64);
        let mut below = |most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % most
        };
        for _ in 0..40_000 {
            let text: Vec<&str> = (0..below(8)).map(|_| words[below(words.len())]).collect();
            let text = text.join(" ");
            for head in ["a: ( a ", "a: ( a : ", "a: ( a , b * ( ", "a . width = ", "a . x = baseOffset a . "] {
                let (more, of) = compare(&format!("{head}{text};"));
                (plain, all) = (plain + more, all + of);
            }
        }
        assert!(plain > 1000 && plain < all, "{plain} of {all}");
    }

    #[test]
    fn of_all_vectors() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut folders: Vec<_> = ["dtds", "tests/vectors"].map(|folder| root.join(folder)).into();
        // The published package of this crate does not contain these directories.
        folders.retain(|folder| folder.exists());
        if folders.is_empty() {
            return;
        }
        let (mut plain, mut all) = (0, 0);
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "dtd")
                    && let Ok(text) = std::fs::read_to_string(&path)
                {
                    let (more, of) = compare(&text);
                    (plain, all) = (plain + more, all + of);
                }
            }
        }
        assert!(plain > 2000 && plain * 2 > all, "{plain} of {all}");
    }
}
