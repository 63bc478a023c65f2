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
    let picks =
        model.columns.iter().enumerate().map(|(index, columns)| pick(model, &columns.of, columns.record, index == 0));
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
        quote!(#index => <#name as runtime::SectionFamily>::read::<Bytes, _>(record, row).map(Record::#variant),)
    });
    let run = sections.iter().map(|(index, name, variant)| {
        let family = quote!(<#name as runtime::SectionFamily>);
        quote!(#index => #family::run::<Bytes, _>(reads, |record| each(Record::#variant(record))),)
    });
    let next = sections.iter().map(|(index, name, variant)| {
        let family = quote!(<#name as runtime::SectionFamily>);
        quote!(#index => #family::one::<Bytes>(next).map(Record::#variant),)
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
            /// Calls `each` with the next records of a section, until `each` breaks, or the next record requires the slow
            /// path or is not a data record of the section.
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
            /// Reads the next record on the fast path. Returns `None` if the record requires the slow path or is not a data
            /// record.
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
        /// The format as a type, which is a parameter of the runtime's readers and writers.
        #[derive(Clone, Copy, Debug)]
        pub struct Protocol;
        /// Provides the runtime with the format's tables and types, and passes each call to the section with the given index
        /// in [`FORMAT`].
        impl runtime::Protocol for Protocol {
            /// The name of the DTD. Each trace contains it.
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
        /// Lets `Writer::write` accept a record of any section. `place` returns the indices of the section and of the
        /// record in [`FORMAT`], and `put` passes the record to the writer and returns the writer's result, `Done`. `SECTION`
        /// is the index of the section if all records belong to one section; otherwise, `write_all` calls `place` to find the
        /// section.
        impl #parameters runtime::DataRecord for #name {
            const SECTION: Option<usize> = #only;
            #[inline]
            fn place(&self) -> (usize, u16) {
                #place
            }
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn put<AnyWriter: runtime::Puts>(&self, #writer: &mut AnyWriter) -> AnyWriter::Done {
                #put
            }
        }
    }
}

/// Returns the name of the record in a section as a type.
pub(super) fn record_type(listed: &Listed) -> Ident {
    ident(&listed.record_type)
}

/// Returns the name of the constant with the number of leaves in a section.
pub(super) fn leaves(section: &Tagged) -> Ident {
    ident(&section.leaves)
}

/// Emits the functions of a section.
fn section(dtd: &Dtd, section: &Tagged) -> TokenStream {
    let (index, name) = (number(section.index as u64), ident(&section.name));
    let with = generic(&section.name, section.bytes);
    let read = section.records.iter().map(|listed| {
        let (record_type, variant) = (record_type(listed), ident(&listed.variant));
        quote!(#record_type::INDEX => runtime::ReadFields::read_fields(row, 0).map(#name::#variant),)
    });
    let (tags, leaves) = (tags(dtd, section), leaves(section));
    // A catch-all record has no specific tag.
    let (tag, rows) = if tags.is_empty() { (quote!(_tag), quote!(_rows)) } else { (quote!(tag), quote!(rows)) };
    let record_types = section.records.iter().enumerate().map(|(at, listed)| {
        let (alias, record) = (record_type(listed), number(listed.record as u64));
        let name = dtd.records.get(listed.record).map_or("", |r| &r.name);
        let mut docs = vec![format!(" Record `{name}` in section `{}` as a type.", section.title)];
        if at == 0 {
            docs.push(" The numbers are the indices of the section and of the record in [`FORMAT`].".to_owned());
            docs.push(" The runtime's generic functions are compiled for this type, so that leaf numbers and declared widths are".to_owned());
            docs.push(" constants.".to_owned());
        }
        quote!(#(#[doc = #docs])* type #alias = runtime::RecordIn<Protocol, #index, #record>;)
    });
    let docs = format!(" Number of leaves in the records of section `{}` and in `comment`.", section.title);
    let places = section.records.iter().map(|listed| {
        let (record_type, variant) = (record_type(listed), ident(&listed.variant));
        quote!(Self::#variant(..) => #record_type::PLACE,)
    });
    let puts = section.records.iter().map(|listed| {
        let (record_type, variant) = (record_type(listed), ident(&listed.variant));
        quote!(Self::#variant(record) => writer.put::<#record_type, _, #leaves>(record),)
    });
    let family_docs =
        format!(" Reads the records of section `{}`. The fast path calls `run` for many records or", section.title);
    let record_docs = format!(" Lets `Writer::write` accept a record of section `{}`.", section.title);
    let parameters = section.bytes.then(|| quote!(<Bytes: AsRef<[u8]>>));
    quote! {
        #[doc = #docs]
        /// The runtime keeps the current encoding of each leaf in an array of this length.
        const #leaves: usize = runtime::leaves_of(&FORMAT, #index);
        #(#record_types)*
        #[doc = #family_docs]
        /// `one` for a single one; both call the runtime, which reads each tag and calls `next`. The slow path calls `read`.
        impl runtime::SectionFamily for #name {
            /// The index of the section in [`FORMAT`].
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
            /// the slow path. The first three records of the DTD are expected to be the most frequent ones, so their tags
            /// are compared first. The tags of other records are compared in ascending order, in groups of three after a check
            /// of the group's range.
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn next<'a, Bytes: From<&'a [u8]>, AnyRows: runtime::Rows<'a>>(
                #tag: u32,
                #rows: &mut AnyRows,
            ) -> Option<Self::With<Bytes>> {
                #tags
                None
            }
            /// Calls `each` with the next records, until `each` breaks, or the next record requires the slow path or is not
            /// a data record of this section. The runtime calls `next` with the tag of each record.
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn run<'a, Bytes: From<&'a [u8]>, Break>(
                reads: &mut impl runtime::Reads<'a>,
                each: impl FnMut(Self::With<Bytes>) -> std::ops::ControlFlow<Break>,
            ) -> std::ops::ControlFlow<Break> {
                reads.section::<Self, Bytes, #leaves, Break>(each)
            }
            /// Reads the next record on the fast path. Returns `None` if the record requires the slow path or is not a data
            /// record.
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn one<'a, Bytes: From<&'a [u8]>>(next: impl runtime::ReadsOne<'a>) -> Option<Self::With<Bytes>> {
                next.read::<Self, Bytes, #leaves>()
            }
        }
        #[doc = #record_docs]
        impl #parameters runtime::DataRecord for #with {
            const SECTION: Option<usize> = Some(#index);
            #[inline]
            fn place(&self) -> (usize, u16) {
                match self { #(#places)* }
            }
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
        let (tag, record_type, variant) = (number(*tag), record_type(listed), ident(&listed.variant));
        quote!(if tag == #tag { return rows.read::<#record_type, _>().map(#name::#variant); })
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

/// Emits the function that finds a record's struct among the variants of its sections. Only the first one is explained.
fn pick(model: &Model, of: &str, record: usize, is_first: bool) -> TokenStream {
    let name = ident(of);
    let docs = is_first.then(|| {
        let docs = format!(" Lets `trace.only::<{of}>()` read the records of this type: `PLACES` are their indices in");
        quote! {
            #[doc = #docs]
            /// [`FORMAT`]. On the fast path, the runtime reads each record and calls `pick`. On the slow path, it reads only
            /// the records in `PLACES`, with `read` of `Family`.
        }
    });
    let listed = model.tagged.iter().flat_map(|s| s.records.iter().map(move |listed| (s, listed)));
    let listed: Vec<_> = listed.filter(|(_, listed)| listed.record == record).collect();
    let has_bytes = listed.iter().any(|(_, listed)| model.item_has_bytes(listed.item));
    let (all, picked) = (generic("Record", any_bytes(model)), generic(of, has_bytes));
    let places = listed.iter().map(|(_, listed)| {
        let record_type = record_type(listed);
        quote!(#record_type::PLACE)
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
        #docs
        impl runtime::RecordType<Protocol> for #name {
            const PLACES: &'static [(usize, u16)] = &[#(#places),*];
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn pick<Bytes>(record: #all) -> Option<#picked> {
                #body
            }
        }
    }
}
