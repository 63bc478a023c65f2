//! Describes a pest error in plain language.

use pest::error::{Error, ErrorVariant, InputLocation};

use super::Rule;
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE};
use crate::lexer::{Kind, Lexed, Token};
use crate::schema::InterpretationWord;
use crate::span::{Source, Span};
use crate::vocabulary::{Property, TYPES};

/// Checks whether the word is an interpretation, which cannot be a name (spec 2).
pub(super) fn is_reserved(word: &str) -> bool {
    InterpretationWord::named(word).is_some()
}

/// Returns the offset at which pest stopped, relative to its input.
pub(super) fn offset(error: &Error<Rule>) -> usize {
    match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    }
}

/// Returns the rules that could have matched at that offset.
pub(super) fn rules(error: &Error<Rule>) -> &[Rule] {
    match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives,
        ErrorVariant::CustomError { .. } => &[],
    }
}

/// Returns the message for a token where one of `rules` was expected.
pub(super) fn message(rules: &[Rule], found: &str) -> String {
    if is_reserved(found) {
        return format!("`{found}` is an interpretation, not a name");
    }
    format!("expected {}, found `{}`", list(rules), escape(&shorten(found)))
}

/// Returns the diagnostic for token `index` where one of `rules` was expected. At the end of the text, `index` is the
/// number of tokens.
pub(super) fn explain(rules: &[Rule], text: &str, source: &Source, lexed: &Lexed, index: usize) -> Draft {
    let expected = list(rules);
    let Some(token) = lexed.tokens.get(index) else {
        let place = Span::at(text.len());
        let draft = Draft::new(Code::Syntax, place, format!("expected {expected}, found the end of the file"))
            .label("the text ends here");
        return match statement_before(text, text.len()) {
            Some(line) if rules.contains(&Rule::missing_semicolon) => draft.help(format!("write `{line};`")),
            _ => draft.help(form(rules, "", text, lexed, index)).general(),
        };
    };
    let found = text.get(token.span.range()).unwrap_or_default();
    if token.kind == Kind::Unknown {
        let (place, word) = ascii_word(text, token);
        let draft = Draft::new(Code::UnknownCharacter, token.span, format!("unexpected character `{}`", escape(found)))
            .label(format!("expected {expected}"))
            .help(unknown_help(text, token))
            .line(place, word);
        let is_letter = found == "#" || found.starts_with(char::is_alphabetic);
        return if is_letter { draft } else { draft.general() };
    }
    let word = index.checked_sub(1).and_then(|before| lexed.tokens.get(before)).and_then(|t| text.get(t.span.range()));
    if let Some(help) = word.and_then(foreign).filter(|_| rules.contains(&Rule::missing_colon)) {
        let (place, word) = (token_place(token, text), word.unwrap_or_default());
        return Draft::new(Code::Syntax, place, format!("`{word}` is not a word of this language"))
            .label(format!("expected {expected}"))
            .help(help);
    }
    if is_reserved(found)
        && ![Rule::value, Rule::int, Rule::operator, Rule::missing_equals].iter().any(|rule| rules.contains(rule))
    {
        return Draft::new(Code::ReservedWord, token.span, format!("`{found}` is an interpretation, not a name"))
            .label(format!("expected {expected}"))
            .help("choose a different name: the interpretation words are reserved");
    }
    if let Some(draft) = missing_semicolon(rules, text, source, lexed, index) {
        return draft;
    }
    if let Some(draft) = common_mistake(rules, text, lexed, index) {
        return draft;
    }
    let place = token_place(token, text);
    let draft = Draft::new(Code::Syntax, place, format!("expected {expected}, found `{}`", shorten(found)))
        .label(format!("expected {expected}"))
        .help(form(rules, found, text, lexed, index))
        .general()
        .line(
            Span::at(index.checked_sub(1).and_then(|before| lexed.tokens.get(before)).map_or(0, |t| t.span.end())),
            match word {
                Some("allocated") => " size".to_owned(),
                _ if rules.contains(&Rule::by_word) => format!(" {}", last_section(text, lexed)),
                _ => " 1".to_owned(),
            },
        );
    // If the position shows that a punctuation mark is missing, report the missing mark.
    let Some(before) = index.checked_sub(1).and_then(|before| lexed.tokens.get(before)) else { return draft };
    let is_property = text.get(before.span.range()).is_some_and(|word| Property::named(word).is_some());
    if rules.contains(&Rule::missing_equals) && is_property {
        draft.replace(Span::at(before.span.end()), " =")
    } else if rules.contains(&Rule::missing_colon) && found == "(" {
        draft.replace(Span::at(before.span.end()), ":")
    } else {
        draft
    }
}

/// Returns the location of the word around a character, and the word in ASCII.
fn ascii_word(text: &str, token: &Token) -> (Span, String) {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let (before, after) = text.split_at_checked(token.span.start()).unwrap_or((text, ""));
    let start = before.trim_end_matches(is_letter).len();
    let end = text.len() - after.trim_start_matches(is_letter).len();
    let word = text.get(start..end).unwrap_or_default();
    let plain = |c: char| match c {
        'ä' | 'æ' => "ae".to_owned(),
        'ö' | 'ø' => "oe".to_owned(),
        'ü' => "ue".to_owned(),
        'ß' => "ss".to_owned(),
        'é' | 'è' | 'ê' | 'ë' => "e".to_owned(),
        'á' | 'à' | 'â' | 'å' => "a".to_owned(),
        'µ' | 'μ' => "u".to_owned(),
        c if c.is_ascii() => c.to_string(),
        _ => "_".to_owned(),
    };
    (Span::new(start, end), word.chars().map(plain).collect())
}

/// Returns the help for a character that the language does not have.
fn unknown_help(text: &str, token: &Token) -> String {
    let rest = text.get(token.span.start()..).unwrap_or_default();
    let directive = rest.strip_prefix('#').map(str::trim_start);
    let help = match (directive, rest.chars().next().unwrap_or_default()) {
        (Some(rest), _) if rest.starts_with("include") || rest.starts_with("import") => INCLUDE,
        (Some(rest), _) if rest.starts_with("define") => {
            "there are no constants: write the number itself, as in `size.width = 4;`"
        }
        (Some(rest), _) => {
            let line = rest.lines().next().unwrap_or_default().trim();
            return if matches!(line.len(), 1..=80) {
                format!("write the comment as `// {line}`")
            } else {
                "a comment is `// to the end of the line` or `/* between these marks */`".to_owned()
            };
        }
        (None, '“' | '”' | '„' | '«' | '»') => {
            "write strings with straight quotes, as in `size.unit = \"bytes\";`"
        }
        (None, '‘' | '’') => "write characters with straight quotes, as in `magic.value = 'IHDR';`",
        (None, '\'') => "a number written as characters has 1 to 8 characters and ends on its line, as in `'IHDR'`",
        (None, '–' | '—' | '−') => "write `-` for subtraction and negative numbers",
        (None, '×') => "write `*` for repetitions and products",
        (None, c) if c.is_alphabetic() => {
            return format!("write `{LINE}`: a name consists of the letters `a` to `z` and `A` to `Z`, digits and `_`");
        }
        (None, '[') if text.get(..token.span.start()).is_some_and(|before| before.trim_end().ends_with(')')) => {
            "write the block of a record in braces, as in `{ tag.value = 4; }`"
        }
        (None, ']') if text.get(..token.span.start()).is_some_and(|before| before.trim_end().ends_with(';')) => {
            "write `}` at the end of a block"
        }
        (None, '[' | ']') => {
            "there are no brackets: write a repetition as `n*item: u16`, and a byte array as `id: bytes 16`"
        }
        (None, '&' | '|' | '^' | '~' | '?') => {
            "the operators are `+ - * / %` and comparisons; a bit of a field is `flags.bit 3`"
        }
        (None, _) => {
            "outside of comments and strings, a DTD contains only names, numbers, strings and `{ } ( ) : ; , . * / % + - = < > !`"
        }
    };
    help.to_owned()
}

const INCLUDE: &str = "a DTD is a single file and cannot include others: copy the definitions into it";

/// Maximum number of words before a mistake that its help repeats.
const MOST_BEFORE: usize = 60;

/// Returns what to write in place of a keyword of other languages.
pub(super) fn foreign(word: &str) -> Option<&'static str> {
    Some(match word {
        "struct" | "union" | "class" | "message" | "record" | "typedef" | "table" => {
            "write a record as `NAME: (size: u32, id: bytes 16) { tag.value = 4; }`"
        }
        "enum" => "name the values of a field: `state.values = \"0 running, 1 sleeping\";`",
        "include" | "import" | "use" | "using" | "require" => INCLUDE,
        "const" | "define" | "let" => "there are no constants: write the number itself, as in `size.width = 4;`",
        _ => return None,
    })
}

/// Reports a missing `;` after its statement, not at the start of the next statement, which may be on the next line.
fn missing_semicolon(rules: &[Rule], text: &str, source: &Source, lexed: &Lexed, index: usize) -> Option<Draft> {
    let token = lexed.tokens.get(index)?;
    let before = lexed.tokens.get(index.checked_sub(1)?)?;
    let ends_line = source.line_of(before.span.end()) < source.line_of(token.span.start());
    let closes = token.kind == Kind::Mark(b'}');
    let dot = lexed.tokens.get(index + 1).is_some_and(|next| next.kind == Kind::Mark(b'.'));
    let begins = token.kind == Kind::Name && dot;
    let is_type = rules.contains(&Rule::open_brace);
    if !rules.contains(&Rule::missing_semicolon) || !(ends_line || !is_type && (closes || begins)) {
        return None;
    }
    let what = if is_type { "the type" } else { "the property's value" };
    let place = Span::at(before.span.end());
    let draft =
        Draft::new(Code::Syntax, place, format!("expected `;` after {what}")).label("expected `;`").replace(place, ";");
    Some(match statement_before(text, place.start()) {
        Some(line) => draft.help(format!("write `{line};`")),
        None => draft.help("every property must end with `;`"),
    })
}

/// Reports a division in the notation `//`, which begins a comment, before token `index`. Also returns the location of
/// a `{` that ends the comment.
pub(super) fn division(text: &str, lexed: &Lexed, index: usize) -> Option<(Draft, Option<Span>)> {
    let dividend = lexed.tokens.get(index.checked_sub(1)?)?.span;
    let before = dividend.end();
    let line = text.get(before..)?.lines().next()?.trim_end();
    let (divisor, _) = line.trim_start().strip_prefix("//")?.split_once([';', ')'])?;
    let is_operand = |word: &str| match word.split_once('.') {
        Some((_, aspect)) => ["value", "width"].iter().any(|known| aspect.ends_with(known)) && !word.contains(' '),
        None => !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()),
    };
    // Not a comment that begins with a number.
    let ends = line.ends_with([';', '{', '}', ')', ',']);
    if !ends || !is_operand(divisor.trim()) || !matches!(text.get(dividend.range())?, "value" | "width" | ")") {
        return None;
    }
    let whole = line.find([';', '{']).and_then(|end| line.get(..=end)).unwrap_or(line);
    let help = format!("write `{}{}`", statement_before(text, before)?, whole.replacen("//", "/", 1));
    let place = before + line.len() - line.trim_start().len();
    let draft =
        Draft::new(Code::Syntax, Span::new(place, place + 2), "`//` begins a comment, and `/` divides").help(help);
    let end = before + line.len();
    Some((draft, line.ends_with('{').then(|| Span::new(end - 1, end))))
}

/// Returns the statement that ends at an offset, if it is short and on one line.
fn statement_before(text: &str, end: usize) -> Option<&str> {
    let text = text.get(..end)?.trim_end();
    let start = text.rfind([';', '{', '}', '\n']).map_or(0, |at| at + 1);
    text.get(start..).map(str::trim).filter(|line| matches!(line.len(), 1..=80))
}

/// Reports a parenthesis that is missing or superfluous, a comment in another notation, or a number in one.
fn common_mistake(rules: &[Rule], text: &str, lexed: &Lexed, index: usize) -> Option<Draft> {
    let token = lexed.tokens.get(index)?;
    let found = text.get(token.span.range())?;
    let next = lexed.tokens.get(index + 1).and_then(|token| text.get(token.span.range())).unwrap_or_default();
    let starts_item = rules.contains(&Rule::section_head) || rules.contains(&Rule::item);
    let draft = |message: String| Draft::new(Code::Syntax, token_place(token, text), message);
    let line = text.get(token.span.start()..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let before = index.checked_sub(1).and_then(|before| lexed.tokens.get(before));
    let word = before.and_then(|token| text.get(token.span.range())).unwrap_or_default();
    if matches!(word, "endian" | "byteorder" | "byte_order" | "endianness")
        && let Some(before) =
            before.filter(|_| rules.contains(&Rule::missing_dot) || rules.contains(&Rule::missing_colon))
    {
        let help = "remove the statement: traces are little-endian by default, and the header of a trace contains the \
                    byte order";
        return Some(Draft::new(Code::Syntax, before.span, "a DTD does not contain the byte order").help(help));
    }
    let operator = index.checked_sub(2).and_then(|at| text.get(lexed.tokens.get(at)?.span.range())).unwrap_or_default();
    let is_operand = matches!(operator, "==" | "!=" | "<" | ">" | "<=" | ">=" | "+" | "-" | "*" | "/" | "%");
    if let Some(before) =
        before.filter(|token| is_operand && token.kind == Kind::Name && rules.contains(&Rule::missing_dot))
    {
        let message = format!("an expression contains numbers and fields, but there is no field `{}`", shorten(word));
        let help = format!(
            "write `{LINE}` with the number of `{0}` in place of 1, or a field as in `{0}.value`",
            shorten(word)
        );
        return Some(Draft::new(Code::Syntax, before.span, message).help(help).line(before.span, "1"));
    }
    match (found, next) {
        ("{", _) if starts_item && word == ";" => {
            let draft = draft("the block of a record follows its list without `;`".to_owned());
            let head = statement_before(text, before?.span.start()).filter(|head| head.ends_with(')'));
            Some(match head {
                Some(head) => draft.help(format!("write `{head} {{`")),
                None => draft.help("write the block after a record, as in `ev: (size: u32) {`"),
            })
        }
        (",", _) if starts_item && word == ")" => {
            let statement = line.trim_start_matches([',', ' ']).split(';').next().unwrap_or_default();
            let draft = draft("the properties of a record are in its block".to_owned());
            Some(draft.help(match statement.split_once('=') {
                Some((target, _)) if target.contains('.') => format!("write `{{ {statement}; }}` without the comma"),
                _ => "write `{ tag.value = 4; }` with the tag of the record".to_owned(),
            }))
        }
        ("=", _) if starts_item && word == ")" => {
            let draft = draft("the properties of a record are in its block".to_owned());
            Some(match next.bytes().all(|byte| byte.is_ascii_digit()) && !next.is_empty() {
                true => draft.help(format!("write `{{ tag.value = {next}; }}`")),
                false => draft.help("write `{ tag.value = 4; }` with the tag of the record"),
            })
        }
        ("{", _) if rules.contains(&Rule::missing_close_paren) => {
            let before = lexed.tokens.get(index.checked_sub(1)?)?.span.end();
            let draft = draft("expected `)`, found `{`".to_owned()).replace(Span::at(before), ")");
            Some(match statement_before(text, before) {
                Some(head) => draft.help(format!("write `{head}) {{`")),
                None => draft.help("close the field list with `)`"),
            })
        }
        (")", _) if starts_item => Some(
            draft("unmatched `)`".to_owned())
                .help(match word {
                    "" | ";" | "{" | "}" => "remove the `)`, or add the missing `(`".to_owned(),
                    _ => format!("write `{LINE}`, or add the missing `(`"),
                })
                .line(token.span, "")
                .propose(token.span, ""),
        ),
        ("-", "-") | (";", ";") if starts_item => {
            let comment = line.trim_start_matches(['-', ';']).trim();
            Some(
                draft(format!("`{found}{next}` does not begin a comment"))
                    .help(format!("write `// {}`", shorten(comment))),
            )
        }
        ("<", "!" | "?") if starts_item => Some(draft("this is not a DTD of XML".to_owned()).help(
            "write a record as `NAME: (size: u32, id: bytes 16) { tag.value = 4; }`, and a comment as `// text`",
        )),
        _ if token.kind == Kind::Int && (rules.contains(&Rule::int) || rules.contains(&Rule::value)) => Some(
            draft(format!("`{}` is not a number", shorten(found)))
                .help(match other_number(found) {
                    Some(_) => format!("write `{LINE}`"),
                    None => format!(
                        "write a decimal or hexadecimal number, such as `42`, `0x2a` or `1_000`, as in `{LINE}`"
                    ),
                })
                .line(token.span, other_number(found).unwrap_or_else(|| "42".to_owned())),
        ),
        (".", _) if !rules.contains(&Rule::missing_dot) && next.bytes().all(|b| b.is_ascii_digit()) => {
            let before = lexed.tokens.get(index.checked_sub(1)?).filter(|token| token.kind == Kind::Int)?;
            let whole = text.get(before.span.range())?;
            let number = before.span.to(lexed.tokens.get(index + 1)?.span);
            let types = lexed.tokens.get(index.saturating_sub(4)..index)?.iter();
            let kind =
                types.filter_map(|token| text.get(token.span.range())).find(|word| matches!(*word, "f32" | "f64"));
            let draft = draft("numbers are integers".to_owned());
            let value: Option<f64> = text.get(number.range())?.parse().ok();
            #[allow(clippy::cast_possible_truncation)] // An `f32` stores the nearest number.
            Some(match (kind, value) {
                (Some("f32"), Some(value)) => draft.write(number, format!("{:#x}", (value as f32).to_bits())),
                (Some(_), Some(value)) => draft.write(number, format!("{:#x}", value.to_bits())),
                _ => draft.write(number, whole),
            })
        }
        _ => None,
    }
}

/// Returns a number in another notation as a decimal or hexadecimal number.
fn other_number(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase().replace('_', "");
    let parse = |digits: &str, radix| u64::from_str_radix(digits, radix).ok();
    let value = if let Some(digits) = lower.strip_prefix("0b") {
        parse(digits, 2)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        parse(digits, 8)
    } else if let Some(digits) = lower.strip_prefix("0x") {
        return parse(digits.trim_end_matches(['u', 'l', 'h']), 16).map(|value| format!("{value:#x}"));
    } else if let Some(digits) = lower.strip_suffix('h') {
        return parse(digits, 16).map(|value| format!("{value:#x}"));
    } else if let Some(digits) = lower.strip_suffix(['k', 'm', 'g']) {
        let shift = if lower.ends_with('k') {
            10
        } else if lower.ends_with('m') {
            20
        } else {
            30
        };
        parse(digits, 10).and_then(|value| value.checked_mul(1 << shift))
    } else {
        parse(lower.trim_end_matches(['u', 'l']), 10)
    };
    value.map(|value| value.to_string())
}

/// Returns the number of the last section, which is probably a stream section.
fn last_section<'t>(text: &'t str, lexed: &Lexed) -> &'t str {
    let word = |token: &Token| text.get(token.span.range()).unwrap_or_default();
    let mut heads = lexed.tokens.windows(3).rev();
    let last = heads
        .find(|head| matches!(head, [section, _, number] if word(section) == "section" && number.kind == Kind::Int));
    last.and_then(|head| head.last()).map_or("2", word)
}

/// Returns the form of the construct in which token `index` is a mistake, with the names before the token.
fn form(rules: &[Rule], found: &str, text: &str, lexed: &Lexed, index: usize) -> String {
    let word =
        |index: usize| lexed.tokens.get(index).and_then(|token| text.get(token.span.range())).unwrap_or_default();
    let least = index.saturating_sub(MOST_BEFORE);
    let start =
        (least..index).rev().find(|index| matches!(word(*index), ";" | "{" | "}")).map_or(least, |index| index + 1);
    let words: Vec<&str> = (start..index).map(word).collect();
    let before = || {
        let span = |index: usize| lexed.tokens.get(index).map(|token| token.span);
        let before = text.get(span(start)?.start()..span(index.checked_sub(1)?)?.end()).filter(|_| start < index)?;
        (!before.contains("//") && !before.contains("/*") && before.len() <= 120)
            .then(|| before.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let is_name = |word: &str| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !is_reserved(word);
    let has = |rule: Rule| rules.contains(&rule);
    let colon = words.iter().rposition(|word| *word == ":").and_then(|at| words.get(at.checked_sub(1)?));
    let target = words.iter().position(|word| *word == "=").and_then(|at| words.get(..at));
    match (colon, target, words.as_slice()) {
        (.., [.., "allocated"]) => format!("write `{LINE}` with the field that contains the size"),
        _ if has(Rule::by_word) && has(Rule::int) => {
            format!("write `{LINE}` with the number of the stream section for other values")
        }
        (_, Some(_), [.., last]) if has(Rule::int) && is_reserved(last) && *last != "predicted" => match before() {
            Some(line) => format!("write a number after `{last}`, as in `{line} 0;`"),
            None => format!("write a number after `{last}`, as in `{last} 0`"),
        },
        (Some(name), None, _) if has(Rule::model) || has(Rule::predictor) => {
            let section = last_section(text, lexed);
            format!(
                "write `{name}: predicted 1 lastValue 1 {section}` or `{name}: predicted 1 (lastValue 1, fcm 2) {section}` with \
                 the number of a stream section"
            )
        }
        _ if [Rule::model, Rule::predictor, Rule::allocated_word, Rule::by_word].iter().any(|rule| has(*rule)) => {
            let path = target.map_or_else(|| "FIELD.interpretation".to_owned(), <[_]>::concat);
            format!(
                "write `{path} = predicted 1 lastValue 1 N;`, `{path} = predicted 1 (lastValue 1, fcm 2) N;` or `{path} = \
                 predicted 1 heap freed N;`, where N is the number of a stream section"
            )
        }
        (.., [.., last]) if has(Rule::int) && matches!(found, ")" | ";" | ",") => {
            format!("write a number after `{last}`, as in `{LINE}`")
        }
        (Some(name), None, [_, _, .., "bytes"]) if has(Rule::delta_word) && is_name(name) => {
            format!("write a length after `bytes`, as in `{name}: bytes 16` or `{name}: bytes n.value`")
        }
        (Some(name), None, [_, _, .., last]) if has(Rule::delta_word) && is_name(name) && TYPES.contains(last) => {
            format!(
                "the type of `{name}` is complete: write `,` or `)` after `{name}: {last}`, or an interpretation, \
                 such as `delta 0`"
            )
        }
        (Some(name), None, [_, _, _, ..]) if has(Rule::delta_word) && is_name(name) => format!(
            "write a type after `{name}:`, as in `{name}: u32`, `{name}: f64`, `{name}: text` or `{name}: bytes 16`"
        ),
        (_, None, [record, ":", "(", _, ..]) if has(Rule::missing_close_paren) || has(Rule::missing_comma) => {
            let before = before().filter(|text| text.matches('(').count() == text.matches(')').count() + 1);
            if let (None, Some(name)) = (&before, colon.filter(|name| *name != record && is_name(name))) {
                return format!(
                    "write a type after `{name}:`, as in `{name}: u32`, `{name}: text` or `{name}: bytes 16`"
                );
            }
            let line = before.map_or_else(|| format!("{record}: (size: u32, id: bytes 16)"), |text| format!("{text})"));
            format!("write `{line}`; in a list, `,` separates the fields, as in `{record}: (size: u32, id: bytes 16)`")
        }
        (_, None, [record, ":", ..]) if has(Rule::field_item) && is_name(record) => {
            format!("write the fields of the record as a list, as in `{record}: (size: u32, id: bytes 16)`")
        }
        (_, Some([path @ .., property]), _) if has(Rule::value) => match Property::named(property) {
            Some(known) => {
                let value = known.example().split_once(" = ").map_or("", |(_, value)| value);
                format!("write a value after `=`, as in `{}{property} = {value}`", path.concat())
            }
            None => format!("write a value after `=`, as in `{}{property} = 1;`", path.concat()),
        },
        (_, Some(_), _) if has(Rule::missing_semicolon) => match before() {
            Some(line) => format!("write `{line};`, or continue the value"),
            None => "every statement ends with `;`, as in `size.unit = \"bytes\";`".to_owned(),
        },
        (_, None, [name]) if found == "{" && is_name(name) => {
            format!("write the fields of the record before its block, as in `{name}: (size: u32) {{`")
        }
        (_, None, [.., name]) if (has(Rule::missing_equals) || has(Rule::missing_dot)) && is_name(name) => {
            let path = words.concat();
            match words.iter().all(|word| *word == "." || is_name(word)) {
                true if words.len() > 2 => format!("write a statement as `{path} = VALUE;`, such as `{path} = 4;`"),
                true => format!("write a statement as `{path}.PROPERTY = VALUE;`, such as `{path}.unit = \"bytes\";`"),
                false => format!("write a statement as `{name}.PROPERTY = VALUE;`, such as `{name}.unit = \"bytes\";`"),
            }
        }
        (_, None, ["section", name, ..]) if is_name(name) => {
            format!("write the section's name and number, and its records in braces: `section {name} 1 {{`")
        }
        _ if has(Rule::block_item) && is_name(found) => {
            format!("a block contains statements, as in `{found}.unit = \"bytes\";`")
        }
        _ if (has(Rule::section_head) || has(Rule::item) || has(Rule::missing_colon)) && is_name(found) => {
            format!("write `section {found} 1 {{`, `{found}: (size: u32) {{` or `{found}.unit = \"bytes\";`")
        }
        _ => help(rules, found).to_owned(),
    }
}

fn help(rules: &[Rule], found: &str) -> &'static str {
    if rules.contains(&Rule::section_head) || rules.contains(&Rule::item) {
        "write `section NAME NUMBER { ... }`, `record: (field, ...) { ... }` or `field.property = value;`"
    } else if rules.contains(&Rule::block_item) || rules.contains(&Rule::property) {
        "a record's block contains properties: `field.property = value;`"
    } else if rules.contains(&Rule::type_item) || rules.contains(&Rule::assignment) {
        "a type's block contains properties without a field: `unit = \"us\";`"
    } else if rules.contains(&Rule::value) {
        "a value must be an interpretation (`none`, `delta 0`, ...), a number, an expression, a string or a word"
    } else if rules.contains(&Rule::delta_word) {
        "write a type such as `u32`, `i16`, `f64`, `bytes 16` or `text`, or an interpretation such as `delta 0`"
    } else if rules.contains(&Rule::field_item) {
        "write a list of fields as `(tag, size, n*item, (a, b))`"
    } else if rules == [Rule::missing_star] {
        "write a repetition as `n*item`, or as `items: n*item` to give it a name"
    } else if rules.contains(&Rule::missing_equals) || rules.contains(&Rule::missing_dot) {
        "write a property as `field.property = value;`"
    } else if found == "-" && rules.contains(&Rule::int) {
        "a sign must directly precede the digits"
    } else if rules.contains(&Rule::int) {
        "write a decimal or hexadecimal number, such as `42`, `0x2a` or `1_000`; a section's number follows its name"
    } else if rules.contains(&Rule::missing_semicolon) {
        "every property must end with `;`"
    } else if rules.contains(&Rule::missing_colon) {
        "write a record as `record: (field, ...) { ... }`, and a property as `field.property = value;`"
    } else if rules.contains(&Rule::missing_comma) || rules.contains(&Rule::missing_close_paren) {
        "write a list of fields as `(time: u32 delta, n: u8, n*item: u16, id: bytes 16)`"
    } else if rules.contains(&Rule::open_brace) {
        "the definitions of a section are in braces: `section log 1 { ... }`"
    } else if rules.contains(&Rule::name) {
        "a name consists of letters, digits and `_`, and begins with a letter or `_`"
    } else {
        "for the grammar, see section 2 of the language specification"
    }
}

/// Returns the span of a token, or of only the start of a long token.
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
    // A field list starts with a name if a field is expected, and a type with a name or an interpretation.
    let is_known = |rule: Rule| match rule {
        Rule::name => rules.contains(&Rule::field_item) || rules.contains(&Rule::delta_word),
        Rule::interpretation => rules.contains(&Rule::delta_word),
        _ => false,
    };
    for word in rules.iter().filter(|rule| !is_lookalike(**rule) && !is_known(**rule)).map(|rule| words_for(*rule)) {
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

/// Checks whether a rule exists only to improve messages, and is never a valid alternative.
fn is_lookalike(rule: Rule) -> bool {
    matches!(rule, Rule::lookalike | Rule::heap_start | Rule::wrong_predictor | Rule::wrong_role | Rule::wrong_by)
}

fn words_for(rule: Rule) -> &'static str {
    match rule {
        Rule::item | Rule::section_head | Rule::record_head | Rule::type_head => "a section, a record or a property",
        Rule::block_item | Rule::property | Rule::type_item | Rule::assignment => "a property",
        Rule::field_item | Rule::named | Rule::typed => "a field",
        Rule::name => "a name",
        Rule::group | Rule::missing_open_paren | Rule::parenthesis | Rule::scanned | Rule::scanned_start => "`(`",
        Rule::value => "a value",
        Rule::interpretation => "an interpretation",
        Rule::expression => "an expression",
        Rule::reference => "a field path",
        Rule::operator => "`+`, `-`, `*`, `/`, `%`",
        Rule::comparison => "a comparison",
        Rule::bit_number => "a bit number",
        Rule::int => "a number",
        Rule::revision => "a model's revision",
        Rule::string => "a string",
        Rule::word => "a word",
        Rule::open_brace => "`{`",
        Rule::missing_close_paren => "`)`",
        Rule::missing_colon => "`:`",
        Rule::missing_semicolon => "`;`",
        Rule::missing_comma => "`,`",
        Rule::missing_dot => "`.`",
        Rule::missing_star => "`*`",
        Rule::missing_equals => "`=`",
        Rule::array => "a width",
        Rule::bytes_word => "`bytes`",
        Rule::until_word => "`until`",
        Rule::rest_word => "`rest`",
        Rule::gap => "whitespace",
        Rule::section_word => "`section`",
        Rule::delta_word => "a type",
        Rule::type_word => "`type`",
        Rule::word_alone
        | Rule::word_and_number
        | Rule::word_and_two_numbers
        | Rule::word_and_base
        | Rule::word_and_model
        | Rule::misspelt
        | Rule::misspelt_model => "an interpretation",
        Rule::model | Rule::predictor | Rule::wrong_predictor | Rule::heap_start => "a predictor",
        Rule::last_value_word => "`lastValue`",
        Rule::stride_word => "`stride`",
        Rule::fcm_word => "`fcm`",
        Rule::dfcm_word => "`dfcm`",
        Rule::heap_word => "`heap`",
        Rule::wrong_role => "`allocated`, `freed` or `used`",
        Rule::allocated_word => "`allocated`",
        Rule::freed_word => "`freed`",
        Rule::used_word => "`used`",
        Rule::by_word | Rule::wrong_by => "`by`",
        // pest does not report these rules, because they are not tokens or are silent.
        Rule::EOI
        | Rule::whole_list
        | Rule::whole_kind
        | Rule::whole_interpretation
        | Rule::whole_value
        | Rule::WHITESPACE
        | Rule::COMMENT
        | Rule::line_comment
        | Rule::block_comment
        | Rule::target
        | Rule::sum
        | Rule::characters
        | Rule::atom
        | Rule::counted
        | Rule::list_item
        | Rule::repeated
        | Rule::kind
        | Rule::start
        | Rule::length
        | Rule::role
        | Rule::by
        | Rule::field_path
        | Rule::lookalike
        | Rule::predictor_word
        | Rule::role_word
        | Rule::rest
        | Rule::plain
        | Rule::tail
        | Rule::reserved
        | Rule::open_paren
        | Rule::close_paren
        | Rule::colon
        | Rule::semicolon
        | Rule::comma
        | Rule::dot
        | Rule::star
        | Rule::equals => "whitespace",
    }
}
