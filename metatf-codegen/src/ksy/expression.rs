//! Expressions of widths and counts. A comparison is a number in a DTD, but a Boolean in Kaitai Struct.

use metatf_parser::schema::{Expr, ExprOp, LeafId};

/// The text of an expression.
#[derive(Clone, Debug)]
pub(super) struct Text {
    text: String,
    level: Level,
}

/// The precedence of the outermost operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Comparison,
    Sum,
    Product,
    Atom,
}

impl Text {
    /// Translates an expression. `path` returns the path of a field, or `None` if the field cannot be reached.
    pub(super) fn of(expression: &Expr, path: impl Fn(LeafId) -> Option<String>) -> Option<Text> {
        let mut stack: Vec<Text> = Vec::new();
        for step in &expression.0 {
            let made = match *step {
                ExprOp::Push(number) => Text { text: number_text(number), level: Level::Atom },
                ExprOp::Leaf(leaf) => Text { text: path(leaf)?, level: Level::Atom },
                ExprOp::Bit(bit) => stack.pop()?.bits(bit, 1),
                // The condition of a repetition, without its mark.
                ExprOp::Until => continue,
                ExprOp::Rest => return None,
                ExprOp::Add => binary(&mut stack, "+", Level::Sum)?,
                ExprOp::Sub => binary(&mut stack, "-", Level::Sum)?,
                ExprOp::Mul => binary(&mut stack, "*", Level::Product)?,
                ExprOp::Div => binary(&mut stack, "/", Level::Product)?,
                ExprOp::Rem => binary(&mut stack, "%", Level::Product)?,
                ExprOp::Compare(comparison) => binary(&mut stack, comparison.sign(), Level::Comparison)?,
            };
            stack.push(made);
        }
        stack.pop()
    }

    /// Creates the text of a field or a literal.
    pub(super) fn atom(text: impl Into<String>) -> Text {
        Text { text: text.into(), level: Level::Atom }
    }

    /// Returns the expression as a number.
    pub(super) fn number(self) -> String {
        self.at_least(Level::Sum)
    }

    /// Returns the expression as a condition.
    pub(super) fn condition(self) -> String {
        if self.level == Level::Comparison { self.text } else { format!("{} != 0", self.text) }
    }

    /// Returns the value of `count` bits from `first` on. Uses arithmetic, because JavaScript shifts only 32 bits.
    pub(super) fn bits(self, first: u8, count: u8) -> Text {
        let mut text = self.at_least(Level::Product);
        if first > 0 {
            text = format!("{text} / {}", number_text(1 << first));
        }
        if first + count < 64 {
            text = format!("{text} % {}", number_text(1 << count));
        }
        Text { text, level: Level::Product }
    }

    fn at_least(self, level: Level) -> String {
        match self.level {
            Level::Comparison => format!("({} ? 1 : 0)", self.text),
            own if own < level => format!("({})", self.text),
            _ => self.text,
        }
    }
}

fn binary(stack: &mut Vec<Text>, sign: &str, level: Level) -> Option<Text> {
    let (right, left) = (stack.pop()?, stack.pop()?);
    let above = if level == Level::Product { Level::Atom } else { Level::Product };
    let right = right.at_least(if level == Level::Comparison { Level::Sum } else { above });
    Some(Text { text: format!("{} {sign} {right}", left.at_least(level)), level })
}

/// Writes a number in decimal if it is small, since larger ones are often masks or characters.
pub(super) fn number_text(number: u64) -> String {
    if number < 0x1_0000 { number.to_string() } else { format!("{number:#x}") }
}
