//! Matches tokens with the patterns of the [table](super::table).
//!
//! | class | matches | captures |
//! | --- | --- | --- |
//! | `NAME`, `NEW`, `OTHER` | a name; a name without statements; a name that is not a type | the name |
//! | `DIGITS`, `RESERVED` | a name that begins with a digit, or is reserved | a name with `_` |
//! | `TYPE` | a type of this language or another language | the type |
//! | `STRUCT` | a format of Python's `struct` for one value | the type |
//! | `BYTE`, `ARRAY` | a type of a byte; a type with a length | `bytes`, `text` or `cstring` |
//! | `WIDTH` | a number of bytes | a type of that width |
//! | `INT`, `TEXT`, `CHARACTERS` | a number; a string; a string in single quotes | the number; the content; a string |
//! | `NAMED` | the name of a value, or a string with it | its number |
//! | `NEAR` | a misspelled interpretation | the interpretation |
//! | `SECTION` | the name of a section | its number |
//! | `PROPERTY`, `FORMAT`, `UNIT`, `REST` | a property; a format; a unit; a word for the rest | the word |
//! | `KIND`, `INTERPRETATION` | a type with its length or interpretation; an interpretation | the same, corrected |
//! | `FIELD`, `REPEAT` | an item of a field list; a repetition without a name | the same, corrected |
//! | `LIST`, `LISTS` | one or more items; two or more items | the items with commas |
//! | `EXPR`, `COND`, `NOT`, `COUNT` | an expression; a condition; the same; a count | the same, rewritten; its negation; the count |
//! | `PATH`, `VALUE` | names with dots; a value of a property | the same |
//! | `NAMES`, `NUMBERED` | a list of numbers and names; a string with such a list | the list as a string |
//! | `MODELS` | predictors with commas | the same |
//! | `CHARACTER`, `KINDONLY` | a string of one character; an interpretation without a type | its number; the same |
//! | `ANY` | any tokens in which brackets match | the same |

use pest::Parser as _;

use super::expression;
use super::tokens::Word;
use super::{Corrector, Place};
use crate::foreign;
use crate::lexer::Kind;
use crate::schema::{Format, InterpretationWord, parse_names};
use crate::syntax::{Grammar, Rule};
use crate::vocabulary::Property;

/// The words that begin a predictor in a list.
pub(super) const PREDICTORS: [&str; 4] = ["lastValue", "stride", "fcm", "dfcm"];

/// Matches all words with a pattern, and returns the captures.
pub(super) fn captures(corrector: &Corrector, pattern: &str, words: &[Word], depth: usize) -> Option<Vec<String>> {
    let elements: Vec<&str> = pattern.split(' ').collect();
    // Most patterns contain a literal that the words lack.
    let lacks = |element: &&str| is_literal(element) && !words.iter().any(|word| is_one_of(element, word.text));
    if elements.len() > words.len() || elements.iter().any(lacks) {
        return None;
    }
    let mut out = Vec::new();
    matches(corrector, &elements, words, depth, &mut out).then_some(out)
}

fn is_literal(element: &str) -> bool {
    !(element.len() > 2 && element.bytes().all(|byte| byte.is_ascii_uppercase()))
}

fn is_one_of(element: &str, word: &str) -> bool {
    element == word || element.split('|').any(|alternative| alternative == word)
}

fn matches(corrector: &Corrector, elements: &[&str], words: &[Word], depth: usize, out: &mut Vec<String>) -> bool {
    let Some((element, others)) = elements.split_first() else { return words.is_empty() };
    if is_literal(element) {
        return words
            .split_first()
            .is_some_and(|(word, rest)| is_one_of(element, word.text) && matches(corrector, others, rest, depth, out));
    }
    let most = if is_single(element) { 1 } else { words.len() - others.len().min(words.len()) };
    let least = if others.is_empty() && !is_single(element) { words.len() } else { 1 };
    let mut nesting = 0;
    for length in 1..=most.min(words.len()) {
        let Some((captured, rest)) = words.split_at_checked(length) else { break };
        nesting += captured.last().map_or(0, Word::nests);
        if nesting < 0 {
            return false;
        }
        let follows = others
            .first()
            .is_none_or(|next| !is_literal(next) || rest.first().is_some_and(|word| is_one_of(next, word.text)));
        if length < least || nesting != 0 || !follows || !corrector.spend() {
            continue;
        }
        if let Some(text) = capture(corrector, element, captured, depth, out.first().map_or("", String::as_str)) {
            out.push(text);
            if matches(corrector, others, rest, depth, out) {
                return true;
            }
            out.pop();
        }
    }
    false
}

fn is_single(class: &str) -> bool {
    !matches!(
        class,
        "INT"
            | "STRUCT"
            | "KIND"
            | "INTERPRETATION"
            | "FIELD"
            | "REPEAT"
            | "LIST"
            | "LISTS"
            | "EXPR"
            | "COND"
            | "NOT"
            | "COUNT"
            | "PATH"
            | "VALUE"
            | "NAMES"
            | "ANY"
            | "MODELS"
            | "KINDONLY"
    )
}

/// Returns the capture of a class, or `None` if the words do not belong to it. `field` is the first capture.
fn capture(corrector: &Corrector, class: &str, words: &[Word], depth: usize, field: &str) -> Option<String> {
    let tokens = corrector.tokens;
    let source = || tokens.text(words);
    let [first, ..] = words else { return None };
    let word = first.text;
    let name = || first.is_name().then(|| word.to_owned());
    match class {
        "NAME" => name(),
        "NEW" => name().filter(|name| !tokens.declares(name) && !tokens.is_type(name)),
        "OTHER" => name().filter(|name| type_name(corrector, name).is_none()),
        "UNIT" => matches!(word, "ns" | "us" | "ms" | "s" | "sec" | "bytes" | "kB" | "KiB" | "MB" | "Hz" | "C")
            .then(|| word.to_owned()),
        "DIGITS" => (first.kind == Kind::Int && !first.is_number() && word.is_ascii()).then(|| format!("_{word}")),
        "RESERVED" => InterpretationWord::named(word).map(|_| format!("{word}_")),
        "TYPE" => type_name(corrector, word).filter(|_| first.is_name()),
        "STRUCT" => {
            let text = word.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            foreign::struct_format(&text.map_or_else(|| tokens.text(words), str::to_owned))
                .filter(|_| text.is_some() && words.len() == 1 || matches!(word, "<" | ">" | "!" | "="))
        }
        "BYTE" => {
            let native = type_name(corrector, word).filter(|_| first.is_name())?;
            matches!(native.as_str(), "u8" | "i8" | "bytes" | "text" | "cstring").then(|| match native.as_str() {
                "text" | "cstring" => native,
                _ => "bytes".to_owned(),
            })
        }
        "ARRAY" => type_name(corrector, word).filter(|native| matches!(native.as_str(), "bytes" | "text" | "cstring")),
        "WIDTH" => {
            let bytes: u32 = word.parse().ok().filter(|bytes| *bytes > 0)?;
            Some(if bytes <= 8 { format!("u{}", bytes * 8) } else { format!("bytes {bytes}") })
        }
        "INT" => match words {
            [number] | [Word { text: "-", .. }, number] if number.is_number() => Some(source()),
            _ => None,
        },
        "NAMED" => {
            let name = word.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(word);
            tokens.named_number(name, field)
        }
        "TEXT" => Some(word.strip_prefix('"')?.strip_suffix('"')?.to_owned()),
        "CHARACTERS" => Some(format!("\"{}\"", word.strip_prefix('\'')?.strip_suffix('\'')?)),
        "NEAR" => foreign::interpretation(word).filter(|_| first.kind == Kind::Name).map(str::to_owned),
        "SECTION" => tokens.section_number(word).map(str::to_owned),
        "PROPERTY" => Property::named(word).map(|_| word.to_owned()),
        "FORMAT" => Format::named(word).map(|_| word.to_owned()),
        "REST" => foreign::REST_NAMES.contains(&word).then(|| "rest".to_owned()),
        "KIND" => corrector.kind(words, depth),
        "KINDONLY" => corrector.kind(words, depth).filter(|text| is_valid(Rule::whole_interpretation, text)),
        "INTERPRETATION" => Some(source()).filter(|text| is_valid(Rule::whole_interpretation, text)),
        "FIELD" => corrector.field(words, depth + 1),
        "REPEAT" => corrector.field(words, depth + 1).filter(|text| {
            let star = text.find('*');
            star.is_some_and(|star| text.starts_with('(') || !text.get(..star).is_some_and(|name| name.contains(':')))
        }),
        "LIST" => corrector.list(words, depth).map(|items| items.join(", ")),
        "LISTS" => corrector.list(words, depth).filter(|items| items.len() > 1).map(|items| items.join(", ")),
        "EXPR" => rewritten(corrector, words),
        "COND" => rewritten(corrector, words)
            .filter(|text| [".bit ", "==", "!=", "<", ">"].iter().any(|mark| text.contains(mark))),
        "NOT" => expression::negate(words, tokens),
        "COUNT" => match words {
            [only] if only.is_name() => Some(word.to_owned()),
            _ => rewritten(corrector, words).map(|text| format!("({text})")),
        },
        "PATH" => {
            let is_path = words.len() % 2 == 1
                && words.iter().enumerate().all(|(i, w)| if i % 2 == 0 { w.kind == Kind::Name } else { w.text == "." });
            is_path.then(source)
        }
        "VALUE" => Some(source()).filter(|text| is_valid(Rule::whole_value, text)),
        "NAMES" => {
            if words.iter().any(|word| word.text == ".") {
                return None;
            }
            let text = source().replace('"', "");
            let list = foreign::name_list(&text, false).filter(|_| words.len() > 1 || word.starts_with('"'))?;
            Some(format!("\"{list}\""))
        }
        "NUMBERED" => {
            let text = word.strip_prefix('"')?.strip_suffix('"')?;
            parse_names(text, false).is_ok().then(|| word.to_owned())
        }
        "CHARACTER" => match word {
            r#""\n""# | "'\\n'" => Some("10".to_owned()),
            r#""\0""# | r#""""# => Some("0".to_owned()),
            r#""\t""# => Some("9".to_owned()),
            _ => {
                let byte = word.strip_prefix('"')?.strip_suffix('"').filter(|text| text.len() == 1)?.bytes().next()?;
                Some(byte.to_string())
            }
        },
        "MODELS" => (PREDICTORS.contains(&word) && words.iter().any(|word| word.text == ",")).then(source),
        "ANY" => Some(source().trim_end_matches([';', ',', ' ']).to_owned()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

fn rewritten(corrector: &Corrector, words: &[Word]) -> Option<String> {
    let (text, mistake) = expression::rewrite(words, corrector.tokens)?;
    if !mistake.is_empty() {
        corrector.message.set(mistake);
    }
    Some(text)
}

/// Returns the name of a type in this language.
pub(super) fn type_name(corrector: &Corrector, word: &str) -> Option<String> {
    if corrector.tokens.is_type(word) {
        return Some(word.to_owned());
    }
    foreign::type_name(word).map(str::to_owned)
}

/// Checks whether a text matches a rule completely, without words that the grammar accepts only to report them.
pub(super) fn is_valid(rule: Rule, text: &str) -> bool {
    let wrong = |rule| matches!(rule, Rule::misspelt | Rule::misspelt_model);
    Grammar::parse(rule, text).is_ok_and(|pairs| pairs.flatten().all(|pair| !wrong(pair.as_rule())))
}

/// Returns a row's text with the captures in place of `$1` and so on, and other values in place of their names.
pub(super) fn expand(template: &str, captures: &[String], corrector: &Corrector, place: Place) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len());
        let (name, others) = after.split_at_checked(end).unwrap_or((after, ""));
        match name.parse::<usize>() {
            Ok(number) => {
                out.push_str(number.checked_sub(1).and_then(|at| captures.get(at)).map_or("", String::as_str))
            }
            Err(_) => out.push_str(&corrector.value(name, place)),
        }
        rest = others;
    }
    out.push_str(rest);
    out
}
