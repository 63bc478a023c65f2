//! Expressions for widths and counts (spec 3.2).

use crate::format::ExprOp;

/// Evaluates an expression, where `leaf` returns the last value of a leaf. Returns `None` if a result is outside 0 to
/// 2^64-1, or for a division by 0.
pub fn evaluate(program: &[ExprOp], mut leaf: impl FnMut(u8) -> u64) -> Option<u64> {
    match program {
        [ExprOp::Leaf(only)] => return Some(leaf(*only)),
        [ExprOp::Leaf(of), ExprOp::Bit(bit)] => return Some(leaf(*of).checked_shr((*bit).into())? & 1),
        _ => {}
    }
    let mut stack: Vec<u64> = Vec::new();
    for op in program {
        let value = match *op {
            ExprOp::Push(n) => n,
            ExprOp::Leaf(l) => leaf(l),
            ExprOp::Bit(bit) => stack.pop()?.checked_shr(bit.into())? & 1,
            op => {
                let (b, a) = (stack.pop()?, stack.pop()?);
                match op {
                    ExprOp::Add => a.checked_add(b)?,
                    ExprOp::Sub => a.checked_sub(b)?,
                    ExprOp::Div => a.checked_div(b)?,
                    ExprOp::Rem => a.checked_rem(b)?,
                    ExprOp::Eq => u64::from(a == b),
                    ExprOp::Ne => u64::from(a != b),
                    ExprOp::Lt => u64::from(a < b),
                    ExprOp::Le => u64::from(a <= b),
                    ExprOp::Gt => u64::from(a > b),
                    ExprOp::Ge => u64::from(a >= b),
                    _ => a.checked_mul(b)?,
                }
            }
        };
        stack.push(value);
    }
    stack.pop()
}
