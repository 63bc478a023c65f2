//! The types of numbers with named values or bits, which are enums or structs of flags.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use metatf_parser::schema::Bits;

use super::number;
use super::structs::attributes;
use crate::docs;
use crate::model::{Model, NamedType};
use crate::names::ident;
use crate::options::OptionError;

/// Emits all types.
pub(super) fn emit(model: &Model) -> Result<TokenStream, OptionError> {
    model.named.iter().map(one).collect()
}

fn one(named: &NamedType) -> Result<TokenStream, OptionError> {
    let (docs, name, attributes) = (docs::attributes(&named.docs), ident(&named.name), attributes(&named.attributes)?);
    if named.flags {
        return Ok(quote! {
            #docs
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            #attributes
            pub struct #name(pub u64);
        });
    }
    let variants = named.items.iter().map(|item| {
        let (docs, variant) = (docs::attributes(std::slice::from_ref(&item.docs)), ident(&item.name));
        quote!(#docs #variant,)
    });
    Ok(quote! {
        #docs
        #[derive(Clone, Copy, Debug)]
        #attributes
        pub enum #name {
            #(#variants)*
            /// A value without a name.
            Unknown(u64),
        }
    })
}

/// Emits the rows of the table, enums first.
pub(super) fn rows(model: &Model) -> Vec<TokenStream> {
    let (flags, values): (Vec<_>, Vec<_>) = model.named.iter().partition(|named| named.flags);
    values.into_iter().chain(flags).map(row).collect()
}

fn row(named: &NamedType) -> TokenStream {
    let name = ident(&named.name);
    let items = named.items.iter().map(|item| {
        let (name, text) = (ident(&item.name), Literal::string(&item.text));
        let bits = Bits::of(item.number);
        if named.flags && !bits.is_flag() {
            let (first, last) = (number(bits.first), number(bits.last));
            return quote!(#first - #last #name #text);
        }
        let number = number(item.number);
        quote!(#number #name #text)
    });
    let kind = if named.flags { quote!(flags) } else { quote!(values) };
    quote!(#kind #name { #(#items),* })
}
