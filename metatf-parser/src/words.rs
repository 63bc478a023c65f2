//! Joins tokens to words that are never split across lines, and decides where to put spaces.

use crate::lexer::{Kind, Lexed};
use crate::schema::InterpretationWord;

/// A piece of a statement. Pieces are separated by spaces or line breaks.
pub(crate) struct Word {
    pub(crate) text: String,
    /// Whether the word is a `//` comment, which ends its line.
    pub(crate) ends_line: bool,
    /// Whether the word is a comment at the start of its line in a field list, where it documents the next field.
    pub(crate) starts_line: bool,
    /// Whether the word is any other comment in a field list, which must not move to the start of a line.
    pub(crate) stays_on_line: bool,
}

/// Returns the words of the tokens from `first` to `last`. Comments between tokens are included; comments before
/// `first` are not.
pub(crate) fn words(text: &str, lexed: &Lexed, first: usize, last: usize) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let mut before = None;
    let style = Style::of(text, lexed, first);
    let mut depth = 0_usize;
    for index in first..=last {
        if index > first {
            let in_list = style == Style::Definition && depth > 0;
            out.extend(comments(text, lexed, index).map(|word| {
                let (starts_line, stays_on_line) = (word.starts_line && in_list, !word.starts_line && in_list);
                Word { starts_line, stays_on_line, ..word }
            }));
        }
        let Some(token) = lexed.tokens.get(index) else { break };
        let Some(token_text) = text.get(token.span.range()) else { break };
        match token.kind {
            Kind::Mark(b'(') => depth += 1,
            Kind::Mark(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_sign = style.is_sign(text, lexed, first, index);
        if drops(lexed, index) {
            continue;
        }
        let joined = before.is_some_and(|b: Before| style.joins(&b, token.kind));
        match out.last_mut() {
            Some(word) if token.kind == Kind::Int && word.text.ends_with(".bit") => {
                word.text += " ";
                word.text += token_text;
            }
            // A type stays on the line of its field.
            Some(word) if depth > 0 && style == Style::Definition && word.text.ends_with(':') && !is_comment(word) => {
                word.text += " ";
                word.text += token_text;
            }
            // Never append to a comment; the token after it starts a new word.
            Some(word) if joined && !word.ends_line && !word.text.ends_with("*/") => word.text += token_text,
            _ => out.push(Word {
                text: token_text.to_owned(),
                ends_line: false,
                starts_line: false,
                stays_on_line: false,
            }),
        }
        before = Some(Before { kind: token.kind, is_sign });
    }
    out
}

fn is_comment(word: &Word) -> bool {
    word.ends_line || word.starts_line || word.stays_on_line
}

/// Returns the value of the property in the tokens from `first` to `last`, without comments.
pub(crate) fn value_text(text: &str, lexed: &Lexed, first: usize, last: usize) -> String {
    let words = words(text, lexed, first, last).into_iter().map(|word| word.text);
    let value = words.skip_while(|word| word != "=").skip(1);
    value.filter(|word| !word.starts_with("//") && !word.starts_with("/*")).collect::<Vec<_>>().join(" ")
}

/// Checks whether the formatter removes this token, which is true for the optional comma before a `)`.
fn drops(lexed: &Lexed, index: usize) -> bool {
    let mark = |i: usize| lexed.tokens.get(i).map(|t| t.kind);
    mark(index) == Some(Kind::Mark(b',')) && mark(index + 1) == Some(Kind::Mark(b')'))
}

/// Returns the comments between a token and the previous token.
fn comments<'a>(text: &'a str, lexed: &'a Lexed, index: usize) -> impl Iterator<Item = Word> + 'a {
    lexed.comments_before(index).iter().map(|c| {
        let comment = comment_text(text.get(c.span.range()).unwrap_or_default());
        Word { ends_line: comment.starts_with("//"), starts_line: c.starts_line, stays_on_line: false, text: comment }
    })
}

/// Returns a comment without trailing whitespace on its lines.
pub(crate) fn comment_text(comment: &str) -> String {
    comment.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Checks whether only numbers separate a token from the interpretation word before it, as in a type.
fn follows_a_word(text: &str, lexed: &Lexed, index: usize) -> bool {
    let before = lexed.tokens.get(..index).unwrap_or_default();
    let word = before.iter().rev().find(|token| !matches!(token.kind, Kind::Int | Kind::Mark(b'-')));
    word.and_then(|word| text.get(word.span.range())).is_some_and(|word| InterpretationWord::named(word).is_some())
}

/// The preceding token in the statement.
#[derive(Clone, Copy)]
struct Before {
    kind: Kind,
    is_sign: bool,
}

/// The kind of statement, which determines the meaning of `*` and `-`.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// The head of a record or a section.
    Definition,
    /// A property with an interpretation, in which each `-` is a sign.
    Interpretation,
    /// Any other property.
    Expression,
}

impl Style {
    fn of(text: &str, lexed: &Lexed, first: usize) -> Style {
        let kind = |i: usize| lexed.tokens.get(i).map(|t| t.kind);
        // A property in the block of a type begins with its name.
        if !matches!(kind(first + 1), Some(Kind::Mark(b'.' | b'='))) {
            return Style::Definition;
        }
        let is_end = |k: Kind| matches!(k, Kind::Mark(b'=' | b';'));
        let equals = (first..lexed.tokens.len()).find(|i| kind(*i).is_some_and(is_end));
        let value = equals.and_then(|i| lexed.tokens.get(i + 1)).and_then(|t| text.get(t.span.range()));
        match value {
            Some(word) if InterpretationWord::named(word).is_some() => Style::Interpretation,
            _ => Style::Expression,
        }
    }

    /// Checks whether a `-` is a sign. It is a sign unless it follows an operand of an expression (spec 2).
    fn is_sign(self, text: &str, lexed: &Lexed, first: usize, index: usize) -> bool {
        let kind = |i: usize| lexed.tokens.get(i).map(|t| t.kind);
        let operand = matches!(kind(index.wrapping_sub(1)), Some(Kind::Name | Kind::Int | Kind::Mark(b')')));
        let interpretation =
            self == Style::Interpretation || (self == Style::Definition && follows_a_word(text, lexed, index));
        kind(index) == Some(Kind::Mark(b'-')) && (interpretation || index == first || !operand)
    }

    /// Checks whether a token follows the previous token without a space.
    fn joins(self, before: &Before, kind: Kind) -> bool {
        let tight_star = self == Style::Definition;
        match (before.kind, kind) {
            (Kind::Mark(b'.' | b'('), _) | (_, Kind::Mark(b'.' | b',' | b';' | b')' | b':')) => true,
            (Kind::Mark(b'*'), _) | (_, Kind::Mark(b'*')) => tight_star,
            _ => before.is_sign,
        }
    }
}
