//! Resolves the models of predicted leaves: `x.interpretation = predicted REVISION MODEL n;`.
//!
//! [`check`] checks a model once, without its fields; [`resolve`] looks up the fields for each leaf.

use super::bases::PREDEFINED_RECORDS;
use super::layout::{Layout, RawLeaf};
use super::lines;
use super::model::{Model, VFIELD, Visible};
use crate::ast::{self, FieldPath, Int, Name, PredictorKind as Word};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::schema::{self, HeapRole, LeafId, MODEL_REVISION, ModelKind, Predictor, PredictorKind, RecordId};
use crate::span::{Source, Span};

/// Maximum number of values of `lastValue`.
const MOST_VALUES: u64 = 16;
/// Maximum order of a context.
const MOST_ORDER: u64 = 3;
/// Maximum number of candidates of a model.
const MOST_CANDIDATES: u64 = 64;

/// Number of bytes charged to the budget for a reference. This is more than the reference's actual size, because the
/// budget also limits the time spent on lookups among 255 leaves.
const REFERENCE: usize = 1024;

/// The model of a leaf.
pub(super) struct Predicted {
    pub(super) model: schema::Model,
    /// The leaves that the model refers to, with the locations of the references. They are checked after all widths are
    /// known.
    pub(super) references: Vec<(RecordId, LeafId, Span)>,
}

impl Predicted {
    /// Returns the size in bytes.
    pub(super) fn size(&self) -> usize {
        let predictors = if let ModelKind::Values(predictors) = &self.model.kind { predictors.len() } else { 0 };
        64 + predictors * size_of::<Predictor>() + self.references.len() * REFERENCE
    }
}

/// The predicted leaf.
pub(super) struct Place<'p, 'a> {
    pub(super) model: &'p Model<'a>,
    pub(super) layouts: &'p [Layout<'a>],
    pub(super) layout: &'p Layout<'a>,
    /// The leaf's index.
    pub(super) leaf: usize,
    /// Frames of the leaf's record at which path lookup may start, in order of preference.
    pub(super) frames: Vec<usize>,
}

/// Checks the parts of a model that do not depend on a leaf: the revision, the arguments, the number of candidates, and
/// that `heap` is not combined with other predictors.
/// `line` returns the line to write with an inserted text.
pub(super) fn check(model: &ast::Model, line: impl Fn(&str) -> Option<String>, report: &mut Reporter) {
    revision(model, line, report);
    let mut candidates: u64 = 0;
    for predictor in &model.predictors {
        candidates = candidates.saturating_add(match predictor.kind {
            Word::LastValue(n) => argument(n, "`lastValue` keeps 1 to 16 values", MOST_VALUES, report),
            Word::Stride => 1,
            Word::Fcm(n) => 2 * argument(n, "the order of `fcm` is 1 to 3", MOST_ORDER, report).min(1),
            Word::Dfcm(n) => 2 * argument(n, "the order of `dfcm` is 1 to 3", MOST_ORDER, report).min(1),
            Word::Allocated(_) | Word::Freed | Word::Used => 0,
        });
    }
    if candidates > MOST_CANDIDATES {
        report.add(
            Draft::new(Code::ManyCandidates, model.span, format!("this model has {candidates} candidates"))
                .label("a model may have at most 64")
                .help(
                    "remove predictors: `lastValue n` has n candidates, `stride` has 1, and `fcm` and `dfcm` have 2 \
                     each",
                ),
        );
    }
    let others = model.predictors.len() > 1;
    if let Some(heap) = model.predictors.iter().find(|p| others && p.kind.is_heap()) {
        report.add(
            Draft::new(Code::HeapAlone, heap.span, "`heap` cannot be combined with other predictors")
                .help(format!("write `{LINE}`: the heap model has its own candidates"))
                .line(model.span, report.source.text(heap.span).unwrap_or("heap freed")),
        );
    }
}

/// Reports an unknown model revision, because decoding with different rules would produce wrong values.
fn revision(model: &ast::Model, line: impl Fn(&str) -> Option<String>, report: &mut Reporter) {
    let heap = model.predictors.iter().any(|predictor| predictor.kind.is_heap());
    let of = if heap { "the heap model" } else { "the value models" };
    let knows = format!("this version supports revision {MODEL_REVISION} of {of}");
    let draft = match model.revision {
        Some(known) if !known.negative && known.magnitude == MODEL_REVISION => return,
        Some(n) => {
            let sign = if n.negative { "-" } else { "" };
            let message = format!("revision {sign}{} of {of} is not supported", n.magnitude);
            Draft::new(Code::ModelRevision, n.span, message)
                .help(format!("write `{LINE}`, or, if the number is correct, use a later version: {knows}"))
                .line(n.span, MODEL_REVISION.to_string())
        }
        None => Draft::new(
            Code::ModelRevision,
            model.span,
            format!("`predicted` needs the revision of its models, `{MODEL_REVISION}`, before the model"),
        )
        .help(format!(
            "write `{}`; a trace from before version 1.0 has no revision and follows other rules, so record it again or \
             write it again from its source",
            line(&format!("{MODEL_REVISION} ")).unwrap_or_else(|| format!("predicted {MODEL_REVISION} ..."))
        ))
        .replace(Span::at(model.span.start()), format!("{MODEL_REVISION} ")),
    };
    report.add(draft);
}

/// Returns the argument if it is in range. Otherwise, reports a mistake and returns 0.
fn argument(n: Int, rule: &str, most: u64, report: &mut Reporter) -> u64 {
    if let Some(n) = n.natural().filter(|n| (1..=most).contains(n)) {
        return n;
    }
    let sign = if n.negative { "-" } else { "" };
    report.add(
        Draft::new(Code::PredictorRange, n.span, format!("{rule}, not {sign}{}", n.magnitude))
            .help(format!("use a number from 1 to {most}, as in `{LINE}`"))
            .line(n.span, if n.negative || n.magnitude == 0 { "1".to_owned() } else { most.to_string() }),
    );
    0
}

/// Returns the model of a leaf, or `None` if the model contains a mistake. The mistake is reported here, by [`check`],
/// or together with the stream sections.
pub(super) fn resolve(place: &Place, model: &ast::Model, section: Int, report: &mut Reporter) -> Option<Predicted> {
    // More predictors would exceed the candidate limit, and each leaf of a hostile text would copy them.
    let sound = u64::try_from(model.predictors.len()).is_ok_and(|n| n <= MOST_CANDIDATES);
    if !place.may_be_predicted(model, report) || !sound {
        return None;
    }
    let mut references = Vec::new();
    let mut leaf = |path: &FieldPath, report: &mut Reporter| {
        let (record, leaf) = place.find(path, report)?;
        references.push((record, leaf, path.span));
        Some((record, leaf))
    };
    let mut values = Vec::new();
    let mut heap = None;
    let mut complete = true;
    for predictor in &model.predictors {
        let small = |n: Int| n.natural().and_then(|n| u8::try_from(n).ok());
        let by = predictor.by.as_ref().map(|path| leaf(path, report));
        let kind = match &predictor.kind {
            Word::LastValue(n) => small(*n).map(PredictorKind::LastValue),
            Word::Stride => Some(PredictorKind::Stride),
            Word::Fcm(n) => small(*n).map(PredictorKind::Fcm),
            Word::Dfcm(n) => small(*n).map(PredictorKind::Dfcm),
            Word::Allocated(size) => {
                heap = leaf(size, report).map(|size| (HeapRole::Allocated { size }, by.flatten()));
                complete &= heap.is_some();
                None
            }
            Word::Freed | Word::Used => {
                let role = if matches!(predictor.kind, Word::Freed) { HeapRole::Freed } else { HeapRole::Used };
                heap = Some((role, by.flatten()));
                None
            }
        };
        complete &= by != Some(None) && (kind.is_some() || predictor.kind.is_heap());
        values.extend(kind.map(|kind| Predictor { kind, by: by.flatten() }));
    }
    let section = section.natural().and_then(|n| u8::try_from(n).ok()).filter(|_| complete)?;
    let kind = match heap {
        Some((role, by)) => ModelKind::Heap { role, by },
        None => ModelKind::Values(values),
    };
    Some(Predicted { model: schema::Model { section, kind }, references })
}

impl Place<'_, '_> {
    fn raw(&self) -> Option<&RawLeaf<'_>> {
        self.layout.leaves.get(self.leaf)
    }

    /// Checks that a leaf is neither in a predefined record nor in the element of a stream section, because an element
    /// is itself a source of values.
    fn may_be_predicted(&self, model: &ast::Model, report: &mut Reporter) -> bool {
        let Some(raw) = self.raw() else { return false };
        let tagged = self.model.records.get(self.layout.record).is_some_and(|r| r.tagged);
        let predefined = self.layout.frames.get(raw.frame).is_some_and(|f| f.record == VFIELD);
        let (message, remark) = match (tagged, predefined) {
            (true, false) => return true,
            (false, _) => ("a field of a stream section's element cannot be predicted", "this field is in an element"),
            (true, true) => ("a field of a predefined record cannot be predicted", "the field is in this `vfield`"),
        };
        report.add(
            Draft::new(Code::PredictedPlace, model.span, message).also(raw.site, remark).help(format!(
                "only fields of tagged records can be predicted: write `{0}: u32`, or `{0}: u32 delta` for small differences",
                raw.name
            )),
        );
        false
    }

    /// Finds an earlier leaf of the same record, or a leaf of another record.
    fn find(&self, path: &FieldPath, report: &mut Reporter) -> Option<(RecordId, LeafId)> {
        // Do not repeat a failed lookup for every leaf with the same property.
        if report.has_reported(&[Code::PredictorField, Code::ForwardReference, Code::OutOfRepetition], path.span) {
            return None;
        }
        let found = match self.own(path) {
            Err(Code::PredictorField) => self.other(path),
            own => own.map(|leaf| (self.layout.record, leaf)),
        };
        let (record, leaf) = found.map_err(|code| report.add(self.not_found(code, path, report.source))).ok()?;
        let record = self.layouts.iter().position(|l| l.record == record)? + PREDEFINED_RECORDS;
        Some((RecordId(u32::try_from(record).ok()?), LeafId(u8::try_from(leaf).ok()?)))
    }

    /// Returns the nearest earlier leaf that the path can refer to, or the rule that forbids the reference. If the path
    /// does not match from any of the frames and consists of a single name, it denotes the nearest leaf with that name.
    fn own(&self, path: &FieldPath) -> Result<usize, Code> {
        let from = |frame: usize| self.nearest(|leaf| self.layout.has_path(leaf, frame, &path.names));
        let mut found = self.frames.iter().map(|frame| from(*frame)).find(|f| *f != Err(Code::PredictorField));
        if let (None, [only]) = (&found, path.names.as_slice()) {
            found = Some(self.nearest(|leaf| leaf.name == only.text));
        }
        found.unwrap_or(Err(Code::PredictorField))
    }

    fn nearest(&self, matches: impl Fn(&RawLeaf) -> bool) -> Result<usize, Code> {
        self.layout.nearest(self.leaf, Code::PredictorField, matches)
    }

    /// Returns the leaf of a path `RECORD.FIELD`. The record must be in the same section or global, and the leaf is
    /// found by its path or as the first leaf with that name. The tag is excluded. If the record is the predicted
    /// leaf's own record, the field must be an earlier leaf.
    fn other(&self, path: &FieldPath) -> Result<(usize, usize), Code> {
        let unknown = Err(Code::PredictorField);
        let Some((record, path)) = path.names.split_first().filter(|(_, path)| !path.is_empty()) else {
            return unknown;
        };
        let scope = self.model.records.get(self.layout.record).map_or(0, |r| r.scope);
        let Visible::Record(record) = self.model.visible(scope, record.text) else { return unknown };
        let exact = |layout: &Layout, leaf: &RawLeaf| layout.has_path(leaf, 0, path);
        let named = |leaf: &RawLeaf| matches!(path, [only] if only.text == leaf.name);
        if record == self.layout.record {
            let found = match self.nearest(|leaf| exact(self.layout, leaf)) {
                Err(Code::PredictorField) => self.nearest(named),
                found => found,
            };
            return found.map(|leaf| (record, leaf));
        }
        let layout = self.layouts.iter().find(|l| l.record == record && record != VFIELD);
        let layout = layout.ok_or(Code::PredictorField)?;
        let leaves = &layout.leaves;
        let index = leaves.iter().position(|l| exact(layout, l)).or_else(|| leaves.iter().position(named));
        let index = index.filter(|i| leaves.get(*i).is_some_and(|l| !l.is_tag));
        index.map(|leaf| (record, leaf)).ok_or(Code::PredictorField)
    }

    fn not_found(&self, code: Code, path: &FieldPath, source: &Source) -> Draft {
        let text = path.text();
        match code {
            Code::ForwardReference => {
                let name = path.names.last().map(|name| name.text);
                let later = self.layout.leaves.iter().skip(self.leaf + 1);
                let later = later.filter(|leaf| leaf.frame == 0).find(|leaf| Some(leaf.name) == name);
                let record = self.model.records.get(self.layout.record).map(|record| record.ast);
                let moved = later.zip(self.raw()).zip(record);
                let line = moved.and_then(|((leaf, raw), ast)| lines::moved(source, ast, leaf.site, raw.site));
                Draft::new(code, path.span, format!("`{text}` does not precede the predicted field")).help(match line {
                    Some(line) => format!("write `{line}`: a predictor may refer only to earlier fields"),
                    None => match self.raw().map(|raw| raw.name).filter(|own| Some(*own) != name) {
                        Some(own) => {
                            format!("list `{text}` before `{own}`: a predictor may refer only to earlier fields")
                        }
                        None => format!("write an earlier field than `{text}`: a field cannot predict itself"),
                    },
                })
            }
            Code::OutOfRepetition => {
                Draft::new(code, path.span, format!("`{text}` is in a repetition that ends before the predicted field"))
                    .help(format!("refer to a field outside repetitions or of the same item, as in `{LINE}`"))
                    .line(path.span, self.numbers().next().unwrap_or("FIELD"))
            }
            _ => {
                let message = match path.names.as_slice() {
                    [_] => format!("this record has no field `{text}` before the predicted field"),
                    _ => format!("no record of this section has a field `{text}`"),
                };
                let draft = Draft::new(code, path.span, message)
                    .help(format!(
                        "use an earlier field of the record, or of another record in the section, as in `{LINE}`"
                    ))
                    .line(path.span, self.numbers().next().unwrap_or("RECORD.FIELD"));
                match path.names.as_slice() {
                    [name] => {
                        let known = self.layout.leaves.iter().take(self.leaf).map(|l| l.name);
                        draft.did_you_mean(name.span, name.text, known)
                    }
                    [record, .., name] => self.similar_field(draft, record, name),
                    [] => draft,
                }
            }
        }
    }

    /// Returns the earlier fields outside of repetitions and other records, nearest first.
    fn numbers(&self) -> impl Iterator<Item = &str> {
        let earlier = self.layout.leaves.iter().take(self.leaf).rev();
        earlier.filter(|leaf| !leaf.is_tag && leaf.repeats.is_empty() && leaf.frame == 0).map(|leaf| leaf.name)
    }

    /// Suggests names similar to `record.name`.
    fn similar_field(&self, draft: Draft, record: &Name, name: &Name) -> Draft {
        let scope = self.model.records.get(self.layout.record).map_or(0, |r| r.scope);
        let layout = match self.model.visible(scope, record.text) {
            Visible::Record(index) => self.layouts.iter().find(|l| l.record == index),
            _ => None,
        };
        let Some(layout) = layout else {
            let tops = self.model.top_records(scope);
            let names = tops.iter().filter_map(|r| self.model.records.get(*r)).map(|r| r.ast.name.text);
            return draft.did_you_mean(record.span, record.text, names);
        };
        draft.did_you_mean(name.span, name.text, layout.leaves.iter().filter(|l| !l.is_tag).map(|l| l.name))
    }
}
