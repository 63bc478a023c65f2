//! Rules for empty sections, and for sections without references.

use std::collections::HashSet;

use super::{Linter, Rule};
use crate::diagnostic::Suggestion;
use crate::index::{Declared, Role, SymbolKind};
use crate::schema::MAGIC;

pub(super) fn check(linter: &mut Linter) {
    let index = linter.index;
    let mut sections = index.outline.iter().filter(|declared| declared.kind == SymbolKind::Section).peekable();
    let has_global = index.outline.iter().any(|declared| declared.kind == SymbolKind::Record);
    // In a file without a header, sections are found by their position, so no reference to them is needed (spec 5.4).
    let is_raw = index.records.iter().flat_map(|record| &record.fields).any(|field| {
        let role = field.leaf.annotations.get("role");
        role.is_some_and(|role| role.trim_matches('"') == MAGIC)
    });
    if sections.peek().is_none() {
        return;
    }
    let referenced: HashSet<usize> =
        index.uses.iter().filter(|found| found.role == Role::Reference).map(|found| found.symbol).collect();
    let is_referenced = |section: &Declared| {
        let number = |symbol: &crate::index::Symbol| {
            let place = symbol.definitions.first();
            symbol.kind == SymbolKind::SectionNumber && place.is_some_and(|place| section.extent.contains(&place.start))
        };
        index.symbols.iter().enumerate().any(|(id, symbol)| number(symbol) && referenced.contains(&id))
    };
    for section in sections {
        let (name, number) = (&section.name, &section.detail);
        let is_stream = index.records.iter().any(|r| r.tag.is_none() && section.extent.contains(&r.span.start));
        if section.children.is_empty() && !has_global {
            let message = format!("section `{name}` has no records");
            let finding =
                linter.add(Rule::EmptySection, &section.span, message, "remove the section, or declare its records");
            if !is_referenced(section) {
                finding.suggestion =
                    Some(Suggestion { span: section.extent.clone(), text: String::new(), certain: false });
            }
        } else if is_stream && !is_raw && !is_referenced(section) && !is_mentioned(linter, number) {
            let message = format!("no field refers to the stream section `{name}`");
            let help = format!(
                "refer to the section with `sectionOffset {number}`, `sectionStride {number} 1` or a model; if only \
                 metadata in traces refers to the section, write so in a comment"
            );
            linter.add(Rule::UnreferencedStream, &section.span, message, help);
        }
    }
}

/// Checks whether a comment mentions the section number. Such a comment presumably explains how traces refer to the
/// section.
fn is_mentioned(linter: &Linter, number: &str) -> bool {
    let words = |comment: &crate::lexer::Comment| {
        let text = linter.text.get(comment.span.range()).unwrap_or_default();
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let mut before = "";
        words.any(|word| {
            let found = matches!(before, "sectionStride" | "sectionOffset") && word == number;
            before = word;
            found
        })
    };
    linter.lexed.comments.iter().any(words)
}
