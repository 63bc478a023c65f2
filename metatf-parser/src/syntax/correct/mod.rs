//! Suggests the line to write in place of a notation of another language, or of a near miss.
//!
//! If the grammar rejects an item, the rows of the [`table`] are matched with the item's tokens. A correction is
//! suggested only if the grammar accepts it.

mod expression;
mod pattern;
mod table;
mod tokens;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

pub(super) use tokens::Tokens;

use super::Rule;
use crate::codes::Code;
use crate::diagnostic::Draft;
use crate::foreign;
use crate::lexer::Kind;
use crate::span::Span;
use pattern::{PREDICTORS, captures, expand, is_valid};
use table::{OPTIONAL_WORDS, Place, ROWS};
use tokens::Word;

/// Maximum number of tokens in an item, and of attempts to match them, so that hostile input costs little.
const MOST_TOKENS: usize = 200;
const MOST_ATTEMPTS: u32 = 4000;
/// Maximum depth of corrections in corrections.
const MOST_DEPTH: usize = 2;

/// The block that contains an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within<'t> {
    /// A section, or no block.
    Section,
    /// The block of a record, with its first field.
    Record(Option<&'t str>),
    /// The block of a type.
    Type,
}

/// The construct that the corrected item begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    Section,
    Record,
    Type,
    Nothing,
    /// A definition whose braces contain fields.
    Foreign,
}

/// A mistake with its correction.
pub(super) struct Corrected {
    pub(super) draft: Draft,
    /// Whether the mistake is a reserved word.
    pub(super) is_reserved: bool,
    /// The index of the token that ends the item: `;`, `{`, `}`, or the token after the item.
    pub(super) end: usize,
    pub(super) begins: Begins,
}

/// A correction of one item.
pub(super) struct Corrector<'c, 't> {
    pub(super) tokens: &'c Tokens<'t>,
    within: Within<'t>,
    expected: String,
    /// The record whose head is corrected.
    record: Option<&'t str>,
    /// The token that cannot be parsed, which is the location of the mistake.
    place: Span,
    attempts: Cell<u32>,
    /// The message of the innermost correction.
    message: Cell<&'static str>,
    /// An earlier number field of the list.
    count: RefCell<Option<&'t str>>,
    /// An earlier number field of the list that is named like a count.
    repeat: RefCell<Option<&'t str>>,
    /// An earlier field of the list with flags.
    flags: RefCell<Option<&'t str>>,
}

/// A corrected text with its message and the continuation of the help.
struct Found {
    text: String,
    message: &'static str,
    note: String,
    /// Whether the correction contains a guess.
    guesses: bool,
    is_reserved: bool,
    /// A word of another language for an optional field.
    word: Option<(Span, String)>,
}

/// Returns the mistake in the item between two tokens, the second of which cannot be parsed.
/// `expected` describes the mistake if no row does.
pub(super) fn correct<'t>(
    tokens: &Tokens<'t>,
    first: usize,
    index: usize,
    within: Within<'t>,
    expected: String,
) -> Option<Corrected> {
    let first = if within == Within::Section { whole_item(tokens, first) } else { first };
    let corrector = Corrector {
        tokens,
        within,
        expected,
        record: tokens.get(first).filter(Word::is_name).map(|word| word.text),
        place: tokens.get(index)?.span,
        attempts: Cell::new(0),
        message: Cell::new(""),
        count: RefCell::new(None),
        repeat: RefCell::new(None),
        flags: RefCell::new(None),
    };
    let end = end_of(tokens, first)?;
    let words: Vec<Word> = (first..end).map_while(|index| tokens.get(index)).collect();
    let at = index.saturating_sub(first);
    let terminator = tokens.get(end).map_or("", |word| word.text);
    let places: &[Place] = match (within, terminator) {
        (Within::Type, _) => &[Place::Assignment],
        (Within::Record(_), _) => &[Place::Statement],
        (Within::Section, "{") => &[Place::Section, Place::Type, Place::Record],
        (Within::Section, _) => &[Place::Type, Place::Record, Place::Statement],
    };
    if within == Within::Section && terminator == "{" {
        let foreign = corrector.braces(end, &words);
        if foreign.is_some() {
            return foreign;
        }
    }
    for place in places {
        let begins = match place {
            Place::Section => Begins::Section,
            Place::Type => Begins::Type,
            Place::Record => Begins::Record,
            _ => Begins::Nothing,
        };
        if *place == Place::Record
            && let Some((draft, is_reserved)) = corrector.inside(&words, at)
        {
            return Some(Corrected { draft, is_reserved, end, begins });
        }
        if let Some(found) = corrector.row(*place, &words, 0) {
            let mark = match terminator {
                "{" => " {",
                ";" => ";",
                _ => "",
            };
            let is_reserved = found.is_reserved;
            return Some(Corrected { draft: corrector.draft(&words, found, mark), is_reserved, end, begins });
        }
    }
    None
}

/// Returns the index of the first token of `NAME: TYPE` before an index. The grammar reads it as a record, which is
/// complete, although more words of the type follow.
fn whole_item(tokens: &Tokens, first: usize) -> usize {
    let before = |back: usize| first.checked_sub(back).map_or("", |index| word_at(tokens, index));
    let starts = first == 3 || matches!(before(4), "{" | "}" | ";");
    let is_rest = !tokens.get(first).is_some_and(|word| word.text == "section" || tokens.starts_line(word.span));
    let is_list = tokens.get(first).is_some_and(|word| word.text == ":");
    if starts && is_rest && before(2) == ":" && (is_list || tokens.is_type(before(1))) { first - 3 } else { first }
}

/// Returns a reference or expression at a location in this language.
pub(super) fn reference(tokens: &Tokens, span: Span) -> Option<String> {
    let words: Vec<Word> = tokens.within(span).take(MOST_TOKENS).collect();
    expression::rewrite(&words, tokens).map(|(text, _)| text).filter(|text| *text != tokens.text(&words))
}

/// Returns the index of the token that ends the item: a `;` or brace outside of the parentheses of a list.
pub(super) fn end_of(tokens: &Tokens, first: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut index = first;
    while let Some(word) = tokens.get(index) {
        match word.text {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "}" => return Some(index),
            ";" if depth == 0 || !closes(tokens, index, depth) => return Some(index),
            "{" => match closing_brace(tokens, index) {
                // A value in braces.
                Some(close)
                    if index > first
                        && matches!(word_at(tokens, index - 1), "=" | ":")
                        && word_at(tokens, close + 1) == ";" =>
                {
                    index = close;
                }
                Some(close) if depth > 0 && matches!(word_at(tokens, close + 1), "," | ")" | ";" | "*" | "else") => {
                    index = close;
                }
                _ => return Some(index),
            },
            _ => {}
        }
        index += 1;
        if index - first > MOST_TOKENS {
            return None;
        }
    }
    Some(index)
}

fn word_at<'t>(tokens: &Tokens<'t>, index: usize) -> &'t str {
    tokens.get(index).map_or("", |word| word.text)
}

/// Checks whether the parentheses around token `index` close before the next brace.
fn closes(tokens: &Tokens, index: usize, depth: usize) -> bool {
    let mut depth = depth;
    for ahead in 1..MOST_TOKENS {
        match word_at(tokens, index + ahead) {
            "" | "{" | "}" | "=" => return false,
            "(" | "[" => depth += 1,
            ")" | "]" if depth == 1 => return true,
            ")" | "]" => depth -= 1,
            _ => {}
        }
    }
    false
}

/// Returns the index of the `}` that matches a `{`, if it is near.
fn closing_brace(tokens: &Tokens, open: usize) -> Option<usize> {
    let mut depth = 0_isize;
    (open..open + MOST_TOKENS).find(|index| {
        depth += match word_at(tokens, *index) {
            "{" => 1,
            "}" => -1,
            _ => 0,
        };
        depth == 0
    })
}

impl<'t> Corrector<'_, 't> {
    /// Checks whether there are attempts left.
    fn spend(&self) -> bool {
        self.attempts.set(self.attempts.get() + 1);
        self.attempts.get() < MOST_ATTEMPTS
    }

    /// Returns the value of a name in a row.
    fn value(&self, name: &str, place: Place) -> String {
        let count = *self.count.borrow();
        match (name, place) {
            ("count", _) => count.unwrap_or("flags").to_owned(),
            ("items", _) => self.repeat.borrow().unwrap_or("(rest)").to_owned(),
            ("repeat", _) => self.repeat.borrow().unwrap_or_else(|| self.new_count()).to_owned(),
            ("lead", _) if self.repeat.borrow().is_none() => format!("{}: u16, ", self.new_count()),
            ("new", Place::Section) => self.tokens.free_section(),
            ("new", _) => self.tokens.free_tag(),
            ("record", _) => self.record.unwrap_or("RECORD").to_owned(),
            ("stream", _) => self.tokens.last_section().unwrap_or("2").to_owned(),
            ("field", _) => match self.within {
                Within::Record(Some(field)) => field.to_owned(),
                _ => "FIELD".to_owned(),
            },
            _ => String::new(),
        }
    }

    /// Returns the name of a new field that counts a repetition.
    fn new_count(&self) -> &'static str {
        let is_free = |name: &&str| !self.tokens.is_field(name);
        ["n", "count", "item_count"].into_iter().find(is_free).unwrap_or("number_of_items")
    }

    /// Returns the first row of a place that matches all words and results in valid text.
    fn row(&self, place: Place, words: &[Word], depth: usize) -> Option<Found> {
        if words.is_empty() || depth > MOST_DEPTH {
            return None;
        }
        for row in ROWS.iter().filter(|row| row.place == place) {
            self.message.set("");
            let Some(captured) = captures(self, row.pattern, words, depth) else { continue };
            let text = expand(&self.optional(row.write), &captured, self, place);
            let is_valid = row.write.is_empty() || self.accepts(place, &text);
            if !is_valid || text == self.tokens.text(words) {
                continue;
            }
            let message = if row.message.is_empty() { self.message.get() } else { row.message };
            self.message.set(message);
            let guesses = ["$count", "$repeat", "$items", "$new", "$field", "$record", "$stream"]
                .iter()
                .any(|name| row.write.contains(name))
                || row.write.starts_with('?');
            let note = expand(row.note, &captured, self, place);
            let is_reserved = row.pattern.contains("RESERVED");
            let is_word = |word: &&Word| row.write.starts_with('?') && OPTIONAL_WORDS.contains(&word.text);
            let word = words.iter().find(is_word).map(|word| (word.span, word.text.to_owned()));
            return Some(Found { text, message, note, guesses, is_reserved, word });
        }
        None
    }

    /// Returns a template, with a condition or a count in place of `?`.
    fn optional<'w>(&self, write: &'w str) -> Cow<'w, str> {
        let Some(item) = write.strip_prefix('?') else { return Cow::Borrowed(write) };
        let name = item.split(':').next().unwrap_or_default();
        Cow::Owned(match *self.flags.borrow() {
            Some(flags) => format!("({flags}.bit 0)*{item}"),
            None => format!("has_{name}: u8, has_{name}*{item}"),
        })
    }

    /// Checks whether the grammar accepts a correction.
    fn accepts(&self, place: Place, text: &str) -> bool {
        match place {
            Place::Kind => self.is_kind(text),
            Place::Field => is_list(&format!("({text})")),
            Place::Section => is_valid(Rule::section_head, &format!("{text} {{")),
            Place::Type => is_valid(Rule::type_head, &format!("{text};")),
            Place::Record => is_valid(Rule::record_head, &format!("{text};")),
            Place::Statement => is_valid(Rule::property, text) || is_list(&format!("({text})")),
            Place::Assignment => is_valid(Rule::assignment, text),
        }
    }

    /// Checks whether a text is a type that exists, or an interpretation.
    fn is_kind(&self, text: &str) -> bool {
        let first = text.split(' ').next().unwrap_or_default();
        (super::expected::is_reserved(first) || self.tokens.is_type(first)) && is_valid(Rule::whole_kind, text)
    }

    /// Returns the type of a field in this language.
    fn kind(&self, words: &[Word], depth: usize) -> Option<String> {
        let source = self.tokens.text(words);
        if self.is_kind(&source) {
            return Some(source);
        }
        let joined = words.iter().map(|word| word.text).collect::<Vec<_>>().join("_");
        if words.len() <= 3
            && words.iter().all(Word::is_name)
            && let Some(native) = foreign::type_name(&joined)
        {
            self.message.set("this is not a type of the language");
            return Some(native.to_owned());
        }
        self.row(Place::Kind, words, depth).map(|found| found.text)
    }

    /// Returns an item of a field list in this language.
    fn field(&self, words: &[Word], depth: usize) -> Option<String> {
        let source = self.tokens.text(words);
        if self.is_field(&source, words) {
            return Some(source);
        }
        self.row(Place::Field, words, depth).map(|found| found.text)
    }

    /// Checks whether the grammar accepts an item, and its type exists.
    fn is_field(&self, source: &str, words: &[Word]) -> bool {
        let has_type = |pair: &[Word]| match pair {
            [Word { text: ":", .. }, word, next] if next.text != "*" => {
                !word.is_name() || self.tokens.is_type(word.text)
            }
            [Word { text: ":", .. }, word] => !word.is_name() || self.tokens.is_type(word.text),
            _ => true,
        };
        let ends = words.len().saturating_sub(2);
        is_list(&format!("({source})"))
            && words.windows(3).all(has_type)
            && words.get(ends..).is_none_or(has_type)
            && !matches!(words, [only] if !only.is_name())
    }

    /// Returns the items of a list in this language. Items may be separated by `,` or `;`.
    fn list(&self, words: &[Word], depth: usize) -> Option<Vec<String>> {
        let mut out = Vec::new();
        for item in split(words).filter(|item| !item.is_empty()) {
            out.push(self.field(item, depth + 1)?);
        }
        (!out.is_empty()).then_some(out)
    }

    /// Corrects the item of a record's field list that contains the word at `at`, or a list around it.
    /// Also returns whether the mistake is a reserved word.
    fn inside(&self, words: &[Word<'t>], at: usize) -> Option<(Draft, bool)> {
        let mut groups: Vec<usize> = Vec::new();
        for (index, word) in words.iter().enumerate().take(at) {
            match word.text {
                "(" => groups.push(index + 1),
                ")" => drop(groups.pop()),
                _ => {}
            }
        }
        for start in groups.iter().rev() {
            let list = inner(words, *start);
            // A count is corrected with its item.
            if words.get(start + list.len() + 1).is_some_and(|word| word.text == "*") {
                continue;
            }
            let (mut first, mut here) = (*start, None);
            for item in split(list) {
                if (first..=first + item.len()).contains(&at) && !item.is_empty() {
                    here = Some((first, item));
                    break;
                }
                first += item.len() + 1;
            }
            let Some((first, item)) = here else { continue };
            let earlier = words.get(*start..first).unwrap_or_default();
            *self.count.borrow_mut() = number_field(earlier, |_| true);
            let is_used = |name: &str| {
                list.windows(2).any(|pair| matches!(pair, [word, star] if word.text == name && star.text == "*"))
            };
            *self.repeat.borrow_mut() = number_field(earlier, |name| is_count(name) && !is_used(name));
            let has_flags = |word: &&Word<'t>| word.is_name() && self.tokens.has_flags(word.text);
            *self.flags.borrow_mut() = earlier.iter().rfind(has_flags).map(|word| word.text);
            if let Some(found) = self.row(Place::Field, item, 0) {
                let is_reserved = found.is_reserved;
                return Some((self.draft(item, found, ""), is_reserved));
            }
            if let Some(draft) = self.missing_comma(item, at - first) {
                return Some((draft, false));
            }
            if split_marks(list).any(|word| word.text == ";")
                && let Some(items) = self.list(list, 0)
            {
                let text = format!("({})", items.join(", "));
                let message = "expected `,` between two fields, found `;`";
                let list = words.get(start - 1..=start + list.len())?;
                let found =
                    Found { text, message, note: String::new(), guesses: false, is_reserved: false, word: None };
                return Some((self.draft(list, found, ""), false));
            }
        }
        None
    }

    /// Reports a missing comma between two complete fields.
    fn missing_comma(&self, item: &[Word<'t>], at: usize) -> Option<Draft> {
        let (first, second) = item.split_at_checked(at)?;
        let (last, next) = (first.last()?, second.first()?);
        let complete = |words: &[Word]| self.is_field(&self.tokens.text(words), words);
        // `bytes` has a length.
        if !complete(first) || !complete(second) || last.text == "bytes" {
            return None;
        }
        let is_known = |words: &[Word]| match words {
            [only] => self.tokens.declares(only.text),
            _ => true,
        };
        let place = Span::at(last.span.end());
        let fields = format!("{}, {}", self.tokens.text(first), self.tokens.text(second));
        let draft = Draft::new(Code::Syntax, place, "expected `,` between two fields")
            .label("expected `,`")
            .also(next.span, "the next field")
            .help(format!("write `{fields}`"));
        let draft = if is_known(second) { draft } else { draft.general() };
        Some(if is_known(first) || is_known(second) { draft.replace(place, ",") } else { draft.propose(place, ",") })
    }

    /// Corrects a definition whose braces contain fields or named values.
    fn braces(&self, open: usize, head: &[Word]) -> Option<Corrected> {
        let close = closing_brace(self.tokens, open)?;
        let content: Vec<Word> = (open + 1..close).map_while(|index| self.tokens.get(index)).collect();
        let is_plain =
            |word: &&Word| word.is_name() && !matches!(word.text, "pub" | "public" | "export" | "packed" | "const");
        let names: Vec<&Word> = head.iter().filter(is_plain).collect();
        // A list with a value in braces.
        if head.iter().any(|word| word.text == "(") || head.first().is_some_and(|word| word.text == "section") {
            return None;
        }
        let last = names.last()?;
        let (text, message) = if head.iter().any(|word| word.text == "enum") {
            let name = names.iter().find(|word| !matches!(word.text, "enum" | "class" | "type"))?;
            let list = foreign::name_list(&self.tokens.text(&content), false)?;
            (format!("type {}: u8 {{ values = \"{list}\"; }}", name.text), "there is no word `enum`")
        } else {
            let marks = head.iter().filter(|word| !word.is_name()).all(|word| matches!(word.text, ":" | "="));
            if !marks || names.len() > 2 || content.get(1).is_some_and(|word| matches!(word.text, "." | "=")) {
                return None;
            }
            let is_statement = |item: &&[Word]| matches!(item, [_, dot, .., _] if dot.text == "." && item.iter().any(|w| w.text == "="));
            let (statements, fields): (Vec<&[Word]>, Vec<&[Word]>) =
                split(&content).filter(|item| !item.is_empty()).partition(is_statement);
            let items: Vec<String> = fields.into_iter().map(|item| self.field(item, 1)).collect::<Option<_>>()?;
            let mut block: Vec<String> =
                statements.iter().map(|words| format!("{};", self.tokens.text(words))).collect();
            if !block.iter().any(|statement| statement.starts_with("tag.value")) {
                block.insert(0, format!("tag.value = {};", self.tokens.free_tag()));
            }
            let text = format!("{}: ({}) {{ {} }}", last.text, items.join(", "), block.join(" "));
            (text, "the fields of a record are a list in parentheses")
        };
        // Another block follows the fields.
        let has_block = self.tokens.get(close + 1).is_some_and(|word| word.text == "{");
        if has_block {
            let text = text.split(" {").next()?;
            let draft = Draft::new(Code::Syntax, self.place, message).help(format!("write `{text} {{`"));
            return Some(Corrected { draft, is_reserved: false, end: close + 1, begins: Begins::Record });
        }
        let is_whole = self.accepts(Place::Type, text.split(" {").next()?)
            || self.accepts(Place::Record, text.split(" {").next()?);
        if !is_whole {
            return None;
        }
        let word = head.first()?;
        let keyword = super::expected::foreign(word.text).map(|_| format!("there is no word `{}`: ", word.text));
        let message = match keyword {
            Some(keyword) if !message.contains("enum") => format!("{keyword}{message}"),
            _ => message.to_owned(),
        };
        let end = self.tokens.get(close)?.span;
        let draft = Draft::new(Code::Syntax, self.place, message).help(format!("write `{text}`"));
        let semicolon = self.tokens.get(close + 1).filter(|word| word.text == ";").map_or(end, |word| word.span);
        let draft = draft.propose(word.span.to(semicolon), text);
        Some(Corrected { draft, is_reserved: false, end: open, begins: Begins::Foreign })
    }

    /// Returns the location of the first word that a correction changes.
    fn mistake(&self, words: &[Word], text: &str) -> Span {
        if text.is_empty() {
            return self.place;
        }
        let mut rest = text;
        for (index, word) in words.iter().enumerate() {
            rest = rest.trim_start();
            let is_whole = |after: &&str| match word.kind {
                Kind::Name => !after.starts_with(is_letter),
                _ => !(after.starts_with('=') && matches!(word.text, "=" | "<" | ">" | "!")),
            };
            match rest.strip_prefix(word.text).filter(is_whole) {
                Some(after) => rest = after,
                // The correction adds an aspect to the field before.
                None if rest.starts_with('.') && word.text != "." => {
                    return words.get(index.saturating_sub(1)).map_or(self.place, |before| before.span);
                }
                // The mistake is in the parentheses or after them.
                None if rest.starts_with('(') || word.text == "(" => return self.place,
                None => return word.span,
            }
        }
        self.place
    }

    /// Returns the diagnostic of a correction. `mark` follows the words.
    fn draft(&self, words: &[Word], found: Found, mark: &str) -> Draft {
        let (Some(first), Some(last)) = (words.first(), words.last()) else {
            return Draft::new(Code::Syntax, Span::at(0), found.message);
        };
        let place = first.span.to(last.span);
        let code = if found.is_reserved { Code::ReservedWord } else { Code::Syntax };
        let message = match found.message {
            _ if found.is_reserved => self.expected.clone(),
            "" => self.expected.clone(),
            message => message.to_owned(),
        };
        let draft = match &found.word {
            Some((place, word)) => Draft::new(code, *place, format!("there is no word `{word}`: {message}")),
            None if found.is_reserved => Draft::new(code, self.place, message),
            None => Draft::new(code, self.mistake(words, &found.text), message),
        };
        if found.text.is_empty() {
            return draft.help(found.note);
        }
        // The mark is already part of the text.
        let edit = if mark == ";" { found.text.trim_end_matches(';').to_owned() } else { found.text.clone() };
        let mark = if found.text.ends_with(mark) { "" } else { mark };
        let draft = draft.help(format!("write `{}{mark}`{}", found.text, found.note));
        // Only the text of tokens is rewritten, so an edit would remove comments.
        if found.is_reserved {
            // Statements contain the name, too.
            return draft;
        }
        if found.guesses || !found.note.is_empty() || self.tokens.has_comments(place) {
            return draft.propose(place, edit);
        }
        draft.replace(place, edit)
    }
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_list(text: &str) -> bool {
    is_valid(Rule::whole_list, text)
}

/// Returns the words from `start` to the parenthesis that closes the group.
fn inner<'w, 't>(words: &'w [Word<'t>], start: usize) -> &'w [Word<'t>] {
    let rest = words.get(start..).unwrap_or_default();
    let mut depth = 0;
    let end = rest.iter().position(|word| {
        depth += word.nests();
        depth < 0
    });
    rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
}

/// Returns the items between the commas and semicolons that are not in brackets.
fn split<'w, 't>(words: &'w [Word<'t>]) -> impl Iterator<Item = &'w [Word<'t>]> {
    let mut depth = 0;
    // A comma in a list of predictors without parentheses does not separate items.
    let joins = move |comma: &Word| {
        let after = words.partition_point(|word| word.span.start() <= comma.span.start());
        let is_predictor = words.get(after).is_some_and(|word| PREDICTORS.contains(&word.text))
            && words.get(after + 1).is_some_and(|word| word.is_number() || matches!(word.text, "by" | ","));
        let before = words.get(..after.saturating_sub(1)).unwrap_or_default();
        is_predictor && before.iter().rev().take_while(|word| word.text != ":").any(|word| word.text == "predicted")
    };
    words.split(move |word| {
        depth += word.nests();
        depth == 0 && (word.text == ";" || word.text == "," && !joins(word))
    })
}

/// Returns the commas and semicolons that are not in brackets.
fn split_marks<'w, 't>(words: &'w [Word<'t>]) -> impl Iterator<Item = &'w Word<'t>> {
    let mut depth = 0;
    words.iter().filter(move |word| {
        depth += word.nests();
        depth == 0 && matches!(word.text, "," | ";")
    })
}

/// Checks whether the name of a field says that it counts items.
fn is_count(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "n"
        || ["n_", "num", "len"].iter().any(|start| name.starts_with(start))
        || ["_n", "cnt", "len", "length", "number"].iter().any(|end| name.ends_with(end))
        || name.contains("count")
}

/// Returns the last field in a list with an integer type and such a name.
fn number_field<'t>(words: &[Word<'t>], is_meant: impl Fn(&str) -> bool) -> Option<&'t str> {
    words.windows(3).rev().find_map(|field| match field {
        [name, colon, kind] if colon.text == ":" && name.is_name() && is_meant(name.text) => {
            let bits = kind.text.strip_prefix(['u', 'i'])?;
            bits.parse::<u8>().is_ok().then_some(name.text)
        }
        _ => None,
    })
}
