//! Converts the model to tokens, with one file for each part of the output.

mod columns;
mod emitters;
mod enums;
mod lints;
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

/// Version of the interface to the runtime, `metatf::generated`: the earliest version that contains every item that
/// generated code names.
const VERSION: (u16, u16) = (1, 0);

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
    let (protocol, tables) = (protocol::emit(dtd, model, options), tables::emit(dtd, model, &expected(dtd, options)?));
    let text = literal(&dtd.text);
    let (major, minor) = (number(VERSION.0), number(VERSION.1));
    let (source, module) = (&options.source, options.module.as_deref());
    let doc =
        format!(" Reader and writer of the trace format `{}`. Generated: edit the DTD instead.", docs::plain(source));
    let about = dtd.doc.as_deref().map(|doc| docs::attributes(&docs::lines(Some(doc))));
    let about = about.filter(|about| !about.is_empty()).map(|about| quote!(#[doc = ""] #about));
    let (visibility, name) = match module {
        Some(module) => (quote!(pub), ident(module)),
        None => (quote!(), ident("generated")),
    };
    let reexport = module.is_none().then(|| {
        quote!(
            #[allow(unused_imports, unreachable_pub, reason = "exports the entire format")]
            pub use self::generated::*;
        )
    });
    let lints = lints::emit(model);
    let interpretations = docs::interpretations(dtd);
    let previous = docs::previous(dtd);
    Ok(quote! {
        #[doc = #doc]
        #about
        #[doc = ""]
        /// Programs use [`Trace`], [`Writer`], [`Columns`], and the structs and enums of records. The implementations of
        /// traits after these types connect them with the runtime, the crate `metatf`; its module `metatf::generated`
        /// documents the traits.
        ///
        /// A trace consists of *sections*. A section contains records with tags, or, in a *stream section*, *elements*
        /// without tags. Either records take the elements in order, or the elements form a table, and records contain the
        /// offsets of elements in bytes.
        ///
        /// A trace is divided into *groups*, which can be read independently of each other, and a group into *chunks*, each
        /// with consecutive records or elements of one section. Only *shared* tables extend across groups: they grow over the
        /// entire trace, and records in all later groups can refer to their elements. The tables of a [`Writer`] are shared.
        /// Other programs can write traces with a separate table in each group.
        ///
        /// A *leaf* is one value of a record: its tag, a field, a length or a count. Leaves are numbered in the order of
        /// the DTD, and a *row* reads or writes the leaves of one record in that order. Fields contain values, not stored
        /// integers. The comments of fields describe the encoding that the DTD declares: the width in bytes, and the
        /// *interpretation* of the stored integer. If the width is 0, the stored integer is 0. The interpretations are:
        ///
        #(#[doc = #interpretations])*
        #(#[doc = #previous])*
        ///
        /// Besides *data records*, which the DTD declares, every section with tags can contain three predefined records:
        ///
        /// - `comment` contains text.
        /// - `section` switches to another section, in traces of version 0.
        /// - `metadata` changes the encoding of a leaf in the records after it. The writer adds it if a value does not fit in
        ///   the encoding of its leaf. A strict writer (`set_strict`) returns an error instead, except at the start of a group
        ///   that continues the values of the previous one.
        ///
        /// Section 0, the global section, contains these three records and the records with tags that the DTD declares
        /// outside of sections.
        ///
        /// Records are read and written on one of two paths, both with `read_fields` and `write_fields`. For the *fast path*, the functions are
        /// compiled separately for three kinds of encoding, called *tiers*: the encoding that the DTD declares, other widths,
        /// and values that depend on earlier records. On the *slow path*, the row handles one leaf at a time. It is used at
        /// the end of a chunk, and for encodings that belong to no tier.
        ///
        /// The implementations identify sections and records by their indices in [`FORMAT`]. Section numbers of the DTD occur
        /// only in the tables of the format.
        ///
        /// The parameter `Bytes` of a type is `Vec<u8>` if the record owns its byte arrays, or `&[u8]` if it borrows them
        /// from the trace.
        #[rustfmt::skip]
        #[forbid(unsafe_code)]
        #lints
        #visibility mod #name {
            use #runtime::generated as runtime;
            #[doc = " Checks that this version of `metatf` has the interface that this code needs."]
            const _: () = runtime::check_version(#major, #minor);
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

/// Returns a readable literal for a text, which is a raw string with line breaks. Characters that do not belong in a
/// source file are escaped.
fn literal(text: &str) -> Literal {
    let is_plain = |c: char| matches!(c, '\n' | '\t' | '"' | '\'' | '\\') || c.escape_debug().eq([c]);
    if !text.chars().all(is_plain) {
        return Literal::string(text);
    }
    let hashes = text.split('"').skip(1).map(|rest| 1 + rest.len() - rest.trim_start_matches('#').len()).max();
    let hashes = "#".repeat(hashes.unwrap_or(0));
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
        Ty::F32 => quote!(f32),
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

/// Emits a number. Long numbers have separators.
fn number(n: impl Into<u64>) -> Literal {
    separated("", &n.into().to_string(), 3)
}

/// Emits a number in hexadecimal.
fn hexadecimal(n: u64) -> Literal {
    separated("0x", &format!("{n:x}"), 4)
}

/// Returns a literal with separators between groups of digits, unless the number is short.
fn separated(prefix: &str, digits: &str, group: usize) -> Literal {
    let mut text = String::from(prefix);
    for (index, digit) in digits.chars().enumerate() {
        if digits.len() > 5 && index > 0 && (digits.len() - index).is_multiple_of(group) {
            text.push('_');
        }
        text.push(digit);
    }
    text.parse().unwrap_or_else(|_| Literal::string(&text))
}

fn raw(name: &str) -> Ident {
    // Field names are already valid identifiers.
    match name.strip_prefix("r#") {
        Some(name) => Ident::new_raw(name, proc_macro2::Span::call_site()),
        None => Ident::new(name, proc_macro2::Span::call_site()),
    }
}
