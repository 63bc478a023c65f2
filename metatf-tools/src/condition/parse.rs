//! The condition parser.

use super::value::Op;
use super::{Expr, Operand};

/// A name in a condition, and its byte offset in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) at: usize,
}

/// A mistake, and its byte offset in the condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) at: usize,
    pub(super) message: String,
}

pub(super) type Result<T> = std::result::Result<T, Mistake>;

pub(super) fn fail<T>(at: usize, message: impl Into<String>) -> Result<T> {
    Err(Mistake { at, message: message.into() })
}

/// The maximum nesting of parentheses and negations, which bounds recursion.
const DEPTH: usize = 100;
/// The maximum number of comparisons, which also bounds recursion.
const MOST: usize = 1000;

const OPERATORS: [(&str, Op); 9] = [
    ("==", Op::Equal),
    ("!=", Op::NotEqual),
    ("<>", Op::NotEqual),
    ("<=", Op::LessEqual),
    (">=", Op::GreaterEqual),
    ("=", Op::Equal),
    ("<", Op::Less),
    (">", Op::Greater),
    ("&", Op::Bits),
];

pub(super) fn parse(text: &str) -> Result<Expr<Name>> {
    let mut parser = Parser { text, at: 0, depth: 0, comparisons: 0 };
    let expr = parser.or()?;
    parser.space();
    match parser.rest().chars().next() {
        None => Ok(expr),
        Some(')') => parser.fail("this `)` has no matching `(`"),
        Some(_) => parser.fail("expected `and`, `or` or the end of the condition"),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    comparisons: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        fail(self.at, message)
    }

    /// Consumes `sign` if it comes next.
    fn accept(&mut self, sign: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    /// Consumes a keyword, in upper or lower case, if it comes next as a whole word.
    fn accept_word(&mut self, word: &str) -> bool {
        self.space();
        let found = self.rest().get(..word.len()).is_some_and(|next| next.eq_ignore_ascii_case(word))
            && !self.rest().get(word.len()..).is_some_and(|rest| rest.starts_with(is_of_name));
        if found {
            self.at += word.len();
        }
        found
    }

    fn or(&mut self) -> Result<Expr<Name>> {
        let mut expr = self.and()?;
        while self.accept("||") || self.accept_word("or") {
            expr = Expr::Or(Box::new(expr), Box::new(self.and()?));
        }
        Ok(expr)
    }

    fn and(&mut self) -> Result<Expr<Name>> {
        let mut expr = self.not()?;
        while self.accept("&&") || self.accept_word("and") {
            expr = Expr::And(Box::new(expr), Box::new(self.not()?));
        }
        Ok(expr)
    }

    fn not(&mut self) -> Result<Expr<Name>> {
        self.space();
        let open = self.at;
        let negated = self.accept_not();
        if !negated && !self.accept("(") {
            return self.comparison();
        }
        if self.depth >= DEPTH {
            return fail(open, format!("more than {DEPTH} nested parentheses and negations"));
        }
        self.depth += 1;
        let expr = if negated { Expr::Not(Box::new(self.not()?)) } else { self.or()? };
        if !negated && !self.accept(")") {
            if self.rest().is_empty() {
                return fail(open, "this `(` is not closed");
            }
            return self.fail("expected `and`, `or` or `)`; parentheses enclose conditions, not values");
        }
        self.depth -= 1;
        Ok(expr)
    }

    /// Consumes `!` or `not`, unless `not` is the name of a field at the beginning of a comparison.
    fn accept_not(&mut self) -> bool {
        let before = self.at;
        if self.accept_word("not") {
            self.space();
            let is_operand = self.rest().starts_with(|c| is_of_name(c) || matches!(c, '(' | '!' | '"' | '\'' | '-'));
            if is_operand && !self.rest().starts_with("!=") {
                return true;
            }
            self.at = before;
        }
        !self.rest().starts_with("!=") && self.accept("!")
    }

    fn comparison(&mut self) -> Result<Expr<Name>> {
        self.count()?;
        let left = self.operand()?;
        let before = self.at;
        let negated = self.accept_word("not");
        if self.accept_word("in") {
            let any = self.list(left)?;
            return Ok(if negated { Expr::Not(Box::new(any)) } else { any });
        }
        self.at = before;
        self.space();
        let ends = self.rest().starts_with("&&");
        for (sign, op) in OPERATORS {
            if !ends && self.accept(sign) {
                return Ok(Expr::Compare(left, op, self.operand()?));
            }
        }
        match left {
            Operand::Field(_) => Ok(Expr::Compare(left, Op::Set, Operand::Integer(0))),
            _ => self.fail("expected a comparison: `==`, `!=`, `<`, `<=`, `>`, `>=`, `&` or `in`"),
        }
    }

    /// Counts a comparison.
    fn count(&mut self) -> Result<()> {
        self.comparisons += 1;
        if self.comparisons > MOST { self.fail(format!("more than {MOST} comparisons")) } else { Ok(()) }
    }

    /// Parses the list of values after `in`.
    fn list(&mut self, left: Operand<Name>) -> Result<Expr<Name>> {
        if !self.accept("(") {
            return self.fail("expected `(` and the values, as in `in (1, 2)`");
        }
        let mut any = Expr::Compare(left.clone(), Op::Equal, self.operand()?);
        while self.accept(",") {
            self.count()?;
            let other = Expr::Compare(left.clone(), Op::Equal, self.operand()?);
            any = Expr::Or(Box::new(any), Box::new(other));
        }
        if self.accept(")") { Ok(any) } else { self.fail("expected `,` or `)`") }
    }

    fn operand(&mut self) -> Result<Operand<Name>> {
        self.space();
        let rest = self.rest();
        match rest.chars().next() {
            Some('"') => self.string().map(|s| Operand::Bytes(s.into_bytes())),
            Some('\'') => self.sql_string().map(|s| Operand::Bytes(s.into_bytes())),
            Some('x') if rest.starts_with("x\"") => self.hex_string(),
            Some('0'..='9' | '-' | '.') => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' || c == '@' => {
                let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
                let name = Name { text: rest.get(..end).unwrap_or_default().to_owned(), at: self.at };
                self.at += end;
                Ok(Operand::Field(name))
            }
            _ => self.fail("expected a field, a number or a string"),
        }
    }

    fn number(&mut self) -> Result<Operand<Name>> {
        let rest = self.rest();
        let after_exponent = |i: usize| matches!(rest.as_bytes().get(i.wrapping_sub(1)), Some(b'e' | b'E'));
        let hex = rest.trim_start_matches('-').starts_with("0x");
        let part = |(i, c): (usize, char)| {
            c.is_ascii_alphanumeric()
                || matches!(c, '_' | '.')
                || (matches!(c, '-' | '+') && (i == 0 || (!hex && after_exponent(i))))
        };
        let end = rest.char_indices().find(|&x| !part(x)).map_or(rest.len(), |(i, _)| i);
        let digits = rest.get(..end).unwrap_or_default().replace('_', "");
        let (sign, magnitude) = digits.strip_prefix('-').map_or((1, digits.as_str()), |m| (-1, m));
        let integer = match magnitude.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => magnitude.parse(),
        };
        let float = magnitude.parse::<f64>().ok().filter(|_| !hex && magnitude.contains(['.', 'e', 'E']));
        let value = match (integer, float) {
            (Ok(n), _) => Operand::Integer(i128::from(n) * sign),
            (_, Some(f)) => Operand::Float(if sign < 0 { -f } else { f }),
            _ => return self.fail("expected a number of at most 64 bits: `4096`, `4_096`, `0x1000`, `-1`, `1.5`"),
        };
        self.at += end;
        Ok(value)
    }

    fn string(&mut self) -> Result<String> {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += i + 1;
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, c @ ('"' | '\\'))) => text.push(c),
                    _ => {
                        self.at += i;
                        return self.fail(r#"expected `\n`, `\t`, `\r`, `\\` or `\"`"#);
                    }
                },
                c => text.push(c),
            }
        }
        self.fail("this string is not closed")
    }

    /// Parses a string in single quotes, in which quotes are doubled.
    fn sql_string(&mut self) -> Result<String> {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((i, c)) = chars.next() {
            if c == '\'' && chars.next_if(|(_, next)| *next == '\'').is_none() {
                self.at += i + 1;
                return Ok(text);
            }
            text.push(c);
        }
        self.fail("this string is not closed")
    }

    fn hex_string(&mut self) -> Result<Operand<Name>> {
        let at = self.at;
        self.at += 1;
        let digits = self.string()?;
        let (pairs, odd) = digits.as_bytes().as_chunks::<2>();
        let digit = |d: u8| char::from(d).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let bytes: Option<Vec<u8>> = pairs.iter().map(|&[h, l]| Some(digit(h)? << 4 | digit(l)?)).collect();
        match bytes.filter(|_| odd.is_empty()) {
            Some(bytes) => Ok(Operand::Bytes(bytes)),
            None => {
                self.at = at;
                self.fail("expected pairs of hexadecimal digits, as in x\"00ff\"")
            }
        }
    }
}

/// Returns whether a character may occur in a field name.
fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '@')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str, at: usize) -> Operand<Name> {
        Operand::Field(Name { text: text.to_owned(), at })
    }

    #[test]
    fn precedence() {
        let text = "a == 1 || b < 0x1_0 && !(c >= -2.5)";
        let Ok(Expr::Or(left, right)) = parse(text) else { panic!("{:?}", parse(text)) };
        assert_eq!(*left, Expr::Compare(field("a", 0), Op::Equal, Operand::Integer(1)));
        let Expr::And(b, c) = *right else { panic!() };
        assert_eq!(*b, Expr::Compare(field("b", 10), Op::Less, Operand::Integer(16)));
        assert!(matches!(*c, Expr::Not(c) if matches!(*c, Expr::Compare(_, Op::GreaterEqual, Operand::Float(_)))));
    }

    #[test]
    fn words_are_signs() {
        for (words, signs) in [
            ("a = 1 or b <> 2 AND not c", "a ==1||  b != 2 &&  !   c"),
            ("not (a = 1)", "!   (a = 1)"),
            ("not not a", "!   !   a"),
            ("a = 'it''s'", "a = \"it's\""),
        ] {
            assert_eq!(parse(words), parse(signs), "{words}");
        }
        // Keywords may be used as field names.
        assert_eq!(parse("not == 3"), Ok(Expr::Compare(field("not", 0), Op::Equal, Operand::Integer(3))));
        assert_eq!(parse("order"), Ok(Expr::Compare(field("order", 0), Op::Set, Operand::Integer(0))));
        assert_eq!(parse("not != 3"), Ok(Expr::Compare(field("not", 0), Op::NotEqual, Operand::Integer(3))));
    }

    #[test]
    fn lists_are_alternatives() {
        let equals = |n| Box::new(Expr::Compare(field("a", 0), Op::Equal, Operand::Integer(n)));
        assert_eq!(parse("a in (1, 2)"), Ok(Expr::Or(equals(1), equals(2))));
        assert_eq!(parse("a NOT IN (1)"), Ok(Expr::Not(equals(1))));
        for (text, at) in [("a in 1", 5), ("a in (1", 7), ("a in ()", 6), ("a in (1 2)", 8)] {
            assert_eq!(parse(text).map_err(|e| e.at), Err(at), "{text}");
        }
    }

    #[test]
    fn bits_are_not_conjunctions() {
        let Ok(Expr::And(left, right)) = parse("a & 3 && b&c") else { panic!("{:?}", parse("a & 3 && b&c")) };
        assert_eq!(*left, Expr::Compare(field("a", 0), Op::Bits, Operand::Integer(3)));
        assert!(matches!(*right, Expr::Compare(Operand::Field(..), Op::Bits, Operand::Field(..))));
        assert!(matches!(parse("a&&b"), Ok(Expr::And(..))));
    }

    #[test]
    fn mistakes_have_places() {
        for (text, at) in [
            ("size >", 6),
            ("(a == 1", 0),
            ("a == 1 b", 7),
            ("a == 1 and", 10),
            ("3", 1),
            ("a == 0xg", 5),
            ("a == 'x", 5),
        ] {
            assert_eq!(parse(text).map_err(|e| e.at), Err(at), "{text}");
        }
    }

    #[test]
    fn depth_is_limited() {
        let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(parse(&deep).is_err());
        assert!(parse(&"!".repeat(100_000)).is_err());
        assert!(parse(&"not ".repeat(100_000)).is_err());
        assert!(parse(&vec!["a"; 100_000].join("||")).is_err());
        assert!(parse(&format!("a in (1{})", ",1".repeat(100_000))).is_err());
    }
}
