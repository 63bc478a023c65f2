//! Resolves the types of fields (spec 3.1): the predefined types, the types that the DTD defines, and nested records. A
//! type is a scope of properties, directly after the block of the record that lists the field.

use super::builtin::Types;
use super::model::{Meaning, Model, RecordIndex, ScopeIndex, TypeMap, VFIELD, Visible};
use super::slots::Slot;
#[cfg(feature = "index")]
use crate::ast::{self, Interpretation, Setting, Value};
use crate::ast::{Name, Typed};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::nearest::nearest;
use crate::vocabulary::{Property, TYPES};

/// Maximum number of types that a type is defined with, one by the next.
const MOST_TYPES: usize = 32;

/// Resolves the types of all scopes and records, and reports unknown types.
pub(super) fn resolve<'a>(model: &mut Model<'a>, types: &'a Types, report: &mut Reporter) {
    let mut scopes: Vec<TypeMap> = Vec::new();
    for (index, scope) in model.scopes.iter().enumerate() {
        let mut map = TypeMap::new();
        for typed in &scope.ast.types {
            defined(typed, report);
            twice(&mut map, typed, "type", report);
            // Meanings follow when the names of all types are known.
            map.entry(typed.name.text).or_insert((typed, Meaning::Nothing));
        }
        debug_assert_eq!(index, scopes.len());
        scopes.push(map);
    }
    for (scope, map) in model.scopes.iter_mut().zip(scopes) {
        scope.types = map;
    }
    for index in 0..model.scopes.len() {
        let found: Vec<(&str, Meaning)> = model
            .scopes
            .get(index)
            .into_iter()
            .flat_map(|scope| &scope.types)
            .map(|(name, (typed, _))| (*name, meaning(model, types, index, typed, true, report)))
            .collect();
        for (name, meaning) in found {
            if let Some((_, slot)) = model.scopes.get_mut(index).and_then(|scope| scope.types.get_mut(name)) {
                *slot = meaning;
            }
        }
    }
    endless(model, report);
    for index in 0..model.records.len() {
        let Some(record) = model.records.get(index) else { continue };
        let (ast, scope) = (record.ast, record.scope);
        let mut map = TypeMap::new();
        for typed in &ast.types {
            if typed.name.text == "tag" {
                let draft = Draft::new(Code::TagProperty, typed.span(), "`tag` cannot have a type");
                report.add(draft.help("list `tag` without a type, and set `tag.width` once, at the top level"));
                continue;
            }
            twice(&mut map, typed, "field", report);
            let meaning = meaning(model, types, scope, typed, false, report);
            map.entry(typed.name.text).or_insert((typed, meaning));
        }
        if let Some(record) = model.records.get_mut(index) {
            record.types = map;
        }
    }
}

/// Reports the definition of a type with the name of a predefined type, or of `tag`.
fn defined(typed: &Typed, report: &mut Reporter) {
    let name = typed.name.text;
    if TYPES.contains(&name) || name == "tag" {
        let message = format!("`{name}` cannot be defined as a type");
        report.add(Draft::new(Code::UnknownType, typed.name.span, message).help("choose a different name"));
    }
}

fn twice(map: &mut TypeMap, typed: &Typed, what: &str, report: &mut Reporter) {
    let Some((first, _)) = map.get(typed.name.text) else { return };
    let verb = if what == "type" { "is defined twice" } else { "has two types" };
    report.add(
        Draft::new(Code::PropertyTwice, typed.span(), format!("{what} `{}` {verb}", typed.name.text))
            .also(first.span(), "first set here")
            .help("remove one of the two types: a type applies to all fields of this name in the record"),
    );
}

/// Resolves a type. If it contains a mistake, reports the mistake.
fn meaning<'a>(
    model: &Model<'a>,
    types: &'a Types,
    scope: ScopeIndex,
    typed: &'a Typed<'a>,
    defines: bool,
    report: &mut Reporter,
) -> Meaning<'a> {
    let Some(word) = typed.word else { return Meaning::Nothing };
    let is_array = matches!(word.text, "bytes" | "cstring" | "text");
    let has_interpretation = typed.settings.iter().any(|s| s.property == Some(Property::Interpretation));
    let wrong = |message: String, help: String| Draft::new(Code::UnknownType, word.span, message).help(help);
    let draft = if TYPES.contains(&word.text) {
        match types.find(word.text, typed.has_length) {
            Some(_) if is_array && has_interpretation => wrong(
                format!("`{}` is a byte array and has no interpretation", word.text),
                "remove the interpretation".into(),
            ),
            Some(_) if defines && word.text == "text" && !typed.has_length => wrong(
                "`text` without a length is a nested record, so only a field can have this type".into(),
                "write `text N`, or use `text` in the field list".into(),
            ),
            Some(found) if word.text == "text" && !typed.has_length => return Meaning::Text(&found.settings),
            Some(found) => return Meaning::Predefined(&found.settings),
            None if typed.has_length => wrong(
                format!("`{}` has no length", word.text),
                "only `bytes`, `text` and `cstring` have a length, as in `bytes 16` or `text length.value`".into(),
            ),
            None => wrong("`bytes` needs a length".into(), "write `bytes 16`, or `bytes length.value`".into()),
        }
    } else if typed.has_length {
        wrong(
            format!("`{}` has no length", word.text),
            "only `bytes`, `text` and `cstring` have a length, as in `bytes 16` or `text length.value`".into(),
        )
    } else if let Some(found) =
        [scope, 0].into_iter().find(|s| model.scopes.get(*s).is_some_and(|s| s.types.contains_key(word.text)))
    {
        return Meaning::Defined(found, word.text);
    } else {
        match model.visible(scope, word.text) {
            Visible::Record(record)
                if model
                    .records
                    .get(record)
                    .is_some_and(|r| !r.ast.block.iter().any(|s| s.is("tag", Property::Value))) =>
            {
                if defines {
                    wrong(
                        format!("`{}` is a record, so only a field can have this type", word.text),
                        "use the record's name in the field list".into(),
                    )
                } else if has_interpretation {
                    wrong(
                        format!("`{}` is a record and has no interpretation", word.text),
                        "remove the interpretation".into(),
                    )
                } else {
                    return Meaning::Record(record);
                }
            }
            Visible::Record(_) | Visible::PredefinedTagged => wrong(
                format!("the tagged record `{}` is not a type", word.text),
                "only untagged records can be nested".into(),
            ),
            Visible::Nothing => unknown(model, scope, &word),
        }
    };
    report.add(draft);
    Meaning::Wrong
}

fn unknown(model: &Model, scope: ScopeIndex, word: &Name) -> Draft {
    let own = [scope, 0].into_iter().filter_map(|s| model.scopes.get(s)).flat_map(|s| s.types.keys().copied());
    let records = [scope, 0].into_iter().filter_map(|s| model.scopes.get(s)).flat_map(|s| s.names.keys().copied());
    let untagged = |name: &&str| match model.visible(scope, name) {
        Visible::Record(record) => model.records.get(record).is_some_and(|r| !r.tagged),
        _ => false,
    };
    let known: Vec<&str> = TYPES.into_iter().chain(own).chain(records.filter(untagged)).collect();
    let draft = Draft::new(Code::UnknownType, word.span, format!("there is no type `{}`", word.text));
    if let Some(same) = foreign(word.text) {
        return draft.help(format!("write `{same}`")).replace(word.span, same);
    }
    match nearest(word.text, known.iter().copied()) {
        // Not an edit that `--fix` makes: a similar type may have another size or sign.
        Some(near) => draft.help(format!("did you mean `{near}`?")),
        None => draft.help(
            "the types are `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, `bytes N`, `text`, `cstring`, untagged records, and \
             types defined as in `type micros: u64;`",
        ),
    }
}

/// Returns the name of a type of another language.
fn foreign(word: &str) -> Option<&'static str> {
    Some(match word {
        "uint8" | "uint8_t" | "byte" | "char" | "u1" | "bool" => "u8",
        "uint16" | "uint16_t" | "ushort" | "word" | "u2" => "u16",
        "uint32" | "uint32_t" | "uint" | "unsigned" | "dword" | "u4" => "u32",
        "uint64" | "uint64_t" | "ulong" | "qword" | "size_t" | "usize" => "u64",
        "int8" | "int8_t" | "s8" | "s1" => "i8",
        "int16" | "int16_t" | "short" | "s16" | "s2" => "i16",
        "int32" | "int32_t" | "int" | "s32" | "s4" => "i32",
        "int64" | "int64_t" | "long" | "s64" | "isize" => "i64",
        "float" | "float32" | "f4" => "f32",
        "double" | "float64" | "f8" => "f64",
        "string" | "str" | "String" | "utf8" => "text",
        _ => return None,
    })
}

/// Reports types that are defined by themselves, or by too many others.
fn endless(model: &mut Model, report: &mut Reporter) {
    let mut wrong = Vec::new();
    for (index, scope) in model.scopes.iter().enumerate() {
        for (name, (typed, _)) in &scope.types {
            if chain(model, index, name).nth(MOST_TYPES).is_some() {
                let message = format!("type `{name}` is defined by itself, or by more than {MOST_TYPES} other types");
                report.add(
                    Draft::new(Code::UnknownType, typed.span(), message)
                        .help("define the type by a predefined type, such as `u32`"),
                );
                wrong.push((index, *name));
            }
        }
    }
    for (index, name) in wrong {
        if let Some((_, meaning)) = model.scopes.get_mut(index).and_then(|scope| scope.types.get_mut(name)) {
            *meaning = Meaning::Wrong;
        }
    }
}

/// Returns a type and the types by which it is defined.
fn chain<'a>(
    model: &Model<'a>,
    scope: ScopeIndex,
    name: &str,
) -> impl Iterator<Item = (ScopeIndex, &'a Typed<'a>, Meaning<'a>)> {
    let find = |scope: ScopeIndex, name: &str| {
        model.scopes.get(scope)?.types.get(name).map(|(typed, meaning)| (scope, *typed, *meaning))
    };
    std::iter::successors(find(scope, name), move |(_, _, meaning)| match meaning {
        Meaning::Defined(scope, name) => find(*scope, name),
        _ => None,
    })
}

/// The properties and the doc of one type.
pub(super) struct Link<'m, 'a> {
    pub(super) slot: Slot<'m, 'a>,
    pub(super) doc: Option<&'a str>,
}

/// Checks whether a mistake in a type has been reported.
pub(super) fn is_wrong(model: &Model, meaning: Meaning) -> bool {
    match meaning {
        Meaning::Wrong => true,
        Meaning::Defined(scope, name) => {
            chain(model, scope, name).take(MOST_TYPES).any(|(_, _, meaning)| matches!(meaning, Meaning::Wrong))
        }
        _ => false,
    }
}

/// Returns the properties that a type contains, nearest first (spec 3.1).
pub(super) fn links<'m, 'a>(model: &'m Model<'a>, typed: &'a Typed<'a>, meaning: Meaning<'a>) -> Vec<Link<'m, 'a>> {
    let mut out = vec![Link { slot: Slot::of(&typed.settings), doc: typed.doc.as_deref() }];
    match meaning {
        Meaning::Predefined(settings) => out.push(Link { slot: Slot::of(settings), doc: None }),
        Meaning::Defined(scope, name) => {
            for (scope, typed, meaning) in chain(model, scope, name).take(MOST_TYPES) {
                let statements = model.scopes.get(scope).and_then(|s| s.slots.get(&[typed.name.text]));
                out.extend(statements.map(|slot| Link { slot, doc: None }));
                out.push(Link { slot: Slot::of(&typed.settings), doc: typed.doc.as_deref() });
                if let Meaning::Predefined(settings) = meaning {
                    out.push(Link { slot: Slot::of(settings), doc: None });
                }
            }
        }
        Meaning::Nothing | Meaning::Wrong | Meaning::Text(_) | Meaning::Record(_) => {}
    }
    out
}

/// Reports properties that a block sets although the type in the field list does (spec 3.5).
pub(super) fn conflicts(model: &Model, report: &mut Reporter) {
    let records = model.records.iter().map(|record| (&record.types, &record.slots));
    let scopes = model.scopes.iter().map(|scope| (&scope.types, &scope.slots));
    for (types, slots) in records.chain(scopes) {
        for (name, (typed, meaning)) in types {
            let path: &[&str] = if matches!(meaning, Meaning::Text(_)) { &[name, "data"] } else { &[name] };
            let Some(slot) = slots.get(path) else { continue };
            let predefined = match meaning {
                Meaning::Predefined(settings) | Meaning::Text(settings) => *settings,
                _ => &[],
            };
            // An interpretation in the type replaces that of the predefined type, so it is reported only once.
            let mut set: Vec<Property> = typed.settings.iter().chain(predefined).filter_map(|s| s.property).collect();
            set.dedup();
            for second in set.into_iter().filter_map(|property| slot.get(property)) {
                let message = format!("`{}.{}` is set twice", second.path_text(), second.name.text);
                report.add(
                    Draft::new(Code::PropertyTwice, second.target(), message)
                        .also(typed.span(), "the type sets it")
                        .help("change the type, or remove the property"),
                );
            }
        }
    }
}

/// Returns the record that a typed field nests.
pub(super) fn nested(meaning: Meaning) -> Option<RecordIndex> {
    match meaning {
        Meaning::Text(_) => Some(VFIELD),
        Meaning::Record(record) => Some(record),
        Meaning::Nothing | Meaning::Wrong | Meaning::Predefined(_) | Meaning::Defined(..) => None,
    }
}

/// Returns the statements for which a type is shorthand, one for each property that it sets.
#[cfg(feature = "index")]
pub(super) fn statements(model: &Model, typed: &Typed, meaning: Meaning, text: &str) -> Vec<String> {
    let name = typed.name.text;
    if let Meaning::Text(settings) = meaning {
        let value = |setting: &Setting| written(&setting.value).unwrap_or_default();
        return settings.iter().map(|s| format!("{name}.data.{} = {};", s.name.text, value(s))).collect();
    }
    let mut seen: Vec<&str> = Vec::new();
    let mut out = Vec::new();
    for setting in links(model, typed, meaning).iter().flat_map(|link| link.slot.settings()) {
        if seen.contains(&setting.name.text) {
            continue;
        }
        seen.push(setting.name.text);
        let source = || text.get(setting.value_span.range()).map(|value| value.split_whitespace().collect::<Vec<_>>());
        let value = match written(&setting.value) {
            Some(value) => value,
            None => source().unwrap_or_default().join(" "),
        };
        let property = if setting.quoted { format!("\"{}\"", setting.name.text) } else { setting.name.text.to_owned() };
        out.push(format!("{name}.{property} = {value};"));
    }
    out
}

/// Returns the text of a value that the DTD does not contain as it would be in a statement.
#[cfg(feature = "index")]
fn written(value: &Value) -> Option<String> {
    match value {
        Value::Bytes(length) => Some(format!("bytes {}", length.magnitude)),
        Value::Until(end) => Some(format!("until {}", end.magnitude)),
        Value::Text(text) if !text.contains(['"', '\\', '\n', '\t', '\r']) => Some(format!("\"{text}\"")),
        Value::Expression(expression) => Some(expression.as_int()?.natural()?.to_string()),
        Value::Interpretation(Interpretation { word, arguments }) => {
            let mut out = word.name().to_owned();
            for argument in arguments {
                let ast::Argument::Number(number) = argument else { return None };
                out += &format!(" {}{}", if number.negative { "-" } else { "" }, number.magnitude);
            }
            Some(out)
        }
        _ => None,
    }
}
