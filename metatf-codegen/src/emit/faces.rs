//! `Trace` and `Writer`, with the methods that are this format's own.

use proc_macro2::TokenStream;
use quote::quote;

use super::sections::item_type;
use super::{generic, number, raw};
use crate::docs;
use crate::model::{Model, Stream, Ty};
use crate::names::ident;

/// The calls of `trace!` and `writer!`.
pub(super) fn emit(model: &Model, runtime: &TokenStream) -> TokenStream {
    let (trace, writer) = (trace(model), writer(model));
    let conversions = model.streams.iter().filter(|s| !s.strided).filter_map(|s| from_single(model, s, runtime));
    quote! {
        #runtime::private::trace! { Trace Protocol; #trace }
        #runtime::private::writer! { Writer Protocol; #writer }
        #(#conversions)*
    }
}

fn trace(model: &Model) -> TokenStream {
    let sections = model.tagged.iter().map(|t| {
        let docs = docs::attributes(&t.docs);
        let (method, name) = (ident(&t.method), generic(&t.name, t.bytes));
        quote!(#docs #method -> #name;)
    });
    let streams = model.streams.iter().map(|s| {
        let docs = docs::attributes(&s.docs);
        let (method, section, element) = (ident(&s.method), number(s.index as u64), item_type(model, s.item));
        quote!(#docs #method(#section) -> #element;)
    });
    let streams = (!model.streams.is_empty()).then(|| quote!([#(#streams)*]));
    quote!(#(#sections)* #streams)
}

fn writer(model: &Model) -> TokenStream {
    let records = model.tagged.iter().flat_map(|t| t.records.iter().map(move |r| (t, r))).map(|(t, r)| {
        let (method, ty) = (ident(&r.method), item_type(model, r.item));
        let (section, record) = (number(t.index as u64), number(r.record as u64));
        quote!(#method(#ty) = #section #record;)
    });
    let own: Vec<&Stream> = model.streams.iter().filter(|s| !s.strided).collect();
    let streams = own.iter().map(|s| {
        let docs = docs::attributes(&s.docs);
        let (method, section, element) = (ident(&s.method), number(s.index as u64), item_type(model, s.item));
        quote!(#docs #method(#element) = #section;)
    });
    let streams = (!own.is_empty()).then(|| quote!([#(#streams)*]));
    quote!(#(#records)* #streams)
}

/// Elements of one field are made from its value: `names().intern("int")`.
fn from_single(model: &Model, stream: &Stream, runtime: &TokenStream) -> Option<TokenStream> {
    let element = model.structs.get(stream.item)?;
    let [field] = element.shape.fields.as_slice() else { return None };
    let kind = match field.ty {
        Ty::Bytes => quote!(bytes),
        Ty::U64 => quote!(number),
        _ => return None,
    };
    let (name, field) = (ident(&element.name), raw(&field.name));
    Some(quote!(#runtime::private::single! { #kind #name #field }))
}
