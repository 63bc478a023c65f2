//! First pass over the text, which finds tokens, comments and their locations. It also finds mistakes that would make
//! the parser nest too deeply or fail on the rest of the text (spec 2, 3.5). It runs in linear time and without
//! recursion.

use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::span::Span;

/// Maximum nesting depth of parentheses and records (spec 3.5).
pub(crate) const MOST_NESTING: usize = 32;

/// Maximum number of tokens, so that hostile input costs little (spec 7). A token takes many times as much memory as
/// its text; real DTDs contain a few hundred tokens. For each token, pest adds about two entries to a list that grows
/// by doubling. Even if all tokens belong to one item, the list stays just below 2^19 entries and does not double
/// again.
const MOST_TOKENS: usize = 262_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Name,
    Int,
    Text,
    /// One of `{ } ( ) : ; , . * / % + - =`.
    Mark(u8),
    /// One of `== != < <= > >=`.
    Comparison,
    /// A character that is not part of the language.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Comment {
    pub(crate) span: Span,
    /// Index of the token that follows the comment.
    before: u32,
    /// Whether only whitespace precedes the comment on its line.
    pub(crate) starts_line: bool,
}

/// A mistake inside a statement, as token indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bad {
    /// The offending token.
    pub(crate) token: usize,
    /// The first token of the statement, right after the last `;`, `{` or `}`.
    pub(crate) statement: usize,
}

/// The result of the first pass.
#[derive(Default)]
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
    /// Reported mistakes, in ascending order. Statements with mistakes are not parsed.
    pub(crate) bad: Vec<Bad>,
    /// Whether an unterminated comment extends to the end of the text.
    pub(crate) open_comment: bool,
}

/// Returns the tokens and comments. Reports an error and returns `None` if there are too many.
pub(crate) fn lex(text: &str, start: usize, report: &mut Reporter) -> Option<Lexed> {
    let mut lexer =
        Lexer { text, bytes: text.as_bytes(), at: start, depth: 0, statement: 0, report, out: Lexed::default() };
    lexer.run();
    if lexer.at < text.len() {
        let place = Span::at(lexer.at);
        lexer.report.add(
            Draft::new(
                Code::TooLarge,
                place,
                "the DTD has too many names, numbers, strings, punctuation marks and comments",
            )
            .label("the limit is reached here")
            .help(format!("a DTD may contain at most {MOST_TOKENS} tokens and comments in total")),
        );
        return None;
    }
    lexer.out.tokens.shrink_to_fit();
    Some(lexer.out)
}

struct Lexer<'a, 'r, 's> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Number of open parentheses in this statement.
    depth: usize,
    /// Index of the statement's first token.
    statement: usize,
    report: &'r mut Reporter<'s>,
    out: Lexed,
}

impl Lexed {
    /// Returns the punctuation mark at a token, if it is one.
    pub(crate) fn mark(&self, index: usize) -> Option<u8> {
        match self.tokens.get(index)?.kind {
            Kind::Mark(mark) => Some(mark),
            _ => None,
        }
    }

    /// Returns the index of the token after the field list that starts at `at`. The list is a name, a repetition or a
    /// group.
    pub(crate) fn fields_end(&self, mut at: usize) -> usize {
        let mut depth = 0_usize;
        loop {
            match self.mark(at) {
                Some(b'(') => depth += 1,
                Some(b')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
            if at >= self.tokens.len() {
                return at;
            }
            if depth == 0 {
                if self.mark(at) != Some(b'*') {
                    return at;
                }
                at += 1; // The tokens so far were the count.
            }
        }
    }

    /// Returns the comments between token `index` and the previous token.
    pub(crate) fn comments_before(&self, index: usize) -> &[Comment] {
        let start = self.comments.partition_point(|c| (c.before as usize) < index);
        let end = self.comments.partition_point(|c| c.before as usize <= index);
        self.comments.get(start..end).unwrap_or_default()
    }

    /// Checks whether there is a comment between the tokens `first` and `last`.
    pub(crate) fn has_comments(&self, first: usize, last: usize) -> bool {
        let start = self.comments.partition_point(|c| c.before as usize <= first);
        self.comments.get(start).is_some_and(|c| c.before as usize <= last)
    }

    /// Checks whether a mistake has been found in the statement that contains token `index`, at this token or a later
    /// one.
    pub(crate) fn statement_is_bad(&self, index: usize) -> bool {
        let next = self.bad.partition_point(|bad| bad.token < index);
        self.bad.get(next).is_some_and(|bad| bad.statement <= index)
    }
}

impl Lexer<'_, '_, '_> {
    fn run(&mut self) {
        let mut fresh_line = true;
        while let Some(byte) = self.bytes.get(self.at).copied() {
            match byte {
                b'\n' => fresh_line = true,
                b' ' | b'\t' | b'\r' | 0x0B | 0x0C => {}
                _ if self.out.tokens.len() + self.out.comments.len() == MOST_TOKENS => return,
                b'/' if matches!(self.peek(1), Some(b'/' | b'*')) => {
                    self.comment(fresh_line);
                    fresh_line = false;
                    continue;
                }
                _ => {
                    fresh_line = false;
                    self.token(byte);
                    continue;
                }
            }
            self.at += 1;
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn bad(&mut self) {
        self.out.bad.push(Bad { token: self.out.tokens.len(), statement: self.statement });
    }

    fn comment(&mut self, starts_line: bool) {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let end = if self.peek(1) == Some(b'/') {
            rest.iter().position(|b| *b == b'\n').map_or(self.bytes.len(), |i| start + i)
        } else if let Some(i) = rest.iter().skip(2).zip(rest.iter().skip(3)).position(|p| p == (&b'*', &b'/')) {
            start + 2 + i + 2
        } else {
            self.out.open_comment = true;
            let place = Span::new(start, start + 2);
            self.report.add(
                Draft::new(Code::OpenComment, place, "unterminated comment").label("the comment starts here").help(
                    match self
                        .text
                        .get(start..)
                        .and_then(|rest| rest.lines().next())
                        .filter(|line| line.len() < 100 && !line.contains([';', '{', ')']))
                    {
                        Some(line) => format!("write `{} */`, or `*/` on a later line", line.trim_end()),
                        None => "add `*/` at the end of the comment".to_owned(),
                    },
                ),
            );
            self.bytes.len()
        };
        let before = u32::try_from(self.out.tokens.len()).unwrap_or(u32::MAX);
        self.out.comments.push(Comment { span: Span::new(start, end), before, starts_line });
        self.at = end;
    }

    fn token(&mut self, byte: u8) {
        let start = self.at;
        let kind = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(Kind::Name),
            b'0'..=b'9' => self.word(Kind::Int),
            b'"' => self.string(),
            b'\'' => self.characters(),
            b'=' | b'!' | b'<' | b'>' if self.peek(1) == Some(b'=') => {
                self.at += 2;
                Kind::Comparison
            }
            b'<' | b'>' => {
                self.at += 1;
                Kind::Comparison
            }
            b'(' | b')' | b'{' | b'}' | b':' | b';' | b',' | b'.' | b'*' | b'/' | b'%' | b'+' | b'-' | b'=' => {
                self.mark(byte)
            }
            _ => {
                self.at += self.text.get(start..).and_then(|t| t.chars().next()).map_or(1, char::len_utf8);
                Kind::Unknown
            }
        };
        self.out.tokens.push(Token { kind, span: Span::new(start, self.at) });
    }

    fn word(&mut self, kind: Kind) -> Kind {
        while self.peek(0).is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
            self.at += 1;
        }
        kind
    }

    fn mark(&mut self, byte: u8) -> Kind {
        match byte {
            b'(' => self.open(),
            b')' => self.depth = self.depth.saturating_sub(1),
            b';' | b'{' | b'}' => {
                self.depth = 0;
                self.statement = self.out.tokens.len() + 1;
            }
            _ => {}
        }
        self.at += 1;
        Kind::Mark(byte)
    }

    /// Opens a parenthesis. Only the first parenthesis of a statement that exceeds the nesting limit is reported (spec
    /// 3.5).
    fn open(&mut self) {
        self.depth += 1;
        if self.depth == MOST_NESTING + 1 {
            self.bad();
            self.report.add(
                Draft::new(
                    Code::DeepParentheses,
                    Span::new(self.at, self.at + 1),
                    format!("parentheses nest more than {MOST_NESTING} deep"),
                )
                .label(format!("this would be level {}", self.depth))
                .help("remove redundant parentheses, or move the inner part to a separate record"),
            );
        }
    }

    /// Reads a number written as quoted characters, up to the second quote on the line. The grammar decides which
    /// characters are allowed.
    fn characters(&mut self) -> Kind {
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        let Some(length) = rest.iter().take_while(|b| !matches!(b, b'\n' | b'\r')).position(|b| *b == b'\'') else {
            self.at += 1;
            return Kind::Unknown;
        };
        self.at += length + 2;
        Kind::Int
    }

    /// Reads a string, which ends on the same line and may contain the escapes `\n \t \r \\ \"` (spec 2).
    fn string(&mut self) -> Kind {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return Kind::Text;
                }
                b'\n' | b'\r' => break,
                b'\\' if matches!(self.peek(1), Some(b'n' | b't' | b'r' | b'\\' | b'"')) => self.at += 2,
                b'\\' => {
                    self.bad_escape();
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        self.bad();
        let content = self.text.get(start..self.at).unwrap_or_default().trim_end_matches([';', '}', ' ', '\t']);
        self.report.add(
            Draft::new(Code::BadString, Span::new(start, start + 1), "unterminated string")
                .label("the string starts here")
                .help(format!("write `{LINE}`; a line break in a string is `\\n`"))
                .line(Span::new(start, self.at), format!("{content}\"")),
        );
        Kind::Text
    }

    fn bad_escape(&mut self) {
        self.bad();
        self.report.add(
            Draft::new(Code::BadString, Span::new(self.at, self.at + 1), "unknown escape in a string")
                .help(format!(r#"write `{LINE}`: the escapes are `\n`, `\t`, `\r`, `\\` and `\"`"#))
                .line(Span::new(self.at, self.at + 1), "\\\\"),
        );
    }
}
