//! `Columns`, and a struct of columns for each record.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::{number, raw};
use crate::model::{ColumnKind, Model};
use crate::names::ident;

/// The call of `columns!`.
pub(super) fn emit(model: &Model, runtime: &TokenStream) -> TokenStream {
    let records = model.columns.iter().map(|record| {
        let (name, of) = (ident(&record.name), ident(&record.of));
        let columns = record.columns.iter().map(|column| {
            let (name, leaf) = (raw(&column.name), Literal::u8_unsuffixed(column.leaf));
            let kind = match column.kind {
                ColumnKind::Unsigned => quote!(unsigned),
                ColumnKind::Signed => quote!(signed),
                ColumnKind::Float => quote!(float),
                ColumnKind::Arrays => quote!(arrays),
            };
            quote!(#name #kind #leaf)
        });
        let index = number(record.record as u64);
        let places = record.places.iter().map(|(method, section)| {
            let (method, section) = (ident(method), number(*section as u64));
            quote!(#method #section)
        });
        quote!(#name(#of) #index [#(#places),*] { #(#columns),* };)
    });
    quote!(#runtime::private::columns! { Columns FORMAT; #(#records)* })
}
