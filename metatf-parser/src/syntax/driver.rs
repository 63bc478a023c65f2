//! Parses a DTD item by item, matches braces, and recovers after mistakes, so that a single run reports as many errors
//! as possible (spec 3.5).

use std::collections::HashSet;

use pest::Parser as _;

use super::build::{Builder, Item, RawProperty};
use super::correct::{self, Begins, Tokens, Within};
use super::{Grammar, Rule, docs, expected, plain};
use crate::ast::{Ast, FieldItem, Name, Record, Scope, Setting, Typed};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::lexer::{Kind, Lexed, Token};
use crate::span::Span;
use crate::vocabulary::Property;
use crate::words::value_text;

/// Parses as much as possible, and reports mistakes.
pub(crate) fn parse<'t>(text: &'t str, lexed: &Lexed, report: &mut Reporter) -> Ast<'t> {
    let mut driver = Driver {
        text,
        lexed,
        report,
        at: 0,
        piece_end: 0,
        ended: lexed.open_comment,
        tokens: None,
        reserved: HashSet::new(),
        ast: Ast { scopes: vec![Scope::default()], ..Ast::default() },
        scope: 0,
    };
    driver.definitions(None);
    let item_has_doc = driver.ast.scopes.iter().any(|s| s.starts_with_doc(lexed));
    driver.ast.doc = docs::head_doc(text, driver.report.source, lexed, item_has_doc);
    driver.ast
}

impl Scope<'_> {
    /// Checks whether the first token of the text starts this section or a record of this scope.
    fn starts_with_doc(&self, lexed: &Lexed) -> bool {
        let first = lexed.tokens.first().map(|t| t.span.start());
        let section = self.head.is_some() && lexed.tokens.get(1).map(|t| t.span.start()) == self.head_start();
        // A type begins with the word `type`.
        let second = lexed.tokens.get(1).map(|t| t.span.start());
        section
            || self.records.first().is_some_and(|r| Some(r.name.span.start()) == first)
            || self.types.first().is_some_and(|t| Some(t.name.span.start()) == second)
    }

    fn head_start(&self) -> Option<usize> {
        self.head.as_ref().map(|h| h.name.span.start())
    }
}

struct Driver<'t: 'l, 'l, 'r, 's> {
    text: &'t str,
    lexed: &'l Lexed,
    report: &'r mut Reporter<'s>,
    /// Index of the next token.
    at: usize,
    /// Index of the token that ends the last piece passed to pest, or the number of tokens.
    piece_end: usize,
    /// Whether an unexpected end of the text has been reported.
    ended: bool,
    /// The tokens with the names that they declare, collected for the first correction.
    tokens: Option<Tokens<'l>>,
    /// Interpretation words whose use as a name has been reported.
    reserved: HashSet<&'t str>,
    ast: Ast<'t>,
    /// The scope whose definitions are being parsed.
    scope: usize,
}

/// Returns the number of open parentheses after a token.
fn depth_after(depth: usize, token: Kind) -> usize {
    match token {
        Kind::Mark(b'(') => depth + 1,
        Kind::Mark(b')') => depth.saturating_sub(1),
        _ => depth,
    }
}

/// An open scope, with its description for messages and the location of its opening brace.
struct Open {
    what: String,
    brace: Span,
}

impl<'t: 'l, 'l> Driver<'t, 'l, '_, '_> {
    fn token(&self, ahead: usize) -> Option<Token> {
        self.lexed.tokens.get(self.at + ahead).copied()
    }

    fn is_mark(&self, ahead: usize, mark: u8) -> bool {
        self.token(ahead).is_some_and(|t| t.kind == Kind::Mark(mark))
    }

    fn word(&self, ahead: usize) -> Option<&str> {
        let token = self.token(ahead).filter(|t| t.kind == Kind::Name)?;
        self.text.get(token.span.range())
    }

    /// Checks for `section` followed by a name, which starts a section in any context.
    fn at_section(&self) -> bool {
        self.word(0) == Some("section") && self.word(1).is_some()
    }

    /// Checks for `type NAME :`, which starts the definition of a type.
    fn at_type(&self) -> bool {
        self.word(0) == Some("type") && self.word(1).is_some() && self.is_mark(2, b':')
    }

    /// Parses the definitions of a section, or of the entire text with its sections.
    fn definitions(&mut self, section: Option<&Open>) {
        while let Some(token) = self.token(0) {
            if self.report.is_full() {
                self.at = self.lexed.tokens.len();
                self.ended = true;
            } else if self.is_mark(0, b'}') {
                self.at += 1;
                match section {
                    Some(_) => return,
                    None => self.stray_brace(token),
                }
            } else if let Some(open) = section.filter(|_| self.at_section()) {
                self.not_closed(open, token.span, "before the next section");
                return;
            } else {
                self.item();
            }
        }
        if let Some(open) = section {
            self.not_closed_at_end(open);
        }
    }

    /// Parses the properties in the block of a record or, if `of_type` is set, of that type.
    fn block(&mut self, open: &Open, within: Within<'t>, of_type: Option<Name<'t>>) -> Vec<Setting<'t>> {
        let mut properties = Vec::new();
        while let Some(token) = self.token(0).filter(|_| !self.report.is_full()) {
            if self.is_mark(0, b'}') {
                self.at += 1;
                return properties;
            }
            if self.misplaced(within) {
                continue;
            }
            let colon = self.token(1).filter(|_| self.word(0).is_some() && self.is_mark(1, b':'));
            if let Some(place) = colon.or(Some(token).filter(|_| self.at_section() || self.at_type())) {
                self.not_closed(open, place.span, "before the next definition");
                return properties;
            }
            properties.extend(self.block_property(within, of_type));
        }
        self.not_closed_at_end(open);
        properties
    }

    /// Reports a field or a type in a block, and returns true if there is one.
    fn misplaced(&mut self, within: Within<'t>) -> bool {
        let is_type = self.at_type();
        let is_field = self.word(0).is_some() && self.is_mark(1, b':') && !self.is_mark(2, b'(');
        if !is_type && !is_field {
            return false;
        }
        let tokens = self.tokens.get_or_insert_with(|| Tokens::new(self.text, self.lexed));
        let Some(end) = correct::end_of(tokens, self.at) else { return false };
        let ends = |index: usize, mark: u8| self.lexed.tokens.get(index).is_some_and(|t| t.kind == Kind::Mark(mark));
        if is_type {
            // A type at the start of a line is more likely to follow a block that is not closed.
            if self.starts_line() || !ends(end, b';') || !matches!(within, Within::Record(_)) {
                return false;
            }
            let place = self.lexed.tokens.get(self.at).map_or(Span::at(0), |token| token.span);
            let end_span = self.lexed.tokens.get(end).map_or(place, |token| token.span);
            let text = self.text.get(place.to(end_span).range()).unwrap_or_default();
            self.report.add(
                Draft::new(Code::Brace, place, "a type cannot be defined in the block of a record")
                    .help(format!("move `{text}` before the record")),
            );
            let scope = self.scope;
            if let Some(Item::Type { typed, .. }) = self.pest(Rule::item)
                && let Some(scope) = self.ast.scopes.get_mut(scope)
            {
                scope.types.push(typed);
            }
            return true;
        }
        if !(ends(end, b';') || ends(end, b'}')) {
            return false;
        }
        let expected = "a block contains only properties".to_owned();
        let Some(found) = correct::correct(tokens, self.at, self.at + 1, within, expected) else { return false };
        self.report.add(found.draft);
        self.at = if ends(end, b';') { end + 1 } else { end };
        self.piece_end = 0;
        true
    }

    fn stray_brace(&mut self, token: Token) {
        self.report.add(
            Draft::new(Code::Brace, token.span, "unmatched `}`")
                .help("remove the `}`, or add the missing `{`")
                .propose(token.span, ""),
        );
    }

    fn not_closed(&mut self, open: &Open, place: Span, when: &str) {
        self.report.add(
            Draft::new(Code::Brace, place, format!("{} is not closed {when}", open.what))
                .label("a definition is not allowed here")
                .also(open.brace, "opened here")
                .help("add `}` before this line: a section cannot contain a section, nor a block a record")
                .replace(Span::at(place.start()), "}\n"),
        );
    }

    fn not_closed_at_end(&mut self, open: &Open) {
        if !std::mem::replace(&mut self.ended, true) {
            self.report.add(
                Draft::new(Code::Brace, Span::at(self.text.len()), format!("{} is not closed", open.what))
                    .label("the text ends here")
                    .also(open.brace, "opened here")
                    .help("add `}` at the end")
                    .replace(Span::at(self.text.len()), if self.text.ends_with('\n') { "}\n" } else { "\n}\n" }),
            );
        }
    }

    /// Parses the item at the next token with a grammar rule. On failure, reports the mistake and recovers. To save
    /// memory, the pairs are dropped as soon as the node is built.
    fn pest(&mut self, rule: Rule) -> Option<Item<'t>> {
        self.pest_within(rule, Within::Section)
    }

    /// Works like [`pest`](Self::pest) for an item in this block.
    fn pest_within(&mut self, rule: Rule, within: Within<'t>) -> Option<Item<'t>> {
        let base = self.token(0)?.span.start();
        if self.lexed.statement_is_bad(self.at) {
            self.recover(self.at);
            return None;
        }
        match Grammar::parse(rule, self.piece(base)?) {
            Ok(mut pairs) => {
                let pair = pairs.next()?;
                self.at += self.tokens_until(base + pair.as_span().end());
                let mut builder =
                    Builder { text: self.text, base, lexed: self.lexed, report: self.report, broken: false };
                builder.item(pair.into_inner().next()?)
            }
            Err(error) => {
                let index = self.at + self.tokens_until(base + expected::offset(&error));
                if within == Within::Section && !self.is_mark(1, b'.') {
                    let head = self.lexed.tokens.get(self.at..).unwrap_or_default().iter().take(3);
                    let names = head.take_while(|token| token.kind == Kind::Name);
                    self.ast.unparsed.extend(names.filter_map(|token| self.text.get(token.span.range())));
                }
                if let Some((draft, brace)) = expected::division(self.text, self.lexed, index) {
                    self.report.add(draft);
                    match brace {
                        // The comment contains the brace.
                        Some(brace) => {
                            (self.at, self.piece_end) = (index, 0);
                            self.skip_braces(false, brace);
                        }
                        None => self.recover(index),
                    }
                    return None;
                }
                if self.corrected(expected::rules(&error), index, within) {
                    return None;
                }
                self.syntax_error(expected::rules(&error), index);
                self.recover(index);
                None
            }
        }
    }

    /// Reports the mistake of the item at the next token with a correction, if there is one, and skips the item. Token
    /// `index` cannot be parsed.
    fn corrected(&mut self, rules: &[Rule], index: usize, within: Within<'t>) -> bool {
        let Some(word) = self.lexed.tokens.get(index).and_then(|token| self.text.get(token.span.range())) else {
            return false;
        };
        let expected = expected::message(rules, word);
        let tokens = self.tokens.get_or_insert_with(|| Tokens::new(self.text, self.lexed));
        let Some(found) = correct::correct(tokens, self.at, index, within, expected) else {
            return false;
        };
        if found.is_reserved && !self.reserved.insert(word) {
            self.report.add_again();
        } else {
            self.report.add(found.draft);
        }
        let first = self.at;
        (self.at, self.piece_end) = (found.end, 0);
        let Some(token) = self.token(0) else { return true };
        match token.kind {
            Kind::Mark(b';') => self.at += 1,
            Kind::Mark(b'{') => {
                self.at += 1;
                let (what, brace) = ("a block".to_owned(), token.span);
                match found.begins {
                    Begins::Section => self.section_body(Scope::default(), &Open { what, brace }, first),
                    Begins::Foreign => self.skip_foreign(),
                    Begins::Record | Begins::Nothing => {
                        drop(self.block(&Open { what, brace }, Within::Record(None), None));
                    }
                    Begins::Type => {
                        let name = Name { text: "", span: token.span };
                        drop(self.block(&Open { what, brace }, Within::Type, Some(name)));
                    }
                }
                if found.begins != Begins::Section && self.is_mark(0, b';') {
                    self.at += 1;
                }
            }
            // Always advance.
            _ if self.at == first => self.at += 1,
            _ => {}
        }
        true
    }

    /// Parses the next item with the fast path. Returns `None` if the item requires the grammar.
    fn plain(&mut self) -> Option<Item<'t>> {
        let (item, behind) = if self.at_type() {
            return None;
        } else if self.is_mark(1, b':') {
            plain::record(self.text, self.lexed, self.at)?
        } else {
            let (raw, behind) = plain::property(self.text, self.lexed, self.at)?;
            (Item::Property(raw), behind)
        };
        self.at = behind;
        Some(item)
    }

    /// Checks whether a count starts at token `index`, as after the name of a repetition.
    fn is_count(&self, index: usize) -> bool {
        let tokens = self.lexed.tokens.get(index..).unwrap_or_default();
        match tokens.iter().position(|token| token.kind != Kind::Mark(b'(')).map(|inner| (inner, &tokens[inner..])) {
            Some((0, [name, star, ..])) => name.kind == Kind::Name && star.kind == Kind::Mark(b'*'),
            Some((1.., [first, next, ..])) => {
                first.kind == Kind::Int || (first.kind == Kind::Name && next.kind == Kind::Mark(b'.'))
            }
            _ => false,
        }
    }

    /// Checks whether a type starts at token `index`, as after the name of a field in a list. A record whose only field
    /// is a name ends with a brace or a `;`.
    fn is_type(&self, index: usize) -> bool {
        let kind = |index: usize| self.lexed.tokens.get(index).map(|token| token.kind);
        kind(index) == Some(Kind::Name) && !matches!(kind(index + 1), Some(Kind::Mark(b'{' | b';')))
    }

    /// Returns the text from `base`, where the next token starts, to a token that must end the item, which is a `;`, a
    /// brace, or a `:` outside parentheses, which belongs to another record. Passing only this piece saves time, because pest takes time proportional to
    /// the length of its input.
    fn piece(&mut self, base: usize) -> Option<&'t str> {
        if self.piece_end <= self.at + 1 {
            let colon = self.at + if self.at_type() { 2 } else { 1 };
            let mut depth = 0;
            let ends = |(index, token): &(usize, &Token)| match token.kind {
                Kind::Mark(b';' | b'{' | b'}') => true,
                Kind::Mark(b':') => *index != colon && depth == 0,
                kind => {
                    depth = depth_after(depth, kind);
                    false
                }
            };
            let end = self.lexed.tokens.iter().enumerate().skip(self.at).find(ends);
            self.piece_end = end.map_or(self.lexed.tokens.len(), |(index, _)| index);
        }
        let end = self.lexed.tokens.get(self.piece_end).map_or(self.text.len(), |token| token.span.end());
        self.text.get(base..end)
    }

    /// Returns the number of following tokens that start before an offset.
    fn tokens_until(&self, offset: usize) -> usize {
        let rest = self.lexed.tokens.get(self.at..).unwrap_or_default();
        rest.iter().take_while(|token| token.span.start() < offset).count()
    }

    fn syntax_error(&mut self, rules: &[Rule], index: usize) {
        let at_end = index >= self.lexed.tokens.len();
        if at_end && std::mem::replace(&mut self.ended, true) {
            return;
        }
        // An interpretation word used as a field name is reported only once, regardless of how often it occurs.
        let word = self.lexed.tokens.get(index).and_then(|t| self.text.get(t.span.range())).unwrap_or_default();
        if expected::is_reserved(word) && !self.reserved.insert(word) {
            return self.report.add_again();
        }
        let draft = expected::explain(rules, self.text, self.report.source, self.lexed, index);
        self.report.add(draft);
    }

    /// Skips from token `index` to the next possible start of an item. The start is after a `;`, before a `}`, after
    /// the content of a `{` (which is parsed and discarded), or before a line that starts like an item.
    fn recover(&mut self, index: usize) {
        let first = self.at;
        let is_section = self.at_section();
        let is_foreign = self.word(0).is_some_and(|word| expected::foreign(word).is_some());
        self.at = index.max(first);
        let skipped = self.lexed.tokens.get(first..self.at).unwrap_or_default();
        // The piece may have ended at the end of the text, because a parenthesis is missing.
        self.piece_end = 0;
        let mut depth = skipped.iter().fold(0, |depth, token| depth_after(depth, token.kind));
        while let Some(token) = self.token(0) {
            match token.kind {
                Kind::Mark(b';') => {
                    self.at += 1;
                    return;
                }
                Kind::Mark(b'}') => return,
                Kind::Mark(b'{') => {
                    self.at += 1;
                    if is_foreign {
                        return self.skip_foreign();
                    }
                    return self.skip_braces(is_section, token.span);
                }
                _ if self.at > first && self.starts_item(depth) => return,
                kind => {
                    depth = depth_after(depth, kind);
                    self.at += 1;
                }
            }
        }
    }

    /// Checks whether the next token starts an item. In parentheses, a name and a count are a repetition, not a record.
    fn starts_item(&self, depth: usize) -> bool {
        let is_item = |index| self.is_count(index) || self.is_type(index);
        let is_record = self.is_mark(1, b':') && (depth == 0 || !is_item(self.at + 2));
        let follows = is_record || self.is_mark(1, b'.') || self.at_section() || self.at_type();
        follows && self.word(0).is_some() && self.starts_line()
    }

    fn starts_line(&self) -> bool {
        let (Some(token), Some(before)) = (self.token(0), self.lexed.tokens.get(self.at.wrapping_sub(1))) else {
            return true;
        };
        self.report.source.line_of(before.span.end()) < self.report.source.line_of(token.span.start())
    }

    /// Skips the rest of a definition in another language after its `{`.
    fn skip_foreign(&mut self) {
        let mut depth = 1;
        while let Some(token) = self.token(0).filter(|_| depth > 0) {
            match token.kind {
                Kind::Mark(b'{') => depth += 1,
                Kind::Mark(b'}') => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
        if self.is_mark(0, b';') {
            self.at += 1;
        }
    }

    /// Parses and discards the content of a scope whose head has a mistake.
    fn skip_braces(&mut self, is_section: bool, brace: Span) {
        if is_section {
            let first = self.at;
            self.section_body(Scope::default(), &Open { what: "a section".into(), brace }, first);
        } else {
            self.block(&Open { what: "a record's block".into(), brace }, Within::Record(None), None);
        }
    }

    fn doc(&self) -> Option<Box<str>> {
        self.doc_above(self.at)
    }

    /// Returns the doc of the item or field that starts with token `index`.
    fn doc_above(&self, index: usize) -> Option<Box<str>> {
        docs::doc_above(self.text, self.report.source, self.lexed, index).map(String::into_boxed_str)
    }

    /// Returns the span from token `first` to the token read last.
    fn extent(&self, first: usize) -> Span {
        let span = |index: usize| self.lexed.tokens.get(index).map(|token| token.span);
        let start = span(first).unwrap_or(Span::at(self.text.len()));
        span(self.at.saturating_sub(1)).filter(|last| start <= *last).map_or(start, |last| start.to(last))
    }

    /// Parses a section, record or property.
    fn item(&mut self) {
        let (doc, first) = (self.doc(), self.at);
        let item = self.plain().or_else(|| self.pest(Rule::item));
        match item {
            Some(Item::Section { head, brace }) => {
                let open = Open { what: format!("section `{}`", head.name.text), brace };
                self.section_body(Scope { head: Some(head), doc, ..Scope::default() }, &open, first);
            }
            Some(Item::Record { name, fields, types, brace }) => {
                self.record((name, fields, types, brace), doc, first);
            }
            Some(Item::Type { typed, brace }) => self.type_definition(Typed { doc, ..typed }, brace),
            Some(Item::Property(raw)) => {
                let is_head = first == 0 && docs::is_head(self.report.source, self.lexed);
                let property = self.property(raw, first, doc.filter(|_| !is_head));
                if let Some(scope) = self.ast.scopes.get_mut(self.scope) {
                    scope.properties.push(property);
                }
            }
            None => {}
        }
    }

    fn section_body(&mut self, scope: Scope<'t>, open: &Open, first: usize) {
        self.ast.scopes.push(scope);
        self.scope = self.ast.scopes.len() - 1;
        self.definitions(Some(open));
        let extent = self.extent(first);
        self.ast.scopes.get_mut(self.scope).into_iter().for_each(|scope| scope.extent = Some(extent));
        self.scope = 0;
    }

    fn record(
        &mut self,
        (name, fields, mut types, brace): (Name<'t>, FieldItem<'t>, Vec<Typed<'t>>, Option<Span>),
        doc: Option<Box<str>>,
        first: usize,
    ) {
        for typed in &mut types {
            let above =
                |start: usize| self.doc_above(self.lexed.tokens.partition_point(|token| token.span.start() < start));
            typed.doc = above(typed.name.span.start()).or_else(|| above(typed.item));
        }
        let mut block = Vec::new();
        if let Some(brace) = brace {
            let open = Open { what: format!("the block of record `{}`", name.text), brace };
            block = self.block(&open, Within::Record(first_field(&fields)), None);
            if self.is_mark(0, b';') {
                self.at += 1;
            }
        }
        let extent = self.extent(first);
        if let Some(scope) = self.ast.scopes.get_mut(self.scope) {
            scope.records.push(Record { name, fields, types, block, brace, extent, doc });
        }
    }

    fn type_definition(&mut self, typed: Typed<'t>, brace: Option<Span>) {
        let mut block = Vec::new();
        if let Some(brace) = brace {
            let what = format!("the block of type `{}`", typed.name.text);
            block = self.block(&Open { what, brace }, Within::Type, Some(typed.name));
            if self.is_mark(0, b';') {
                self.at += 1;
            }
        }
        if let Some(scope) = self.ast.scopes.get_mut(self.scope) {
            scope.properties.append(&mut block);
            scope.types.push(typed);
        }
    }

    fn block_property(&mut self, within: Within<'t>, of_type: Option<Name<'t>>) -> Option<Setting<'t>> {
        let (doc, first) = (self.doc(), self.at);
        let item = match of_type {
            Some(_) => self.pest_within(Rule::type_item, within),
            None => self.plain().or_else(|| self.pest_within(Rule::block_item, within)),
        };
        let Some(Item::Property(raw)) = item else { return None };
        let mut setting = self.property(raw, first, doc);
        setting.path.extend(of_type);
        Some(setting)
    }

    /// Builds a property. `first` is the index of its first token; its last token, the `;`, has just been read.
    fn property(&self, raw: RawProperty<'t>, first: usize, doc: Option<Box<str>>) -> Setting<'t> {
        let RawProperty { path, name, quoted, value, value_span } = raw;
        let property = Property::named(name.text).filter(|_| !quoted);
        let ends = self.lexed.tokens.get(self.at.wrapping_sub(1)).is_some_and(|t| t.kind == Kind::Mark(b';'));
        let last = self.at.saturating_sub(if ends { 2 } else { 1 });
        let annotation = property.is_none().then(|| value_text(self.text, self.lexed, first, last).into());
        Setting { path, name, quoted, property, value, value_span, annotation, doc }
    }
}

/// Returns the first field of a list other than `tag`.
fn first_field<'t>(fields: &FieldItem<'t>) -> Option<&'t str> {
    match fields {
        FieldItem::Name(name) => Some(name.text).filter(|name| *name != "tag"),
        FieldItem::Group(items) => items.iter().find_map(first_field),
        FieldItem::Repeat { body, .. } => first_field(body),
    }
}
