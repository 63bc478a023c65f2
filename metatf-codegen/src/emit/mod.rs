//! From the model to tokens, one file for each part of the output.

mod columns;
mod faces;
mod layouts;
mod sections;
mod structs;
mod tables;

use metatf_parser::schema::Dtd;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use crate::expect::expected;
use crate::model::{Model, Ty};
use crate::names::ident;
use crate::options::{OptionError, Options};

/// Version of the contract with the runtime: what the runtime's `check_codegen` asks for.
const CODEGEN_VERSION: u32 = 2;

/// The whole output: a module, in the order in which one would read it.
pub(crate) fn emit(dtd: &Dtd, model: &Model, options: &Options) -> Result<TokenStream, OptionError> {
    let runtime: TokenStream = options.runtime.parse().map_err(|_| OptionError(options.runtime.clone()))?;
    let structs = structs::emit(model)?;
    let enums = sections::emit(model);
    let columns = columns::emit(model, &runtime);
    let layouts = layouts::emit(model, &runtime);
    let protocol = sections::protocol(model, options, &runtime);
    let faces = faces::emit(model, &runtime);
    let tables = tables::emit(dtd, &expected(dtd, options)?, &runtime);
    let version = Literal::u32_unsuffixed(CODEGEN_VERSION);
    let (source, module) = (&options.source, options.module.as_deref());
    let doc = format!(" Reader and writer of the trace format `{source}`. Generated: edit the DTD instead.");
    let (visibility, name) = match module {
        Some(module) => (quote!(pub), ident(module)),
        None => (quote!(), ident("generated")),
    };
    let reexport = module.is_none().then(|| {
        quote!(
            #[allow(unused_imports, unreachable_pub, clippy::pub_use, reason = "all of it, whatever the program takes")]
            pub use self::generated::*;
        )
    });
    Ok(quote! {
        #[doc = #doc]
        #[forbid(unsafe_code)]
        #[allow(dead_code, unused_variables, unused_mut, unreachable_patterns)]
        #[allow(missing_docs, unreachable_pub, nonstandard_style, rustdoc::all)]
        #[allow(clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
        #visibility mod #name {
            const _: () = #runtime::private::check_codegen(#version);
            #structs
            #enums
            #faces
            #columns
            #layouts
            #protocol
            #tables
        }
        #reexport
    })
}

/// `Alloc<Bytes>`, or `Alloc` where there are no bytes.
fn generic(name: &str, bytes: bool) -> TokenStream {
    let name = ident(name);
    if bytes { quote!(#name<Bytes>) } else { quote!(#name) }
}

/// As [`generic`], where it is declared: structs own their bytes unless something else is said.
fn declared(name: &str, bytes: bool) -> TokenStream {
    let name = ident(name);
    if bytes { quote!(#name<Bytes = ::std::vec::Vec<u8>>) } else { quote!(#name) }
}

/// The type of a field.
fn field_type(model: &Model, ty: &Ty) -> TokenStream {
    match ty {
        Ty::U64 => quote!(u64),
        Ty::I64 => quote!(i64),
        Ty::F64 => quote!(f64),
        Ty::Unit => quote!(()),
        Ty::Bytes => quote!(Bytes),
        Ty::Array(n) => {
            let n = Literal::u32_unsuffixed(*n);
            quote!([u8; #n])
        }
        Ty::Struct(index) => model.structs.get(*index).map_or(quote!(()), |s| generic(&s.name, s.shape.bytes)),
        Ty::List(item) => {
            let item = field_type(model, item);
            quote!(::std::vec::Vec<#item>)
        }
    }
}

fn number(n: impl Into<u64>) -> Literal {
    Literal::u64_unsuffixed(n.into())
}

fn raw(name: &str) -> Ident {
    // Field names were made identifiers when they were taken.
    match name.strip_prefix("r#") {
        Some(name) => Ident::new_raw(name, proc_macro2::Span::call_site()),
        None => Ident::new(name, proc_macro2::Span::call_site()),
    }
}
