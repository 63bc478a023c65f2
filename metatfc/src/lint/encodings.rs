//! Finds widths and interpretations that are wasteful for given traces. The planner proposes alternatives, and their
//! savings are measured by writing the traces.

use super::declared::{Declared, Encoding, one, words};
use super::measure::{Size, Source, Written};
use super::{LintArgs, Saves, Sizes, Suggested, Suggestions, Together};
use crate::failure::{Failure, Result};
use crate::input;
use metatf::dynamic::{Schema, Trace};
use metatf::format::{Interpretation, LeafKind, METADATA};
use metatf::reader::Event;
use metatf_cli::Progress;
use metatf_page::{Note, Value};
use metatf_parser::index::Index;
use metatf_parser::{Allowed, Diagnostic, Property, Rule, Suggestion};
use metatf_tools::recode::{self, LeafSurvey, Spent};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of interpretations to try per field, starting with the most frequent in the plan.
const MOST_KINDS: usize = 3;

/// A DTD, as its name on the command line, its name in messages, its text, and the index of the text.
type Named<'d> = (&'d Path, &'d str, &'d [u8], &'d Index);

pub(super) fn check(
    (file, name, text, index): Named<'_>,
    args: &LintArgs,
    rules: &BTreeSet<Rule>,
    suggestions: &mut Suggestions,
) -> Result<()> {
    let text = std::str::from_utf8(text).map_err(|e| Failure::Failed(format!("{name}: {e}")))?;
    let schema = schema(name, text)?;
    let threads = args.threads.number();
    let sources = args.traces.iter().map(|trace| Source::open(trace, file, threads)).collect::<Result<Vec<_>>>()?;
    let (progress, allowed) = (Progress::new("records"), Allowed::of(text.as_bytes()));
    let mut linter = Linter { name, text, index, sources, progress, allowed, now: Size::default() };
    let (mut surveys, mut counts) = (Vec::new(), vec![0; schema.format.records.len()]);
    for at in 0..linter.sources.len() {
        let (written, size) = linter.write_one(at, &schema)?;
        linter.now += size;
        surveys.extend(linter.survey(&written, &schema)?);
        if rules.contains(&Rule::UnusedRecord) {
            count(&written, &schema, &mut counts)?;
        }
    }
    if rules.contains(&Rule::UnusedRecord) {
        suggestions.list.extend(unused(&linter, &schema, &counts));
    }
    let mut together = None;
    if rules.contains(&Rule::WastefulWidth) || rules.contains(&Rule::WastefulInterpretation) {
        let wasteful = linter.wasteful(&schema, &surveys, args, rules)?;
        together = linter.together(&wasteful)?;
        suggestions.list.extend(wasteful);
    }
    let traces = args.traces.iter().map(|trace| input::name(trace).into_owned()).collect();
    suggestions.sizes = Some(Sizes { traces, size: linter.now, together });
    Ok(())
}

fn schema(name: &str, text: &str) -> Result<Schema> {
    let parsed = metatf_parser::parse(name, text.as_bytes());
    parsed.dtd.map(Schema::new).ok_or_else(|| Failure::Failed(format!("{name}: the DTD has errors")))
}

/// Counts the records of each type.
fn count(written: &Written, schema: &Schema, counts: &mut [u64]) -> Result<()> {
    let mut trace = Trace::new(schema.clone(), written.reader()?).map_err(Failure::temporary_file)?;
    while let Some(event) = trace.reader_mut().next_event().map_err(Failure::temporary_file)? {
        if let Event::Record(at) | Event::Element(at, _) = event
            && let Some(count) = counts.get_mut(usize::from(at.record))
        {
            *count += 1;
        }
    }
    Ok(())
}

/// Finds the tagged records that no trace contains. In the index, the records of the format follow the predefined
/// records.
fn unused(linter: &Linter<'_>, schema: &Schema, counts: &[u64]) -> Vec<Suggested> {
    let first = usize::from(METADATA) + 1;
    let records = schema.dtd.records.iter().zip(counts).skip(first).zip(&linter.index.records);
    let unused = records.filter(|((record, count), _)| record.tag.is_some() && **count == 0);
    let found = unused.map(|((record, _), laid_out)| {
        let message = format!("no trace contains a record `{}`", record.name);
        let place = Declared::label(linter.text, laid_out.span.clone());
        Diagnostic::suggestion(Rule::UnusedRecord, place, message, "remove the record if no program writes it")
    });
    let allowed = found.filter(|diagnostic| !linter.allowed.allows(diagnostic));
    allowed.map(|diagnostic| Suggested { diagnostic, saves: None }).collect()
}

struct Linter<'d> {
    name: &'d str,
    text: &'d str,
    index: &'d Index,
    sources: Vec<Source>,
    progress: Progress,
    allowed: Allowed,
    /// The size of the traces with the current DTD.
    now: Size,
}

/// The fields set by one statement of the DTD, and their size in bytes.
struct Group<'d> {
    declared: Declared<'d>,
    old: Encoding,
    values: u64,
    /// The number of bytes saved by the plan.
    most: u64,
    spent: BTreeMap<(u8, u64, u8), Spent>,
}

impl<'d> Linter<'d> {
    fn write_one(&mut self, at: usize, schema: &Schema) -> Result<(Written, Size)> {
        let Self { sources, progress, name, .. } = self;
        let source = sources.get(at).ok_or_else(|| Failure::Failed(format!("{name}: no such trace")))?;
        source.write(schema, name, &mut || progress.step())
    }

    /// Re-encodes the traces with this DTD text and returns their total size.
    fn size(&mut self, text: &str) -> Result<Size> {
        let schema = schema(self.name, text)?;
        let mut size = Size::default();
        for at in 0..self.sources.len() {
            size += self.write_one(at, &schema)?.1;
        }
        Ok(size)
    }

    fn survey(&mut self, written: &Written, schema: &Schema) -> Result<Vec<LeafSurvey>> {
        let mut trace = Trace::new(schema.clone(), written.reader()?).map_err(Failure::temporary_file)?;
        let progress = &mut self.progress;
        match recode::survey(&mut trace, || progress.step()) {
            Ok(surveys) => Ok(surveys),
            Err(recode::Failure::Read(error) | recode::Failure::Write(error)) => Err(Failure::temporary_file(error)),
        }
    }

    /// Groups the leaves set by the same DTD statement.
    fn groups(&self, schema: &Schema, surveys: &[LeafSurvey]) -> Vec<Group<'d>> {
        let mut groups = BTreeMap::new();
        for survey in surveys {
            let Some(record) = survey.record.checked_sub(METADATA + 1).map(usize::from) else { continue };
            let leaf = usize::from(survey.leaf);
            let laid_out = self.index.records.get(record);
            let found = laid_out.and_then(|laid_out| Some((laid_out, laid_out.fields.get(leaf)?)));
            let kind = schema.format.records.get(usize::from(survey.record)).and_then(|record| record.leaves.get(leaf));
            let (Some((laid_out, field)), Some(&LeafKind::Number { interpretation, .. })) =
                (found, kind.map(|l| &l.kind))
            else {
                continue;
            };
            let declared = Declared::new(laid_out, field);
            let old = Encoding { interpretation, width: declared.width() };
            let name = format!("{}.{}", laid_out.name, field.leaf.path.join("."));
            let group = groups.entry(Declared::key(laid_out, leaf, field)).or_insert_with(|| Group {
                declared,
                old,
                values: 0,
                most: 0,
                spent: BTreeMap::new(),
            });
            if !group.declared.fields.contains(&name) {
                group.declared.fields.push(name);
            }
            group.values += survey.values;
            group.most += survey.declared.saturating_sub(survey.best);
            for spent in &survey.spent {
                let key = (kind_of(spent.interpretation), argument(spent.interpretation), spent.width);
                group.spent.entry(key).or_insert(Spent { values: 0, ..*spent }).values += spent.values;
            }
        }
        groups.into_values().collect()
    }

    fn wasteful(
        &mut self,
        schema: &Schema,
        surveys: &[LeafSurvey],
        args: &LintArgs,
        rules: &BTreeSet<Rule>,
    ) -> Result<Vec<Suggested>> {
        let mut found = Vec::new();
        for group in self.groups(schema, surveys) {
            if !is_enough(group.most, self.now.records, args.least) {
                continue;
            }
            let mut best: Option<(Size, Encoding, Suggestion)> = None;
            for new in group.candidates() {
                if !rules.contains(&group.rule(new)) {
                    continue;
                }
                let Some(edit) = group.declared.edit(self.text, group.old, new) else { continue };
                let Some(text) = edited(self.text, &edit) else { continue };
                // Skip edits that the parser rejects, for example because fields share a previous value.
                if metatf_parser::parse("", text.as_bytes()).dtd.is_none() {
                    continue;
                }
                let size = self.size(&text)?;
                let better = best.as_ref().is_none_or(|(known, ..)| size.records < known.records);
                if better && (args.stored || size.files <= self.now.files) {
                    best = Some((size, new, edit));
                }
            }
            let Some((size, new, edit)) = best else { continue };
            let saved = self.now.records.saturating_sub(size.records);
            if saved > 0 && is_enough(saved, self.now.records, args.least) {
                found.extend(self.suggested(&group, size, new, edit));
            }
        }
        found.sort_by_key(|found| std::cmp::Reverse(found.saves.as_ref().map(|saves| saves.records)));
        Ok(found)
    }

    fn suggested(&self, group: &Group<'_>, size: Size, new: Encoding, edit: Suggestion) -> Option<Suggested> {
        let fields = group.declared.fields.clone();
        let (first, others) = fields.split_first()?;
        let more = match others.len() {
            0 => String::new(),
            1 => " and 1 more field".to_owned(),
            more => format!(" and {more} more fields"),
        };
        let (old, better) = (words(group.old), words(new));
        let message = format!("`{first}`{more}: {old}; smaller with {better}");
        let help = format!("write `{}`", edited_lines(self.text, &edit)?);
        let rule = group.rule(new);
        let property = if rule == Rule::WastefulWidth { Property::Width } else { Property::Interpretation };
        let mut place = Declared::label(self.text, group.declared.place(property));
        let records = self.now.records.saturating_sub(size.records);
        let files = self.now.files.cast_signed() - size.files.cast_signed();
        let more = "saves {} of the records ({}), but the compressed file grows by {} ({})";
        let less = "saves {} of the records ({}) and {} of the compressed file ({})";
        place.text = Note::new(if files < 0 { more } else { less })
            .with([
                Value::Bytes(records),
                Value::Part(records, self.now.records),
                Value::Bytes(files.unsigned_abs()),
                Value::Part(files.unsigned_abs(), self.now.files),
            ])
            .to_string();
        let mut diagnostic = Diagnostic::suggestion(rule, place, message, help);
        diagnostic.suggestion = Some(edit);
        let saves = Saves { records, files, values: group.values, fields, old, better };
        (!self.allowed.allows(&diagnostic)).then_some(Suggested { diagnostic, saves: Some(saves) })
    }

    /// Measures all edits together, omitting edits that overlap another edit.
    fn together(&mut self, found: &[Suggested]) -> Result<Option<Together>> {
        let mut edits: Vec<(std::ops::Range<usize>, String)> = Vec::new();
        for edit in found.iter().filter_map(|found| found.diagnostic.suggestion.as_ref()) {
            if edits.iter().all(|(span, _)| edit.span.end <= span.start || span.end <= edit.span.start) {
                edits.push((edit.span.clone(), edit.text.clone()));
            }
        }
        let count = edits.len();
        if count < 2 {
            return Ok(None);
        }
        let Some(text) = one(self.text, edits).and_then(|edit| edited(self.text, &edit)) else { return Ok(None) };
        let size = self.size(&text)?;
        Ok(Some(Together { edits: count, size }))
    }
}

/// Returns the lines that an edit changes, as they are after the edit.
fn edited_lines(text: &str, edit: &Suggestion) -> Option<String> {
    let before = text.get(..edit.span.start)?.rsplit('\n').next()?;
    let after = text.get(edit.span.end..)?.split('\n').next()?;
    Some(format!("{before}{}{after}", edit.text).trim().to_owned())
}

fn edited(text: &str, edit: &Suggestion) -> Option<String> {
    String::from_utf8(edit.apply(text.as_bytes())?).ok()
}

/// Returns whether a part is at least `least` percent of the total.
#[expect(clippy::cast_precision_loss, reason = "a limit of one per cent or so")]
fn is_enough(part: u64, whole: u64, least: f64) -> bool {
    part as f64 * 100.0 >= least * whole as f64
}

impl Group<'_> {
    fn rule(&self, new: Encoding) -> Rule {
        let same = new.interpretation == self.old.interpretation;
        if same { Rule::WastefulWidth } else { Rule::WastefulInterpretation }
    }

    /// Returns the encodings to try. For each of the plan's most frequent interpretations, these are its most frequent
    /// argument with the most frequent width, and with the largest width.
    fn candidates(&self) -> Vec<Encoding> {
        let mut kinds: BTreeMap<u8, u64> = BTreeMap::new();
        for ((kind, ..), spent) in &self.spent {
            *kinds.entry(*kind).or_default() += spent.values;
        }
        let mut kinds: Vec<(u8, u64)> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, values)| std::cmp::Reverse(*values));
        let mut candidates = Vec::new();
        for (kind, _) in kinds.into_iter().take(MOST_KINDS) {
            let of_kind = self.spent.iter().filter(|((of, ..), _)| *of == kind);
            let mut arguments: BTreeMap<u64, u64> = BTreeMap::new();
            for ((_, argument, _), spent) in of_kind.clone() {
                *arguments.entry(*argument).or_default() += spent.values;
            }
            let Some(argument) = arguments.into_iter().max_by_key(|(_, values)| *values).map(|(a, _)| a) else {
                continue;
            };
            let mut chosen: Vec<&Spent> = of_kind.filter(|((_, of, _), _)| *of == argument).map(|(_, s)| s).collect();
            chosen.sort_by_key(|spent| std::cmp::Reverse(spent.values));
            let Some(most) = chosen.first() else { continue };
            let widest = chosen.iter().map(|spent| spent.width).max();
            for width in [Some(most.width), widest].into_iter().flatten() {
                let interpretation = self.as_declared(most.interpretation);
                let width = if interpretation.stores() { Some(width) } else { self.old.width };
                let encoding = Encoding { interpretation, width };
                if encoding != self.old && !candidates.contains(&encoding) {
                    candidates.push(encoding);
                }
            }
        }
        candidates
    }

    /// Returns the DTD's interpretation, including its initial value, if it is of the same kind.
    fn as_declared(&self, interpretation: Interpretation) -> Interpretation {
        let old = self.old.interpretation;
        let same = kind_of(old) == kind_of(interpretation) && argument(old) == argument(interpretation);
        if same { old } else { interpretation }
    }
}

/// Returns a number that identifies the kind of an interpretation.
fn kind_of(interpretation: Interpretation) -> u8 {
    match interpretation {
        Interpretation::None => 0,
        Interpretation::Delta(_) => 1,
        Interpretation::Default(_) => 2,
        Interpretation::Stride(..) => 3,
        Interpretation::BaseOffset(_) => 4,
        _ => 5,
    }
}

/// Returns the argument of an interpretation, excluding the previous value.
fn argument(interpretation: Interpretation) -> u64 {
    match interpretation {
        Interpretation::Default(value) | Interpretation::BaseOffset(value) | Interpretation::Stride(_, value) => value,
        _ => 0,
    }
}
