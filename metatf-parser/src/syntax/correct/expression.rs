//! Rewrites an expression in another notation, such as `flags & 8` or `!flags.3`, as an expression of this language.

use super::tokens::{Tokens, Word};

/// Maximum nesting depth of operators and parentheses.
const MOST_DEPTH: usize = 16;

/// A rewritten operand, and how tightly its operator binds: 0 for a comparison, 1 for `+` and `-`, 2 for `*`, `/` and
/// `%`, and 3 for an operand without an operator.
#[derive(Clone)]
struct Part {
    text: String,
    level: u8,
    /// Whether the value is always 0 or 1.
    is_condition: bool,
}

impl Part {
    fn atom(text: String) -> Part {
        Part { text, level: 3, is_condition: false }
    }

    /// Returns the text, in parentheses if its operator binds less tightly than `level`.
    fn at(&self, level: u8) -> String {
        if self.level < level { format!("({})", self.text) } else { self.text.clone() }
    }

    /// Returns an expression that is 1 if this part is not 0, and 0 otherwise.
    fn condition(self) -> Part {
        if self.is_condition { self } else { compare(&self, "!=", "0") }
    }
}

fn compare(left: &Part, operator: &str, right: &str) -> Part {
    Part { text: format!("{} {operator} {right}", left.at(1)), level: 0, is_condition: true }
}

/// Returns the expression in this language and the first mistake in it, or `None` if the words are not an expression.
pub(super) fn rewrite(words: &[Word], tokens: &Tokens) -> Option<(String, &'static str)> {
    let mut parser = Parser { words, at: 0, tokens, depth: 0, mistake: "" };
    let part = parser.either()?;
    (parser.at == words.len()).then_some((part.text, parser.mistake))
}

/// Returns the negation of a condition.
pub(super) fn negate(words: &[Word], tokens: &Tokens) -> Option<String> {
    let mut parser = Parser { words, at: 0, tokens, depth: 0, mistake: "" };
    let part = parser.either()?;
    (parser.at == words.len()).then(|| not(&part).text)
}

fn not(part: &Part) -> Part {
    let opposite =
        [(" == ", " != "), (" != ", " == "), (" <= ", " > "), (" >= ", " < "), (" < ", " >= "), (" > ", " <= ")];
    if part.level == 0
        && let Some((from, to)) = opposite.iter().find(|(from, _)| part.text.contains(from))
        && part.text.matches(from).count() == 1
    {
        return Part { text: part.text.replace(from, to), ..part.clone() };
    }
    compare(part, "==", "0")
}

struct Parser<'w, 't> {
    words: &'w [Word<'t>],
    at: usize,
    tokens: &'w Tokens<'t>,
    depth: usize,
    /// The description of the first mistake.
    mistake: &'static str,
}

const ASPECT: &str = "a field in an expression ends in `.value`, `.width` or `.bit N`";
const BIT: &str = "a bit of a field is written as `FIELD.bit N`";

impl<'t> Parser<'_, 't> {
    fn peek(&self, ahead: usize) -> &'t str {
        self.words.get(self.at + ahead).map_or("", |word| word.text)
    }

    fn mistake(&mut self, message: &'static str) {
        if self.mistake.is_empty() {
            self.mistake = message;
        }
    }

    /// Consumes these words if they follow.
    fn take(&mut self, expected: &[&str]) -> bool {
        let found = expected.iter().enumerate().all(|(ahead, word)| self.peek(ahead) == *word);
        if found {
            self.at += expected.len();
        }
        found
    }

    /// Parses `a || b`.
    fn either(&mut self) -> Option<Part> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return None;
        }
        let mut left = self.both()?;
        while self.take(&["|", "|"]) || self.take(&["or"]) {
            self.mistake("an expression has no operator `||`: a sum of conditions is not 0 if one of them holds");
            let right = self.both()?.condition();
            let sum =
                Part { text: format!("{} + {}", left.condition().at(1), right.at(1)), level: 1, is_condition: false };
            left = compare(&Part { level: 3, text: format!("({})", sum.text), ..sum }, "!=", "0");
        }
        if self.take(&["?"]) {
            self.mistake("an expression has no operator `? :`: multiply each case by its comparison");
            let first = self.either()?;
            let second = if self.take(&[":"]) { self.either()? } else { return None };
            let condition = left.condition();
            let (first, second) = (first.at(3), second.at(3));
            let text = format!("({}) * {first} + ({}) * {second}", condition.text, not(&condition).text);
            left = Part { text, level: 1, is_condition: false };
        }
        self.depth -= 1;
        Some(left)
    }

    /// Parses `a && b`. A product of conditions is 1 if all of them are.
    fn both(&mut self) -> Option<Part> {
        let mut left = self.comparison()?;
        while self.take(&["&", "&"]) || self.take(&["and"]) {
            self.mistake("an expression has no operator `&&`: a product of conditions is 1 if all of them hold");
            let right = self.comparison()?.condition();
            let text = format!("{} * {}", left.condition().at(2), right.at(2));
            left = Part { text, level: 2, is_condition: true };
        }
        Some(left)
    }

    fn comparison(&mut self) -> Option<Part> {
        let left = self.sum()?;
        let operators: [(&[&str], &str); 15] = [
            (&["==", "="], "=="),
            (&["==", "=="], "=="),
            (&["!=", "="], "!="),
            (&["=="], "=="),
            (&["=", "="], "=="),
            (&["=", ">"], ">="),
            (&["=", "<"], "<="),
            (&["="], "=="),
            (&["!="], "!="),
            (&["<", ">"], "!="),
            (&["<="], "<="),
            (&[">="], ">="),
            (&["is", "not"], "!="),
            (&["is"], "=="),
            (&["equals"], "=="),
        ];
        let operator = operators.iter().find(|(words, _)| self.take(words));
        let operator = match operator {
            Some((words, operator)) => {
                if *words != [*operator] {
                    self.mistake("the comparisons are `==`, `!=`, `<`, `<=`, `>` and `>=`");
                }
                operator
            }
            None if self.peek(0) == "<" && self.peek(1) != "<" && self.take(&["<"]) => "<",
            None if self.peek(0) == ">" && self.peek(1) != ">" && self.take(&[">"]) => ">",
            None => return Some(left),
        };
        let right = self.side(left.text.strip_suffix(".value").unwrap_or_default())?;
        let opposite = |operator: &str| match operator {
            "<" => Some(">"),
            "<=" => Some(">="),
            ">" => Some("<"),
            ">=" => Some("<="),
            _ => None,
        };
        let (Some(turned), Some(next), false) = (
            opposite(operator),
            ["<=", ">=", "<", ">"].into_iter().find(|next| self.peek(0) == *next),
            self.peek(0) == self.peek(1),
        ) else {
            return Some(compare(&left, operator, &right.at(1)));
        };
        self.at += 1;
        self.mistake("an expression has one comparison: a product of conditions is 1 if all of them hold");
        let last = self.sum()?;
        let text =
            format!("{} * {}", compare(&right, turned, &left.at(1)).at(2), compare(&right, next, &last.at(1)).at(2));
        Some(Part { text, level: 2, is_condition: true })
    }

    /// Parses the right side of a comparison with a field, which may be the name of a value.
    fn side(&mut self, field: &str) -> Option<Part> {
        let ends = matches!(self.peek(1), "" | ")" | "&" | "|" | "?" | "and" | "or");
        let name = self.peek(0).trim_matches('"');
        if ends && let Some(number) = self.tokens.named_number(name, field) {
            self.at += 1;
            self.mistake("an expression contains numbers, not names of values");
            return Some(Part::atom(number));
        }
        if ends && self.peek(0).starts_with('"') && (1..=8).contains(&name.len()) && name.bytes().all(is_plain) {
            self.at += 1;
            self.mistake("characters that are a number have single quotes");
            return Some(Part::atom(format!("'{name}'")));
        }
        self.sum()
    }

    fn sum(&mut self) -> Option<Part> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek(0) {
                "+" => "+",
                "-" => "-",
                _ => return Some(left),
            };
            self.at += 1;
            let right = self.product()?;
            left = Part { text: format!("{} {operator} {}", left.at(1), right.at(2)), level: 1, is_condition: false };
        }
    }

    /// Parses products, shifts and masks. A mask of one bit becomes `.bit N`.
    fn product(&mut self) -> Option<Part> {
        let mut left = if self.take(&["-"]) { self.padding()? } else { self.atom()? };
        loop {
            if self.peek(1) != "&" && self.take(&["&"]) {
                self.mistake("an expression has no operator `&`: a bit of a field is written as `FIELD.bit N`");
                let mask = number(self.peek(0))?;
                self.at += 1;
                let field = left.text.strip_suffix(".value")?.to_owned();
                if !mask.is_power_of_two() {
                    return None;
                }
                left = Part { text: format!("{field}.bit {}", mask.trailing_zeros()), level: 3, is_condition: true };
                continue;
            }
            if self.take(&[">", ">"]) || self.peek(0) == "<" && self.take(&["<", "<"]) {
                self.mistake("an expression has no operators `>>` and `<<`, but `/` and `*`");
                let is_right = self.words.get(self.at - 1)?.text == ">";
                let shift = number(self.peek(0)).filter(|shift| *shift < 63)?;
                self.at += 1;
                if is_right && self.take(&["&", "1"]) {
                    let field = left.text.strip_suffix(".value")?.to_owned();
                    left = Part { text: format!("{field}.bit {shift}"), level: 3, is_condition: true };
                    continue;
                }
                let operator = if is_right { "/" } else { "*" };
                let text = format!("{} {operator} {}", left.at(2), 1_u64 << shift);
                left = Part { text, level: 2, is_condition: false };
                continue;
            }
            let operator = match self.peek(0) {
                "*" => "*",
                "/" => "/",
                "%" | "mod" => "%",
                _ => return Some(left),
            };
            self.at += 1;
            let right = self.atom()?;
            let text = format!("{} {operator} {}", left.at(2), right.at(3));
            left = Part { text, level: 2, is_condition: false };
        }
    }

    /// Parses `x % n` or `x & mask` after a `-`: the number of bytes up to a multiple of `n`.
    fn padding(&mut self) -> Option<Part> {
        let size = self.atom()?;
        let multiple = if self.take(&["%"]) {
            self.atom()?.at(3)
        } else if self.take(&["&"]) {
            let multiple = number(self.peek(0))?.checked_add(1).filter(|multiple| multiple.is_power_of_two())?;
            self.at += 1;
            multiple.to_string()
        } else {
            return None;
        };
        self.mistake("an operand has no sign: write the difference to a multiple");
        let text = format!("({multiple} - {} % {multiple}) % {multiple}", size.at(3));
        Some(Part { text, level: 2, is_condition: false })
    }

    fn atom(&mut self) -> Option<Part> {
        if self.take(&["!"]) || self.take(&["not"]) || self.take(&["~"]) {
            self.depth += 1;
            self.mistake("an expression has no operator `!`: compare the value with 0");
            let inner = if self.depth > MOST_DEPTH { None } else { self.atom() };
            return Some(not(&inner?));
        }
        if self.take(&["("]) {
            let inner = self.either()?;
            return self.take(&[")"]).then(|| match inner.level {
                3 => inner,
                _ => Part { text: format!("({})", inner.text), level: 3, is_condition: inner.is_condition },
            });
        }
        let word = self.words.get(self.at)?;
        self.at += 1;
        if word.is_number() {
            return Some(Part::atom(word.text.to_owned()));
        }
        match word.text {
            "true" => return Some(Part { is_condition: true, ..Part::atom("1".into()) }),
            "false" => return Some(Part { is_condition: true, ..Part::atom("0".into()) }),
            "len" | "sizeof" | "length" | "size" if self.peek(0) == "(" && self.peek(2) == ")" => {
                let name = self.words.get(self.at + 1).filter(|word| word.is_name())?;
                self.at += 3;
                self.mistake("there are no functions: the width of a field is written as `FIELD.width`");
                return Some(Part::atom(format!("{}.width", name.text)));
            }
            _ => {}
        }
        if !word.is_name() {
            return None;
        }
        self.reference(word.text)
    }

    /// Parses the path of a field, and the part of it that the expression reads.
    fn reference(&mut self, first: &'t str) -> Option<Part> {
        // Words for the record itself.
        let mut first = first;
        if matches!(first, "this" | "self" | "_parent" | "_root") && !self.tokens.is_field(first) && self.take(&["."]) {
            first = self.words.get(self.at).filter(|word| word.is_name())?.text;
            self.at += 1;
            self.mistake(ASPECT);
        }
        let mut path = vec![first];
        let bit = |parser: &mut Self, path: &[&str], number: u64| {
            parser.mistake(BIT);
            let text = format!("{}.bit {number}", path.join("."));
            (number < 64).then_some(Part { text, level: 3, is_condition: true })
        };
        loop {
            // `flags[3]`, `flags.3` and `flags.bit(3)` are bits.
            if self.peek(0) == "[" && self.peek(2) == "]" {
                let number = number(self.peek(1))?;
                self.at += 3;
                return bit(self, &path, number);
            }
            if !(self.take(&["."]) || self.take(&["-", ">"]) || self.take(&[":", ":"])) {
                break;
            }
            let word = self.words.get(self.at)?;
            self.at += 1;
            if let Some(number) = number(word.text) {
                return bit(self, &path, number);
            }
            let digits = word.text.trim_start_matches("bits").trim_start_matches("bit").trim_start_matches('_');
            if word.text.starts_with("bit") && (digits.is_empty() || number(digits).is_some()) {
                let close = if self.take(&["("]) { Some(")") } else { self.take(&["["]).then_some("]") };
                let position = match number(digits) {
                    Some(position) => position,
                    None => {
                        self.at += 1;
                        number(self.words.get(self.at - 1)?.text)?
                    }
                };
                let closed = close.is_none_or(|close| self.take(&[close]));
                let is_plain = !self.take(&[".", "value"]) && word.text == "bit" && close.is_none();
                let before = self.mistake;
                let found = bit(self, &path, position).filter(|_| closed);
                if is_plain {
                    self.mistake = before;
                }
                return found;
            }
            match word.text {
                "value" => return Some(Part::atom(format!("{}.value", path.join(".")))),
                "val" | "values" => {
                    self.mistake(ASPECT);
                    return Some(Part::atom(format!("{}.value", path.join("."))));
                }
                // A field of a nested record can have such a name.
                name @ ("size" | "bytes")
                    if self.peek(0) != "."
                        && self.tokens.first_field(first).is_some()
                        && self.tokens.is_field(name) =>
                {
                    self.mistake(ASPECT);
                    return Some(Part::atom(format!("{}.{name}.value", path.join("."))));
                }
                "width" | "size" | "bytes" if self.peek(0) != "." => {
                    return Some(Part::atom(format!("{}.width", path.join("."))));
                }
                name if word.is_name() => {
                    if path.len() == 1
                        && let Some(number) = self.tokens.flag_number(first, name)
                    {
                        return bit(self, &path, number);
                    }
                    path.push(name);
                }
                _ => return None,
            }
        }
        // A record has no value, but its fields do.
        if let ([record], false) = (path.as_slice(), self.tokens.is_text(first))
            && let Some(field) = self.tokens.first_field(record)
        {
            path.push(field);
        }
        // Without such a field, the word may be the name of a value.
        if !self.tokens.is_field(first) {
            return None;
        }
        // A text has no value, but its length does.
        self.mistake(ASPECT);
        let length = if self.tokens.is_text(first) && path.len() == 1 { ".length" } else { "" };
        Some(Part::atom(format!("{}{length}.value", path.join("."))))
    }
}

fn is_plain(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte) && !matches!(byte, b'\'' | b'\\')
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}
