//! Width expressions (spec 3.3).

use crate::format::ExprOp;

/// Evaluates a width expression; `leaf` gives the last value of a leaf. `None` where a step leaves 0 to 2^64-1.
pub fn evaluate(program: &[ExprOp], mut leaf: impl FnMut(u8) -> u64) -> Option<u64> {
    let mut stack = Vec::new();
    if let [ExprOp::Leaf(only)] = program {
        return Some(leaf(*only));
    }
    for op in program {
        let value = match *op {
            ExprOp::Push(n) => n,
            ExprOp::Leaf(l) => leaf(l),
            ExprOp::Add | ExprOp::Sub | ExprOp::Mul => {
                let (b, a) = (stack.pop()?, stack.pop()?);
                let (a, b): (u64, u64) = (a, b);
                match *op {
                    ExprOp::Add => a.checked_add(b)?,
                    ExprOp::Sub => a.checked_sub(b)?,
                    _ => a.checked_mul(b)?,
                }
            }
        };
        stack.push(value);
    }
    stack.pop()
}
