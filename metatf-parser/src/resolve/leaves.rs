//! Looks up the properties of every leaf (spec 3.1) and checks that the required properties are set (spec 3.2).

use super::bases;
use super::constants;
use super::expression::{self, Computed, Context, Failure};
use super::headers;
use super::layout::{Layout, RawLeaf};
use super::lookup::{Found, Lookup};
use super::model::{Model, RecordIndex, VFIELD};
use super::predictors::{self, Place, Predicted};
use super::shown;
use super::tags::Tag;
use super::types;
use crate::ast::{self, CountKind, Setting, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::foreign;
use crate::nearest::nearest;
use crate::schema::{
    Argument, Expr, ExprOp, Interpretation, InterpretationWord, Leaf, LeafId, Names, Origin, Width, expression_text,
};
use crate::span::Span;
use crate::vocabulary::{Property, REST, TYPES};

/// Maximum size of the content of a chunk in bytes (spec 5.2). A record never spans chunks.
const MOST_IN_A_CHUNK: u32 = 64 << 20;

/// A record with its leaves resolved.
pub(super) struct Resolved<'a> {
    pub(super) layout: Layout<'a>,
    pub(super) leaves: Vec<ResolvedLeaf>,
    pub(super) tag: Option<Tag>,
}

/// A leaf with the information required by later checks.
pub(super) struct ResolvedLeaf {
    pub(super) leaf: Leaf,
    /// Whether a mistake in the leaf has been reported.
    pub(super) broken: bool,
    pub(super) sharing: Sharing,
    /// The location of the leaf's interpretation, or else of the field.
    pub(super) place: Span,
    /// The leaf's model, which is numbered after all leaves are known.
    pub(super) predicted: Option<Predicted>,
    /// The location of the `section` property, if the leaf's bytes are records of a section.
    pub(super) nested: Option<Span>,
}

/// The other leaves that share a leaf's previous value (spec 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    Own,
    /// Shared with every `shared` leaf of the same name.
    Name,
    /// Shared with every leaf whose `delta` or `stride` interpretation is set by the statement at this location.
    Property(Span),
    /// Shared as described by both `Name` and `Property`.
    NameAndProperty(Span),
    /// Not shared with any other leaf, because no property requests it.
    Alone,
}

/// Resolves the leaves of a record in order, because a width may refer to earlier leaves.
pub(super) fn resolve<'a>(
    model: &mut Model<'a>,
    layouts: &[Layout<'a>],
    index: usize,
    tag: Option<Tag>,
    report: &mut Reporter,
) -> Vec<ResolvedLeaf> {
    let Some(layout) = layouts.get(index) else { return Vec::new() };
    let mut out: Vec<ResolvedLeaf> = Vec::with_capacity(layout.leaves.len());
    let mut widths = Vec::new();
    let mut bytes = 0;
    for (index, raw) in layout.leaves.iter().enumerate() {
        let looker = Looker { model, layouts, layout, raw, index, lookup: Lookup::new(model, layout, raw) };
        let leaf = match raw.computed {
            _ if raw.is_tag => looker.tag(tag, report),
            Some(computed) => looker.computed(computed, &widths, &out, report),
            None => looker.leaf(&widths, report),
        };
        bytes += size(&leaf.leaf) + leaf.predicted.as_ref().map_or(0, Predicted::size);
        widths.push((!leaf.broken).then(|| leaf.leaf.width.clone()));
        out.push(leaf);
        if report.is_full() || (bytes > 1 << 20 && !charge(model, layout, &mut bytes, report)) {
            break;
        }
    }
    // A condition may refer to the items after its count.
    for (index, raw) in layout.leaves.iter().enumerate() {
        let Some(computed) = raw.computed.filter(|computed| computed.kind == CountKind::Until) else { continue };
        let looker = Looker { model, layouts, layout, raw, index, lookup: Lookup::new(model, layout, raw) };
        let expression = looker.until(computed, &widths, report);
        let Some(mut leaf) = out.get(index).map(|resolved| resolved.leaf.clone()) else { break };
        let broken = expression.is_none();
        if let Some(expression) = expression {
            bytes += expression.0.len() * 16;
            name_count(&mut leaf, index, expression, &out);
        }
        out.get_mut(index).into_iter().for_each(|resolved| (resolved.leaf, resolved.broken) = (leaf.clone(), broken));
    }
    charge(model, layout, &mut bytes, report);
    out
}

/// Charges the collected bytes to the budget. If the budget is exhausted, reports an error and returns false.
fn charge(model: &mut Model, layout: &Layout, bytes: &mut usize, report: &mut Reporter) -> bool {
    let left = model.budget.charge(std::mem::take(bytes));
    if !left && let Some(record) = model.records.get(layout.record) {
        report.add(super::too_large(record.ast.name.span));
    }
    left
}

fn size(leaf: &Leaf) -> usize {
    let width = if let Width::Variable(e) = &leaf.width { Some(e) } else { leaf.computed.as_ref() };
    let expression = width.map_or(0, |e| e.0.len() * 16) + leaf.name.len() * 3 * usize::from(leaf.computed.is_some());
    let was = leaf.was.iter().map(|name| name.len() + 24).sum::<usize>();
    let annotations = leaf.annotations.iter().map(|(k, v)| k.len() + v.len() + 64).sum::<usize>();
    // Lists of value and flag names are not charged, because leaves share them.
    expression
        + was
        + annotations
        + leaf.doc.as_ref().map_or(0, String::len)
        + leaf.unit.as_ref().map_or(0, String::len)
}

/// The resolver of a single leaf.
struct Looker<'m, 'a> {
    model: &'m Model<'a>,
    layouts: &'m [Layout<'a>],
    layout: &'m Layout<'a>,
    raw: &'m RawLeaf<'a>,
    index: usize,
    lookup: Lookup<'m, 'a>,
}

impl<'a> Looker<'_, 'a> {
    fn blank(&self) -> Leaf {
        Leaf {
            name: self.raw.name.to_owned(),
            // A computed leaf uses its expression as its key.
            key: self.raw.path.last().filter(|_| self.raw.computed.is_none()).cloned().unwrap_or_default(),
            path: self.raw.path.clone(),
            width: Width::Unset,
            interpretation: Interpretation::None,
            header: None,
            constant: None,
            computed: None,
            format: self.lookup.format(),
            names: self.lookup.names(&self.model.lists).map_or(Names::None, |(_, names)| names),
            // The `was` property of a tag lists the earlier names of the record, not of the leaf.
            was: if self.raw.is_tag { Vec::new() } else { self.lookup.was() },
            section: None,
            unit: self.lookup.text(Property::Unit),
            doc: self.lookup.doc(),
            annotations: self.lookup.annotations(),
            repeated: !self.raw.repeats.is_empty(),
            width_origin: None,
            interpretation_origin: Origin::Global,
        }
    }

    fn block_of(&self, record: RecordIndex) -> Origin {
        self.model.records.get(record).map_or(Origin::Global, |record| record.origin.clone())
    }

    fn tag(&self, tag: Option<Tag>, report: &mut Reporter) -> ResolvedLeaf {
        let mut leaf = Leaf {
            width: Width::Number(self.model.tag_width.unwrap_or(1)),
            constant: tag.map(|tag| tag.number.into()),
            width_origin: Some(Origin::Global),
            interpretation_origin: Origin::Tag,
            ..self.blank()
        };
        if tag.is_some_and(|tag| tag.catch_all) {
            (leaf.constant, leaf.interpretation_origin) = (None, self.block_of(self.layout.record));
            shown::check(self.model, &self.lookup, self.raw, &leaf, report);
        }
        ResolvedLeaf {
            leaf,
            broken: tag.is_none(),
            sharing: Sharing::Alone,
            place: self.raw.site,
            predicted: None,
            nested: None,
        }
    }

    fn leaf(&self, widths: &[Option<Width>], report: &mut Reporter) -> ResolvedLeaf {
        let mut leaf = self.blank();
        let (found_width, found_interpretation) =
            (self.lookup.find(Property::Width), self.lookup.find(Property::Interpretation));
        let interpretation = found_interpretation.as_ref().map(|f| self.interpretation(f.setting, report));
        let width = found_width.as_ref().map(|f| self.width(f, widths, report));
        // A predicted leaf without a width stores a one-byte code.
        let width = match (width, interpretation) {
            (None, Some(Some(Interpretation::Predicted(_)))) => Some(Some(Width::Number(1))),
            (width, _) => width,
        };
        let mut broken = matches!(interpretation, None | Some(None)) || matches!(width, Some(None));
        match (&interpretation, &width) {
            _ if self.lookup.has_wrong_type => broken = true,
            // The type in place of the width has been reported.
            (None, Some(None)) if found_width.as_ref().is_some_and(|f| matches!(f.setting.value, Value::Word(_))) => {}
            (None, _) => self.no_interpretation(width.as_ref(), report),
            (Some(Some(i)), None) if i.stores() => {
                broken = true;
                self.no_width(report);
            }
            _ => {}
        }
        leaf.interpretation = interpretation.flatten().unwrap_or(Interpretation::None);
        leaf.width = width.flatten().unwrap_or(Width::Unset);
        leaf.width_origin = found_width.as_ref().map(|f| f.origin.clone());
        if let Some(found) = &found_interpretation {
            leaf.interpretation_origin = found.origin.clone();
        }
        let place = found_interpretation.as_ref().map_or(self.raw.site, |f| f.setting.value_span.or(self.raw.site));
        if !leaf.is_numeric() && leaf.interpretation != Interpretation::None && !broken {
            broken = true;
            self.array_not_none(place, found_width.as_ref(), report);
        }
        if !broken {
            leaf.constant = self.constant(&leaf, report);
            shown::check(self.model, &self.lookup, self.raw, &leaf, report);
        }
        if let Some(reference) = found_interpretation.as_ref().and_then(|found| header(found.setting)) {
            leaf.header = headers::resolve(self.model, self.layouts, reference, report);
            broken |= leaf.header.is_none();
        }
        let predicted = found_interpretation.as_ref().and_then(|f| self.predicted(f, report));
        broken |= predicted.is_none() && matches!(leaf.interpretation, Interpretation::Predicted(_));
        let sharing = self.sharing(&leaf, found_interpretation.as_ref());
        let nested = self.section(&mut leaf, broken, report);
        ResolvedLeaf { leaf, broken, sharing, place, predicted, nested }
    }

    /// Returns the leaf of a computed count (spec 3.3). The leaf stores nothing and is named after the expression.
    fn computed(
        &self,
        computed: &ast::Computed,
        widths: &[Option<Width>],
        before: &[ResolvedLeaf],
        report: &mut Reporter,
    ) -> ResolvedLeaf {
        let place = computed.span.or(self.raw.site);
        let frames = self.layout.frames_up(self.raw).collect();
        let expression = match computed.kind {
            // The condition is resolved after the items.
            CountKind::Until => Some(Expr(Vec::new())),
            CountKind::Rest => Some(Expr(vec![ExprOp::Rest])),
            CountKind::Expression => match self.expression(&computed.expression, place, frames, widths, report) {
                Some(Computed::Constant(number)) => Some(Expr(vec![ExprOp::Push(number)])),
                Some(Computed::Variable(expression)) => Some(expression),
                None => None,
            },
        };
        let frame = self.layout.frames.get(self.raw.frame).map_or(VFIELD, |frame| frame.record);
        let interpretation_origin = self.block_of(frame);
        let mut leaf = Leaf { interpretation: Interpretation::Default(0), interpretation_origin, ..self.blank() };
        let broken = expression.is_none();
        if let Some(expression) = expression.filter(|_| computed.kind != CountKind::Until) {
            name_count(&mut leaf, self.index, expression, before);
        }
        ResolvedLeaf { leaf, broken, sharing: Sharing::Alone, place, predicted: None, nested: None }
    }

    /// Resolves the condition of a count whose items end when the condition holds (spec 3.3).
    fn until(&self, computed: &ast::Computed, widths: &[Option<Width>], report: &mut Reporter) -> Option<Expr> {
        let place = computed.span.or(self.raw.site);
        let (items, repeats) = self.layout.counted(self.index);
        let frames = self.layout.frames_up(self.raw).collect();
        let context = Context { layout: self.layout, leaf: items.end, repeats, widths, frames, model: self.model };
        let mut steps = match self.evaluated(&computed.expression, place, &context, report)? {
            Computed::Constant(_) => Vec::new(),
            Computed::Variable(Expr(steps)) => steps,
        };
        if !steps.iter().any(|step| matches!(step, ExprOp::Leaf(leaf) if items.contains(&usize::from(leaf.0)))) {
            report.add(Draft::new(Code::UntilCondition, place, "the condition does not depend on the items").help({
                let path = self.layout.leaves.get(items.start).and_then(|leaf| context.path(leaf));
                let path = path.unwrap_or_else(|| "item.size".to_owned());
                let item = path.split('.').next().unwrap_or_default();
                format!("write `(until {path}.value == 0)*{item}` with the condition for the last item")
            }));
            return None;
        }
        steps.push(ExprOp::Until);
        Some(Expr(steps))
    }

    /// Resolves an interpretation. If it contains a mistake, reports the mistake and returns `None`.
    fn interpretation(&self, setting: &Setting, report: &mut Reporter) -> Option<Interpretation> {
        let Value::Interpretation(ast::Interpretation { word, arguments }) = &setting.value else { return None };
        let mut numbers = Vec::new();
        for (kind, argument) in word.arguments().iter().zip(arguments) {
            match (kind, argument) {
                // The value is known when the file is read.
                (_, ast::Argument::Base(_)) if *word == InterpretationWord::Default => numbers.push(0),
                (_, ast::Argument::Base(reference)) => {
                    let scope = self.model.records.get(self.layout.record).map_or(0, |r| r.scope);
                    return bases::resolve(self.model, self.layouts, scope, reference, report);
                }
                (Argument::Number | Argument::Base, ast::Argument::Number(number)) => numbers.push(number.bits()),
                (_, ast::Argument::Number(number)) => numbers.push(number.natural()?),
                // Models are numbered after all leaves are known.
                (_, ast::Argument::Model(_)) => {}
            }
        }
        Interpretation::new(*word, &numbers)
    }

    /// Returns the model of a predicted leaf. Returns `None` if the leaf is not predicted, or if its model contains a
    /// mistake that has been reported.
    fn predicted(&self, found: &Found, report: &mut Reporter) -> Option<Predicted> {
        let Value::Interpretation(interpretation) = &found.setting.value else { return None };
        let [ast::Argument::Model(model), ast::Argument::Number(section)] = interpretation.arguments.as_slice() else {
            return None;
        };
        let frames = found.frame.map_or_else(|| self.layout.frames_up(self.raw).collect(), |frame| vec![frame]);
        let (model_of, layouts, layout, leaf) = (self.model, self.layouts, self.layout, self.index);
        predictors::resolve(&Place { model: model_of, layouts, layout, leaf, frames }, model, *section, report)
    }

    /// Resolves a width (spec 3.2). A width of 0 to 8 makes the leaf a number, a larger width makes it a byte array,
    /// and an expression makes it a byte array of variable length.
    fn width(&self, found: &Found, widths: &[Option<Width>], report: &mut Reporter) -> Option<Width> {
        let place = found.setting.value_span.or(self.raw.site);
        let expression = match &found.setting.value {
            Value::Expression(expression) => expression,
            Value::Bytes(int) => return self.array(*int, place, report),
            Value::Until(int) => return until(*int, place, report),
            Value::Word(REST) => return Some(Width::Rest),
            _ => return None,
        };
        if expression.as_int().is_some_and(|int| int.natural().is_none()) {
            report.add(
                Draft::new(Code::WidthRange, place, "a width cannot be negative")
                    .help(format!("write `{LINE}`: a number has 0 to 8 bytes, and a byte array more than 8"))
                    .line(place, report.source.text(place).unwrap_or_default().trim_start_matches(['-', ' '])),
            );
            return None;
        }
        match self.compute(expression, place, found, widths, report)? {
            Computed::Variable(expr) => Some(Width::Variable(expr)),
            Computed::Constant(n) => match (u8::try_from(n), u32::try_from(n)) {
                (Ok(small), _) if small <= 8 => Some(Width::Number(small)),
                (_, Ok(array)) => {
                    self.large(array, place, report);
                    Some(Width::Array(array))
                }
                _ => {
                    report.add(
                        Draft::new(Code::WidthRange, place, "a byte array cannot exceed 4294967295 bytes")
                            .help(format!(
                                "for an array up to the end, write `{LINE}`; for one whose length is in a field, write \
                                 `{0}.width = length.value;`",
                                self.raw.name
                            ))
                            .line(place, "rest"),
                    );
                    None
                }
            },
        }
    }

    /// Resolves `bytes N`.
    fn array(&self, int: ast::Int, place: Span, report: &mut Reporter) -> Option<Width> {
        let length = int.natural().and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        if length.is_none() {
            report.add(
                Draft::new(Code::WidthRange, int.span.or(place), "a byte array must have 1 to 4294967295 bytes")
                    .help(format!(
                        "for bytes up to a terminator, write `{0}.width = until 0;`; for bytes after their length, write \
                         `{0}: text`",
                        self.raw.name
                    )),
            );
        }
        let length = length?;
        self.large(length, place, report);
        Some(Width::Array(length))
    }

    /// Warns about an array that does not fit in a chunk (spec 5.2).
    fn large(&self, bytes: u32, place: Span, report: &mut Reporter) {
        if bytes > MOST_IN_A_CHUNK {
            let name = self.raw.name;
            report.add(
                Draft::new(
                    Code::LargeArray,
                    place,
                    format!("`{name}` ({bytes} bytes in every record) does not fit in a chunk"),
                )
                .label("a chunk holds at most 67108864 bytes")
                .help(format!(
                    "for a number, use 0 to 8; for an array whose length is in a field, write `{name}.width = \
                     length.value;`"
                )),
            );
        }
    }

    fn compute(
        &self,
        expression: &ast::Expression,
        place: Span,
        found: &Found,
        widths: &[Option<Width>],
        report: &mut Reporter,
    ) -> Option<Computed> {
        let frames = found.frame.map_or_else(|| self.layout.frames_up(self.raw).collect(), |frame| vec![frame]);
        self.expression(expression, place, frames, widths, report)
    }

    fn expression(
        &self,
        expression: &ast::Expression,
        place: Span,
        frames: Vec<usize>,
        widths: &[Option<Width>],
        report: &mut Reporter,
    ) -> Option<Computed> {
        let (layout, model, repeats) = (self.layout, self.model, self.raw.repeats.as_slice());
        let context = Context { layout, leaf: self.index, repeats, widths, frames, model };
        self.evaluated(expression, place, &context, report)
    }

    /// Resolves an expression. If it contains a mistake, reports the mistake and returns `None`.
    fn evaluated(
        &self,
        expression: &ast::Expression,
        place: Span,
        context: &Context,
        report: &mut Reporter,
    ) -> Option<Computed> {
        match expression::compute(expression, place, context, report.source) {
            Ok(computed) => {
                divides_by_zero(&computed, place, report);
                Some(computed)
            }
            Err(Failure::Mistake(draft)) => {
                report.add(*draft);
                None
            }
            Err(Failure::Silent) => None,
        }
    }

    /// Resolves `value`, which makes the leaf a constant (spec 3.2).
    fn constant(&self, leaf: &Leaf, report: &mut Reporter) -> Option<u64> {
        let found = self.lookup.find(Property::Value)?;
        let Value::Expression(expression) = &found.setting.value else { return None };
        let place = found.setting.value_span.or(self.raw.site);
        let value = match expression.as_int() {
            Some(int) => Some(int.bits()),
            None => expression::constant(expression, self.model.tag_width),
        };
        let Some(value) = value else {
            report.add(
                Draft::new(Code::ValueKind, place, "a constant must be an integer")
                    .help(format!("a computed value is not a constant: remove `{LINE}`"))
                    .quote(place),
            );
            return None;
        };
        constants::check(leaf, value, place, report).then_some(value)
    }

    /// Resolves `section`, which declares that the bytes are records of a section (spec 3.7). Returns the location of
    /// the setting.
    fn section(&self, leaf: &mut Leaf, broken: bool, report: &mut Reporter) -> Option<Span> {
        let found = self.lookup.find(Property::Section)?;
        let Value::Expression(expression) = &found.setting.value else { return None };
        let place = found.setting.value_span.or(self.raw.site);
        let number = expression::constant(expression, None).and_then(|n| u8::try_from(n).ok()).filter(|n| *n != 0);
        let draft = match number {
            _ if leaf.is_numeric() && !broken => Draft::new(
                Code::NestedSection,
                found.setting.target().or(self.raw.site),
                format!("`{}` is a number and cannot have a `section`", leaf.name),
            )
            .also(self.raw.site, "the field")
            .help({
                let name = self.raw.name;
                let scope = self.model.scopes.iter().find(|scope| number.is_some() && scope.number == number);
                let bits = if let Width::Number(bytes @ 1..) = leaf.width { bytes * 8 } else { 16 };
                match (scope.is_some_and(|scope| scope.stream.is_some()), number) {
                    (true, Some(number)) => {
                        format!("for an offset into section {number}, write `{name}: u{bits} sectionOffset {number}` instead")
                    }
                    _ => format!("for bytes that are records of the section, write `{name}: bytes n.value` with a length `n`"),
                }
            }),
            None => Draft::new(Code::NestedSection, place, "a section number must be 1 to 255")
                .help(format!("write `{LINE}` with the number of the section"))
                .line(place, self.model.scopes.iter().filter_map(|s| s.number).next_back().unwrap_or(2).to_string()),
            Some(number) => {
                leaf.section = Some(number);
                return Some(place);
            }
        };
        report.add(draft);
        None
    }

    fn no_interpretation(&self, width: Option<&Option<Width>>, report: &mut Reporter) {
        let name = self.raw.name;
        let (nor, statement) = match width {
            None => ("width and no ", format!("{name}.width = 4; ")),
            Some(_) => ("", String::new()),
        };
        let message = format!("field `{name}` has no {nor}interpretation");
        let statement = format!("{statement}{name}.interpretation = none;");
        if let Some(draft) = self.misspelt(Code::NoInterpretation, Property::Interpretation, &message) {
            return report.add(draft);
        }
        if let Some(draft) = width.is_none().then(|| self.other_notation()).flatten() {
            return report.add(draft);
        }
        let scope = self.model.records.get(self.layout.record).map_or(0, |record| record.scope);
        let elsewhere =
            || types::elsewhere(self.model, scope, Code::NoInterpretation, name, self.raw.site, report.source);
        if let Some(draft) = width.is_none().then(elsewhere).flatten() {
            return report.add(draft);
        }
        let kind = match width {
            None => Some("u32".to_owned()),
            Some(Some(Width::Number(bytes @ 1..=8))) => Some(format!("u{}", bytes * 8)),
            Some(Some(Width::Array(bytes))) => Some(format!("bytes {bytes}")),
            Some(_) => None,
        };
        report.add(
            Draft::new(Code::NoInterpretation, self.raw.site, message)
                .help(match kind {
                    Some(kind) if width.is_some() => {
                        format!(
                            "add `{statement}`, or replace the width by the type `{name}: {kind}` in the field list"
                        )
                    }
                    Some(kind) => format!("write `{name}: {kind}` in the field list, or add `{statement}`"),
                    None => format!("add `{statement}`"),
                })
                .maybe_propose(self.block(), || format!(" {statement}")),
        );
    }

    /// Reports a field without a width that is described in another notation, or whose name is a word of another
    /// notation.
    fn other_notation(&self) -> Option<Draft> {
        let name = self.raw.name;
        let draft = |place, message: String| Draft::new(Code::NoInterpretation, place, message);
        let record = self.layout.frames.get(self.raw.frame).and_then(|frame| self.model.records.get(frame.record))?;
        if foreign::REST_NAMES.contains(&name) && counted_by(&record.ast.fields, name).is_some() {
            let message = format!("`{name}` is read as the name of a count, which has no width and no interpretation");
            let help = format!("write `{LINE}` for items up to the end, or list a count first: `{name}: u16`");
            return Some(draft(self.raw.site, message).help(help).line(self.raw.site, "(rest)"));
        }
        if TYPES.contains(&name)
            && let Some((own, item)) = own_of(&record.ast.fields, name)
        {
            let message = format!("`{name}` is a type, and a count is a field");
            let is_field = |field: &ast::FieldItem| matches!(field, ast::FieldItem::Name(field) if field.text == item);
            if matches!(&record.ast.fields, ast::FieldItem::Group(fields) if fields.iter().any(is_field)) {
                return Some(draft(self.raw.site, message).help(format!("write `{item}*{own}: {name}`")));
            }
            let item = match TYPES.contains(&item) {
                true => format!("{}: {item}", own.strip_suffix('s').unwrap_or("item")),
                false => item.to_owned(),
            };
            return Some(draft(self.raw.site, message).help(format!("write `{own}: {name}, {own}*{item}`")));
        }
        if TYPES.contains(&name) {
            let message = format!("`{name}` is a type, and the field has no name");
            let is_only = matches!(&record.ast.fields, ast::FieldItem::Name(_));
            let record = record.name();
            return Some(draft(self.raw.site, message).help(match is_only {
                true => format!("write `type {record}: {name};` to define a type, or `{record}: (size: {name})`"),
                false => format!("write `size: {name}`"),
            }));
        }
        if let Some(kind) = foreign::type_name(name).filter(|_| matches!(&record.ast.fields, ast::FieldItem::Name(_))) {
            let message = format!("`{name}` is not a type of the language, and the field has no name");
            let record = record.name();
            let help = format!("write `type {record}: {kind};` to define a type, or `{record}: (size: {kind})`");
            return Some(draft(self.raw.site, message).help(help));
        }
        let of_name = |known: &[&str]| known.iter().find_map(|known| self.lookup.annotation(known));
        if let Some(setting) = of_name(foreign::SIZE_NAMES) {
            let kind = match &setting.value {
                Value::Expression(width) => match width.as_int().and_then(|int| int.natural()) {
                    Some(bytes @ 1..=8) => format!("u{}", bytes * 8),
                    Some(bytes) => format!("bytes {bytes}"),
                    None => format!("bytes {}", setting.annotation.as_deref().unwrap_or("n.value")),
                },
                Value::Word(REST) => return None,
                Value::Word(word) => format!("bytes {word}.value"),
                _ => return None,
            };
            let message =
                format!("field `{name}` has no width and no interpretation: `{}` has no effect", setting.name.text);
            let draft = draft(setting.name.span, message).also(self.raw.site, "the field");
            return Some(draft.help(format!("write `{name}: {kind}` in the field list")));
        }
        if let Some(setting) = of_name(&["type", "kind", "is", "datatype"])
            && let Value::Word(word) = &setting.value
        {
            let kind = foreign::type_name(word).unwrap_or(word);
            let message =
                format!("field `{name}` has no width and no interpretation: `{}` has no effect", setting.name.text);
            let draft = draft(setting.name.span, message).also(self.raw.site, "the field");
            return Some(draft.help(format!("write `{name}: {kind}` in the field list")));
        }
        let scopes = [self.model.records.get(self.layout.record).map_or(0, |record| record.scope), 0];
        let types = scopes.into_iter().filter_map(|scope| self.model.scopes.get(scope)).flat_map(|s| s.types.keys());
        let near = nearest(name, types.copied())?;
        let message = format!("field `{name}` has no width and no interpretation");
        Some(draft(self.raw.site, message).help(format!("did you mean the type `{near}`? write `{name}: {near}`")))
    }

    /// Returns the start of the block of the record that lists the leaf.
    fn block(&self) -> Option<Span> {
        let frame = self.layout.frames.get(self.raw.frame)?;
        self.model.records.get(frame.record)?.ast.brace.map(|brace| Span::at(brace.end()))
    }

    /// Creates a diagnostic for a missing property of the leaf if an annotation is probably a misspelling of the
    /// property.
    fn misspelt(&self, code: Code, property: Property, message: &str) -> Option<Draft> {
        let setting = self.lookup.misspelt(property)?;
        Some(setting.misspelt(code, message.to_owned()).also(self.raw.site, "the field"))
    }

    /// Creates a diagnostic for a missing width if an annotation is probably the width in another notation.
    fn other_width(&self, message: &str) -> Option<Draft> {
        let names = foreign::SIZE_NAMES.iter().filter(|name| !matches!(**name, "bits" | "count"));
        let setting = names.filter_map(|name| self.lookup.annotation(name)).next()?;
        let place = setting.name.span;
        let message = format!("{message}: `{}` has no effect", setting.name.text);
        Some(Draft::new(Code::NoWidth, place, message).also(self.raw.site, "the field").write(place, "width"))
    }

    fn no_width(&self, report: &mut Reporter) {
        let name = self.raw.name;
        let message = format!("field `{name}` has no width");
        let misspelt = self.misspelt(Code::NoWidth, Property::Width, &message).or_else(|| self.other_width(&message));
        report.add(misspelt.unwrap_or_else(|| {
            let word = self.lookup.find(Property::Interpretation).and_then(|f| report.source.text(f.setting.value_span));
            let help = match word.filter(|word| *word != "none" && word.len() < 60) {
                Some(word) => format!("write `{name}: u32 {word}` in the field list, or add `{name}.width = 4;`"),
                None => format!(
                    "write `{name}: u32` in the field list instead of the interpretation `none`, or add `{name}.width = 4;`"
                ),
            };
            Draft::new(Code::NoWidth, self.raw.site, message)
                .help(help)
                .maybe_propose(self.block(), || format!(" {name}.width = 4;"))
        }));
    }

    fn array_not_none(&self, place: Span, width: Option<&Found>, report: &mut Reporter) {
        let name = self.raw.name;
        if let Some((found, bytes)) = width.and_then(|found| Some((found, shown::in_bits(found.setting)?))) {
            let word = self.lookup.find(Property::Interpretation).map(|found| match &found.setting.value {
                Value::Interpretation(interpretation) => interpretation.word.name(),
                _ => "",
            });
            let message = format!(
                "`{name}` has {} bytes: a width is in bytes, and over 8 the field is a byte array, which cannot have \
                 `{}`",
                bytes * 8,
                word.unwrap_or_default()
            );
            let path = found.setting.path_text();
            let help = format!(
                "for {} bits, write `{path}.width = {bytes};`; for an array, `{path}.interpretation = none;`",
                bytes * 8
            );
            let span = found.setting.value_span;
            let draft = Draft::new(Code::ArrayInterpretation, span, message);
            return report.add(draft.also(place, "this interpretation requires a number").help(help));
        }
        let width = width.map_or(Span::PREDEFINED, |f| f.setting.value_span);
        report.add(
            Draft::new(
                Code::ArrayInterpretation,
                place,
                format!("`{}` is a byte array, so its interpretation must be `none`", self.raw.name),
            )
            .label("expected `none`")
            .also(width, "this width makes the field a byte array")
            .help(format!("write `{LINE}`: only fields of up to 8 bytes are numbers"))
            .line(place, "none"),
        );
    }

    fn sharing(&self, leaf: &Leaf, interpretation: Option<&Found>) -> Sharing {
        let uses_previous = leaf.interpretation.initial().is_some();
        let property = interpretation.filter(|f| uses_previous && f.frame.is_none()).map(|f| f.setting.target());
        let previous = self.lookup.find(Property::Previous);
        let word = match previous.as_ref().map(|f| &f.setting.value) {
            Some(Value::Word(word)) => Some(*word),
            _ => None,
        };
        match (word, property) {
            (Some("own"), _) => Sharing::Own,
            (Some("shared"), Some(span)) => Sharing::NameAndProperty(span),
            (Some("shared"), None) => Sharing::Name,
            (_, Some(span)) => Sharing::Property(span),
            _ => Sharing::Alone,
        }
    }
}

/// Returns the name and the item of the named repetition with a count of this name.
fn own_of<'i>(list: &'i ast::FieldItem<'i>, name: &str) -> Option<(&'i str, &'i str)> {
    match list {
        ast::FieldItem::Name(_) => None,
        ast::FieldItem::Group(items) => items.iter().find_map(|item| own_of(item, name)),
        ast::FieldItem::Repeat { own: Some(own), count: ast::Count::Name(count), body, .. } if count.text == name => {
            if let ast::FieldItem::Name(item) = body.as_ref() {
                Some((own.text, item.text))
            } else {
                None
            }
        }
        ast::FieldItem::Repeat { body, .. } => own_of(body, name),
    }
}

/// Returns the item of the repetition with a count of this name in a field list.
fn counted_by<'i>(list: &'i ast::FieldItem<'i>, name: &str) -> Option<&'i ast::FieldItem<'i>> {
    match list {
        ast::FieldItem::Name(_) => None,
        ast::FieldItem::Group(items) => items.iter().find_map(|item| counted_by(item, name)),
        ast::FieldItem::Repeat { count: ast::Count::Name(count), body, .. } if count.text == name => Some(body),
        ast::FieldItem::Repeat { body, .. } => counted_by(body, name),
    }
}

/// Returns the reference of an interpretation to a field in the header of a file.
fn header<'s>(setting: &'s Setting) -> Option<&'s ast::Reference<'s>> {
    match &setting.value {
        Value::Interpretation(ast::Interpretation { word: InterpretationWord::Default, arguments }) => {
            match arguments.as_slice() {
                [ast::Argument::Base(reference)] => Some(reference),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Names the leaf of a computed count after its expression. `leaves` are the leaves of the record resolved so far.
fn name_count(leaf: &mut Leaf, index: usize, expression: Expr, leaves: &[ResolvedLeaf]) {
    let path = |id: LeafId| leaves.get(usize::from(id.0)).map_or_else(String::new, |l| l.leaf.path.join("."));
    leaf.name = format!("({})", expression_text(&expression, path));
    // If several leaves have the same expression, their keys are numbered, like the keys of fields with the same name.
    let same = |l: &&ResolvedLeaf| {
        l.leaf.computed.is_some()
            && l.leaf.name == leaf.name
            && l.leaf.path.split_last().is_some_and(|p| p.1 == leaf.path)
    };
    leaf.key = match leaves.iter().take(index).filter(same).count() {
        0 => leaf.name.clone(),
        earlier => format!("{}_{}", leaf.name, earlier + 1),
    };
    leaf.path.push(leaf.key.clone());
    leaf.computed = Some(expression);
}

/// Warns about an expression that divides by the constant 0.
fn divides_by_zero(computed: &Computed, place: Span, report: &mut Reporter) {
    let Computed::Variable(Expr(ops)) = computed else { return };
    if ops.windows(2).any(|pair| matches!(pair, [ExprOp::Push(0), ExprOp::Div | ExprOp::Rem])) {
        report.add(
            Draft::new(Code::DivisionByZero, place, "this expression divides by 0, so every record is an error")
                .help(format!("divide by a number other than 0 in `{LINE}`"))
                .quote(place),
        );
    }
}

/// Resolves `until N`.
fn until(int: ast::Int, place: Span, report: &mut Reporter) -> Option<Width> {
    let end = int.natural().and_then(|n| u8::try_from(n).ok());
    if end.is_none() {
        report.add(
            Draft::new(Code::WidthRange, int.span.or(place), "the argument of `until` must be 0 to 255")
                .help(format!("write `{LINE}` for a line, or `until 0` for a C string"))
                .line(int.span.or(place), "10"),
        );
    }
    end.map(Width::Until)
}
