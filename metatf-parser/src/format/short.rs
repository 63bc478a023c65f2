//! Rewrites statements as types (spec 2 `type`): the width, interpretation and format of a field in a record's block move
//! to the field list, and those of a field name become a type. Comments move with their statements.

use std::ops::Range;

use super::format;
use crate::ast::{Ast, Expression, FieldItem, Interpretation, Name, Record, Scope, Setting, Value};
use crate::diagnostic::{Diagnostic, Reporter};
use crate::lexer::{Comment, Kind, Lexed};
use crate::parse::parse;
use crate::schema::{Argument, Dtd, InterpretationWord, Origin};
use crate::span::Source;
use crate::vocabulary::{Property, TYPES};
use crate::{lexer, syntax, text};

/// Formats a DTD like [`format`](format()), and writes types in field lists in place of statements where this is
/// possible. The DTD keeps its meaning, its fingerprint and its comments.
///
/// # Errors
/// Returns the syntax errors of the text.
///
/// # Examples
///
/// ```
/// let text = b"section log 1 { r: (a) { tag.value = 4; a.width = 2; a.interpretation = none; } }";
/// let short = metatf_parser::shorten("log.dtd", text).unwrap();
/// assert_eq!(short, "section log 1 { r: (a: u16) { tag.value = 4; } }\n");
/// ```
pub fn shorten(name: &str, text: &[u8]) -> Result<String, Vec<Diagnostic>> {
    let plain = format(name, text)?;
    let Some(before) = parse(name, text).dtd else { return Ok(plain) };
    for with_comments in [true, false] {
        let Some(short) = edited(&plain, with_comments) else { continue };
        let short = format(name, short.as_bytes())?;
        if parse(name, short.as_bytes())
            .dtd
            .is_some_and(|after| without_places(after) == without_places(before.clone()))
        {
            return Ok(short);
        }
    }
    Ok(plain)
}

/// Returns the DTD without its text and the scopes that set properties.
fn without_places(mut dtd: Dtd) -> Dtd {
    dtd.text.clear();
    for leaf in dtd.records.iter_mut().flat_map(|record| &mut record.leaves) {
        (leaf.width_origin, leaf.interpretation_origin) = (None, Origin::Global);
    }
    dtd
}

fn edited(text: &str, with_comments: bool) -> Option<String> {
    let source = Source::new(text.as_bytes());
    let mut report = Reporter::new(&source);
    let text = text::decode(text.as_bytes(), &mut report).filter(|text| !text.contains(REMOVED))?;
    let lexed = lexer::lex(text, source.start, &mut report)?;
    let ast = syntax::parse(text, &lexed, &mut report);
    let mut editor = Editor { text, source: &source, lexed: &lexed, ast: &ast, with_comments, edits: Vec::new() };
    for scope in &ast.scopes {
        editor.scope(scope);
        scope.records.iter().for_each(|record| editor.record(scope, record));
    }
    Some(editor.apply())
}

/// A mark in place of removed text, which no text that is edited contains.
const REMOVED: char = '\u{F8FF}';

struct Editor<'t, 'e> {
    text: &'t str,
    source: &'e Source<'e>,
    lexed: &'e Lexed,
    ast: &'e Ast<'t>,
    /// Whether statements with comments may move.
    with_comments: bool,
    /// Ranges of the text and their replacements.
    edits: Vec<(Range<usize>, String)>,
}

/// A type that replaces statements.
struct Short<'e, 't> {
    text: String,
    replaced: Vec<&'e Setting<'t>>,
}

impl<'t, 'e> Editor<'t, 'e> {
    fn apply(mut self) -> String {
        self.edits.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut out, mut at) = (String::new(), 0);
        for (range, new) in &self.edits {
            out += self.text.get(at..range.start).unwrap_or_default();
            out += new;
            at = at.max(range.end);
        }
        out += self.text.get(at..).unwrap_or_default();
        // Drop the lines from which everything was removed.
        let is_left =
            |line: &&str| !line.contains(REMOVED) || line.contains(|c: char| c != REMOVED && !c.is_whitespace());
        out.split_inclusive('\n').filter(is_left).collect::<String>().replace(REMOVED, "")
    }

    fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.edits.push((at..at, text.into()));
    }

    /// Returns the index of the first token at or after an offset.
    fn token_at(&self, offset: usize) -> usize {
        self.lexed.tokens.partition_point(|token| token.span.start() < offset)
    }

    fn end_of(&self, token: usize) -> usize {
        self.lexed.tokens.get(token).map_or(self.text.len(), |token| token.span.end())
    }

    fn is_mark(&self, token: usize, mark: u8) -> bool {
        self.lexed.tokens.get(token).is_some_and(|token| token.kind == Kind::Mark(mark))
    }

    /// Returns the first token of a statement and its `;`.
    fn tokens_of(&self, setting: &Setting) -> (usize, usize) {
        (self.token_at(setting.target().start()), self.token_at(setting.value_span.end()))
    }

    /// Returns the comments directly above a statement, and the comment at the end of its line.
    fn comments_of(&self, setting: &Setting) -> (&'e [Comment], Option<&'e Comment>) {
        let (first, last) = self.tokens_of(setting);
        let above = self.lexed.comments_before(first);
        let own = above.iter().position(|comment| comment.starts_line).unwrap_or(above.len());
        let line = self.source.line_of(self.end_of(last));
        let behind = self.lexed.comments_before(last + 1).first();
        let behind = behind.filter(|comment| !comment.starts_line && self.source.line_of(comment.span.start()) == line);
        (above.get(own..).filter(|_| setting.doc.is_some()).unwrap_or_default(), behind)
    }

    fn source_of(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    /// Returns the type that says the same as some of the statements.
    fn short(&self, settings: &[&'e Setting<'t>]) -> Option<Short<'e, 't>> {
        let find = |property| settings.iter().copied().find(|setting| setting.property == Some(property));
        let interpretation = find(Property::Interpretation)?;
        let Value::Interpretation(value) = &interpretation.value else { return None };
        let format = find(Property::Format);
        let format_is = |name: &str| format.filter(|f| matches!(&f.value, Value::Text(text) if text == name));
        let is_none = value.word == InterpretationWord::None;
        let mut replaced = vec![interpretation];
        let Some(width) = find(Property::Width) else {
            return Some(Short { text: self.interpretation(interpretation, value), replaced });
        };
        replaced.push(width);
        let length = match &width.value {
            Value::Expression(expression) => match expression.as_int().map(|int| int.natural()) {
                Some(Some(bytes @ 1..=8)) => {
                    let (word, format) = number(bytes, value, format_is);
                    replaced.extend(format);
                    let implied = is_none || (word.starts_with('i') && is_zero_base(value));
                    let text =
                        if implied { word } else { format!("{word} {}", self.interpretation(interpretation, value)) };
                    return Some(Short { text, replaced });
                }
                Some(Some(0) | None) => return None,
                _ if is_constant(expression) && expression.as_int().is_none() => return None,
                _ => self.source_of(width.value_span.range()),
            },
            Value::Bytes(length) => self.source_of(length.span.range()),
            Value::Until(end) if end.natural() == Some(0) && is_none => {
                replaced.push(format_is("utf8")?);
                return Some(Short { text: "cstring".to_owned(), replaced });
            }
            _ => return None,
        };
        if !is_none {
            return None;
        }
        let (word, format) = match (format_is("utf8"), format_is("cstring")) {
            (Some(format), _) => ("text", Some(format)),
            (_, Some(format)) => ("cstring", Some(format)),
            _ => ("bytes", None),
        };
        replaced.extend(format);
        Some(Short { text: format!("{word} {length}"), replaced })
    }

    fn interpretation(&self, setting: &Setting, value: &Interpretation) -> String {
        match value.arguments.as_slice() {
            [crate::ast::Argument::Number(initial)]
                if value.word == InterpretationWord::Delta && initial.natural() == Some(0) =>
            {
                "delta".to_owned()
            }
            _ => self.source_of(setting.value_span.range()).to_owned(),
        }
    }

    /// Writes statements of a scope about one field name as a type.
    fn scope(&mut self, scope: &'e Scope<'t>) {
        let mut settings: Vec<&Setting> = scope.properties.iter().collect();
        settings.sort_by_key(|setting| setting.target().start());
        let follows = |a: &&Setting, b: &&Setting| {
            let (_, end) = self.tokens_of(a);
            let (start, _) = self.tokens_of(b);
            let same = matches!((a.path.as_slice(), b.path.as_slice()), ([x], [y]) if x.text == y.text);
            same && start == end + 1 && self.lexed.comments_before(start).is_empty()
        };
        let mut edits = Vec::new();
        for run in settings.chunk_by(follows) {
            let ([first, ..], [.., last]) = (run, run) else { continue };
            let [name] = first.path.as_slice() else { continue };
            let once = settings.iter().filter(|s| s.path.first().is_some_and(|other| other.text == name.text)).count();
            let (start, end) = (self.tokens_of(first).0, self.tokens_of(last).1);
            if once != run.len() || !self.may_be_a_type(scope, name.text) || self.lexed.has_comments(start, end) {
                continue;
            }
            let Some(short) = self.short(run).filter(|short| !matches!(short.replaced.as_slice(), [_])) else {
                continue;
            };
            let left = run.iter().filter(|s| !short.replaced.iter().any(|r| std::ptr::eq(*r, **s)));
            let left: Vec<_> =
                left.map(|s| self.source_of(s.name.span.start()..self.end_of(self.tokens_of(s).1))).collect();
            // The span of a quoted name includes the quotes.
            let block = if left.is_empty() { ";".to_owned() } else { format!(" {{ {} }}", left.join(" ")) };
            let range = first.target().start()..self.end_of(end);
            edits.push((range, format!("type {}: {}{block}", name.text, short.text)));
        }
        self.edits.extend(edits);
    }

    /// Checks whether a name can be defined as a type without hiding a record that is used as a type.
    fn may_be_a_type(&self, scope: &Scope, name: &str) -> bool {
        let is_record = |scope: &Scope| scope.records.iter().any(|record| record.name.text == name);
        let is_type = |scope: &Scope| scope.types.iter().any(|typed| typed.name.text == name);
        name != "tag" && !TYPES.contains(&name) && !self.ast.scopes.iter().any(is_record) && !is_type(scope)
    }

    /// Writes statements of a record's block as types in its field list.
    fn record(&mut self, scope: &Scope, record: &'e Record<'t>) {
        let mut fields = Vec::new();
        // A type needs a list.
        match &record.fields {
            FieldItem::Name(name) => fields.push(name),
            FieldItem::Group(items) => items.iter().for_each(|item| listed(item, &mut fields)),
            FieldItem::Repeat { .. } => return,
        }
        let mut removed: Vec<&Setting> = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            let is_typed = record.types.iter().any(|typed| typed.name.text == field.text);
            let is_second = fields.iter().take(index).any(|other| other.text == field.text);
            if field.text == "tag" || is_typed || is_second {
                continue;
            }
            let short = if field.text == "vfield" { text_of(record) } else { self.field(scope, record, field) };
            if let Some(short) = short.filter(|short| self.moves(record, short)) {
                self.insert(field.span.end(), format!(": {}", short.text));
                short.replaced.iter().for_each(|setting| self.remove(setting, field));
                removed.extend(short.replaced);
            }
        }
        if !removed.is_empty() {
            if let FieldItem::Name(name) = &record.fields {
                self.insert(name.span.start(), "(");
                self.insert(name.span.end(), ")");
            }
            self.block(record, removed.len());
        }
    }

    fn field(&self, scope: &Scope, record: &'e Record<'t>, field: &Name) -> Option<Short<'e, 't>> {
        let nests = |scope: &Scope| scope.records.iter().any(|r| r.name.text == field.text);
        if nests(scope) || self.ast.scopes.first().is_some_and(nests) {
            return None;
        }
        let is_it = |setting: &&Setting| matches!(setting.path.as_slice(), [only] if only.text == field.text);
        self.short(&record.block.iter().filter(is_it).collect::<Vec<_>>())
    }

    /// Checks whether the comments of statements can move with them.
    fn moves(&self, record: &Record, short: &Short) -> bool {
        let Some(first) = short.replaced.first() else { return false };
        let same = |setting: &&Setting| setting.path_text() == first.path_text() && setting.doc.is_some();
        let docs = record.block.iter().filter(same).count();
        // A comment above the format of a `vfield` documents its bytes, but one above the field documents the record.
        let is_field = first.path.len() == 1;
        short.replaced.iter().all(|setting| {
            let (start, end) = self.tokens_of(setting);
            let (above, behind) = self.comments_of(setting);
            let moves = self.with_comments && docs <= 1 && (is_field || setting.doc.is_none());
            !self.lexed.has_comments(start, end) && (moves || (above.is_empty() && behind.is_none()))
        })
    }

    /// Removes a statement, and moves its comments to the field in the list.
    fn remove(&mut self, setting: &Setting, field: &Name) {
        let (start, end) = self.tokens_of(setting);
        let (above, behind) = self.comments_of(setting);
        for comment in above {
            self.insert(field.span.start(), format!("\n{}\n", self.source_of(comment.span.range())));
            self.edits.push((comment.span.range(), REMOVED.into()));
        }
        let next = self.token_at(field.span.end());
        if let Some(comment) = behind {
            let at = if self.is_mark(next, b',') { self.end_of(next) } else { field.span.end() };
            let text = format!(" {}\n", self.source_of(comment.span.range()));
            // A type is inserted at the end of the field, before its comment.
            self.edits.push((at..at, text));
            self.edits.push((comment.span.range(), REMOVED.into()));
        }
        let start = self.lexed.tokens.get(start).map_or(0, |token| token.span.start());
        self.edits.push((start..self.end_of(end), REMOVED.into()));
    }

    /// Removes an empty block, and joins the lines of a block with one statement.
    fn block(&mut self, record: &Record, removed: usize) {
        let Some(brace) = record.brace else { return };
        let open = self.token_at(brace.start());
        let Some(close) = (open..self.lexed.tokens.len()).find(|token| self.is_mark(*token, b'}')) else { return };
        let left = record.block.len().saturating_sub(removed);
        let has_comments = self.lexed.has_comments(open, close);
        if left > 1 || has_comments {
            return;
        }
        if left == 0 {
            let range = |token: usize| self.lexed.tokens.get(token).map(|token| token.span.range());
            let has_end = self.is_mark(close + 1, b';');
            if let (Some(open), Some(close)) = (range(open), range(close)) {
                self.edits.push((open, String::new()));
                self.edits.push((close, if has_end { "" } else { ";" }.to_owned()));
            }
            return;
        }
        for token in open..close {
            let next = self.lexed.tokens.get(token + 1).map_or(0, |token| token.span.start());
            let gap = self.end_of(token)..next;
            if self.source_of(gap.clone()).contains('\n') {
                self.edits.push((gap, " ".to_owned()));
            }
        }
    }
}

/// Returns `text` for a nested `vfield` whose block sets only the format of its bytes.
fn text_of<'e, 't>(record: &'e Record<'t>) -> Option<Short<'e, 't>> {
    let is_format =
        |setting: &&Setting| setting.path_text() == "vfield.data" && setting.property == Some(Property::Format);
    let format = record.block.iter().find(is_format)?;
    matches!(&format.value, Value::Text(text) if text == "utf8")
        .then(|| Short { text: "text".to_owned(), replaced: vec![format] })
}

/// Returns the names in a list that can have a type, which are all but counts.
fn listed<'e, 't>(item: &'e FieldItem<'t>, out: &mut Vec<&'e Name<'t>>) {
    match item {
        FieldItem::Name(name) => out.push(name),
        FieldItem::Group(items) => items.iter().for_each(|item| listed(item, out)),
        FieldItem::Repeat { body, .. } => listed(body, out),
    }
}

/// Returns the type of a number, and its format if the type implies it.
fn number<'e, 't>(
    bytes: u64,
    value: &Interpretation,
    format_is: impl Fn(&str) -> Option<&'e Setting<'t>>,
) -> (String, Option<&'e Setting<'t>>) {
    let is_signed = format_is("signed").filter(|_| value.word != InterpretationWord::None);
    match bytes {
        4 if format_is("f32").is_some() => ("f32".to_owned(), format_is("f32")),
        8 if format_is("f64").is_some() => ("f64".to_owned(), format_is("f64")),
        _ if is_signed.is_some() => (format!("i{}", bytes * 8), is_signed),
        _ => (format!("u{}", bytes * 8), None),
    }
}

fn is_zero_base(value: &Interpretation) -> bool {
    let is_base = value.word.arguments() == [Argument::Base];
    is_base && matches!(value.arguments.as_slice(), [crate::ast::Argument::Number(base)] if base.natural() == Some(0))
}

fn is_constant(expression: &Expression) -> bool {
    !expression.steps.iter().any(|step| matches!(step, crate::ast::Step::Reference(_)))
}
