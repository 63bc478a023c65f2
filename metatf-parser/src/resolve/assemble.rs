//! Assembles the records, sections and cells of the resolved schema.

use super::bases::PREDEFINED_RECORDS;
use super::leaves::{Resolved, ResolvedLeaf};
use super::model::{Model, RecordModel, ScopeIndex};
use super::properties::earlier;
use super::{predefined, previous, too_large};
use crate::ast::{Ast, Value};
use crate::diagnostic::Reporter;
use crate::schema::{
    self, COMMENT, Dtd, Interpretation, Leaf, METADATA, ModelId, Record, RecordId, SECTION, Section, SectionId,
};
use crate::span::Span;
use crate::vocabulary::Property;

/// Returns the schema, or `None` if an error was found here or earlier.
pub(super) fn dtd(
    mut model: Model,
    resolved: Vec<Resolved>,
    predefined: [u32; 3],
    ast: &Ast,
    source: &str,
    report: &mut Reporter,
) -> Option<Dtd> {
    let tag_width = model.tag_width.unwrap_or(1);
    let sections = sections(&mut model, &resolved, report)?;
    let mut records = Vec::from(predefined::tagged(tag_width, predefined));
    let mut models = Vec::new();
    for resolved in resolved {
        records.push(record(&model, resolved, &mut models)?);
    }
    let text = source.get(report.source.start..).unwrap_or_default().to_owned();
    Some(Dtd { text, doc: ast.doc.clone(), tag_width, sections, records, models })
}

/// Returns the sections, and reports mistakes found while assembling them.
pub(super) fn sections(model: &mut Model, resolved: &[Resolved], report: &mut Reporter) -> Option<Vec<Section>> {
    let mut by_index = vec![None; model.records.len()];
    for (place, resolved) in resolved.iter().enumerate() {
        by_index.get_mut(resolved.layout.record).into_iter().for_each(|at| *at = Some(place));
    }
    let mut sections = Vec::new();
    for scope in 0..model.scopes.len() {
        sections.push(section(model, scope, resolved, &by_index, report)?);
    }
    let predicted = resolved.iter().flat_map(|record| &record.leaves).filter(|leaf| leaf.predicted.is_some()).count();
    if predicted > usize::from(u16::MAX) + 1 && !report.failed() {
        report.add(too_large(Span::at(report.source.start)));
    }
    (!report.failed()).then_some(sections)
}

fn section(
    model: &mut Model,
    index: ScopeIndex,
    resolved: &[Resolved],
    by_index: &[Option<usize>],
    report: &mut Reporter,
) -> Option<Section> {
    let places: Vec<usize> = model.top_records(index).iter().filter_map(|r| *by_index.get(*r)?).collect();
    let tops: Vec<&Resolved> = places.iter().filter_map(|p| resolved.get(*p)).collect();
    // A global record is charged once for every section, because each section stores data for it.
    let bytes = tops.iter().map(|r| r.leaves.len() * 8 + 64).sum();
    if !model.budget.charge(bytes) {
        report.add(too_large(Span::at(report.source.start)));
        return None;
    }
    let own = previous::cells(&tops, report);
    let ids = places.iter().filter_map(|p| u32::try_from(p + PREDEFINED_RECORDS).ok()).map(RecordId);
    let scope = model.scopes.get(index)?;
    let mut section = Section {
        number: scope.number.unwrap_or(0),
        name: scope.ast.head.as_ref().map(|h| h.name.text.to_owned()),
        doc: scope.ast.doc.as_deref().map(str::to_owned),
        stream: None,
        records: Vec::new(),
        cells: Vec::new(),
        cell_initials: own.initials,
    };
    if scope.stream.is_some() {
        section.records = ids.collect();
        section.stream = section.records.first().copied();
    } else {
        section.records = [COMMENT, SECTION, METADATA].into_iter().chain(ids).collect();
        let fresh = u32::try_from(section.cell_initials.len()).ok()?;
        // `comment` has three leaves. Their cells follow the cells of the DTD's records.
        section.cells = vec![vec![fresh, fresh + 1, fresh + 2], Vec::new(), Vec::new()];
        section.cell_initials.extend([0; 3]);
    }
    section.cells.extend(own.cells);
    Some(section)
}

/// Converts a resolved record to a record of the schema. Returns `None` if there are more predicted leaves than
/// [`ModelId`] can number.
fn record(model: &Model, resolved: Resolved, models: &mut Vec<schema::Model>) -> Option<Record> {
    let Resolved { layout, leaves, tag } = resolved;
    let record = model.records.get(layout.record);
    let section = record.and_then(|r| u16::try_from(r.scope).ok()).filter(|s| *s != 0).map(SectionId);
    let mut leaves = leaves.into_iter().map(|leaf| numbered(leaf, models)).collect::<Option<Vec<_>>>()?;
    leaves.shrink_to_fit();
    Some(Record {
        name: record.map_or_else(String::new, |r| r.name().to_owned()),
        section,
        tag: tag.map(|tag| tag.number),
        catch_all: tag.is_some_and(|tag| tag.catch_all),
        was: record.map(was).unwrap_or_default(),
        doc: record.and_then(|r| r.ast.doc.as_deref()).map(str::to_owned),
        items: layout.items,
        leaves,
    })
}

/// Returns the earlier names of a record, which the record's block sets for `tag`.
fn was(record: &RecordModel) -> Vec<String> {
    let setting = record.slots.get(&["tag"]).and_then(|slot| slot.get(Property::Was));
    match setting.map(|setting| &setting.value) {
        Some(Value::Text(text)) => earlier(text).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Adds the leaf's model, if any, to `models` and returns the leaf, which then contains the model's number.
fn numbered(resolved: ResolvedLeaf, models: &mut Vec<schema::Model>) -> Option<Leaf> {
    let ResolvedLeaf { mut leaf, predicted, .. } = resolved;
    if let Some(predicted) = predicted {
        leaf.interpretation = Interpretation::Predicted(ModelId(u16::try_from(models.len()).ok()?));
        models.push(predicted.model);
    }
    Some(leaf)
}
