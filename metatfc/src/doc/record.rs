//! Documents a record by its comment, a drawing, its fields, and examples.

use super::Places;
use super::examples::{Example, Field};
use super::html::{Link, line, markup, prose};
use super::layout;
use crate::{fields, output};
use metatf_parser::Property;
use metatf_parser::index::{LaidOut, ResolvedField};
use metatf_parser::schema::{Dtd, Format, Leaf, LeafId, Occurrence, Record};
use std::fmt::Write as _;

/// A record, and all information about it.
pub(super) struct Part<'d> {
    pub(super) dtd: &'d Dtd,
    pub(super) record: &'d Record,
    pub(super) places: &'d Places<'d>,
    /// The origins of the record's properties, and the offsets of its fields.
    pub(super) laid_out: Option<&'d LaidOut>,
    pub(super) examples: &'d [Example],
    pub(super) trace: Option<&'d str>,
}

/// Returns the tag of a record as text.
pub(super) fn tag(record: &Record) -> String {
    match record.tag {
        _ if record.catch_all => "all other tags".to_owned(),
        Some(tag) => tag.to_string(),
        None => "none".to_owned(),
    }
}

impl Part<'_> {
    pub(super) fn write(&self, out: &mut String) {
        let (record, anchor) = (self.record, Link(&self.record.name));
        let _ = writeln!(
            out,
            "<h2 id=\"{anchor}\"><a href=\"#{anchor}\">{}</a> <span class=\"tag\">tag {}</span></h2>",
            markup(&record.name),
            tag(record)
        );
        prose(out, record.doc.as_deref());
        if !record.was.is_empty() {
            let _ = writeln!(out, "<p>Was {}.</p>", markup(&record.was.join(", ")));
        }
        let names = self.names();
        let parts: Vec<layout::Part<'_>> = (0_usize..)
            .zip(record.leaves.iter().zip(&names))
            .map(|(index, (leaf, name))| layout::Part {
                name,
                leaf,
                occurrence: self.occurrence(index),
                offset: self.field(index).and_then(|field| field.offset),
                tag_width: self.dtd.tag_width,
            })
            .collect();
        layout::draw(out, &record.name, &parts);
        out.push_str(
            "<div class=\"scroll\"><table>\n<tr><th class=\"n\">byte</th><th>field</th><th>width</th><th>interpretation</th>\
             <th>form</th><th>description</th><th>set by</th></tr>\n",
        );
        for (index, (leaf, name)) in record.leaves.iter().zip(&names).enumerate() {
            self.row(out, index, leaf, name);
        }
        out.push_str("</table></div>\n");
        for example in self.examples {
            self.example(out, example, &names);
        }
    }

    /// Returns the names of the leaves, in order.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.record.leaves.iter().map(|leaf| leaf.path.join(".")).collect();
        for (id, name) in fields::names(self.record) {
            if let Some(place) = names.get_mut(usize::from(id.0)) {
                *place = name;
            }
        }
        names
    }

    fn field(&self, index: usize) -> Option<&ResolvedField> {
        self.laid_out?.fields.get(index)
    }

    fn occurrence(&self, leaf: usize) -> Occurrence {
        u8::try_from(leaf).map_or(Occurrence::Once, |leaf| self.record.occurrence(LeafId(leaf)))
    }

    fn row(&self, out: &mut String, index: usize, leaf: &Leaf, name: &str) {
        let offset = self.field(index).and_then(|f| f.offset).map(|offset| offset.to_string()).unwrap_or_default();
        let width = if leaf.is_tag() {
            self.dtd.tag_width.to_string()
        } else if leaf.computed.is_some() {
            "0".to_owned()
        } else {
            self.record.width_text(&leaf.width)
        };
        let repeated = match self.occurrence(index) {
            Occurrence::Once => "",
            Occurrence::Optional => ", optional",
            Occurrence::Repeated => ", repeated",
        };
        let mut interpretation = self.dtd.interpretation_text(self.record, leaf);
        if let Some(value) = leaf.constant.filter(|_| !leaf.is_tag()) {
            let _ = write!(interpretation, ", always {value}");
        }
        let anchor = format!("{}.{}", Link(&self.record.name), Link(name));
        let _ = writeln!(
            out,
            "<tr id=\"{anchor}\"><td class=\"n\">{offset}</td><td><a href=\"#{anchor}\">{}</a></td><td>{}{repeated}</td>\
             <td><code>{}</code></td><td>{}</td><td>{}</td><td class=\"from\">{}</td></tr>",
            markup(name),
            markup(&width),
            markup(&interpretation),
            form(leaf),
            line(&leaf.doc.as_deref().unwrap_or_default().replace('\n', " ")),
            self.origins(index),
        );
    }

    /// Returns the scope that sets each property, and the line in the DTD.
    fn origins(&self, index: usize) -> String {
        let Some(field) = self.field(index) else { return String::new() };
        let origins = field.settings.iter().filter(|set| set.property != Property::Doc).filter_map(|set| {
            let at = self.places.line(set.span.as_ref()?.start);
            let scope = line(&self.places.index.scope(set));
            Some(format!("{}: <a href=\"dtd.html#L{at}\">{scope}, line {at}</a>", set.property.name()))
        });
        origins.collect::<Vec<_>>().join("<br>")
    }

    fn example(&self, out: &mut String, example: &Example, names: &[String]) {
        let trace = markup(self.trace.unwrap_or_default());
        let _ = writeln!(
            out,
            "<h3>Record {} of {trace}</h3>\n<div class=\"scroll\"><table>\n<tr><th>field</th><th>bytes</th><th>value</th></tr>",
            example.number
        );
        for field in &example.fields {
            let leaf = self.record.leaves.get(usize::from(field.leaf));
            let name = names.get(usize::from(field.leaf)).map_or("?", String::as_str);
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td><code>{}</code></td><td>{}</td></tr>",
                markup(name),
                hex(field),
                markup(&value(leaf, field))
            );
        }
        out.push_str("</table></div>\n");
    }
}

/// Returns the format, unit, earlier names, named values and annotations of a leaf.
fn form(leaf: &Leaf) -> String {
    let mut parts = Vec::new();
    parts.extend(Some(leaf.format.name()).filter(|name| !name.is_empty()).map(str::to_owned));
    parts.extend(leaf.unit.as_ref().map(|unit| format!("in {}", markup(unit))));
    parts.extend((!leaf.was.is_empty()).then(|| format!("was {}", markup(&leaf.was.join(", ")))));
    let list = leaf.names.list().iter().map(|(n, name)| format!("{} {}", number(leaf, *n), markup(name)));
    parts.extend(list);
    parts.extend(leaf.annotations.iter().map(|(key, value)| format!("{} = {}", markup(key), markup(value))));
    parts.join("<br>")
}

fn number(leaf: &Leaf, n: u64) -> String {
    if leaf.format == Format::Signed { n.cast_signed().to_string() } else { n.to_string() }
}

fn hex(field: &Field) -> String {
    let mut out = String::new();
    for byte in &field.bytes {
        out.extend(fields::hex_digits(*byte).map(char::from));
        out.push(' ');
    }
    if field.length > field.bytes.len() {
        let _ = write!(out, "… ({})", output::count(field.length, "byte"));
    }
    out.truncate(out.trim_end().len());
    out
}

fn value(leaf: Option<&Leaf>, field: &Field) -> String {
    let mut out = String::new();
    match (leaf, field.number) {
        (Some(leaf), Some(n)) => fields::number(&mut out, leaf, n),
        (Some(leaf), None) => match leaf.format.text_of_bytes(&field.bytes) {
            Some(text) => fields::quoted(&mut out, text),
            None => out = output::count(field.length, "byte"),
        },
        (None, _) => {}
    }
    out
}
