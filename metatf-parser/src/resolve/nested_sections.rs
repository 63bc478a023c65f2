//! Checks byte arrays that contain records of a section (spec 3.7), and whether the section can be nested in this way.

use std::collections::{BTreeMap, BTreeSet};

use super::leaves::Resolved;
use super::model::{Model, ScopeIndex};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::Interpretation;
use crate::span::Span;

/// Maximum nesting depth of sections (spec 3.7).
const MOST_NESTING: usize = 8;

/// Checks the sections that byte arrays refer to.
pub(super) fn check(model: &Model, resolved: &[Resolved], report: &mut Reporter) {
    let mut uses: Vec<(ScopeIndex, Span)> = Vec::new();
    for (number, place) in resolved.iter().flat_map(|r| &r.leaves).filter_map(|l| l.leaf.section.zip(l.nested)) {
        // One property of a section or the top level can apply to many leaves, so several leaves may share a location.
        let scope = model.scopes.iter().position(|s| s.number == Some(number));
        match scope.filter(|scope| !model.top_records(*scope).is_empty()) {
            Some(scope) if !uses.contains(&(scope, place)) => uses.push((scope, place)),
            Some(_) => {}
            None => report.add(
                Draft::new(Code::NestedSection, place, format!("there is no section {number} with records"))
                    .help("the bytes must be tagged records of a section, or elements of a stream section"),
            ),
        }
    }
    let graph = Graph::of(model, resolved, uses.iter().map(|(scope, _)| *scope).collect());
    for (scope, place) in uses {
        if let Some((field, span)) = graph.taker(scope) {
            let message = format!("`{field}` of section {} depends on a stream section", number(model, scope));
            report.add(
                Draft::new(Code::NestedSection, place, message)
                    .label("records in a byte array cannot use stream sections")
                    .also(span, "the field")
                    .help(
                        "only records stored directly in a section can use `sectionOffset`, `sectionStride` and \
                         `predicted`",
                    ),
            );
        }
        if !graph.too_deep.contains(&scope) {
            continue;
        }
        let deep = if graph.nests_itself(scope) {
            format!("section {} contains itself through a byte array", number(model, scope))
        } else {
            format!("sections in byte arrays are nested more than {MOST_NESTING} levels deep")
        };
        report.add(
            Draft::new(Code::NestedSection, place, deep)
                .help("remove the property `section` from one of the fields, so that the field is a plain byte array"),
        );
    }
}

fn number(model: &Model, scope: ScopeIndex) -> u8 {
    model.scopes.get(scope).and_then(|s| s.number).unwrap_or(0)
}

/// The nesting of sections in byte arrays: for each nested section, the sections that its own byte arrays contain.
struct Graph<'a> {
    children: BTreeMap<ScopeIndex, BTreeSet<ScopeIndex>>,
    /// For each section, a field that depends on a stream section.
    takers: BTreeMap<ScopeIndex, (&'a str, Span)>,
    /// The sections that nest too deeply, including sections that nest themselves.
    too_deep: BTreeSet<ScopeIndex>,
}

impl<'a> Graph<'a> {
    fn of(model: &Model, resolved: &'a [Resolved], sections: BTreeSet<ScopeIndex>) -> Self {
        let mut graph = Self { children: BTreeMap::new(), takers: BTreeMap::new(), too_deep: BTreeSet::new() };
        for scope in sections {
            let tops = model.top_records(scope);
            let mut children = BTreeSet::new();
            for leaf in resolved.iter().filter(|r| tops.contains(&r.layout.record)).flat_map(|r| &r.leaves) {
                children.extend(leaf.leaf.section.and_then(|n| model.scopes.iter().position(|s| s.number == Some(n))));
                let takes = matches!(
                    leaf.leaf.interpretation,
                    Interpretation::SectionOffset(_)
                        | Interpretation::SectionStride { .. }
                        | Interpretation::Predicted(_)
                );
                if takes {
                    graph.takers.entry(scope).or_insert((&leaf.leaf.name, leaf.place));
                }
            }
            graph.children.insert(scope, children);
        }
        // Start with all sections. Each round keeps only the sections that nest a remaining section, so after the last
        // round, the remaining sections nest too deeply.
        graph.too_deep.extend(graph.children.keys());
        for _ in 0..MOST_NESTING {
            let stays = |scope: &ScopeIndex| {
                graph.children.get(scope).is_some_and(|c| c.iter().any(|child| graph.too_deep.contains(child)))
            };
            graph.too_deep = graph.too_deep.iter().copied().filter(stays).collect();
        }
        graph
    }

    fn taker(&self, scope: ScopeIndex) -> Option<(&'a str, Span)> {
        self.takers.get(&scope).copied()
    }

    fn nests_itself(&self, scope: ScopeIndex) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![scope]);
        while let Some(at) = open.pop() {
            open.extend(self.children.get(&at).into_iter().flatten().filter(|child| seen.insert(**child)));
        }
        seen.contains(&scope)
    }
}
