//! The structs for records, nested records and the items of repeated groups.

use proc_macro2::TokenStream;
use quote::quote;

use super::{declared, field_type, raw};
use crate::docs;
use crate::model::{Field, Model, Struct};
use crate::options::OptionError;

/// Emits all structs. Nested structs come before the structs that contain them.
pub(super) fn emit(model: &Model) -> Result<TokenStream, OptionError> {
    model.structs.iter().map(|s| one(model, s)).collect()
}

fn one(model: &Model, s: &Struct) -> Result<TokenStream, OptionError> {
    let docs = docs::attributes(&s.docs);
    let attributes = attributes(&s.attributes)?;
    let name = declared(&s.name, s.shape.bytes);
    let fields: TokenStream = s.shape.fields.iter().map(|f| field(model, f)).collect::<Result<_, _>>()?;
    Ok(quote! {
        #docs
        #[derive(Clone, Debug, Default, PartialEq)]
        #attributes
        pub struct #name { #fields }
    })
}

fn field(model: &Model, field: &Field) -> Result<TokenStream, OptionError> {
    let docs = docs::attributes(&field.docs);
    let attributes = attributes(&field.attributes)?;
    let (name, ty) = (raw(&field.name), field_type(model, &field.ty));
    Ok(quote!(#docs #attributes pub #name: #ty,))
}

/// Parses attributes as written by the user.
pub(super) fn attributes(texts: &[String]) -> Result<TokenStream, OptionError> {
    let parse = |text: &String| {
        let tokens: TokenStream =
            text.parse().map_err(|e| OptionError(format!("the attribute `{text}` is not valid Rust: {e}")))?;
        syn::parse::Parser::parse2(syn::Attribute::parse_outer, tokens.clone())
            .map_err(|e| OptionError(format!("the attribute `{text}` is not valid Rust: {e}")))?;
        Ok(tokens)
    };
    texts.iter().map(parse).collect()
}
