//! The values of a number for which a condition can hold.

use super::value::Op;
use super::{Expr, Operand};

/// The lowest and the highest value; there is no value if the lowest exceeds the highest.
type Limits = (i128, i128);

const ALL: Limits = (i128::MIN, i128::MAX);

/// Returns the limits of an expression; see [`Condition::times`](super::Condition::times).
pub(super) fn of<F>(
    expr: &Expr<F>,
    is_wanted: &dyn Fn(&F) -> bool,
    named: &dyn Fn(&F, &str) -> Option<i128>,
) -> Limits {
    let limits = |expr| of(expr, is_wanted, named);
    match expr {
        Expr::Or(a, b) => either(limits(a), limits(b)),
        Expr::And(a, b) => {
            let (a, b) = (limits(a), limits(b));
            (a.0.max(b.0), a.1.min(b.1))
        }
        Expr::Not(_) => ALL,
        Expr::Compare(Operand::Field(field), op, other) if is_wanted(field) => {
            constant(field, other, named).map_or(ALL, |value| compared(*op, value))
        }
        Expr::Compare(other, op, Operand::Field(field)) if is_wanted(field) => {
            constant(field, other, named).map_or(ALL, |value| compared(mirrored(*op), value))
        }
        Expr::Compare(..) => ALL,
    }
}

fn either(a: Limits, b: Limits) -> Limits {
    match (a.0 > a.1, b.0 > b.1) {
        (true, _) => b,
        (_, true) => a,
        _ => (a.0.min(b.0), a.1.max(b.1)),
    }
}

/// Returns the limits of a constant operand, which are two numbers if it is a floating-point number.
fn constant<F>(field: &F, operand: &Operand<F>, named: &dyn Fn(&F, &str) -> Option<i128>) -> Option<Limits> {
    let one = |n| (n, n);
    match operand {
        Operand::Integer(n) => Some(one(*n)),
        Operand::Name(name) => named(field, name).map(one),
        // Integers are rounded to floating-point numbers before they are compared.
        #[allow(clippy::cast_possible_truncation, reason = "the conversion saturates")]
        Operand::Float(f) if !f.is_nan() => {
            let rounding = (f.abs() / f64::from(1 << 30) / f64::from(1 << 20)) as i128 + 1;
            let n = *f as i128;
            Some((n.saturating_sub(rounding), n.saturating_add(rounding)))
        }
        _ => None,
    }
}

/// Returns the limits of the number that a comparison compares with a constant.
fn compared(op: Op, (lowest, highest): Limits) -> Limits {
    match op {
        Op::Equal => (lowest, highest),
        // The constant may be a rounded number, so it is not excluded unless it is an integer.
        Op::Less => (i128::MIN, if lowest == highest { highest.saturating_sub(1) } else { highest }),
        Op::LessEqual => (i128::MIN, highest),
        Op::Greater => (if lowest == highest { lowest.saturating_add(1) } else { lowest }, i128::MAX),
        Op::GreaterEqual => (lowest, i128::MAX),
        Op::NotEqual | Op::Bits | Op::Set => ALL,
    }
}

/// Returns the operator after the operands have been exchanged.
fn mirrored(op: Op) -> Op {
    match op {
        Op::Less => Op::Greater,
        Op::LessEqual => Op::GreaterEqual,
        Op::Greater => Op::Less,
        Op::GreaterEqual => Op::LessEqual,
        Op::Equal | Op::NotEqual | Op::Bits | Op::Set => op,
    }
}

#[cfg(test)]
mod tests {
    use metatf::container::TimeRange;

    use super::super::{Condition, Fields, Kinds, Row, Value};

    /// The fields `t`, whose limits are wanted, and `n`.
    struct Numbers;

    impl Fields for Numbers {
        type Field = bool;

        fn find(&self, name: &str) -> Option<bool> {
            ["n", "t"].iter().position(|known| *known == name).map(|place| place == 1)
        }

        fn kinds(&self, _: &bool) -> Kinds {
            Kinds { numbers: true, bytes: false }
        }

        fn has_name(&self, _: &bool, text: &str) -> bool {
            text == "noon"
        }

        fn names(&self) -> Vec<String> {
            Vec::new()
        }
    }

    /// The values of `n` and `t`.
    struct Values(i128, i128);

    impl Row<bool> for Values {
        fn any(&self, is_time: &bool, test: &mut dyn FnMut(Value<'_>) -> bool) -> bool {
            let value = if *is_time { self.1 } else { self.0 };
            test(Value::Named(value, &|text| (text == "noon").then_some(12)))
        }
    }

    fn limits(text: &str) -> (i128, i128) {
        let condition = Condition::parse(text, &Numbers).unwrap();
        super::of(&condition.0, &|is_time| *is_time, &|_, text| (text == "noon").then_some(12))
    }

    #[test]
    fn limits_follow_from_comparisons() {
        const ALL: (i128, i128) = super::ALL;
        let cases = [
            ("t > 5", (6, ALL.1)),
            ("5 < t", (6, ALL.1)),
            ("t >= 5 && t <= 9", (5, 9)),
            ("9 >= t && 5 <= t && n == 3", (5, 9)),
            ("t == noon", (12, 12)),
            ("t < 'noon'", (ALL.0, 11)),
            ("t in (3, 8, 5)", (3, 8)),
            ("t == 1 || t == 4", (1, 4)),
            ("t == 1 || n == 4", ALL),
            ("t == 1 && n == 4", (1, 1)),
            ("t == 3 || t < 2 && t > 4", (3, 3)),
            ("!(t == 1)", ALL),
            ("t != 1", ALL),
            ("t & 4", ALL),
            ("t", ALL),
            ("t == n", ALL),
            ("n > 3", ALL),
        ];
        for (text, expected) in cases {
            assert_eq!(limits(text), expected, "{text}");
        }
        let empty = limits("t > 5 && t < 4");
        assert!(empty.0 > empty.1);
        let times = |text| Condition::parse(text, &Numbers).unwrap().times(&|is_time| *is_time, &|_, _| None);
        for text in ["t < 0", "t > 5 && t < 4", "t > 18446744073709551615"] {
            assert_eq!(times(text), TimeRange::EMPTY, "{text}");
        }
        assert_eq!(times("t >= 0 or n == 1"), TimeRange::ALL);
    }

    /// No value outside of the limits satisfies the condition.
    #[test]
    fn limits_exclude_no_value() {
        let big = 1_i128 << 60;
        let around = [0, 5, 12, big, i128::from(u64::MAX)].into_iter().flat_map(|n| (n - 70..n + 70).step_by(3));
        let times: Vec<i128> = around.filter(|n| *n >= 0).collect();
        let conditions = [
            "t > 5.5 && t < 12.5",
            "t >= 1152921504606846976.0",
            "t == 1152921504606846976.0",
            "t < 1152921504606846976.0",
            "t <= 1.8446744073709552e19",
            "t == 5 || t > noon && n == 1",
            "!(t > 5) || t == 12",
            "t not in (5, 6)",
        ];
        for text in conditions {
            let condition = Condition::parse(text, &Numbers).unwrap();
            let (lowest, highest) = limits(text);
            let (mut held, mut excluded) = (0, 0);
            for &time in &times {
                let holds = condition.holds(&Values(1, time));
                let is_inside = (lowest..=highest).contains(&time);
                assert!(is_inside || !holds, "{text}: {time}");
                held += usize::from(holds);
                excluded += usize::from(!is_inside);
            }
            assert!(
                held > 0 && (excluded > 0 || text.contains('!') || text.contains("not") || text.contains("e19")),
                "{text}"
            );
        }
    }
}
