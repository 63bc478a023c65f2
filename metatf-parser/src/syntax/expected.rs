//! A syntax error in plain words.

use crate::codes::Code;
use crate::diagnostic::Draft;
use crate::lexer::{Kind, Lexed, Token};
use crate::schema::InterpretationWord;
use crate::span::{Source, Span};

/// A piece of the grammar, in the order in which messages list what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    Item,
    BlockItem,
    SectionHead,
    RecordHead,
    FieldItem,
    Repetition,
    Group,
    Property,
    Target,
    Value,
    Word,
    Misspelt,
    Lookalike,
    Interpretation,
    Model,
    Predictor,
    Role,
    By,
    FieldPath,
    MisspeltModel,
    HeapStart,
    WrongPredictor,
    WrongRole,
    WrongBy,
    Expression,
    Parenthesis,
    Reference,
    Operator,
    Int,
    String,
    Name,
    SectionWord,
    WordAndModel,
    AllocatedWord,
    FreedWord,
    UsedWord,
    ByWord,
    OpenBrace,
    OpenParen,
    CloseParen,
    Colon,
    Semicolon,
    Comma,
    Dot,
    Star,
    Equals,
}

/// Checks whether this word is an interpretation and so no name (spec 2).
pub(super) fn is_reserved(word: &str) -> bool {
    InterpretationWord::named(word).is_some()
}

/// Returns the diagnostic for token `index` where one of `rules` was expected. At the end of the text `index` is the number of
/// tokens.
pub(super) fn explain(rules: &[Rule], text: &str, source: &Source, lexed: &Lexed, index: usize) -> Draft {
    let expected = list(rules);
    let Some(token) = lexed.tokens.get(index) else {
        let place = Span::at(text.len());
        return Draft::new(Code::Syntax, place, format!("expected {expected}, found the end of the file"))
            .label("the text ends here")
            .help(help(rules, ""));
    };
    let found = text.get(token.span.range()).unwrap_or_default();
    if token.kind == Kind::Unknown {
        return Draft::new(Code::UnknownCharacter, token.span, format!("unexpected character `{}`", escape(found)))
            .label(format!("expected {expected}"))
            .help("outside of comments and strings a DTD holds names, numbers and `{ } ( ) : ; , . * + - =`");
    }
    if is_reserved(found) && !rules.contains(&Rule::Value) && !rules.contains(&Rule::Int) {
        return Draft::new(Code::ReservedWord, token.span, format!("`{found}` is an interpretation, not a name"))
            .label(format!("expected {expected}"))
            .help("call it something else: the interpretation words are reserved");
    }
    if let Some(draft) = missing_semicolon(rules, source, lexed, index).or_else(|| missing_comma(rules, lexed, index)) {
        return draft;
    }
    let place = token_place(token, text);
    Draft::new(Code::Syntax, place, format!("expected {expected}, found `{}`", shorten(found)))
        .label(format!("expected {expected}"))
        .help(help(rules, found))
}

/// Reports a `;` that is missing at the end of a line there, not at the next line's start.
fn missing_semicolon(rules: &[Rule], source: &Source, lexed: &Lexed, index: usize) -> Option<Draft> {
    let token = lexed.tokens.get(index)?;
    let before = lexed.tokens.get(index.checked_sub(1)?)?;
    let ends_line = source.line_of(before.span.end()) < source.line_of(token.span.start());
    let closes = token.kind == Kind::Mark(b'}');
    (rules.contains(&Rule::Semicolon) && !rules.contains(&Rule::OpenBrace) && (ends_line || closes)).then(|| {
        Draft::new(Code::Syntax, Span::at(before.span.end()), "expected `;` after the property's value")
            .label("expected `;`")
            .help("every property ends with `;`")
    })
}

/// Reports two fields side by side where the first ends.
fn missing_comma(rules: &[Rule], lexed: &Lexed, index: usize) -> Option<Draft> {
    let token = lexed.tokens.get(index)?;
    let before = lexed.tokens.get(index.checked_sub(1)?)?;
    let field = matches!(token.kind, Kind::Name | Kind::Mark(b'('));
    (field && rules.contains(&Rule::Comma) && rules.contains(&Rule::CloseParen)).then(|| {
        Draft::new(Code::Syntax, Span::at(before.span.end()), "expected `,` between two fields")
            .label("expected `,`")
            .also(token.span, "the next field")
            .help("fields are listed like this: `(tag, size, n*item, (a, b))`")
    })
}

fn help(rules: &[Rule], found: &str) -> &'static str {
    if [Rule::Model, Rule::Predictor, Rule::Role, Rule::By, Rule::ByWord].iter().any(|rule| rules.contains(rule)) {
        "write `predicted PREDICTOR n` or `predicted (PREDICTOR, PREDICTOR) n`, n a stream section, or `predicted heap freed n`"
    } else if rules.contains(&Rule::SectionHead) || rules.contains(&Rule::Item) {
        "write `section NAME NUMBER { ... }`, `record: (field, ...) { ... }` or `field.property = value;`"
    } else if rules.contains(&Rule::BlockItem) || rules.contains(&Rule::Property) {
        "a record's block holds properties: `field.property = value;`"
    } else if rules.contains(&Rule::Value) {
        "a value is an interpretation (`none`, `delta 0`, ...), a number, an expression, a string or a word"
    } else if rules.contains(&Rule::FieldItem) {
        "fields are listed like this: `(tag, size, n*item, (a, b))`"
    } else if rules.contains(&Rule::Equals) || rules.contains(&Rule::Dot) {
        "a property is written `field.property = value;`"
    } else if found == "-" && rules.contains(&Rule::Int) {
        "a sign stands directly before its digits"
    } else if rules.contains(&Rule::Int) {
        "numbers are decimal or hexadecimal: 42, 0x2a, 1_000; a section's name is followed by its number"
    } else if rules.contains(&Rule::Semicolon) {
        "every property ends with `;`"
    } else if rules.contains(&Rule::Colon) {
        "a record is written `record: (field, ...) { ... }`, a property `field.property = value;`"
    } else {
        "the grammar is in section 2 of the language's specification"
    }
}

/// Returns a token's place; of a long one its start.
fn token_place(token: &Token, text: &str) -> Span {
    let end = text.get(token.span.range()).and_then(|t| t.char_indices().nth(40)).map(|(i, _)| token.span.start() + i);
    Span::new(token.span.start(), end.unwrap_or(token.span.end()))
}

fn shorten(found: &str) -> String {
    match found.char_indices().nth(40) {
        Some((i, _)) => format!("{}...", found.get(..i).unwrap_or_default()),
        None => found.to_owned(),
    }
}

fn escape(found: &str) -> String {
    found.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Lists words as "a, b or c".
fn list(rules: &[Rule]) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in rules.iter().filter(|rule| !is_lookalike(**rule)).map(|rule| words_for(*rule)) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    match words.split_last() {
        None => "something else".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

/// Checks for a rule that is tried for the sake of its message only and is never what should stand there.
fn is_lookalike(rule: Rule) -> bool {
    matches!(rule, Rule::Lookalike | Rule::HeapStart | Rule::WrongPredictor | Rule::WrongRole | Rule::WrongBy)
}

fn words_for(rule: Rule) -> &'static str {
    match rule {
        Rule::Item | Rule::SectionHead | Rule::RecordHead => "a section, a record or a property",
        Rule::BlockItem | Rule::Property | Rule::Target => "a property",
        Rule::FieldItem => "a field",
        Rule::Repetition | Rule::Name => "a name",
        Rule::Group | Rule::OpenParen | Rule::Parenthesis => "`(`",
        Rule::Value => "a value",
        Rule::Interpretation => "an interpretation",
        Rule::Expression => "an expression",
        Rule::Reference => "a field's path",
        Rule::Operator => "`+`, `-`, `*`",
        Rule::Int => "a number",
        Rule::String => "a string",
        Rule::Word => "a word",
        Rule::OpenBrace => "`{`",
        Rule::CloseParen => "`)`",
        Rule::Colon => "`:`",
        Rule::Semicolon => "`;`",
        Rule::Comma => "`,`",
        Rule::Dot => "`.`",
        Rule::Star => "`*`",
        Rule::Equals => "`=`",
        Rule::SectionWord => "`section`",
        Rule::WordAndModel | Rule::Lookalike | Rule::Misspelt | Rule::MisspeltModel => "an interpretation",
        Rule::Model | Rule::Predictor | Rule::WrongPredictor | Rule::HeapStart => "a predictor",
        Rule::Role | Rule::WrongRole => "`allocated`, `freed` or `used`",
        Rule::By | Rule::ByWord | Rule::WrongBy => "`by`",
        Rule::FieldPath => "a field",
        Rule::AllocatedWord => "`allocated`",
        Rule::FreedWord => "`freed`",
        Rule::UsedWord => "`used`",
    }
}
