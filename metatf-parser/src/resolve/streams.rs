//! Finds stream sections and checks references to them (spec 3.4, 3.5).

use std::collections::HashSet;

use super::ends;
use super::layout::Layout;
use super::leaves::{Resolved, ResolvedLeaf, Sharing};
use super::model::{Model, ScopeIndex, ScopeModel};
use super::predictors;
use crate::ast::{self, Int, Setting, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::{self, Argument, Interpretation, Item, Repeated, Width};
use crate::vocabulary::Property;

/// Finds stream sections (spec 3.4). A stream section contains no tagged record, and exactly one untagged record that
/// is not nested in another record of the section.
pub(super) fn find(model: &mut Model) {
    for index in 1..model.scopes.len() {
        let Some(scope) = model.scopes.get(index) else { continue };
        let own = || scope.records.iter().copied().filter(|r| model.records.get(*r).is_some_and(|r| r.named));
        let tagged = own().any(|r| model.records.get(r).is_some_and(|r| r.tagged));
        let mut roots = own().filter(|r| model.records.get(*r).is_some_and(|r| !r.nested));
        let stream = match (tagged, roots.next(), roots.next()) {
            (false, Some(only), None) => Some(only),
            _ => None,
        };
        model.scopes.get_mut(index).into_iter().for_each(|s| s.stream = stream);
    }
}

/// Warns about the element of a stream section if it refers to another section or counts from the previous record, and no
/// field refers to its own section. Then it is an event, and the author has probably forgotten the tag. A DTD of a single
/// section, or with a role, may describe another tool's log, which has no tags.
pub(super) fn alone(model: &Model, resolved: &[Resolved], report: &mut Reporter) {
    let all = || resolved.iter().flat_map(|record| &record.leaves);
    let leaves = || all().map(|leaf| &leaf.leaf);
    let is_log = leaves().any(|leaf| leaf.annotations.contains_key("role"));
    if report.failed() || is_log || model.scopes.len() < 3 {
        return;
    }
    let mut used: HashSet<u8> = leaves().flat_map(|leaf| leaf.section.into_iter().chain(target(leaf))).collect();
    used.extend(all().filter_map(|leaf| leaf.predicted.as_ref()).map(|predicted| predicted.model.section));
    let counts = |leaf: &ResolvedLeaf| matches!(leaf.sharing, Sharing::Property(_) | Sharing::NameAndProperty(_));
    let is_event = |element| {
        let record = resolved.iter().find(|r| r.layout.record == element && r.layout.items.len() > 1);
        record.is_some_and(|record| record.leaves.iter().any(|leaf| target(&leaf.leaf).is_some() || counts(leaf)))
    };
    for scope in model.scopes.iter().skip(1) {
        let element = scope.stream.filter(|element| is_event(*element)).and_then(|element| model.records.get(element));
        let (Some(element), Some(number)) = (element, scope.number) else {
            continue;
        };
        if used.contains(&number) {
            continue;
        }
        let section = scope.ast.head.as_ref().map_or("", |head| head.name.text);
        report.add(
            Draft::new(
                Code::StreamAlone,
                element.ast.name.span,
                format!("`{}` has no tag, so `{section}` is a stream section, but no field refers to it", element.name()),
            )
            .help("set `tag.value` in the block of the record, or refer to the section, as in `name: u16 sectionOffset 2`"),
        );
    }
}

/// Returns the stream section of an interpretation.
fn target(leaf: &schema::Leaf) -> Option<u8> {
    match leaf.interpretation {
        Interpretation::SectionOffset(section) | Interpretation::SectionStride { section, .. } => Some(section),
        _ => None,
    }
}

/// Checks that the count of each repetition is a number (spec 3.3).
pub(super) fn counts(resolved: &[Resolved], report: &mut Reporter) {
    for record in resolved {
        count(record, &record.layout.items, report);
    }
}

/// Checks the counts of items, which nest at most 32 levels deep (spec 3.5).
fn count(record: &Resolved, items: &[Item], report: &mut Reporter) {
    for item in items {
        match item {
            Item::Leaf(_) => {}
            Item::Nested { items, .. } => count(record, items, report),
            Item::Repeat { count: counter, body, .. } => {
                let index = usize::from(counter.0);
                let (leaf, raw) = (record.leaves.get(index), record.layout.leaves.get(index));
                if let (Some(leaf), Some(raw)) = (leaf.filter(|l| !l.broken && !l.leaf.is_numeric()), raw) {
                    let message = format!("`{}` is a byte array and cannot count a repetition", leaf.leaf.name);
                    report.add(
                        Draft::new(Code::NotANumber, raw.site, message)
                            .help("a count must have a width of 0 to 8 bytes"),
                    );
                }
                match body {
                    Repeated::Leaf(_) => {}
                    Repeated::Group(items) | Repeated::Record { items, .. } => count(record, items, report),
                }
            }
        }
    }
}

/// Returns the stream section with this number.
fn stream_section(model: &Model, number: Int) -> Option<ScopeIndex> {
    let number = number.natural().and_then(|n| u8::try_from(n).ok()).filter(|n| *n != 0)?;
    model.scopes.iter().position(|s| s.number == Some(number) && s.stream.is_some())
}

/// Checks the section numbers in every interpretation.
pub(super) fn references(model: &Model, resolved: &[Resolved], report: &mut Reporter) {
    let scopes = model.scopes.iter().flat_map(|s| &s.ast.properties);
    let blocks = model.records.iter().flat_map(|r| &r.ast.block);
    let types = model.scopes.iter().flat_map(|s| &s.ast.types).chain(model.records.iter().flat_map(|r| &r.ast.types));
    let typed = types.flat_map(|typed| &typed.settings);
    for setting in scopes.chain(blocks).chain(typed).filter(|s| s.property == Some(Property::Interpretation)) {
        let Value::Interpretation(interpretation) = &setting.value else { continue };
        let word = interpretation.word;
        for (kind, argument) in word.arguments().iter().zip(&interpretation.arguments) {
            match (kind, argument) {
                (Argument::Stream, ast::Argument::Number(number)) => offset(model, resolved, *number, report),
                (Argument::NumberStream, ast::Argument::Number(number)) => {
                    number_stream(model, resolved, *number, word.name(), report);
                }
                (Argument::Steps, ast::Argument::Number(steps)) => stride_range(setting, *steps, report),
                (Argument::Model, ast::Argument::Model(predicted)) => predictors::check(predicted, report),
                _ => {}
            }
        }
    }
}

fn offset(model: &Model, resolved: &[Resolved], number: Int, report: &mut Reporter) {
    let Some(scope) = stream_section(model, number) else {
        if is_ambiguous(model, number) {
            return;
        }
        report.add(Draft::new(Code::NoStream, number.span, not_stream(model, number)).help(stream_help(model)));
        return;
    };
    let element = model.scopes.get(scope).and_then(|s| s.stream);
    let element = resolved.iter().find(|record| Some(record.layout.record) == element);
    if let Some(place) = element.and_then(ends::extends) {
        let message = format!("the elements of section {} extend to the end of their chunk", number.magnitude);
        report.add(
            Draft::new(Code::RestPlace, number.span, message)
                .also(place, "extends to the end")
                .help("a table contains many elements, so each must state its length (`data.width = length.value;`)"),
        );
    }
}

/// Checks whether several sections have this number, which has been reported.
fn is_ambiguous(model: &Model, number: Int) -> bool {
    let has_number = |scope: &&ScopeModel| {
        let own = scope.ast.head.as_ref().and_then(|head| head.number);
        own.is_some_and(|own| own.magnitude == number.magnitude && own.negative == number.negative)
    };
    model.scopes.iter().filter(has_number).count() > 1
}

fn not_stream(model: &Model, number: Int) -> String {
    let known = number.natural().and_then(|n| u8::try_from(n).ok()).filter(|n| *n != 0);
    match model.scopes.iter().find(|s| known.is_some() && s.number == known).and_then(|s| s.ast.head.as_ref()) {
        Some(head) => format!("section {} (`{}`) is not a stream section", number.magnitude, head.name.text),
        None => format!("there is no section {}{}", if number.negative { "-" } else { "" }, number.magnitude),
    }
}

fn stream_help(model: &Model) -> String {
    let streams = model.scopes.iter().filter(|s| s.stream.is_some());
    let named: Vec<String> = streams
        .filter_map(|s| Some(format!("{} (`{}`)", s.number?, s.ast.head.as_ref()?.name.text)))
        .take(10)
        .collect();
    if named.is_empty() {
        "define a section whose only record is untagged, such as `section names 2 { name: vfield; }`".to_owned()
    } else {
        format!("the stream sections are {}", named.join(", "))
    }
}

/// Checks that a section is a stream section with one numeric leaf (spec 3.5). [`element_sizes`] ensures that the leaf
/// is not repeated and stores bytes.
fn number_stream(model: &Model, resolved: &[Resolved], number: Int, word: &str, report: &mut Reporter) {
    let Some(scope) = stream_section(model, number) else {
        if is_ambiguous(model, number) {
            return;
        }
        report.add(Draft::new(Code::NoNumberStream, number.span, not_stream(model, number)).help(stream_help(model)));
        return;
    };
    let element = model.scopes.get(scope).and_then(|s| s.stream);
    let Some(target) = resolved.iter().find(|r| Some(r.layout.record) == element) else { return };
    let one_number = match target.leaves.as_slice() {
        [only] => only.broken || only.leaf.is_numeric(),
        _ => false,
    };
    if !one_number {
        let name = model.records.get(target.layout.record).map(|r| r.ast.name.span);
        let draft = Draft::new(
            Code::NoNumberStream,
            number.span,
            format!("an element of section {} is not a single number", number.magnitude),
        )
        .help(format!("`{word}` requires a stream section whose element is a single number field"));
        report.add(match name {
            Some(span) => draft.also(span, "the element"),
            None => draft,
        });
    }
}

fn stride_range(setting: &Setting, stride: Int, report: &mut Reporter) {
    if stride.natural().is_none_or(|s| s == 0) {
        report.add(
            Draft::new(Code::StrideRange, stride.span, "the stride of a `sectionStride` must be at least 1")
                .also(setting.target(), "set here")
                .help("a stride of 1 reads every element in turn"),
        );
    }
}

/// Checks that an element (spec 3.4) always stores at least one byte outside of repetitions and variable arrays.
pub(super) fn element_sizes(model: &Model, resolved: &[Resolved], report: &mut Reporter) {
    let elements = resolved.iter().filter(|r| model.records.get(r.layout.record).is_some_and(|m| !m.tagged));
    elements.for_each(|element| element_size(model, element, report));
}

fn element_size(model: &Model, resolved: &Resolved, report: &mut Reporter) {
    let Layout { record, items, .. } = &resolved.layout;
    if resolved.leaves.iter().any(|l| l.broken) || stores_a_byte(items, resolved) {
        return;
    }
    let Some(record) = model.records.get(*record) else { return };
    report.add(
        Draft::new(
            Code::EmptyElement,
            record.ast.name.span,
            format!("an element `{}` may contain no bytes", record.name()),
        )
        .help("outside repetitions, add a field that always stores bytes"),
    );
}

fn stores_a_byte(items: &[Item], resolved: &Resolved) -> bool {
    items.iter().any(|item| match item {
        Item::Nested { items, .. } => stores_a_byte(items, resolved),
        Item::Repeat { .. } => false,
        Item::Leaf(id) => resolved.leaves.get(usize::from(id.0)).is_some_and(|l| match l.leaf.width {
            Width::Number(width) => width > 0 && l.leaf.interpretation.stores(),
            Width::Array(_) | Width::Until(_) => true,
            Width::Unset | Width::Variable(_) | Width::Rest => false,
        }),
    })
}
