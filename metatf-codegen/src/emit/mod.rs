//! Converts the model to tokens, with one file for each part of the output.

mod columns;
mod emitters;
mod enums;
mod names;
mod protocol;
mod structs;
mod tables;
mod trace;

use metatf_parser::schema::Dtd;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use crate::docs;
use crate::emitters::Emitters;
use crate::expect::expected;
use crate::model::{Model, Ty};
use crate::names::ident;
use crate::options::{OptionError, Options};

/// Version of the interface to the runtime, `metatf::generated`.
const VERSION: u32 = 6;

/// Emits the complete output, which is a module in reading order.
pub(crate) fn emit(
    dtd: &Dtd,
    model: &Model,
    emitters: &Emitters,
    options: &Options,
) -> Result<TokenStream, OptionError> {
    let runtime: TokenStream = options.runtime.parse().map_err(|_| OptionError(options.runtime.clone()))?;
    let named = names::emit(model)?;
    let (structs, coding) = (structs::emit(model)?, structs::coding(model));
    let enums = enums::emit(model);
    let emitters = emitters::emit(emitters, options)?;
    let (trace, writer, columns) = (trace::trace(model), trace::writer(model), columns::emit(model));
    let (protocol, tables) = (protocol::emit(dtd, model, options), tables::emit(dtd, &expected(dtd, options)?));
    let text = literal(&dtd.text);
    let version = Literal::u32_unsuffixed(VERSION);
    let (source, module) = (&options.source, options.module.as_deref());
    let doc =
        format!(" Reader and writer of the trace format `{}`. Generated: edit the DTD instead.", docs::plain(source));
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
    let lints = lints();
    Ok(quote! {
        #[doc = #doc]
        #[forbid(unsafe_code)]
        #lints
        #visibility mod #name {
            use #runtime::generated as runtime;
            const _: () = runtime::check_version(#version);
            /// The text of the DTD.
            pub const DTD: &str = #text;
            #trace
            #writer
            #enums
            #structs
            #named
            #columns
            #emitters
            #coding
            #protocol
            #tables
        }
        #reexport
    })
}

/// Emits attributes that disable lints meant for handwritten code.
fn lints() -> TokenStream {
    quote! {
        #[allow(unknown_lints, renamed_and_removed_lints, reason = "different versions have different lints")]
        #[allow(dead_code, unreachable_pub, reason = "covers the entire format, whatever the program uses")]
        #[allow(
            non_camel_case_types, non_snake_case, variant_size_differences, missing_copy_implementations,
            clippy::empty_structs_with_brackets, clippy::enum_variant_names, clippy::exhaustive_enums,
            clippy::exhaustive_structs, clippy::large_enum_variant, clippy::min_ident_chars, clippy::module_inception,
            clippy::module_name_repetitions, clippy::similar_names, clippy::struct_field_names,
            clippy::too_many_lines, clippy::type_complexity, clippy::upper_case_acronyms,
            reason = "names and structure come from the DTD"
        )]
        #[allow(
            rustdoc::bare_urls, rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags,
            rustdoc::invalid_rust_codeblocks, rustdoc::unescaped_backticks, clippy::doc_lazy_continuation,
            clippy::doc_markdown, clippy::tabs_in_doc_comments, clippy::too_long_first_doc_paragraph,
            reason = "comments come from the DTD"
        )]
        #[allow(
            clippy::absolute_paths, clippy::arbitrary_source_item_ordering, clippy::derive_partial_eq_without_eq,
            clippy::impl_trait_in_params, clippy::needless_raw_string_hashes, clippy::needless_raw_strings,
            clippy::partial_pub_fields, clippy::std_instead_of_alloc, clippy::unreadable_literal,
            reason = "generated code"
        )]
    }
}

/// Returns a readable literal for a text, which is a raw string with line breaks. Characters that do not belong in a
/// source file are escaped.
fn literal(text: &str) -> Literal {
    let is_plain = |c: char| matches!(c, '\n' | '\t' | '"' | '\'' | '\\') || c.escape_debug().eq([c]);
    if !text.chars().all(is_plain) {
        return Literal::string(text);
    }
    let hashes = "#".repeat(
        1 + text.split('"').skip(1).map(|rest| rest.len() - rest.trim_start_matches('#').len()).max().unwrap_or(0),
    );
    format!("r{hashes}\"{text}\"{hashes}").parse().unwrap_or_else(|_| Literal::string(text))
}

/// Returns the type of a struct or an enum: `Alloc<Bytes>` if it contains bytes, and otherwise `Alloc`.
fn generic(name: &str, bytes: bool) -> TokenStream {
    let name = ident(name);
    if bytes { quote!(#name<Bytes>) } else { quote!(#name) }
}

/// Returns the same type as [`generic`], but for the declaration, in which the type parameter defaults to owned bytes.
fn declared(name: &str, bytes: bool) -> TokenStream {
    let name = ident(name);
    if bytes { quote!(#name<Bytes = Vec<u8>>) } else { quote!(#name) }
}

/// Returns the type of a field.
fn field_type(model: &Model, ty: &Ty) -> TokenStream {
    match ty {
        Ty::U64 => quote!(u64),
        Ty::I64 => quote!(i64),
        Ty::F64 => quote!(f64),
        Ty::Named(index) => model.named.get(*index).map_or(quote!(u64), |named| generic(&named.name, false)),
        Ty::Unit => quote!(()),
        Ty::Bytes => quote!(Bytes),
        Ty::Array(n) => {
            let n = Literal::u32_unsuffixed(*n);
            quote!([u8; #n])
        }
        Ty::Struct(index) => model.structs.get(*index).map_or(quote!(()), |s| generic(&s.name, s.shape.bytes)),
        Ty::List(item) => {
            let item = field_type(model, item);
            quote!(Vec<#item>)
        }
        Ty::Optional(item) => {
            let item = field_type(model, item);
            quote!(Option<#item>)
        }
    }
}

fn number(n: impl Into<u64>) -> Literal {
    Literal::u64_unsuffixed(n.into())
}

fn raw(name: &str) -> Ident {
    // Field names are already valid identifiers.
    match name.strip_prefix("r#") {
        Some(name) => Ident::new_raw(name, proc_macro2::Span::call_site()),
        None => Ident::new(name, proc_macro2::Span::call_site()),
    }
}
