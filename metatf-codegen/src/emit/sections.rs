//! An enum for the records of each section, an enum of all sections, an enum of stream elements; and what ties them to
//! the format's numbers.

use proc_macro2::TokenStream;
use quote::quote;

use super::{declared, generic, number};
use crate::docs;
use crate::model::{Model, Stream, Tagged};
use crate::names::ident;
use crate::options::Options;

/// The enums.
pub(super) fn emit(model: &Model) -> TokenStream {
    let sections: TokenStream = model.tagged.iter().map(|t| section(model, t)).collect();
    let name = declared("Record", any_bytes(model));
    let variants = model.tagged.iter().map(|t| {
        let (variant, section) = (ident(&t.variant), generic(&t.name, t.bytes));
        quote!(#variant(#section),)
    });
    let elements = elements(model);
    quote! {
        #sections
        /// A data record of any section.
        #[derive(Clone, Debug, PartialEq)]
        pub enum #name { #(#variants)* }
        #elements
    }
}

fn section(model: &Model, section: &Tagged) -> TokenStream {
    let docs = docs::attributes(&section.docs);
    let name = declared(&section.name, section.bytes);
    let variants = section.records.iter().map(|r| {
        let (variant, ty) = (ident(&r.variant), item_type(model, r.item));
        quote!(#variant(#ty),)
    });
    quote! {
        #docs
        #[derive(Clone, Debug, PartialEq)]
        pub enum #name { #(#variants)* }
    }
}

fn elements(model: &Model) -> TokenStream {
    if model.streams.is_empty() {
        return TokenStream::new();
    }
    let name = declared("Element", element_bytes(model));
    let variants = model.streams.iter().map(|s| {
        let (variant, ty) = (ident(&s.variant), item_type(model, s.item));
        quote!(#variant(#ty),)
    });
    quote! {
        /// An element of any stream section.
        #[derive(Clone, Debug, PartialEq)]
        pub enum #name { #(#variants)* }
    }
}

pub(super) fn item_type(model: &Model, item: usize) -> TokenStream {
    super::field_type(model, &crate::model::Ty::Struct(item))
}

fn any_bytes(model: &Model) -> bool {
    model.tagged.iter().any(|t| t.bytes)
}

fn element_bytes(model: &Model) -> bool {
    model.streams.iter().any(|s| model.item_has_bytes(s.item))
}

/// `Protocol`, and which numbers the variants stand for.
pub(super) fn protocol(model: &Model, options: &Options, runtime: &TokenStream) -> TokenStream {
    let source = &options.source;
    let record = generic("Record", any_bytes(model));
    let sections = model.tagged.iter().map(|t| {
        let (index, top, name) = (number(t.index as u64), ident(&t.variant), generic(&t.name, t.bytes));
        let records = t.records.iter().map(|r| {
            let (index, variant) = (number(r.record as u64), ident(&r.variant));
            quote!(#index #variant)
        });
        let records: Vec<_> = records.collect();
        let groups = records.chunks(3).map(|group| quote!(#(#group),*));
        quote!(#index #top(#name) { #(#groups);* };)
    });
    let elements = (!model.streams.is_empty()).then(|| {
        let element = generic("Element", element_bytes(model));
        let streams = model.streams.iter().map(|s: &Stream| {
            let (index, variant) = (number(s.index as u64), ident(&s.variant));
            quote!(#index #variant)
        });
        quote!(element #element { #(#streams),* };)
    });
    let kinds = kinds(model);
    quote! {
        /// The format, to the runtime.
        #[derive(Clone, Copy, Debug)]
        pub struct Protocol;
        #runtime::private::sections! { #source FORMAT Protocol; record #record; #(#sections)* #elements }
        #runtime::private::kinds! { Record Protocol; #(#kinds)* }
    }
}

/// For each record's struct: where it is found.
fn kinds(model: &Model) -> impl Iterator<Item = TokenStream> + '_ {
    model.columns.iter().map(move |record| {
        let places = model.tagged.iter().flat_map(|t| {
            let listed = t.records.iter().filter(|listed| listed.record == record.record);
            listed.map(|listed| {
                let (section, top, name) = (number(t.index as u64), ident(&t.variant), ident(&t.name));
                let variant = ident(&listed.variant);
                quote!(#section #top #name #variant)
            })
        });
        let (of, index) = (ident(&record.of), number(record.record as u64));
        quote!(#of #index [#(#places),*];)
    })
}
