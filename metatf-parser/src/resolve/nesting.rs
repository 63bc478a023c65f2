//! Determines the meaning of names in field lists, and the nesting of records (spec 3.1, 3.2, 3.5).

use super::lines;
use super::model::{Field, Meaning, Model, RecordIndex, RecordModel, VFIELD, Visible};
use super::types;
use crate::ast::{Count, FieldItem, Name};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::lexer::MOST_NESTING;
use crate::span::Span;
use crate::vocabulary::Property;

/// A nested record in a field list, with its location and the number of groups around it.
#[derive(Clone, Copy)]
struct Child {
    record: RecordIndex,
    site: Span,
    groups: usize,
}

/// Resolves the fields of every record, and reports invalid nesting.
pub(super) fn check(model: &mut Model, report: &mut Reporter) {
    for index in 0..model.records.len() {
        find_tag(model, index, report);
    }
    let children: Vec<Vec<Child>> = (0..model.records.len()).map(|i| fields(model, i, report)).collect();
    let heights = heights(model, &children, report);
    deep(model, &children, &heights, report);
    // A record cannot be expanded if it nests a record that cannot be expanded.
    for (index, height) in heights.iter().enumerate() {
        let sound = height.is_some_and(|h| h <= MOST_NESTING);
        model.records.get_mut(index).into_iter().for_each(|r| r.sound &= sound);
    }
}

/// Visits every name in a field list, with its role (count or repeated) and the number of groups around it.
pub(super) fn walk<'a>(item: &'a FieldItem<'a>, groups: usize, visit: &mut dyn FnMut(&'a Name<'a>, Place<'a>)) {
    match item {
        FieldItem::Name(name) => visit(name, Place { groups, count: false, repeated: false, item: None }),
        FieldItem::Group(items) => items.iter().for_each(|i| walk(i, groups + 1, visit)),
        FieldItem::Repeat { count, body, .. } => {
            if let Count::Name(count) = count {
                let item = if let FieldItem::Name(name) = body.as_ref() { Some(name.text) } else { None };
                visit(count, Place { groups, count: true, repeated: false, item });
            }
            walk(body, groups, &mut |name, place| visit(name, Place { repeated: true, ..place }));
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    groups: usize,
    /// The item that a count counts, unless it is a group.
    item: Option<&'a str>,
    pub(super) count: bool,
    repeated: bool,
}

/// Finds `tag`, which must be first if it is listed (spec 3.2).
fn find_tag(model: &mut Model, index: RecordIndex, report: &mut Reporter) {
    let Some(record) = model.records.get_mut(index) else { return };
    let (mut first, mut start) = (true, None);
    walk(&record.ast.fields, 0, &mut |name, place| {
        if name.text == "tag" && !place.count {
            if first && !place.repeated {
                record.lists_tag = true;
            } else {
                report.add(
                    Draft::new(Code::TagNotFirst, name.span, "`tag` may only be the first field of a record")
                        .help(match lines::moved(report.source, record.ast, name.span, start.unwrap_or(name.span)) {
                            Some(line) if !place.repeated => format!("write `{line}`, or do not list `tag`"),
                            _ => format!("remove `{LINE}`: a record with `tag.value` begins with its tag"),
                        })
                        .quote(name.span),
                );
                record.lists_tag = true;
            }
        }
        first = false;
        start = start.or(Some(name.span));
    });
    record.tagged |= record.lists_tag;
}

/// Resolves the names in a record's field list, and returns the nested records.
fn fields(model: &mut Model, index: RecordIndex, report: &mut Reporter) -> Vec<Child> {
    let (mut children, mut counts) = (Vec::new(), Vec::new());
    let mut found = std::collections::BTreeMap::new();
    let Some(record) = model.records.get(index) else { return children };
    walk(&record.ast.fields, 0, &mut |name, place| {
        let meaning = match record.types.get(name.text) {
            Some((_, meaning)) => types::nested(*meaning).map_or(Visible::Nothing, Visible::Record),
            None => model.visible(record.scope, name.text),
        };
        if place.count {
            let untagged = matches!(meaning, Visible::Record(r) if model.records.get(r).is_some_and(|r| !r.tagged));
            let is_text = matches!(record.types.get(name.text), Some((_, Meaning::Text(_))));
            // The record has a use, although in the wrong place.
            if let (Visible::Record(index), true) = (meaning, untagged && !is_text) {
                counts.push(index);
            }
            count_name(name, untagged, is_text, place.item, report);
            let wrong = name.text == "tag" || untagged;
            found.entry(name.text).or_insert(if wrong { Field::Wrong } else { Field::Leaf });
            return;
        }
        let field = match meaning {
            Visible::Nothing => Field::Leaf,
            Visible::Record(r) if model.records.get(r).is_some_and(|r| !r.tagged) => {
                children.push(Child { record: r, site: name.span, groups: place.groups.saturating_sub(1) });
                Field::Record(r)
            }
            Visible::Record(r) => {
                nests_tagged(model, index, name, Some(r), report);
                Field::Wrong
            }
            Visible::PredefinedTagged => {
                nests_tagged(model, index, name, None, report);
                Field::Wrong
            }
        };
        found.insert(name.text, field);
    });
    if record.tagged {
        found.insert("tag", Field::Leaf);
    }
    if let Some(record) = model.records.get_mut(index) {
        record.fields = found.into_iter().collect();
    }
    for record in children.iter().map(|child: &Child| child.record).chain(counts) {
        model.records.get_mut(record).into_iter().for_each(|r| r.nested = true);
    }
    children
}

/// Checks that a count is a number, not a nested record. A *tagged* record with the same name is allowed (spec 3.1).
fn count_name(name: &Name, untagged: bool, is_text: bool, item: Option<&str>, report: &mut Reporter) {
    if name.text == "tag" || untagged {
        let what = match name.text {
            "tag" => "`tag`".to_owned(),
            other if is_text => format!("the text `{other}`"),
            other => format!("the record `{other}`"),
        };
        report.add(Draft::new(Code::CountName, name.span, format!("{what} cannot count a repetition")).help(
            match item {
                _ if is_text => format!("give the count the type of a number, as in `{}: u16`", name.text),
                Some(item) if untagged => format!("the count precedes the item: write `{item}*{}`", name.text),
                _ => "write `COUNT*ITEM` with a number field as COUNT".to_owned(),
            },
        ));
    }
}

fn nests_tagged(model: &Model, index: RecordIndex, name: &Name, tagged: Option<RecordIndex>, report: &mut Reporter) {
    let own = tagged.and_then(|tagged| model.records.get(tagged));
    let defined = own.map(|own| own.ast);
    let tag = defined.and_then(|record| record.block.iter().find(|setting| setting.is("tag", Property::Value)));
    if let (Some(record), Some(tag)) = (defined, tag)
        && !own.is_none_or(|found| found.lists_tag)
        && tagged != Some(index)
        && !report.is_full()
    {
        let place = tag.target();
        if report.has_reported(&[Code::NestsTagged], place) {
            return report.add_again();
        }
        let lists = |other: &&RecordModel| {
            let mut found = false;
            walk(&other.ast.fields, 0, &mut |field, place| found |= field.text == name.text && !place.count);
            found && !other.types.contains_key(name.text)
        };
        let scope = own.map_or(0, |found| found.scope);
        let others = model.records.iter().skip(index).filter(|other| scope == 0 || other.scope == scope);
        let names: Vec<String> = others.filter(lists).take(2).map(|other| format!("`{}`", other.name())).collect();
        let message = format!("`{}` is nested in {}, so it must not have a tag", record.name.text, names.join(" and "));
        let line = lines::definition(report.source, record).filter(|_| record.block.len() == 1);
        let rename = format!("if `{}` is another field there, rename the field", name.text);
        let draft = Draft::new(Code::NestsTagged, place, message).also(name.span, "nested here");
        return report.add(
            draft
                .help(match line {
                    Some(line) => format!("write `{line};`, or, {rename}"),
                    None => format!("remove `{LINE}` from the block of `{}`, or, {rename}", record.name.text),
                })
                .quote(place),
        );
    }
    let defined = defined.map(|record| record.name.span);
    let draft = Draft::new(Code::NestsTagged, name.span, format!("the tagged record `{}` cannot be nested", name.text))
        .help(format!(
            "only untagged records can be nested; rename the field if you do not mean the record, as in `{LINE}`"
        ))
        .line(name.span, format!("{}_number: u32", name.text));
    report.add(match defined {
        Some(span) => draft.also(span, "defined here, with a tag"),
        None => draft,
    });
}

/// Returns the number of nesting levels of each record, including the record itself, or `None` if the record nests
/// itself or a record that nests itself. The depth-first search uses its own stack, because the text determines the
/// depth.
fn heights(model: &mut Model, children: &[Vec<Child>], report: &mut Reporter) -> Vec<Option<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; children.len()];
    let mut heights: Vec<Option<usize>> = vec![Some(1); children.len()];
    for root in 0..children.len() {
        let mut stack = vec![(root, 0)];
        while let Some((record, next)) = stack.last_mut() {
            let record = *record;
            if marks.get(record) == Some(&Mark::Done) {
                stack.pop();
                continue;
            }
            marks[record] = Mark::Open;
            let Some(child) = children.get(record).and_then(|c| c.get(*next)).copied() else {
                marks[record] = Mark::Done;
                heights[record] = height(children, &heights, record);
                stack.pop();
                continue;
            };
            *next += 1;
            match marks.get(child.record) {
                Some(Mark::New) => stack.push((child.record, 0)),
                Some(Mark::Open) => {
                    nests_itself(model, child, report);
                    heights[child.record] = None;
                }
                _ => {}
            }
        }
    }
    heights
}

fn height(children: &[Vec<Child>], heights: &[Option<usize>], record: RecordIndex) -> Option<usize> {
    let own = heights.get(record).copied().flatten()?;
    let mut nested = children.get(record).into_iter().flatten();
    nested.try_fold(own, |most, c| Some(most.max(heights.get(c.record).copied().flatten()? + c.groups + 1)))
}

fn nests_itself(model: &Model, child: Child, report: &mut Reporter) {
    let Some(record) = model.records.get(child.record) else { return };
    let mut types = model.records.iter().flat_map(|record| &record.ast.types);
    let word = types.find(|typed| typed.name.span == child.site).and_then(|typed| typed.word);
    let (place, text) = match word {
        Some(word) => (word.span, "u32".to_owned()),
        None => (child.site, format!("{}_number: u32", record.name())),
    };
    report.add(
        Draft::new(Code::NestsItself, child.site, format!("the record `{}` nests itself", record.name()))
            .also(record.ast.name.span, "defined here")
            .help(format!(
                "a record cannot contain itself: to refer to another `{}` by its number, write `{LINE}`; for several, list \
                 each `{}` as its own record",
                record.name(), record.name()
            ))
            .line(place, text),
    );
}

/// Reports nesting deeper than 32 levels (spec 3.5) at the outermost record.
fn deep(model: &Model, children: &[Vec<Child>], heights: &[Option<usize>], report: &mut Reporter) {
    let too_deep = |record: RecordIndex| heights.get(record).copied().flatten().is_some_and(|h| h > MOST_NESTING);
    let mut inner = vec![false; children.len()];
    for child in children.iter().flatten() {
        inner[child.record] = true;
    }
    for (index, record) in model.records.iter().enumerate().skip(VFIELD + 1) {
        if too_deep(index) && !inner[index] {
            let height = heights[index].unwrap_or(0);
            report.add(
                Draft::new(
                    Code::NestsDeep,
                    record.ast.name.span,
                    format!("`{}` nests records and groups {height} deep", record.name()),
                )
                .help(format!("at most {MOST_NESTING} levels are allowed, including this record")),
            );
        }
    }
}
