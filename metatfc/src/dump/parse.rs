//! The syntax of `--where`.
//!
//! ```text
//! or         = and { "||" and } ;
//! and        = not { "&&" not } ;
//! not        = "!" not | "(" or ")" | comparison ;
//! comparison = operand [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" | "&" ) operand ] ;   (* alone: not zero, not empty *)
//! operand    = field | number | string ;
//! ```

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Or(Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Compare(Operand, Op, Operand),
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    /// A name, and where it stands in the text.
    Field(String, usize),
    Integer(i128),
    Float(f64),
    Bytes(Vec<u8>),
    /// The name of a value of the field on the other side. The parser takes it for a field, or for a string.
    Name(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// Some of these bits are set.
    Bits,
    /// A field alone: not zero, not empty.
    Set,
}

/// A syntax error, and its byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) at: usize,
    pub(super) message: String,
}

type Result<T> = std::result::Result<T, SyntaxError>;

/// Parentheses and `!` nest this deep at most, so that recursion is bounded.
const DEPTH: usize = 100;
/// Conditions of more comparisons than this are no longer conditions.
const MOST: usize = 1000;

pub(super) fn parse(text: &str) -> Result<Expr> {
    let mut parser = Parser { text, at: 0, depth: 0, comparisons: 0 };
    let expr = parser.or()?;
    parser.space();
    match parser.rest().chars().next() {
        None => Ok(expr),
        Some(')') => parser.fail("this `)` has no `(`"),
        Some(_) => parser.fail("expected `&&`, `||` or the end"),
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
        Err(SyntaxError { at: self.at, message: message.into() })
    }

    /// Takes the word if it comes next.
    fn accept(&mut self, text: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn or(&mut self) -> Result<Expr> {
        let mut expr = self.and()?;
        while self.accept("||") {
            expr = Expr::Or(Box::new(expr), Box::new(self.and()?));
        }
        Ok(expr)
    }

    fn and(&mut self) -> Result<Expr> {
        let mut expr = self.not()?;
        while self.accept("&&") {
            expr = Expr::And(Box::new(expr), Box::new(self.not()?));
        }
        Ok(expr)
    }

    fn not(&mut self) -> Result<Expr> {
        self.space();
        let negated = self.rest().starts_with('!') && !self.rest().starts_with("!=");
        if !negated && !self.rest().starts_with('(') {
            return self.comparison();
        }
        if self.depth >= DEPTH {
            return self.fail(format!("more than {DEPTH} parentheses and `!` within each other"));
        }
        self.depth += 1;
        let open = self.at;
        self.at += 1;
        let expr = if negated { Expr::Not(Box::new(self.not()?)) } else { self.or()? };
        if !negated && !self.accept(")") {
            if self.rest().is_empty() {
                self.at = open;
                return self.fail("this `(` is not closed");
            }
            return self.fail("expected `&&`, `||` or `)`; parentheses hold conditions, not values");
        }
        self.depth -= 1;
        Ok(expr)
    }

    fn comparison(&mut self) -> Result<Expr> {
        self.comparisons += 1;
        if self.comparisons > MOST {
            return self.fail(format!("more than {MOST} comparisons"));
        }
        let left = self.operand()?;
        const OPS: [(&str, Op); 7] = [
            ("==", Op::Equal),
            ("!=", Op::NotEqual),
            ("<=", Op::LessEqual),
            (">=", Op::GreaterEqual),
            ("<", Op::Less),
            (">", Op::Greater),
            ("&", Op::Bits),
        ];
        self.space();
        let ends = self.rest().starts_with("&&");
        for (text, op) in OPS {
            if !ends && self.accept(text) {
                return Ok(Expr::Compare(left, op, self.operand()?));
            }
        }
        if self.rest().starts_with('=') {
            return self.fail("equality is written `==`");
        }
        match left {
            Operand::Field(..) => Ok(Expr::Compare(left, Op::Set, Operand::Integer(0))),
            _ => self.fail("expected a comparison: `==`, `!=`, `<`, `<=`, `>`, `>=` or `&`"),
        }
    }

    fn operand(&mut self) -> Result<Operand> {
        self.space();
        let rest = self.rest();
        match rest.chars().next() {
            Some('"') => self.string().map(|s| Operand::Bytes(s.into_bytes())),
            Some('x') if rest.starts_with("x\"") => self.hex_string(),
            Some('0'..='9' | '-' | '.') => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' || c == '@' => {
                let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '@');
                let end = rest.find(|c| !name(c)).unwrap_or(rest.len());
                let at = self.at;
                self.at += end;
                Ok(Operand::Field(rest.get(..end).unwrap_or_default().to_owned(), at))
            }
            _ => self.fail("expected a field, a number or a string"),
        }
    }

    fn number(&mut self) -> Result<Operand> {
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
            _ => return self.fail("not a number of 64 bits: 4096, 4_096, 0x1000, -1, 1.5"),
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
                        return self.fail(r#"expected an escape: \n, \t, \r, \\ or \""#);
                    }
                },
                c => text.push(c),
            }
        }
        self.fail("this string is not closed")
    }

    fn hex_string(&mut self) -> Result<Operand> {
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
                self.fail("expected pairs of hex digits: x\"00ff\"")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence() {
        let text = "a == 1 || b < 0x1_0 && !(c >= -2.5)";
        let Ok(Expr::Or(left, right)) = parse(text) else { panic!("{:?}", parse(text)) };
        assert_eq!(*left, Expr::Compare(Operand::Field("a".into(), 0), Op::Equal, Operand::Integer(1)));
        let Expr::And(b, c) = *right else { panic!() };
        assert_eq!(*b, Expr::Compare(Operand::Field("b".into(), 10), Op::Less, Operand::Integer(16)));
        assert!(matches!(*c, Expr::Not(c) if matches!(*c, Expr::Compare(_, Op::GreaterEqual, Operand::Float(_)))));
    }

    #[test]
    fn bits_are_not_conjunctions() {
        let Ok(Expr::And(left, right)) = parse("a & 3 && b&c") else { panic!("{:?}", parse("a & 3 && b&c")) };
        assert_eq!(*left, Expr::Compare(Operand::Field("a".into(), 0), Op::Bits, Operand::Integer(3)));
        assert!(matches!(*right, Expr::Compare(Operand::Field(..), Op::Bits, Operand::Field(..))));
        assert!(matches!(parse("a&&b"), Ok(Expr::And(..))));
    }

    #[test]
    fn errors_have_places() {
        for (text, at) in [("size >", 6), ("(a == 1", 0), ("a = 1", 2), ("a == 1 b", 7), ("3", 1), ("a == 0xg", 5)] {
            assert_eq!(parse(text).map_err(|e| e.at), Err(at), "{text}");
        }
    }

    #[test]
    fn depth_is_limited() {
        let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(parse(&deep).is_err());
        assert!(parse(&"!".repeat(100_000)).is_err());
        let long = vec!["a"; 100_000].join("||");
        assert!(parse(&long).is_err());
    }
}
