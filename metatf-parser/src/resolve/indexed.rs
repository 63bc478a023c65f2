//! Builds the index of a text, which maps names to items (spec 3.1) as far as the text can be resolved.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::layout::RawLeaf;
use super::leaves::Resolved;
use super::lookup::Lookup;
use super::model::{Field, Meaning, Model, RecordIndex, ScopeIndex, VFIELD, Visible};
use super::nesting::walk;
use super::types;
use crate::ast::{self, Argument, Count, FieldItem, Name, Setting, Step, Value};
use crate::index::{Declared, Expansion, Index, LaidOut, ResolvedField, Role, Set, Symbol, SymbolId, SymbolKind, Use};
use crate::schema::{InterpretationWord, Leaf, Origin, Width};
use crate::span::Span;
use crate::vocabulary::Property;

/// Builds the index without its diagnostics.
pub(super) fn build(model: &Model, resolved: Vec<Resolved>, text: &str) -> Index {
    let mut fields = 0;
    let first_fields = model.records.iter().map(|record| {
        fields += record.fields.len();
        fields - record.fields.len()
    });
    let first_fields = first_fields.collect();
    let mut builder = Builder {
        model,
        resolved: &resolved,
        symbols: Vec::new(),
        ids: HashMap::new(),
        record_ids: vec![None; model.records.len()],
        first_fields,
        field_ids: vec![None; fields],
        families: Vec::new(),
        uses: Vec::new(),
        lists: HashMap::new(),
        shared: HashMap::new(),
        joined: HashSet::new(),
        visits: MOST_VISITS,
    };
    builder.sections();
    for index in VFIELD + 1..model.records.len() {
        builder.record(index);
    }
    for index in 0..model.scopes.len() {
        builder.scope(index);
    }
    let index = builder.finish(text);
    let records = resolved.into_iter().map(|record| laid_out(model, record)).collect();
    Index { records, expansions: expansions(model, text), ..index }
}

/// Maximum number of records to visit for scope expressions and models. Real DTDs need a few thousand visits; further
/// references of a hostile text are not indexed.
const MOST_VISITS: usize = 1 << 22;

/// The identity of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key<'a> {
    Section(ScopeIndex),
    Number(ScopeIndex),
    Record(RecordIndex),
    Field(RecordIndex, &'a str),
    /// All fields with this name for which a scope (a section or the top level) sets properties.
    Scoped(ScopeIndex, &'a str),
}

/// The start of a path, which is a field of one record, or a field of every record that a scope's property applies to.
#[derive(Clone, Copy)]
enum Start<'a> {
    Block(RecordIndex),
    /// A scope and a field whose property the scope sets.
    Scope(ScopeIndex, &'a str),
}

struct Builder<'m, 'a> {
    model: &'m Model<'a>,
    resolved: &'m [Resolved<'a>],
    symbols: Vec<Symbol>,
    /// IDs of the symbols for sections, and for fields whose properties a scope sets.
    ids: HashMap<Key<'a>, Option<SymbolId>>,
    record_ids: Vec<Option<SymbolId>>,
    /// The index of each record's first field in `field_ids`, in the order of the model.
    first_fields: Vec<usize>,
    field_ids: Vec<Option<SymbolId>>,
    /// For each symbol, another symbol of the same family, or the symbol itself.
    families: Vec<SymbolId>,
    uses: Vec<Use>,
    /// For each scope and field name, the records that list the field. They are records of the scope or nested in
    /// records of the scope.
    lists: HashMap<ScopeIndex, HashMap<&'a str, Vec<RecordIndex>>>,
    /// By name, the symbols of fields that share their previous value with other fields of the same name.
    shared: HashMap<&'a str, SymbolId>,
    /// The names whose properties a scope sets, if the fields of this name have joined the family.
    joined: HashSet<(ScopeIndex, &'a str)>,
    /// Remaining part of [`MOST_VISITS`].
    visits: usize,
}

impl<'a> Builder<'_, 'a> {
    fn sections(&mut self) {
        for (index, scope) in self.model.scopes.iter().enumerate() {
            let Some(head) = &scope.ast.head else { continue };
            self.add(head.name.span, Key::Section(index), head.name.text, Role::Definition);
            if let Some(number) = head.number {
                self.add(number.span, Key::Number(index), "", Role::Definition);
            }
        }
    }

    /// Returns the slot that stores a symbol's ID.
    fn slot(&mut self, key: Key<'a>) -> Option<&mut Option<SymbolId>> {
        match key {
            Key::Record(index) => self.record_ids.get_mut(index),
            Key::Field(index, name) => {
                let field = self.model.records.get(index)?.place_of(name)?;
                self.field_ids.get_mut(self.first_fields.get(index)? + field)
            }
            Key::Section(_) | Key::Number(_) | Key::Scoped(..) => Some(self.ids.entry(key).or_default()),
        }
    }

    /// Returns the ID of a symbol, creating the symbol if it is new.
    fn id(&mut self, key: Key<'a>, name: &str) -> SymbolId {
        let id = self.symbols.len();
        if let Some(slot) = self.slot(key) {
            match slot {
                Some(known) => return *known,
                None => *slot = Some(id),
            }
        }
        self.families.push(id);
        let (kind, doc, predefined) = match key {
            Key::Section(index) | Key::Number(index) => {
                let by_name = matches!(key, Key::Section(_));
                let kind = if by_name { SymbolKind::Section } else { SymbolKind::SectionNumber };
                (kind, self.model.scopes.get(index).and_then(|s| s.ast.doc.as_deref()), false)
            }
            Key::Record(index) => {
                let doc = self.model.records.get(index).and_then(|r| r.ast.doc.as_deref());
                (SymbolKind::Record, doc, index == VFIELD)
            }
            Key::Field(index, name) => (SymbolKind::Field, None, index == VFIELD || name == "tag"),
            Key::Scoped(_, name) => (SymbolKind::Field, None, name == "tag"),
        };
        let doc = doc.map(str::to_owned);
        let name = name.to_owned();
        self.symbols.push(Symbol { kind, name, doc, definitions: Vec::new(), family: id, predefined });
        id
    }

    fn add(&mut self, span: Span, key: Key<'a>, name: &str, role: Role) -> SymbolId {
        let symbol = self.id(key, name);
        if !span.is_predefined() {
            self.uses.push(Use { span: span.range(), symbol, role });
            if role == Role::Definition
                && let Some(symbol) = self.symbols.get_mut(symbol)
            {
                symbol.definitions.push(span.range());
            }
        }
        symbol
    }

    /// Returns the symbol that represents the family of `id`, and shortens the path to it.
    fn family(&mut self, mut id: SymbolId) -> SymbolId {
        while let Some(next) = self.families.get(id).copied().filter(|next| *next != id) {
            let after = self.families.get(next).copied().unwrap_or(next);
            self.families.get_mut(id).into_iter().for_each(|family| *family = after);
            id = after;
        }
        id
    }

    fn join(&mut self, one: SymbolId, other: SymbolId) {
        let (one, other) = (self.family(one), self.family(other));
        if let Some(family) = self.families.get_mut(one.max(other)) {
            *family = one.min(other);
        }
    }

    fn record(&mut self, index: RecordIndex) {
        let Some(record) = self.model.records.get(index) else { return };
        self.add(record.ast.name.span, Key::Record(index), record.ast.name.text, Role::Definition);
        let mut listed: Vec<(&'a Name<'a>, bool)> = Vec::new();
        walk(&record.ast.fields, 0, &mut |name, place| listed.push((name, place.count)));
        let mut known = std::collections::HashSet::new();
        for (name, is_count) in listed {
            match record.field(name.text) {
                Some(Field::Record(nested)) if !is_count && !record.types.contains_key(name.text) => {
                    self.add(name.span, Key::Record(nested), name.text, Role::Reference);
                }
                Some(Field::Record(_)) if is_count => {}
                Some(Field::Wrong) => {}
                Some(Field::Leaf | Field::Record(_)) | None => {
                    let role = if known.insert(name.text) { Role::Definition } else { Role::Reference };
                    self.add(name.span, Key::Field(index, name.text), name.text, role);
                }
            }
        }
        self.counts(&record.ast.fields, index);
        for typed in &record.ast.types {
            let meaning = record.types.get(typed.name.text).filter(|(known, _)| std::ptr::eq(*known, typed));
            self.typed(typed, meaning.map(|(_, meaning)| *meaning), Start::Block(index), record.scope);
        }
        for setting in &record.ast.block {
            let at = self.path(&setting.path, &[index], Role::Setting);
            let start = Start::Block(index);
            self.value(setting, start, record.scope);
            if let (Some(Property::Previous), Some(at), Some(name)) = (setting.property, at, setting.path.last())
                && matches!(setting.value, Value::Word("shared"))
            {
                let first = *self.shared.entry(name.text).or_insert(at);
                self.join(first, at);
            }
        }
    }

    /// Adds the uses in a type.
    fn typed(&mut self, typed: &'a ast::Typed<'a>, meaning: Option<Meaning<'a>>, start: Start<'a>, scope: ScopeIndex) {
        if let (Some(word), Some(meaning)) = (typed.word, meaning) {
            match meaning {
                Meaning::Record(record) => {
                    self.add(word.span, Key::Record(record), word.text, Role::Reference);
                }
                Meaning::Defined(scope, name) => {
                    self.scoped(scope, name);
                    self.add(word.span, Key::Scoped(scope, name), name, Role::Reference);
                }
                Meaning::Nothing | Meaning::Wrong | Meaning::Predefined(_) | Meaning::Text(_) => {}
            }
        }
        typed.settings.iter().for_each(|setting| self.value(setting, start, scope));
    }

    /// Visits the expressions used as counts, which nest at most 32 levels deep.
    fn counts(&mut self, item: &'a FieldItem<'a>, record: RecordIndex) {
        match item {
            FieldItem::Name(_) => {}
            FieldItem::Group(items) => items.iter().for_each(|item| self.counts(item, record)),
            FieldItem::Repeat { count, body, .. } => {
                if let Count::Computed(computed) = count {
                    self.expression(&computed.expression, Start::Block(record));
                }
                self.counts(body, record);
            }
        }
    }

    fn scope(&mut self, index: ScopeIndex) {
        let Some(scope) = self.model.scopes.get(index) else { return };
        for typed in &scope.ast.types {
            let name = typed.name.text;
            self.scoped(index, name);
            self.add(typed.name.span, Key::Scoped(index, name), name, Role::Definition);
            let meaning = scope.types.get(name).filter(|(known, _)| std::ptr::eq(*known, typed));
            self.typed(typed, meaning.map(|(_, meaning)| *meaning), Start::Scope(index, name), index);
        }
        for setting in &scope.ast.properties {
            let [name] = setting.path.as_slice() else { continue };
            self.scoped(index, name.text);
            self.add(name.span, Key::Scoped(index, name.text), name.text, Role::Setting);
            self.value(setting, Start::Scope(index, name.text), index);
        }
    }

    /// Joins the symbol of a name whose properties a scope sets with the fields of that name.
    fn scoped(&mut self, index: ScopeIndex, name: &'a str) {
        if name == "tag" || !self.joined.insert((index, name)) {
            return;
        }
        let symbol = self.id(Key::Scoped(index, name), name);
        for record in self.records_with(index, name) {
            let field = self.id(Key::Field(record, name), name);
            self.join(symbol, field);
            let places = self.symbols.get(field).map(|s| s.definitions.clone()).unwrap_or_default();
            self.symbols.get_mut(symbol).into_iter().for_each(|s| s.definitions.extend_from_slice(&places));
        }
    }

    /// Returns the records that list a field. They are records of a scope or nested in records of the scope.
    fn records_with(&mut self, scope: ScopeIndex, field: &str) -> Vec<RecordIndex> {
        let model = self.model;
        let lists = self.lists.entry(scope).or_insert_with(|| {
            let mut lists: HashMap<&'a str, Vec<RecordIndex>> = HashMap::new();
            for record in super::unused::reached(model, scope) {
                for (name, field) in model.records.get(record).into_iter().flat_map(|r| &r.fields) {
                    if *field == Field::Leaf {
                        lists.entry(name).or_default().push(record);
                    }
                }
            }
            lists
        });
        lists.get(field).cloned().unwrap_or_default()
    }

    /// Adds a use of each name in a path. The path starts in those records of `starts` that contain a field with its
    /// first name. The symbols that a name of the path denotes in these records form one family. Returns the symbol of
    /// the last name.
    fn path(&mut self, path: &[Name<'a>], starts: &[RecordIndex], role: Role) -> Option<SymbolId> {
        if let ([name], [record]) = (path, starts)
            && self.model.records.get(*record).and_then(|r| r.field(name.text)) == Some(Field::Leaf)
        {
            return Some(self.add(name.span, Key::Field(*record, name.text), name.text, role));
        }
        let mut at: Vec<RecordIndex> = starts.to_vec();
        let mut last = None;
        for name in path {
            let mut next = Vec::new();
            let mut found: Vec<Key<'a>> = Vec::new();
            for record in at {
                match self.model.records.get(record).and_then(|r| r.field(name.text)) {
                    Some(Field::Leaf) => found.push(Key::Field(record, name.text)),
                    Some(Field::Record(nested)) => {
                        let typed = self.model.records.get(record).is_some_and(|r| r.types.contains_key(name.text));
                        found.push(if typed { Key::Field(record, name.text) } else { Key::Record(nested) });
                        next.push(nested);
                    }
                    Some(Field::Wrong) | None => {}
                }
            }
            last = Some(self.one_of(name, &found, role)?);
            next.sort_unstable();
            next.dedup();
            at = next;
        }
        last
    }

    /// Adds a use of a name that may denote any one of several symbols.
    fn one_of(&mut self, name: &Name<'a>, keys: &[Key<'a>], role: Role) -> Option<SymbolId> {
        let (first, others) = keys.split_first()?;
        let symbol = self.add(name.span, *first, name.text, role);
        for other in others {
            let other = self.id(*other, name.text);
            self.join(symbol, other);
        }
        Some(symbol)
    }

    fn value(&mut self, setting: &'a Setting<'a>, start: Start<'a>, scope: ScopeIndex) {
        match (&setting.value, setting.property) {
            (Value::Expression(expression), Some(Property::Section)) => {
                expression.as_int().into_iter().for_each(|number| self.number(number));
            }
            (Value::Expression(expression), _) => self.expression(expression, start),
            (Value::Interpretation(interpretation), _) => {
                for (kind, argument) in interpretation.word.arguments().iter().zip(&interpretation.arguments) {
                    match (kind, argument) {
                        (_, Argument::Base(reference)) => {
                            let header = self.header(interpretation.word, &reference.path);
                            self.of_record(&reference.path, header.unwrap_or(scope));
                        }
                        (_, Argument::Model(predicted)) => self.predicted(predicted, start, scope),
                        (
                            crate::schema::Argument::Stream | crate::schema::Argument::NumberStream,
                            Argument::Number(number),
                        ) => self.number(*number),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the section of the header of a file, if a value refers to one of its fields.
    fn header(&self, word: InterpretationWord, path: &[Name]) -> Option<ScopeIndex> {
        let record = path.first().filter(|_| word == InterpretationWord::Default)?;
        let is_it = |index: RecordIndex| self.model.records.get(index).is_some_and(|r| r.ast.name.text == record.text);
        self.model.scopes.iter().position(|scope| scope.stream.is_some_and(is_it))
    }

    /// Adds a use of the section with this number.
    fn number(&mut self, number: ast::Int) {
        let value = number.natural().and_then(|n| u8::try_from(n).ok());
        let scope = self.model.scopes.iter().position(|s| value.is_some_and(|n| n != 0) && s.number == value);
        if let Some(scope) = scope {
            self.add(number.span, Key::Number(scope), "", Role::Reference);
        }
    }

    fn starts(&mut self, start: Start<'a>) -> Vec<RecordIndex> {
        match start {
            Start::Block(record) => vec![record],
            // The path may start in a record that lists the field, or in any record of the scope, which may nest such a
            // record.
            Start::Scope(scope, field) => {
                let mut records = self.records_with(scope, field);
                if self.visit(self.model.records.len()) {
                    records.extend(super::unused::reached(self.model, scope));
                }
                records
            }
        }
    }

    /// Subtracts this many visits from the remaining visits, and returns whether any remain.
    fn visit(&mut self, records: usize) -> bool {
        self.visits = self.visits.saturating_sub(records);
        self.visits > 0
    }

    fn expression(&mut self, expression: &'a ast::Expression<'a>, start: Start<'a>) {
        if !expression.steps.iter().any(|step| matches!(step, Step::Reference(_))) {
            return;
        }
        let starts = self.starts(start);
        for step in &expression.steps {
            if let Step::Reference(reference) = step {
                self.path(&reference.path, &starts, Role::Reference);
            }
        }
    }

    /// Adds the uses of a path `RECORD.FIELD`.
    fn of_record(&mut self, path: &[Name<'a>], scope: ScopeIndex) {
        let Some((record, path)) = path.split_first() else { return };
        let visible = match self.model.visible(scope, record.text) {
            Visible::Record(index) => vec![index],
            // At the top level, the name denotes the record in each section.
            _ if scope == 0 => self.model.scopes.iter().filter_map(|s| s.names.get(record.text)).copied().collect(),
            _ => Vec::new(),
        };
        let keys: Vec<_> = visible.iter().map(|index| Key::Record(*index)).collect();
        self.one_of(record, &keys, Role::Reference);
        if self.path(path, &visible, Role::Reference).is_none() {
            self.anywhere(path, &visible);
        }
    }

    /// Adds a use of the first field with this name in a record, including fields of nested records.
    fn anywhere(&mut self, path: &[Name<'a>], records: &[RecordIndex]) {
        let [name] = path else { return };
        if !self.visit(self.resolved.len() * records.len().max(1)) {
            return;
        }
        let layouts = self.resolved.iter().map(|r| &r.layout).filter(|l| records.contains(&l.record));
        let keys: Vec<_> = layouts
            .filter_map(|layout| {
                let leaf = layout.leaves.iter().find(|leaf| leaf.name == name.text)?;
                Some(Key::Field(layout.frames.get(leaf.frame)?.record, name.text))
            })
            .collect();
        self.one_of(name, &keys, Role::Reference);
    }

    fn predicted(&mut self, model: &'a ast::Model<'a>, start: Start<'a>, scope: ScopeIndex) {
        for predictor in &model.predictors {
            let size = match &predictor.kind {
                ast::PredictorKind::Allocated(size) => Some(size),
                _ => None,
            };
            for path in size.into_iter().chain(&predictor.by) {
                let starts = self.starts(start);
                if self.path(&path.names, &starts, Role::Reference).is_some() {
                    continue;
                }
                match path.names.as_slice() {
                    [_] => self.anywhere(&path.names, &starts),
                    names => self.of_record(names, scope),
                }
            }
        }
    }

    fn finish(mut self, text: &str) -> Index {
        for id in 0..self.symbols.len() {
            let family = self.family(id);
            if let Some(symbol) = self.symbols.get_mut(id) {
                symbol.family = family;
                symbol.definitions.sort_by_key(|place| place.start);
                symbol.definitions.dedup();
                if symbol.kind == SymbolKind::SectionNumber
                    && let Some(place) = symbol.definitions.first()
                {
                    symbol.name = text.get(place.clone()).unwrap_or_default().to_owned();
                }
            }
        }
        // Remove duplicate uses. A path that was tried with two meanings has added its first names twice.
        self.uses.sort_by_key(|u| (u.span.start, u.role != Role::Definition));
        self.uses.dedup_by_key(|u| u.span.start);
        let outline = self.model.scopes.iter().flat_map(|scope| declared_scope(scope.ast)).collect();
        Index { symbols: self.symbols, uses: self.uses, outline, ..Index::default() }
    }
}

/// Returns the statements that each type of the text means.
fn expansions(model: &Model, text: &str) -> Vec<Expansion> {
    let records = model.records.iter().map(|record| &record.types);
    let scopes = model.scopes.iter().map(|scope| &scope.types);
    let mut out = Vec::new();
    for (typed, meaning) in records.chain(scopes).flat_map(|types| types.values()) {
        let values = typed.settings.iter().map(|setting| setting.value_span);
        let Some(start) = typed.word.map(|word| word.span).into_iter().chain(values).min() else { continue };
        let (span, word) = (start.to(typed.span()).range(), typed.word.map_or(start, |word| word.span).range());
        let record = types::nested(*meaning).and_then(|nested| model.records.get(nested)).map(|r| r.name().to_owned());
        let statements = types::statements(model, typed, *meaning, text);
        out.push(Expansion { span, word, record, statements });
    }
    out.sort_by_key(|expansion| expansion.span.start);
    out
}

fn declared_scope(scope: &ast::Scope) -> Vec<Declared> {
    let records = scope.records.iter().map(declared_record).collect();
    let (Some(head), Some(extent)) = (&scope.head, scope.extent) else { return records };
    vec![Declared {
        kind: SymbolKind::Section,
        name: head.name.text.to_owned(),
        detail: head.number.map(|n| n.magnitude.to_string()).unwrap_or_default(),
        span: head.name.span.range(),
        extent: around(extent, head.name.span),
        children: records,
    }]
}

fn declared_record(record: &ast::Record) -> Declared {
    let mut children = Vec::new();
    walk(&record.fields, 0, &mut |name, _| {
        let (span, extent) = (name.span.range(), name.span.range());
        let (name, detail) = (name.text.to_owned(), String::new());
        children.push(Declared { kind: SymbolKind::Field, name, detail, span, extent, children: Vec::new() });
    });
    let names: Vec<&str> = children.iter().take(20).map(|field| field.name.as_str()).collect();
    let more = if children.len() > names.len() { ", ..." } else { "" };
    Declared {
        kind: SymbolKind::Record,
        name: record.name.text.to_owned(),
        detail: format!("({}{more})", names.join(", ")),
        span: record.name.span.range(),
        extent: around(record.extent, record.name.span),
        children,
    }
}

fn around(extent: Span, name: Span) -> Range<usize> {
    extent.start().min(name.start())..extent.end().max(name.end())
}

fn laid_out(model: &Model, Resolved { layout, leaves, tag }: Resolved) -> LaidOut {
    let record = model.records.get(layout.record);
    let mut offset = Some(0);
    let fields = layout.leaves.iter().zip(leaves).map(|(raw, found)| {
        let settings = Lookup::new(model, &layout, raw).all().into_iter().map(set).collect();
        let bytes = if found.broken { None } else { stored(&found.leaf, raw) };
        let here = if raw.repeats.is_empty() { offset } else { None };
        offset = offset.zip(bytes).map(|(at, bytes)| at + bytes);
        ResolvedField { site: raw.site.range(), leaf: found.leaf, broken: found.broken, offset: here, settings }
    });
    LaidOut {
        fields: fields.collect(),
        name: record.map_or_else(String::new, |r| r.name().to_owned()),
        span: record.map_or(0..0, |r| r.ast.name.span.range()),
        block: record.and_then(|r| r.ast.brace).map(Span::end),
        tag: tag.map(|tag| tag.number),
    }
}

/// Returns the number of bytes that a leaf occupies, if this number is the same in every record.
fn stored(leaf: &Leaf, raw: &RawLeaf) -> Option<u64> {
    let bytes = match leaf.width {
        _ if !leaf.interpretation.stores() => 0,
        Width::Unset => 0,
        Width::Number(bytes) => bytes.into(),
        Width::Array(bytes) => bytes.into(),
        Width::Variable(_) | Width::Until(_) | Width::Rest => return None,
    };
    (raw.repeats.is_empty() || bytes == 0).then_some(bytes)
}

fn set((property, setting, scope): (Property, &Setting, &Origin)) -> Set {
    let predefined = setting.value_span.is_predefined();
    let span = (!predefined).then(|| setting.target().range());
    let value_span = (!predefined).then(|| setting.value_span.range());
    Set { property, span, value_span, scope: scope.clone() }
}
