//! The connection between the format's numbers and the generated types: `Protocol`, and the functions of each section.

use metatf_parser::schema::Dtd;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::enums::{any_bytes, element_bytes};
use super::{generic, number};
use crate::model::{Listed, Model, Tagged};
use crate::names::ident;
use crate::options::Options;

/// Emits everything.
pub(super) fn emit(dtd: &Dtd, model: &Model, options: &Options) -> TokenStream {
    let protocol = protocol(model, options);
    let records = data_records(model);
    let sections = model.tagged.iter().map(|s| section(dtd, s));
    let picks = model.columns.iter().map(|columns| pick(model, &columns.of, columns.record));
    quote! {
        #protocol
        #records
        #(#sections)*
        #(#picks)*
    }
}

fn protocol(model: &Model, options: &Options) -> TokenStream {
    let source = &options.source;
    let record = generic("Record", any_bytes(model));
    let element = if model.streams.is_empty() {
        quote!(std::convert::Infallible)
    } else {
        generic("Element", element_bytes(model))
    };
    let sections: Vec<_> =
        model.tagged.iter().map(|s| (number(s.index as u64), ident(&s.name), ident(&s.variant))).collect();
    let read = sections.iter().map(|(index, name, variant)| {
        quote!(#index => <#name as runtime::SectionFamily>::read::<Bytes, AnyRow>(record, row).map(Record::#variant),)
    });
    let run = sections.iter().map(|(index, name, variant)| {
        quote!(#index => <#name as runtime::SectionFamily>::run::<Bytes, Break>(reads, |record| each(Record::#variant(record))),)
    });
    let next = sections.iter().map(|(index, name, variant)| {
        quote!(#index => <#name as runtime::SectionFamily>::one::<Bytes>(next).map(Record::#variant),)
    });
    let elements = model.streams.iter().map(|stream| {
        let (index, variant) = (number(stream.index as u64), ident(&stream.variant));
        quote!(#index => runtime::ReadFields::read_fields(row, 0).map(Element::#variant),)
    });
    let records = (!sections.is_empty()).then(|| {
        quote! {
            /// Reads a record leaf by leaf. `section` and `record` are indices in [`FORMAT`].
            #[inline]
            fn record<'a, Bytes: From<&'a [u8]>, AnyRow: runtime::Source<'a>>(
                section: usize,
                record: u16,
                row: &mut AnyRow,
            ) -> Result<Self::Record<Bytes>, AnyRow::Error> {
                match section {
                    #(#read)*
                    _ => Err(row.stop(runtime::no_such_record())),
                }
            }
            /// Calls `each` with the next records of a section, until `each` breaks or the next record is not a data
            /// record of the section.
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn run<'a, Bytes: From<&'a [u8]>, Break>(
                section: usize,
                reads: &mut impl runtime::Reads<'a>,
                mut each: impl FnMut(Self::Record<Bytes>) -> std::ops::ControlFlow<Break>,
            ) -> std::ops::ControlFlow<Break> {
                match section {
                    #(#run)*
                    _ => std::ops::ControlFlow::Continue(()),
                }
            }
            /// Reads the next record on the fast path. Returns `None` if the record requires the slow path.
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn one<'a, Bytes: From<&'a [u8]>>(next: impl runtime::ReadsOne<'a>) -> Option<Self::Record<Bytes>> {
                match next.section() {
                    #(#next)*
                    _ => None,
                }
            }
        }
    });
    let elements = (!model.streams.is_empty()).then(|| {
        quote! {
            /// Reads an element of the stream section with this index in [`FORMAT`].
            #[inline]
            fn element<'a, Bytes: From<&'a [u8]>, AnyRow: runtime::Source<'a>>(
                section: usize,
                row: &mut AnyRow,
            ) -> Result<Self::Element<Bytes>, AnyRow::Error> {
                match section {
                    #(#elements)*
                    _ => Err(row.stop(runtime::no_such_record())),
                }
            }
        }
    });
    quote! {
        /// The format as a type for the runtime.
        #[derive(Clone, Copy, Debug)]
        pub struct Protocol;
        impl runtime::Protocol for Protocol {
            const SOURCE: &'static str = #source;
            const FORMAT: &'static runtime::tables::Format = &FORMAT;
            type Record<Bytes> = #record;
            type Element<Bytes> = #element;
            #records
            #elements
        }
    }
}

/// Emits the implementation of `DataRecord` for `Record`.
fn data_records(model: &Model) -> TokenStream {
    let name = generic("Record", any_bytes(model));
    let parameters = any_bytes(model).then(|| quote!(<Bytes: AsRef<[u8]>>));
    let indices: Vec<_> = model.tagged.iter().map(|s| number(s.index as u64)).collect();
    let variants: Vec<Ident> = model.tagged.iter().map(|s| ident(&s.variant)).collect();
    let only = match indices.as_slice() {
        [only] => quote!(Some(#only)),
        _ => quote!(None),
    };
    // A match on a reference to an enum without variants needs a wildcard, unlike a match on the enum.
    let (writer, place, put) = if variants.is_empty() {
        (quote!(_writer), quote!(match *self {}), quote!(match *self {}))
    } else {
        (
            quote!(writer),
            quote!(match self { #(Self::#variants(record) => record.place(),)* }),
            quote!(match self { #(Self::#variants(record) => record.put(writer),)* }),
        )
    };
    quote! {
        impl #parameters runtime::DataRecord for #name {
            const SECTION: Option<usize> = #only;
            /// Returns the indices of the section and the record in [`FORMAT`].
            #[inline]
            fn place(&self) -> (usize, u16) {
                #place
            }
            /// Passes the record to a writer.
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn put<AnyWriter: runtime::Puts>(&self, #writer: &mut AnyWriter) -> AnyWriter::Done {
                #put
            }
        }
    }
}

/// Returns the name of the type with the compile-time description of a record in a section.
pub(super) fn shape(listed: &Listed) -> Ident {
    ident(&listed.shape)
}

/// Returns the name of the constant with the number of leaves in a section.
pub(super) fn plans(section: &Tagged) -> Ident {
    ident(&section.plans)
}

/// Emits the functions of a section.
fn section(dtd: &Dtd, section: &Tagged) -> TokenStream {
    let (index, name) = (number(section.index as u64), ident(&section.name));
    let with = generic(&section.name, section.bytes);
    let read = section.records.iter().map(|listed| {
        let (record, variant) = (number(listed.record as u64), ident(&listed.variant));
        quote!(#record => runtime::ReadFields::read_fields(row, 0).map(#name::#variant),)
    });
    let (tags, plans) = (tags(dtd, section), plans(section));
    let shapes = section.records.iter().map(|listed| {
        let (alias, record) = (shape(listed), number(listed.record as u64));
        let name = dtd.records.get(listed.record).map_or("", |r| &r.name);
        let docs =
            format!(" Record {} of [`FORMAT`] (`{name}`) in section {}, as a type.", listed.record, section.index);
        quote!(#[doc = #docs] type #alias = runtime::Shape<Protocol, #index, #record>;)
    });
    let docs = format!(" Number of leaves in section `{}`: those of its data records and of comments.", section.title);
    let places = section.records.iter().map(|listed| {
        let (record, variant) = (number(listed.record as u64), ident(&listed.variant));
        quote!(Self::#variant(..) => (#index, #record),)
    });
    let puts = section.records.iter().map(|listed| {
        let (shape, variant) = (shape(listed), ident(&listed.variant));
        quote!(Self::#variant(record) => writer.put::<#shape, _, #plans>(record),)
    });
    let parameters = section.bytes.then(|| quote!(<Bytes: AsRef<[u8]>>));
    quote! {
        #[doc = #docs]
        const #plans: usize = runtime::plans(&FORMAT, #index);
        #(#shapes)*
        impl runtime::SectionFamily for #name {
            const SECTION: usize = #index;
            const FORMAT: &'static runtime::tables::Format = &FORMAT;
            type With<Bytes> = #with;
            /// Reads the record with this index in [`FORMAT`] leaf by leaf.
            #[inline]
            fn read<'a, Bytes: From<&'a [u8]>, AnyRow: runtime::Source<'a>>(
                record: u16,
                row: &mut AnyRow,
            ) -> Result<Self::With<Bytes>, AnyRow::Error> {
                match record {
                    #(#read)*
                    _ => Err(row.stop(runtime::no_such_record())),
                }
            }
            /// Reads the fields of the record with this tag. Returns `None` for an unknown tag, or if the record requires
            /// the slow path. The section's first records, which are usually the most frequent, are compared first.
            /// Other tags follow in ascending order, with a range check for every three. This is faster than a jump
            /// table.
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn next<'a, Bytes: From<&'a [u8]>, AnyRows: runtime::Rows<'a>>(
                tag: u32,
                rows: &mut AnyRows,
            ) -> Option<Self::With<Bytes>> {
                #tags
                None
            }
            /// Calls `each` with the next records, until `each` breaks or the next record is not a data record of this
            /// section. For each tag, calls [`next`](Self::next).
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn run<'a, Bytes: From<&'a [u8]>, Break>(
                reads: &mut impl runtime::Reads<'a>,
                each: impl FnMut(Self::With<Bytes>) -> std::ops::ControlFlow<Break>,
            ) -> std::ops::ControlFlow<Break> {
                reads.section::<Self, Bytes, #plans, Break>(each)
            }
            /// Reads the next record on the fast path. Returns `None` if the record requires the slow path.
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn one<'a, Bytes: From<&'a [u8]>>(next: impl runtime::ReadsOne<'a>) -> Option<Self::With<Bytes>> {
                next.read::<Self, Bytes, #plans>()
            }
        }
        impl #parameters runtime::DataRecord for #with {
            const SECTION: Option<usize> = Some(#index);
            /// Returns the indices of the section and the record in [`FORMAT`].
            #[inline]
            fn place(&self) -> (usize, u16) {
                match self { #(#places)* }
            }
            /// Passes the record to a writer.
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn put<AnyWriter: runtime::Puts>(&self, writer: &mut AnyWriter) -> AnyWriter::Done {
                match self { #(#puts)* }
            }
        }
    }
}

/// Emits the comparisons with the tags of a section's records. A catch-all record has no specific tag.
///
/// The first records, which are usually the most frequent, come first. The other records follow in groups of ascending
/// tags, which are skipped at once. The compiler turns a `match` into a jump table, which is slower if a few kinds of
/// records prevail.
fn tags(dtd: &Dtd, section: &Tagged) -> TokenStream {
    const GROUP: usize = 3;
    let name = ident(&section.name);
    let tagged = section.records.iter().filter_map(|listed| {
        let record = dtd.records.get(listed.record).filter(|record| !record.catch_all)?;
        Some((record.tag?, listed))
    });
    let tagged: Vec<_> = tagged.collect();
    let one = |(tag, listed): &(u32, &Listed)| {
        let (tag, shape, variant) = (number(*tag), shape(listed), ident(&listed.variant));
        quote!(if tag == #tag { return rows.read::<#shape, _>().map(#name::#variant); })
    };
    let (first, rest) = tagged.split_at(tagged.len().min(GROUP));
    let first = first.iter().map(one);
    let mut rest = rest.to_vec();
    rest.sort_by_key(|(tag, _)| *tag);
    let groups = rest.chunks(GROUP).map(|group| match group {
        [only] => one(only),
        [(least, _), .., (most, _)] => {
            let (least, most, all) = (number(*least), number(*most), group.iter().map(one));
            quote!(if (#least..=#most).contains(&tag) { #(#all)* })
        }
        [] => TokenStream::new(),
    });
    quote!(#(#first)* #(#groups)*)
}

/// Emits the function that finds a record's struct among the variants of its sections.
fn pick(model: &Model, name: &str, record: usize) -> TokenStream {
    let name = ident(name);
    let listed = model.tagged.iter().flat_map(|s| s.records.iter().map(move |listed| (s, listed)));
    let listed: Vec<_> = listed.filter(|(_, listed)| listed.record == record).collect();
    let places = listed.iter().map(|(s, listed)| {
        let (section, record) = (number(s.index as u64), number(listed.record as u64));
        quote!((#section, #record))
    });
    let patterns: Vec<_> = listed
        .iter()
        .map(|(s, listed)| {
            let (top, section, variant) = (ident(&s.variant), ident(&s.name), ident(&listed.variant));
            quote!(Record::#top(#section::#variant(record)))
        })
        .collect();
    let is_only = model.tagged.iter().map(|s| s.records.len()).sum::<usize>() == 1;
    let body = match patterns.as_slice() {
        [only] if is_only => quote! {
            let #only = record;
            Some(record)
        },
        [one] => quote!(if let #one = record { Some(record) } else { None }),
        all => quote! {
            match record {
                #(#all)|* => Some(record),
                _ => None,
            }
        },
    };
    quote! {
        impl runtime::RecordType<Protocol> for #name {
            const PLACES: &'static [(usize, u16)] = &[#(#places),*];
            /// Returns the record if it is of this kind.
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn pick<Bytes>(
                record: <Protocol as runtime::Protocol>::Record<Bytes>,
            ) -> Option<<Self as runtime::Family>::With<Bytes>> {
                #body
            }
        }
    }
}
