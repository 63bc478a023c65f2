//! The table from which the runtime's `records!` generates the format's tables and the functions of sections. The
//! comment of the macro describes the rows.

use metatf_parser::schema::{Dtd, RawFile, Section, SectionId};
use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::enums::{any_bytes, element_bytes, item_type};
use super::{generic, number, records};
use crate::expect::Expected;
use crate::model::{Model, Stream, Tagged};
use crate::names::ident;
use crate::options::Options;

/// Emits the `records!` invocation.
pub(super) fn emit(
    dtd: &Dtd,
    model: &Model,
    expected: &[Expected],
    options: &Options,
) -> TokenStream {
    let source = &options.source;
    let fingerprint: Literal =
        format!("{:#018x}", dtd.fingerprint()).parse().unwrap_or_else(|_| number(dtd.fingerprint()));
    let tag_width = number(dtd.tag_width);
    let record = generic("Record", any_bytes(model));
    let element = (!model.streams.is_empty()).then(|| generic("Element", element_bytes(model)));
    let types = std::iter::once(record).chain(element);
    let expected = expected.iter().map(|&(record, leaf, width)| {
        let (record, leaf, width) = (number(record), number(leaf), number(width));
        quote!(expected #record #leaf #width;)
    });
    let raw_file = dtd.raw_file().map(|file| raw_row(dtd, &file));
    let sections = dtd.sections.iter().map(section);
    let records = records::rows(dtd, model);
    let models = dtd.models.iter().map(records::model);
    let enums = model.tagged.iter().map(enum_row);
    let elements = model.streams.iter().map(|stream| elements(model, stream));
    quote! {
        runtime::records! {
            format #source #fingerprint #tag_width;
            types #(#types),*;
            #raw_file
            #(#expected)*
            #(#sections)*
            #(#records)*
            #(#models)*
            #(#enums)*
            #(#elements)*
        }
    }
}

fn raw_row(dtd: &Dtd, file: &RawFile) -> TokenStream {
    let section = |id: SectionId| number(dtd.sections.get(usize::from(id.0)).map_or(0, |s| s.number));
    let (records, trailer) = (section(file.records), file.trailer.map(section));
    let starts = file.starts.iter().map(|start| {
        let (section, record) = (section(start.section), number(start.record.0));
        let size = start.records_size.map(|leaf| number(leaf.0)).map(|leaf| quote!(size #leaf));
        let magic = start.magic.iter().map(|(leaf, values)| {
            let (leaf, values) = (number(leaf.0), values.iter().map(|value| number(*value)));
            quote!(#leaf [#(#values)*])
        });
        quote!(start #section #record #size { #(#magic)* })
    });
    quote!(raw { #records #trailer; #(#starts)* };)
}

fn section(section: &Section) -> TokenStream {
    let (n, name) = (number(section.number), section.name.as_deref().unwrap_or(""));
    let kind = if section.stream.is_some() { quote!(stream) } else { quote!(tagged) };
    let records = section.records.iter().map(|id| number(id.0));
    let cells = section.cells.iter().flatten().map(|cell| number(*cell));
    let initials = if section.cell_initials.iter().all(|value| *value == 0) {
        let n = number(section.cell_initials.len() as u64);
        quote!(zero #n)
    } else {
        let initials = section.cell_initials.iter().map(|value| number(*value));
        quote!(#(#initials)*)
    };
    quote!(section #n #name #kind { records [#(#records)*]; cells [#(#cells)*]; initials [#initials]; })
}

/// Emits the row of a section's enum. Its records are listed in groups of three, because generated code compares tags
/// in such groups.
fn enum_row(section: &Tagged) -> TokenStream {
    let (index, variant) = (number(section.index as u64), ident(&section.variant));
    let name = generic(&section.name, section.bytes);
    let records: Vec<_> = section
        .records
        .iter()
        .map(|r| {
            let (index, variant) = (number(r.record as u64), ident(&r.variant));
            quote!(#index #variant)
        })
        .collect();
    let groups = records.chunks(3).map(|group| quote!(#(#group),*;));
    quote!(enum #index #variant (#name) { #(#groups)* })
}

/// Emits the row of a stream section's elements.
fn elements(model: &Model, stream: &Stream) -> TokenStream {
    let (index, variant, element) = (number(stream.index as u64), ident(&stream.variant), item_type(model, stream.item));
    quote!(elements #index #variant (#element);)
}
