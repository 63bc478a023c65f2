//! DTD syntax, after the grammar in section 2 of the specification, without `predicted` and without checks.

use super::{Rule, Rules, Wrong};
use metatf_parser::schema::{Comparison, ExprOp};

/// Property assignment.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) path: Vec<String>,
    pub(super) name: String,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    /// Keyword, its numbers, and the path of a base.
    Interpretation(String, Vec<u64>, Vec<String>),
    Text(String),
    Word(String),
    Expression(Vec<Step>),
    /// Width of an array: its number of bytes, or the byte that terminates it.
    Bytes(u64),
    Until(u64),
}

/// Step of an expression in postfix form.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Number(u64),
    Value(Vec<String>),
    Width(Vec<String>),
    Operator(ExprOp),
}

#[derive(Debug)]
pub(super) enum Field {
    Name(String),
    /// Repetition whose count is a name.
    Counted(String, Box<Field>),
    /// Repetition whose count is an expression.
    Computed(Vec<Step>, Box<Field>),
    /// Repetition that ends when a condition holds or, without a condition, at the end of the content.
    Scanned(Vec<Step>, Box<Field>),
    /// Repetition with a name.
    Named(String, Box<Field>),
    Group(Vec<Field>),
}

/// Type of a field, or definition of a type: the settings that it contains, nearest first, and the name of another type
/// or a record.
#[derive(Debug)]
pub(super) struct Type {
    pub(super) field: String,
    pub(super) word: String,
    pub(super) has_length: bool,
    pub(super) settings: Vec<Setting>,
}

#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) fields: Field,
    pub(super) types: Vec<Type>,
    pub(super) block: Vec<Setting>,
}

/// Global definitions, or those of a section.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) name: Option<String>,
    pub(super) number: u8,
    pub(super) records: Vec<Definition>,
    pub(super) settings: Vec<Setting>,
    pub(super) types: Vec<Type>,
}

const WORDS: [&str; 7] = ["none", "baseOffset", "delta", "default", "sectionOffset", "stride", "sectionStride"];

/// Returns the scopes of a DTD, the global one first.
pub(super) fn parse(text: &str, rules: Rules) -> Result<Vec<Scope>, Wrong> {
    let mut parser = Parser { rest: text.trim_start_matches('\u{feff}'), rules, types: Vec::new() };
    let mut scopes = vec![Scope::default()];
    while !parser.at_end() {
        parser.definition(&mut scopes, 0)?;
    }
    Ok(scopes)
}

struct Parser<'t> {
    rest: &'t str,
    rules: Rules,
    /// Types in the field list so far.
    types: Vec<Type>,
}

/// Returns the settings of a predefined type (spec 3.6), without its width if it has a length.
fn predefined(field: &str, word: &str, has_length: bool, rules: Rules) -> Vec<Setting> {
    let setting = |name: &str, value| Setting { path: vec![field.to_owned()], name: name.to_owned(), value };
    let width = |bytes| setting("width", Value::Expression(vec![Step::Number(bytes)]));
    let interpretation = |word: &str, numbers: &[u64]| {
        setting("interpretation", Value::Interpretation(word.to_owned(), numbers.to_vec(), Vec::new()))
    };
    let format = |name: &str| setting("format", Value::Text(name.to_owned()));
    let bytes =
        |bits: &str| bits.parse::<u64>().ok().filter(|bits| bits % 8 == 0 && (8..=64).contains(bits)).map(|n| n / 8);
    let none = || interpretation("none", &[]);
    match (word, has_length) {
        ("f32", false) => vec![width(4), none(), format("f32")],
        ("f64", false) => vec![width(8), none(), format("f64")],
        ("bytes", true) => vec![none()],
        ("text", true) => vec![none(), format("utf8")],
        ("cstring", true) => vec![none(), format("cstring")],
        ("cstring", false) => vec![setting("width", Value::Until(0)), none(), format("utf8")],
        _ => match (word.split_at_checked(1), has_length) {
            (Some(("u", bits)), false) => bytes(bits).map(|n| vec![width(n), none()]).unwrap_or_default(),
            (Some(("i", bits)), false) => {
                let base =
                    || if rules.holds(Rule::SignedTypesExtend) { interpretation("baseOffset", &[0]) } else { none() };
                bytes(bits).map(|n| vec![width(n), base(), format("signed")]).unwrap_or_default()
            }
            _ => Vec::new(),
        },
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl Parser<'_> {
    fn space(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
            if let Some(comment) = self.rest.strip_prefix("//") {
                self.rest = comment.find('\n').map_or("", |end| &comment[end..]);
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                let nested = !self.rules.holds(Rule::CommentsNotNested) && comment.find("/*") < comment.find("*/");
                let comment = if nested { comment.split_once("*/").map_or("", |(_, rest)| rest) } else { comment };
                self.rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
            } else {
                return;
            }
        }
    }

    fn at_end(&mut self) -> bool {
        self.space();
        self.rest.is_empty()
    }

    fn at(&mut self, mark: char) -> bool {
        self.space();
        self.rest.starts_with(mark)
    }

    fn takes(&mut self, mark: char) -> bool {
        let at = self.at(mark);
        if at {
            self.rest = &self.rest[mark.len_utf8()..];
        }
        at
    }

    fn needs(&mut self, mark: char) -> Result<(), Wrong> {
        if self.takes(mark) { Ok(()) } else { Err(format!("no {mark} here: {:.20}", self.rest)) }
    }

    fn at_name(&mut self) -> bool {
        self.space();
        self.rest.starts_with(|c: char| is_of_name(c) && !c.is_ascii_digit())
    }

    fn name(&mut self) -> Result<String, Wrong> {
        if !self.at_name() {
            return Err(format!("no name here: {:.20}", self.rest));
        }
        let (name, rest) = self.rest.split_at(self.rest.find(|c| !is_of_name(c)).unwrap_or(self.rest.len()));
        self.rest = rest;
        Ok(name.to_owned())
    }

    fn path(&mut self) -> Result<Vec<String>, Wrong> {
        let mut path = vec![self.name()?];
        while self.takes('.') {
            path.push(self.name()?);
        }
        Ok(path)
    }

    fn integer(&mut self) -> Result<u64, Wrong> {
        if self.at('\'') {
            let (characters, rest) = self.rest[1..].split_once('\'').ok_or("characters without an end")?;
            self.rest = rest;
            let first = self.rules.holds(Rule::FirstCharacterIsMost);
            let mut bytes = characters.bytes().collect::<Vec<u8>>();
            if !first {
                bytes.reverse();
            }
            return Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        }
        let minus = self.takes('-');
        self.space();
        let (digits, rest) = self.rest.split_at(self.rest.find(|c| !is_of_name(c)).unwrap_or(self.rest.len()));
        self.rest = rest;
        let digits = digits.replace('_', "");
        let number = match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        let number = number.map_err(|e| format!("{e}: {digits}"))?;
        Ok(if minus && self.rules.holds(Rule::SignIsComplement) { number.wrapping_neg() } else { number })
    }

    fn text(&mut self) -> Result<String, Wrong> {
        self.needs('"')?;
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(text);
                }
                '\\' => text.extend(chars.next().map(|(_, c)| match c {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    c => c,
                })),
                c => text.push(c),
            }
        }
        Err("a string without an end".into())
    }

    fn expression(&mut self) -> Result<Vec<Step>, Wrong> {
        const COMPARISONS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let mut steps = self.operators(&['+', '-'])?;
        self.space();
        if let Some((mark, comparison)) = COMPARISONS.into_iter().find(|(mark, _)| self.rest.starts_with(mark)) {
            self.rest = &self.rest[mark.len()..];
            steps.extend(self.operators(&['+', '-'])?);
            steps.push(Step::Operator(ExprOp::Compare(comparison)));
        }
        Ok(steps)
    }

    /// Parses operands separated by these operators.
    fn operators(&mut self, marks: &[char]) -> Result<Vec<Step>, Wrong> {
        let tight = self.rules.holds(Rule::ProductsFirst);
        let is_sum = marks[0] == '+';
        let marks: &[char] = if tight { marks } else { &['+', '-', '*', '/', '%'] };
        let operand = |parser: &mut Self| {
            if is_sum && tight { parser.operators(&['*', '/', '%']) } else { parser.atom() }
        };
        let mut steps = operand(self)?;
        let mut waiting = Vec::new();
        while let Some(mark) = marks.iter().copied().find(|mark| self.takes(*mark)) {
            steps.extend(operand(self)?);
            let operator = match mark {
                '+' => ExprOp::Add,
                '-' => ExprOp::Sub,
                '*' => ExprOp::Mul,
                '/' => ExprOp::Div,
                _ => ExprOp::Rem,
            };
            if self.rules.holds(Rule::LeftFirst) {
                steps.push(Step::Operator(operator));
            } else {
                waiting.push(Step::Operator(operator));
            }
        }
        steps.extend(waiting.into_iter().rev());
        Ok(steps)
    }

    fn atom(&mut self) -> Result<Vec<Step>, Wrong> {
        if self.takes('(') {
            let steps = self.expression()?;
            self.needs(')')?;
            return Ok(steps);
        }
        if !self.at_name() {
            return Ok(vec![Step::Number(self.integer()?)]);
        }
        let mut path = self.path()?;
        match path.pop().as_deref() {
            Some("value") => Ok(vec![Step::Value(path)]),
            Some("width") => Ok(vec![Step::Width(path)]),
            Some("bit") => {
                let bit = u8::try_from(self.integer()?).map_err(|e| e.to_string())?;
                Ok(vec![Step::Value(path), Step::Operator(ExprOp::Bit(bit))])
            }
            _ => Err("a reference without .value, .width or .bit".into()),
        }
    }

    fn value(&mut self) -> Result<Value, Wrong> {
        if self.at('"') {
            return Ok(Value::Text(self.text()?));
        }
        if !self.at_name() {
            return Ok(Value::Expression(self.expression()?));
        }
        let start = self.rest;
        let word = self.name()?;
        if self.at('.') {
            self.rest = start;
            return Ok(Value::Expression(self.expression()?));
        }
        let at_number = self.at('\'') || self.rest.starts_with(|c: char| c.is_ascii_digit());
        match &*word {
            "bytes" if at_number => return self.integer().map(Value::Bytes),
            "until" if at_number => return self.integer().map(Value::Until),
            _ => {}
        }
        if !WORDS.contains(&&*word) {
            return Ok(Value::Word(word));
        }
        let (mut numbers, mut base) = (Vec::new(), Vec::new());
        if matches!(&*word, "baseOffset" | "default") && self.at_name() {
            base = self.path()?;
            base.pop();
        }
        while !self.at(';') && !self.at('}') {
            numbers.push(self.integer()?);
        }
        Ok(Value::Interpretation(word, numbers, base))
    }

    /// Parses a setting after the first name of its path.
    fn setting(&mut self, first: String) -> Result<Setting, Wrong> {
        let mut path = vec![first];
        let mut quoted = None;
        while self.takes('.') {
            if self.at('"') {
                quoted = Some(self.text()?);
                break;
            }
            path.push(self.name()?);
        }
        let name = match quoted {
            // A quoted name always names an annotation.
            Some(name) if self.rules.holds(Rule::QuotedIsAnnotation) => format!("\"{name}\""),
            Some(name) => name,
            None => path.pop().unwrap_or_default(),
        };
        self.needs('=')?;
        let value = self.value()?;
        self.needs(';')?;
        Ok(Setting { path, name, value })
    }

    /// Returns whether a `*` follows the parenthesis that closes the one here.
    fn at_count(&self) -> bool {
        let mut ahead = Parser { rest: self.rest, rules: self.rules, types: Vec::new() };
        let mut open = 0;
        while !ahead.at_end() {
            if ahead.at('\'') {
                if ahead.integer().is_err() {
                    return false;
                }
                continue;
            }
            open += usize::from(ahead.at('('));
            if ahead.takes(')') {
                open -= 1;
                if open == 0 {
                    return ahead.at('*');
                }
            } else {
                ahead.rest = ahead.rest.split_at(ahead.rest.chars().next().map_or(0, char::len_utf8)).1;
            }
        }
        false
    }

    fn field(&mut self) -> Result<Field, Wrong> {
        if self.at('(') {
            if let Some(field) = self.scanned()? {
                return Ok(field);
            }
            if self.at_count() {
                self.needs('(')?;
                let count = self.expression()?;
                self.needs(')')?;
                self.needs('*')?;
                return Ok(Field::Computed(count, Box::new(self.field()?)));
            }
            self.needs('(')?;
            let mut fields = Vec::new();
            while !self.takes(')') {
                fields.push(self.field()?);
                if !self.takes(',') {
                    self.needs(')')?;
                    break;
                }
            }
            return Ok(Field::Group(fields));
        }
        let name = self.name()?;
        if self.takes(':') {
            let mut ahead = Parser { types: Vec::new(), ..*self };
            if matches!(ahead.field(), Ok(Field::Counted(..) | Field::Computed(..) | Field::Scanned(..))) {
                return Ok(Field::Named(name, Box::new(self.field()?)));
            }
            let of = self.kind(&name)?;
            self.types.push(of);
            return Ok(Field::Name(name));
        }
        Ok(if self.takes('*') { Field::Counted(name, Box::new(self.field()?)) } else { Field::Name(name) })
    }

    /// Parses a repetition without a count. Consumes nothing if the parenthesis begins something else.
    fn scanned(&mut self) -> Result<Option<Field>, Wrong> {
        let start = self.rest;
        self.needs('(')?;
        let word = if self.at_name() { self.name()? } else { String::new() };
        let begins = self.at_name() || self.at('\'') || self.at('(') || self.at('-') || self.at_digit();
        let condition = match &*word {
            "rest" if self.takes(')') && self.at('*') => Vec::new(),
            "until" if begins => {
                let condition = self.expression()?;
                self.needs(')')?;
                condition
            }
            _ => {
                self.rest = start;
                return Ok(None);
            }
        };
        self.needs('*')?;
        Ok(Some(Field::Scanned(condition, Box::new(self.field()?))))
    }

    fn at_digit(&mut self) -> bool {
        self.space();
        self.rest.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Parses the type of a field, or the type that a definition gives a name.
    fn kind(&mut self, field: &str) -> Result<Type, Wrong> {
        let setting = |name: &str, value| Setting { path: vec![field.to_owned()], name: name.to_owned(), value };
        let start = self.rest;
        let (mut word, mut has_length, mut settings) = (self.name()?, false, Vec::new());
        if WORDS.contains(&&*word) {
            (self.rest, word) = (start, String::new());
        }
        let ahead = self.rest;
        if self.at_name() && WORDS.contains(&&*self.name()?) {
            self.rest = ahead;
            settings.push(setting("interpretation", self.interpretation()?));
        } else {
            self.rest = ahead;
            if !self.at(',') && !self.at(')') && !self.at('{') && !self.at(';') {
                has_length = true;
                let value = match &*self.expression()? {
                    [Step::Number(n)] if self.rules.holds(Rule::LengthIsOfBytes) => Value::Bytes(*n),
                    steps => Value::Expression(steps.to_vec()),
                };
                settings.push(setting("width", value));
            }
        }
        settings.extend(predefined(field, &word, has_length, self.rules));
        Ok(Type { field: field.to_owned(), word, has_length, settings })
    }

    /// Parses an interpretation in a type.
    fn interpretation(&mut self) -> Result<Value, Wrong> {
        let word = self.name()?;
        let (mut numbers, mut base) = (Vec::new(), Vec::new());
        if matches!(&*word, "baseOffset" | "default") && self.at_name() {
            base = self.path()?;
            base.pop();
        }
        while !self.at(',') && !self.at(')') && !self.at('{') && !self.at(';') {
            numbers.push(self.integer()?);
        }
        Ok(Value::Interpretation(word, numbers, base))
    }

    fn definition(&mut self, scopes: &mut Vec<Scope>, scope: usize) -> Result<(), Wrong> {
        let first = self.name()?;
        if scope == 0 && first == "section" && self.at_name() {
            let name = Some(self.name()?);
            let number = u8::try_from(self.integer()?).map_err(|e| e.to_string())?;
            scopes.push(Scope { name, number, ..Scope::default() });
            self.needs('{')?;
            let own = scopes.len() - 1;
            while !self.takes('}') {
                self.definition(scopes, own)?;
            }
        } else if first == "type" && self.at_name() {
            let name = self.name()?;
            self.needs(':')?;
            let of = self.kind(&name)?;
            scopes[scope].types.push(of);
            if self.takes('{') {
                while !self.takes('}') {
                    let quoted = self.at('"');
                    let property = if quoted { format!("\"{}\"", self.text()?) } else { self.name()? };
                    self.needs('=')?;
                    let value = self.value()?;
                    if !self.at('}') {
                        self.needs(';')?;
                    }
                    scopes[scope].settings.push(Setting { path: vec![name.clone()], name: property, value });
                }
                self.takes(';');
            } else {
                self.needs(';')?;
            }
        } else if self.takes(':') {
            let fields = self.field()?;
            let types = std::mem::take(&mut self.types);
            let mut block = Vec::new();
            if self.takes('{') {
                while !self.takes('}') {
                    let first = self.name()?;
                    block.push(self.setting(first)?);
                }
            }
            self.takes(';');
            scopes[scope].records.push(Definition { name: first, fields, types, block });
        } else {
            let setting = self.setting(first)?;
            scopes[scope].settings.push(setting);
        }
        Ok(())
    }
}
