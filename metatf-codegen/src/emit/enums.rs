//! The enums for the records of each section, for all sections, and for stream elements.

use proc_macro2::TokenStream;
use quote::quote;

use super::structs::conversion_methods;
use super::{declared, generic};
use crate::docs;
use crate::model::{Listed, Model, Tagged};
use crate::names::ident;

/// Emits the enums.
pub(super) fn emit(model: &Model) -> TokenStream {
    let sections: TokenStream = model.tagged.iter().map(|t| section(model, t)).collect();
    let name = declared("Record", any_bytes(model));
    let variants = model.tagged.iter().map(|t| {
        let (variant, section) = (ident(&t.variant), generic(&t.name, t.bytes));
        let docs = docs::attributes(&record_docs(t));
        quote!(#docs #variant(#section),)
    });
    let elements = elements(model);
    let conversions =
        any_bytes(model).then(|| conversions("Record", model.tagged.iter().map(|t| (t.variant.as_str(), t.bytes))));
    quote! {
        #sections
        /// A data record of any section.
        #[derive(Clone, Debug, PartialEq)]
        pub enum #name { #(#variants)* }
        #conversions
        #elements
    }
}

/// Emits the conversions between owned and borrowed bytes, given the variants and whether they contain bytes.
fn conversions<'v>(name: &str, variants: impl Iterator<Item = (&'v str, bool)>) -> TokenStream {
    let name = ident(name);
    let arms = variants.map(|(variant, bytes)| {
        let variant = ident(variant);
        let copy = if bytes { quote!(with_bytes(bytes)) } else { quote!(clone()) };
        quote!(Self::#variant(record) => #name::#variant(record.#copy),)
    });
    let methods = conversion_methods(&name);
    quote! {
        impl<Bytes: AsRef<[u8]>> #name<Bytes> {
            #methods
            fn with_bytes<'s, NewBytes>(&'s self, bytes: fn(&'s [u8]) -> NewBytes) -> #name<NewBytes> {
                match self { #(#arms)* }
            }
        }
    }
}

fn section(model: &Model, section: &Tagged) -> TokenStream {
    let docs = docs::attributes(&record_docs(section));
    let name = declared(&section.name, section.bytes);
    let variants = section.records.iter().map(|r| {
        let (variant, ty) = (ident(&r.variant), item_type(model, r.item));
        let docs = docs::attributes(model.structs.get(r.item).map_or(&[], |s| &s.docs));
        quote!(#docs #variant(#ty),)
    });
    let conversions = section.bytes.then(|| {
        let bytes = |r: &Listed| model.item_has_bytes(r.item);
        conversions(&section.name, section.records.iter().map(|r| (r.variant.as_str(), bytes(r))))
    });
    quote! {
        #docs
        #[derive(Clone, Debug, PartialEq)]
        pub enum #name { #(#variants)* }
        #conversions
    }
}

/// Describes the records of a section.
fn record_docs(section: &Tagged) -> Vec<String> {
    docs::above(&section.docs, format!("A record of section `{}`.", section.title))
}

fn elements(model: &Model) -> TokenStream {
    if model.streams.is_empty() {
        return TokenStream::new();
    }
    let name = declared("Element", element_bytes(model));
    let variants = model.streams.iter().map(|s| {
        let (variant, ty) = (ident(&s.variant), item_type(model, s.item));
        let docs = docs::attributes(&docs::above(&s.docs, format!("An element of section `{}`.", s.title)));
        quote!(#docs #variant(#ty),)
    });
    quote! {
        /// An element of any stream section. After `trace.set_all(true)`, `trace.next_event()` also returns elements.
        #[derive(Clone, Debug, PartialEq)]
        pub enum #name { #(#variants)* }
    }
}

pub(super) fn item_type(model: &Model, item: usize) -> TokenStream {
    super::field_type(model, &crate::model::Ty::Struct(item))
}

pub(super) fn any_bytes(model: &Model) -> bool {
    model.tagged.iter().any(|t| t.bytes)
}

pub(super) fn element_bytes(model: &Model) -> bool {
    model.streams.iter().any(|s| model.item_has_bytes(s.item))
}
