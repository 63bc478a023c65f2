//! Resolves expressions (spec 3.2, 3.3). Constants are folded, and references are resolved to leaves of the same
//! record.
//!
//! In a record's block, a path starts at a field of that record. For example, `data.width = length.value;` is valid in
//! the block of the record that lists both fields. In the block of a record that nests this record as `box`, the
//! statement is `box.data.width = box.length.value;`. In a property of a section or the top level, a path starts at the
//! record that lists the leaf, or else at a record that nests this record, innermost first. If a name occurs several
//! times before the leaf, the nearest occurrence is used.

use super::layout::{Layout, RawLeaf};
use super::lines;
use super::model::{Model, VFIELD};
use crate::ast::{self, Aspect, Expression, Operator, Reference, Step};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE};
use crate::schema::{Expr, ExprOp, LeafId, Width};
use crate::span::{Source, Span};

/// The result of an expression.
pub(super) enum Computed {
    Constant(u64),
    Variable(Expr),
}

/// The reason why an expression has no result.
pub(super) enum Failure {
    /// A mistake that the caller must report.
    Mistake(Box<Draft>),
    /// A consequence of a mistake that has already been reported.
    Silent,
}

impl From<Draft> for Failure {
    fn from(draft: Draft) -> Failure {
        Failure::Mistake(Box::new(draft))
    }
}

/// The leaves that an expression may refer to.
pub(super) struct Context<'c, 'a> {
    pub(super) layout: &'c Layout<'a>,
    /// Index of the first leaf to which the expression may not refer. This is the leaf whose width or value the
    /// expression computes, or else the leaf after the items whose end the expression determines.
    pub(super) leaf: usize,
    /// The repetitions in which the expression is evaluated.
    pub(super) repeats: &'c [usize],
    /// Widths of the leaves before this leaf; `None` for a width that could not be resolved.
    pub(super) widths: &'c [Option<Width>],
    /// Frames in which a path may start, in order of preference.
    pub(super) frames: Vec<usize>,
    pub(super) model: &'c Model<'a>,
}

/// Folds an expression without references. If `tag_width` is known, the expression may refer to the width of `tag`.
pub(super) fn constant(expression: &Expression, tag_width: Option<u8>) -> Option<u64> {
    let resolve = |reference: &Reference| match (reference.path.as_slice(), reference.of, tag_width) {
        ([only], Aspect::Width, Some(width)) if only.text == "tag" => Ok(ExprOp::Push(u64::from(width))),
        _ => Err(Failure::Silent),
    };
    match fold(expression, Span::at(0), resolve) {
        Ok(Computed::Constant(value)) => Some(value),
        _ => None,
    }
}

/// Evaluates an expression as far as possible without a trace.
pub(super) fn compute(
    expression: &Expression,
    place: Span,
    context: &Context,
    source: &Source,
) -> Result<Computed, Failure> {
    fold(expression, place, |reference| context.resolve(reference, place, source))
}

/// An operand on the evaluation stack: the index of its first step in the output and, if it is constant, its value.
struct Operand {
    start: usize,
    constant: Option<u64>,
}

fn fold(
    expression: &Expression,
    place: Span,
    mut resolve: impl FnMut(&Reference) -> Result<ExprOp, Failure>,
) -> Result<Computed, Failure> {
    let mut out: Vec<ExprOp> = Vec::new();
    let mut stack: Vec<Operand> = Vec::new();
    for step in &expression.steps {
        let start = out.len();
        match step {
            Step::Int(int) => {
                let value = int.natural().ok_or_else(|| overflow(int.span.or(place)))?;
                stack.push(Operand { start, constant: Some(value) });
                out.push(ExprOp::Push(value));
            }
            Step::Reference(reference) => {
                let op = resolve(reference)?;
                let constant = if let ExprOp::Push(value) = op { Some(value) } else { None };
                stack.push(Operand { start, constant });
                out.push(op);
                if let Aspect::Bit(bit) = reference.of {
                    out.push(ExprOp::Bit(bit));
                }
            }
            Step::Operator(operator) => {
                let (Some(right), Some(left)) = (stack.pop(), stack.pop()) else { return Err(Failure::Silent) };
                stack.push(combine(*operator, &left, &right, &mut out, place)?);
            }
        }
    }
    match stack.pop().ok_or(Failure::Silent)?.constant {
        Some(value) => Ok(Computed::Constant(value)),
        None => Ok(Computed::Variable(Expr(out))),
    }
}

/// Combines two operands. The result of every step must be in the range 0 to 2^64-1 (spec 3.2).
fn combine(
    operator: Operator,
    left: &Operand,
    right: &Operand,
    out: &mut Vec<ExprOp>,
    place: Span,
) -> Result<Operand, Failure> {
    let Some((a, b)) = left.constant.zip(right.constant) else {
        out.push(match operator {
            Operator::Add => ExprOp::Add,
            Operator::Sub => ExprOp::Sub,
            Operator::Mul => ExprOp::Mul,
            Operator::Div => ExprOp::Div,
            Operator::Rem => ExprOp::Rem,
            Operator::Compare(comparison) => ExprOp::Compare(comparison),
        });
        return Ok(Operand { start: left.start, constant: None });
    };
    let value = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Sub => a.checked_sub(b),
        Operator::Mul => a.checked_mul(b),
        Operator::Div => a.checked_div(b),
        Operator::Rem => a.checked_rem(b),
        Operator::Compare(comparison) => Some(u64::from(comparison.holds(a, b))),
    };
    let value = value.ok_or_else(|| overflow(place))?;
    out.truncate(left.start);
    out.push(ExprOp::Push(value));
    Ok(Operand { start: left.start, constant: Some(value) })
}

fn overflow(place: Span) -> Draft {
    Draft::new(Code::ConstantOverflow, place, "this expression goes below 0 or above 2^64-1, or divides by 0")
        .help(format!("every step of `{LINE}` must be an integer from 0 to 2^64-1"))
        .quote(place)
}

impl Context<'_, '_> {
    fn resolve(&self, reference: &Reference, place: Span, source: &Source) -> Result<ExprOp, Failure> {
        let at = reference.span.or(place);
        // Nested records may also refer to the width of `tag`, because all tags have the same width.
        if let ([only], Aspect::Width, Some(Width::Number(tag))) = (
            reference.path.as_slice(),
            reference.of,
            self.widths
                .first()
                .and_then(Option::as_ref)
                .filter(|_| self.layout.leaves.first().is_some_and(|l| l.is_tag)),
        ) && only.text == "tag"
        {
            return Ok(ExprOp::Push(u64::from(*tag)));
        }
        let index = match self.find(reference) {
            Ok(index) => index,
            Err(code) => return Err(self.not_found(code, reference, at, source).into()),
        };
        let width = self.widths.get(index).and_then(Option::as_ref).ok_or(Failure::Silent)?;
        let number = self.numbers().next().unwrap_or_else(|| "FIELD".to_owned());
        let no_width = |message: &str| {
            let help = format!("for the value of an earlier number, write `{LINE}`");
            not_a_number(at, message, help).line(at, format!("{number}.value"))
        };
        match (reference.of, width) {
            (Aspect::Value | Aspect::Bit(_), Width::Number(_) | Width::Unset) => {
                u8::try_from(index).map(|id| ExprOp::Leaf(LeafId(id))).map_err(|_| Failure::Silent)
            }
            (Aspect::Width, Width::Number(width)) => Ok(ExprOp::Push(u64::from(*width))),
            (Aspect::Width, Width::Array(width)) => Ok(ExprOp::Push(u64::from(*width))),
            (Aspect::Value | Aspect::Bit(_), _) => {
                let name = reference.path.last().map_or("FIELD", |name| name.text);
                let help = format!(
                    "only a number has a value and bits: give the field the type of a number, as in `{name}: u32`"
                );
                Err(not_a_number(at, "the value of a byte array is not a number", help).into())
            }
            (Aspect::Width, Width::Unset) => Err(no_width("this field has no width").into()),
            (Aspect::Width, Width::Variable(_) | Width::Until(_) | Width::Rest) => {
                Err(no_width("the width of this field is not an integer").into())
            }
        }
    }

    /// Returns the nearest earlier leaf to which the path may refer, or the code of the rule that forbids the
    /// reference.
    fn find(&self, reference: &Reference) -> Result<usize, Code> {
        let unknown = Code::UnknownReference;
        let from = |frame: &usize| {
            let matches = |leaf: &RawLeaf| self.layout.has_path(leaf, *frame, &reference.path);
            self.layout.nearest_before(self.leaf, self.repeats, unknown, matches)
        };
        self.frames.iter().map(from).find(|found| *found != Err(unknown)).unwrap_or(Err(unknown))
    }

    /// Returns the path of the nearest field of this name in a nested record.
    fn nested(&self, name: &str) -> Option<String> {
        let named = self.layout.leaves.iter().take(self.leaf).rev().filter(|leaf| leaf.name == name);
        named.filter(|leaf| self.repeats.starts_with(&leaf.repeats)).find_map(|leaf| self.path(leaf))
    }

    /// Returns the path of a leaf from one of the frames in which a path may start.
    pub(super) fn path(&self, leaf: &RawLeaf) -> Option<String> {
        let (mut names, mut at) = (vec![leaf.name], leaf.frame);
        while !self.frames.contains(&at) {
            let (parent, field) = self.layout.frames.get(at)?.parent?;
            names.push(field);
            at = parent;
        }
        names.reverse();
        Some(names.join("."))
    }

    /// Returns the help for a reference to a field that does not exist.
    fn earlier(&self) -> String {
        let rule = "a width or count may refer only to earlier fields of the same record";
        match self.numbers().next() {
            Some(_) => format!("{rule}, as in `{LINE}`"),
            None => format!("{rule}: list the field first, as in `size: u16`"),
        }
    }

    /// Returns the paths of the earlier numbers to which the expression can refer, nearest first.
    fn numbers(&self) -> impl Iterator<Item = String> {
        let leaves = self.layout.leaves.iter().zip(self.widths).take(self.leaf).rev();
        let numbers = leaves
            .filter(|(leaf, width)| matches!(width, Some(Width::Number(_))) && !leaf.is_tag && leaf.computed.is_none());
        numbers.filter(|(leaf, _)| self.repeats.starts_with(&leaf.repeats)).filter_map(|(leaf, _)| self.path(leaf))
    }

    /// Returns the record whose list or block contains the expression, and the location of the leaf in its list.
    fn record(&self) -> Option<(&ast::Record<'_>, Span)> {
        let leaf = self.layout.leaves.get(self.leaf).or(self.layout.leaves.last())?;
        let record = self.layout.frames.get(leaf.frame).and_then(|frame| self.model.records.get(frame.record))?;
        Some((record.ast, leaf.site))
    }

    /// Returns the definition of the record with the field that the expression needs moved before the leaf.
    fn earlier_field(&self, reference: &Reference, source: &Source) -> Option<String> {
        let (record, site) = self.record()?;
        let [name] = reference.path.as_slice() else { return None };
        let own = self.layout.leaves.get(self.leaf)?;
        let mut later = self.layout.leaves.iter().skip(self.leaf);
        let field =
            later.find(|leaf| leaf.name == name.text && leaf.frame == own.frame && leaf.repeats == own.repeats)?;
        lines::moved(source, record, field.site, site)
    }

    /// Returns the item or the statement that contains the reference, with another path.
    fn with_path(&self, reference: &Reference, at: Span, path: &str, source: &Source) -> Option<String> {
        let whole = reference.path.first()?.span.to(reference.path.last()?.span);
        let mut frames = self.layout.frames.iter().filter_map(|frame| self.model.records.get(frame.record));
        let line = frames.find_map(|record| lines::around(source, record.ast, at))?;
        let end = if is_statement(source, line) { ";" } else { "" };
        Some(format!("{}{end}", lines::replaced(source, line, whole, path)?))
    }

    fn not_found(&self, code: Code, reference: &Reference, at: Span, source: &Source) -> Draft {
        let path = reference.path.iter().map(|n| n.text).collect::<Vec<_>>().join(".");
        match code {
            Code::ForwardReference => Draft::new(code, at, format!("`{path}` does not precede this field")).help(
                match self.earlier_field(reference, source) {
                    Some(line) => format!("write `{line}`: a width or count may refer only to earlier fields"),
                    None => format!(
                        "a width or count may refer only to earlier fields: list `{path}` first, as in `r: ({path}: u16, data: \
                         bytes {path}.value)`"
                    ),
                },
            ),
            Code::OutOfRepetition => {
                let known = self.numbers().next().unwrap_or_else(|| "FIELD".to_owned());
                let whole = reference.path.first().map_or(at, |first| reference.path.last().map_or(at, |l| first.span.to(l.span)));
                Draft::new(code, at, format!("`{path}` is in a repetition that ends before this field"))
                    .help(format!(
                        "after a repetition, a repeated field has no single value: refer to a field outside of it, as in `{LINE}`"
                    ))
                    .line(whole, known)
            }
            _ => {
                let known = self.layout.leaves.iter().take(self.leaf).map(|l| l.name);
                let (place, name) = reference.path.last().map_or((at, ""), |n| (n.span, n.text));
                let whole = reference.path.first().map_or(at, |first| first.span.to(place));
                let draft = Draft::new(code, at, format!("this record has no field `{path}` before this field"))
                    .help(self.earlier())
                    .line(whole, self.numbers().next().unwrap_or_default());
                if self
                    .layout
                    .frames
                    .iter()
                    .any(|f| f.record == VFIELD && f.parent.is_some_and(|(_, field)| field == path))
                {
                    let text = format!("{path}.length");
                    return draft.write(whole, text.as_str()).replace(whole, text);
                }
                let is_record = self.layout.frames.iter().any(|f| f.parent.is_some_and(|(_, field)| field == path));
                if is_record && reference.of != Aspect::Value {
                    let draft =
                        Draft::new(code, at, format!("`{path}` is a nested record, which has no width and no bits"));
                    return draft.help(self.earlier()).line(whole, self.numbers().next().unwrap_or_default());
                }
                match self.nested(name) {
                    Some(nested) if nested != path => {
                        let draft = draft.help(match self.with_path(reference, at, &nested, source) {
                            Some(line) => format!("write `{line}`"),
                            None => format!("did you mean `{nested}`?"),
                        });
                        draft.replace(whole, nested)
                    }
                    _ => draft.did_you_mean(place, name, known),
                }
            }
        }
    }
}

/// Checks whether a line of a record is a statement, which ends with `;`.
fn is_statement(source: &Source, line: Span) -> bool {
    source.following(line.end(), 80).trim_start().starts_with(';')
}

fn not_a_number(at: Span, message: &str, help: String) -> Draft {
    Draft::new(Code::NotANumber, at, message).help(help)
}
