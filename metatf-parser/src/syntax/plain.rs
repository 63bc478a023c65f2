//! The statements that most of a DTD is made of, by their tokens: `path.property = value;`, where the value is a decimal number, a
//! string without escapes, or an interpretation with decimal numbers. The grammar gives the same for them and takes many times as long;
//! every other statement, and each with a mistake, is left to it.

use super::build::RawProperty;
use super::expected::is_reserved;
use crate::ast::{Argument, Expression, Int, Interpretation, Name, Step, Value};
use crate::lexer::{Kind, Lexed, Token};
use crate::schema::{self, InterpretationWord};
use crate::span::Span;

/// Reads the statement that begins at a token; returns it with the index behind its `;`.
pub(super) fn property<'t>(text: &'t str, lexed: &Lexed, first: usize) -> Option<(RawProperty<'t>, usize)> {
    if lexed.statement_is_bad(first) {
        return None;
    }
    let mut tokens = Tokens { text, lexed, at: first };
    let mut path = Vec::with_capacity(2); // most have a field and a property
    loop {
        let (name, span) = tokens.next(Kind::Name).filter(|(name, _)| !is_reserved(name))?;
        path.push(Name { text: name, span });
        if tokens.next(Kind::Mark(b'.')).is_none() {
            break;
        }
    }
    tokens.next(Kind::Mark(b'='))?;
    let name = path.pop().filter(|_| !path.is_empty())?;
    let (value, value_span) = tokens.value()?;
    tokens.next(Kind::Mark(b';'))?;
    Some((RawProperty { path, name, quoted: false, value, value_span }, tokens.at))
}

struct Tokens<'t, 'l> {
    text: &'t str,
    lexed: &'l Lexed,
    at: usize,
}

impl<'t> Tokens<'t, '_> {
    /// Takes the next token if it is of this kind.
    fn next(&mut self, kind: Kind) -> Option<(&'t str, Span)> {
        let Token { span, .. } = self.lexed.tokens.get(self.at).copied().filter(|token| token.kind == kind)?;
        self.at += 1;
        Some((self.text.get(span.range())?, span))
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
        let Some((word, span)) = self.next(Kind::Name) else {
            let int = self.int()?;
            return Some((Value::Expression(Expression { steps: vec![Step::Int(int)] }), int.span));
        };
        let word = InterpretationWord::named(word)?;
        let mut end = span;
        let mut arguments = Vec::with_capacity(word.arguments().len());
        for kind in word.arguments() {
            if matches!(kind, schema::Argument::Model) {
                return None;
            }
            let int = self.int()?;
            end = int.span;
            arguments.push(Argument::Number(int));
        }
        Some((Value::Interpretation(Interpretation { word, arguments }), span.to(end)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test")]
mod tests {
    use super::{Lexed, RawProperty, property};
    use crate::diagnostic::Reporter;
    use crate::lexer::{Kind, lex};
    use crate::span::Source;
    use crate::syntax::build::{Builder, Item};
    use crate::syntax::{Grammar, Rule};
    use pest::Parser as _;

    fn shown(raw: &RawProperty) -> String {
        format!("{:?} {:?} {} {:?} {:?}", raw.path, raw.name, raw.quoted, raw.value, raw.value_span)
    }

    /// What the grammar makes of the statement.
    fn by_grammar(text: &str, lexed: &Lexed, first: usize, source: &Source) -> String {
        let base = lexed.tokens[first].span.start();
        let mut report = Reporter::new(source);
        let pair = Grammar::parse(Rule::block_item, &text[base..]).unwrap().next().unwrap();
        let mut builder = Builder { base, lexed, report: &mut report, broken: false };
        match builder.item(pair.into_inner().next().unwrap()) {
            Some(Item::Property(raw)) => shown(&raw),
            _ => panic!("no property: {}", &text[base..]),
        }
    }

    /// How many statements are plain, of all that begin behind `;`, `{` or `}`.
    fn compare(text: &str) -> (usize, usize) {
        let source = Source::new(text.as_bytes());
        let mut report = Reporter::new(&source);
        let Some(lexed) = lex(text, source.start, &mut report) else { return (0, 0) };
        let (mut plain, mut all) = (0, 0);
        for first in 0..lexed.tokens.len() {
            let begins = |before: usize| matches!(lexed.tokens[before].kind, Kind::Mark(b';' | b'{' | b'}'));
            if first.checked_sub(1).is_none_or(begins) {
                all += 1;
                if let Some((raw, behind)) = property(text, &lexed, first) {
                    plain += 1;
                    assert_eq!(shown(&raw), by_grammar(text, &lexed, first, &source));
                    assert_eq!(lexed.tokens[behind - 1].kind, Kind::Mark(b';'));
                }
            }
        }
        (plain, all)
    }

    #[test]
    fn statements_are_those_of_the_grammar() {
        let text = "a.width = 4; a /* c */ . b.width\n=\n007 /* d */; a.interpretation = stride 1 2; a.doc = \"\"; a.x = \"é\"; a.value = 1_0; \
                    a.interpretation = delta -1; a.interpretation = predicted 1 stride 2; a.interpretation = none; a.previous = own; \
                    delta.width = 1; a.width = 99999999999999999999; a.\"b\" = 1; a.width = 4 + 1; a.width == 4; a.doc = \"\\n\";";
        assert_eq!(compare(text), (6, 16));
    }

    #[test]
    fn of_all_vectors() {
        let mut folders = vec![metatf_test::root().join("dtds"), metatf_test::root().join("tests/vectors")];
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
