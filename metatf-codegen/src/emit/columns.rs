//! The columns of a generated module.

use proc_macro2::TokenStream;
use quote::quote;

use super::{number, raw};
use crate::model::{Column, ColumnKind, Model, RecordColumns};
use crate::names::ident;

/// Emits `Columns` and the struct with each record's columns.
pub(super) fn emit(model: &Model) -> TokenStream {
    let structs = model.columns.iter().map(record);
    let methods = model.columns.iter().flat_map(|columns| {
        columns.places.iter().map(|(method, record_type)| {
            let (method, name, record_type) = (ident(method), ident(&columns.name), ident(record_type));
            let docs = format!(" Returns the columns of the records [`{}`].", columns.of);
            quote! {
                #[doc = #docs]
                #[must_use]
                pub fn #method(&self) -> #name<'_> {
                    #name::of(&self.0, #record_type::PLACE)
                }
            }
        })
    });
    quote! {
        /// Records as columns, to be filled by `next_columns` of [`Trace`]. Methods common to all formats are available
        /// through [`Deref`](std::ops::Deref).
        ///
        /// Each type of record has a struct with the values of each field and count. Enums and flags are numbers in columns.
        /// Fields that are optional or inside a repetition have one value per item, and their count has one value per record,
        /// the number of items.
        #[derive(Clone, Debug)]
        pub struct Columns(runtime::Columns);
        impl Columns {
            /// Creates columns for some fields. A name consists of the record and the field, such as `record.field`, or
            /// `record.items.field` for a field of nested records called `items`. The columns of other fields stay empty, and
            /// readers skip these fields where they can.
            ///
            /// # Errors
            /// Returns the first name that is not a field of a record.
            pub fn of_fields(names: &[&str]) -> std::result::Result<Self, runtime::UnknownField> {
                runtime::Columns::of_fields(&FORMAT, names).map(Self)
            }
            #(#methods)*
        }
        impl Default for Columns {
            /// Creates columns for all fields.
            fn default() -> Self {
                Self(runtime::Columns::of(&FORMAT))
            }
        }
        impl std::ops::Deref for Columns {
            type Target = runtime::Columns;
            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }
        impl std::ops::DerefMut for Columns {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }
        #(#structs)*
    }
}

fn record(columns: &RecordColumns) -> TokenStream {
    let name = ident(&columns.name);
    let docs = format!(" The columns of the records [`{}`].", columns.of);
    let fields = columns.columns.iter().map(|column| {
        let (name, docs) = (raw(&column.name), format!(" The values of `{}`.", column.path));
        let ty = match column.kind {
            ColumnKind::Unsigned => quote!(&'c [u64]),
            ColumnKind::Signed => quote!(&'c [i64]),
            ColumnKind::Float => quote!(&'c [f64]),
            ColumnKind::Arrays => quote!(runtime::Arrays<'c>),
        };
        quote!(#[doc = #docs] pub #name: #ty,)
    });
    let values = columns.columns.iter().map(value);
    quote! {
        #[doc = #docs]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct #name<'c> {
            /// Number of records.
            pub records: usize,
            #(#fields)*
            /// Uses the lifetime even if the struct has no other field that does.
            columns: std::marker::PhantomData<&'c Columns>,
        }
        impl<'c> #name<'c> {
            /// Returns the columns of the record with these indices in [`FORMAT`], which are empty if `columns` belongs to another
            /// format.
            fn of(columns: &'c runtime::Columns, place: (usize, u16)) -> Self {
                let Some(columns) = columns.record_of(&FORMAT, place) else { return Self::default() };
                Self { records: columns.len(), #(#values)* columns: std::marker::PhantomData }
            }
        }
    }
}

fn value(column: &Column) -> TokenStream {
    let (name, leaf) = (raw(&column.name), number(column.leaf));
    let method = match column.kind {
        ColumnKind::Unsigned => quote!(numbers),
        ColumnKind::Signed => quote!(signed),
        ColumnKind::Float => quote!(floats),
        ColumnKind::Arrays => quote!(arrays),
    };
    quote!(#name: columns.#method(#leaf),)
}
