//! Expressions of the DTD in C.

use metatf_parser::schema::{Expr, ExprOp, LeafId};

/// Returns a C expression of type `uint64_t`. Steps that may fail set `room->fails`.
pub(super) fn expression(
    expr: &Expr,
    room: &str,
    value: &dyn Fn(LeafId) -> Result<String, String>,
) -> Result<String, String> {
    let mut stack: Vec<String> = Vec::new();
    for op in &expr.0 {
        let b = match op {
            ExprOp::Push(number) => {
                stack.push(format!("UINT64_C({number})"));
                continue;
            }
            ExprOp::Leaf(id) => {
                stack.push(value(*id)?);
                continue;
            }
            _ => stack.pop().unwrap_or_default(),
        };
        if let ExprOp::Bit(bit) = op {
            stack.push(format!("({b} >> {bit} & 1)"));
            continue;
        }
        let a = stack.pop().unwrap_or_default();
        let step = |sign: char| format!("pfx_step({room}, '{sign}', {a}, {b})");
        stack.push(match op {
            ExprOp::Compare(comparison) => format!("(uint64_t)({a} {} {b})", comparison.sign()),
            ExprOp::Add => step('+'),
            ExprOp::Sub => step('-'),
            ExprOp::Mul => step('*'),
            ExprOp::Div => step('/'),
            _ => step('%'),
        });
    }
    Ok(stack.pop().unwrap_or_default())
}
