//! The structs for records, nested records and the items of repeated groups, with the functions that read and write
//! their fields.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::{declared, field_type, generic, number, raw};
use crate::docs;
use crate::model::{Body, Field, Filled, Kind, Model, Piece, Stream, Struct, Ty};
use crate::names::ident;
use crate::options::OptionError;

/// Emits all structs. Nested structs come before the structs that contain them.
pub(super) fn emit(model: &Model) -> Result<TokenStream, OptionError> {
    model.structs.iter().map(|s| one(model, s)).collect()
}

fn one(model: &Model, s: &Struct) -> Result<TokenStream, OptionError> {
    let (docs, layout) = (docs::attributes(&s.docs), docs::attributes(&s.layout));
    let attributes = attributes(&s.attributes)?;
    let name = declared(&s.name, s.shape.bytes);
    let fields: TokenStream = s.shape.fields.iter().map(|f| field(model, f)).collect::<Result<_, _>>()?;
    let conversions = s.shape.bytes.then(|| conversions(model, s));
    Ok(quote! {
        #docs
        #layout
        #[derive(Clone, Debug, Default, PartialEq)]
        #attributes
        pub struct #name { #fields }
        #conversions
    })
}

/// Emits the functions that read and write each struct. Only the first implementation of a trait explains it.
pub(super) fn coding(model: &Model) -> TokenStream {
    let listed = model.tagged.iter().flat_map(|section| section.records.iter().map(|listed| listed.item));
    let tops: BTreeSet<usize> = listed.chain(model.streams.iter().map(|stream| stream.item)).collect();
    let first = tops.first().copied();
    let mut fields = model.structs.iter().flat_map(|s| &s.shape.fields);
    let repetitions = fields.any(|field| matches!(field.ty, Ty::List(_) | Ty::Optional(_))).then(|| {
        quote! {
            ///
            /// `optional` and `each` call a closure as often as the count in the given leaf says. A computed count stores no
            /// bytes: the row computes it when it is read, and compares it when it is written.
        }
    });
    let one = |(index, s): (usize, &Struct)| {
        let explained = |is_first: bool, docs: TokenStream| if is_first { docs } else { TokenStream::new() };
        let read = read(
            model,
            s,
            &explained(
                index == 0,
                quote! {
                    /// Reads the fields in the order of their leaves. Lengths and counts have no field: the row keeps them for the
                    /// leaves that follow. The runtime handles the tag, which is leaf 0 of a record with a tag. `base` is the
                    /// number of the first leaf, which is not 0 if another record contains the fields.
                    #repetitions
                },
            ),
        );
        let write = write(
            s,
            &explained(
                index == 0,
                quote! {
                    /// Writes the leaves in the same order, including lengths and counts, which follow from the fields.
                },
            ),
        );
        let family = tops.contains(&index).then(|| {
            family(
                s,
                &explained(
                    Some(index) == first,
                    quote! {
                        /// Lets the runtime choose the type of the byte arrays in records and elements: `Family::With<&[u8]>`
                        /// borrows them from the trace, and `Family::With<Vec<u8>>` owns them. Without byte arrays, both are the
                        /// same type. `read` reads a record of a type that the caller has requested, or an element of a table.
                    },
                ),
            )
        });
        quote!(#read #write #family)
    };
    model.structs.iter().enumerate().map(one).collect()
}

fn field(model: &Model, field: &Field) -> Result<TokenStream, OptionError> {
    let target = field.target.and_then(|number| model.streams.iter().find(|stream| stream.number == number));
    let docs = docs::attributes(&[field.docs.clone(), target.map(offset_docs).unwrap_or_default()].concat());
    let attributes = attributes(&field.attributes)?;
    let (name, ty) = (raw(&field.name), field_type(model, &field.ty));
    Ok(quote!(#docs #attributes pub #name: #ty,))
}

/// Explains a field that contains offsets into a stream section.
fn offset_docs(stream: &Stream) -> Vec<String> {
    let (section, method) = (&stream.title, ident(&stream.method));
    let mut lines = vec![format!(
        "An offset into section `{section}`. `trace.{method}().get(..)` returns the element at the offset."
    )];
    if stream.filled == Filled::Users {
        lines.push(format!(
            "`writer.{method}().intern(..)` adds an element if the table does not contain it, and returns its offset."
        ));
    }
    lines
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

/// Emits the implementation of `ReadFields`. `docs` explain the trait.
fn read(model: &Model, s: &Struct, docs: &TokenStream) -> TokenStream {
    let name = generic(&s.name, s.shape.bytes);
    let parameters = if s.shape.bytes { quote!('a, Bytes: From<&'a [u8]>) } else { quote!('a) };
    let (row, base) = parameters_of(s);
    let mut fields = Vec::new();
    // Leaves without a field, which are read before the next field.
    let mut skipped = Vec::new();
    for piece in &s.shape.pieces {
        match read_piece(model, s, piece) {
            Read::Field(name, value) if skipped.is_empty() => fields.push(quote!(#name: #value)),
            Read::Field(name, value) => fields.push(quote!(#name: { #(#skipped)* #value })),
            Read::Skipped(statement) => {
                skipped.push(statement);
                continue;
            }
        }
        skipped.clear();
    }
    let body = match (fields.as_slice(), skipped.as_slice()) {
        (fields, []) => quote!(Ok(Self { #(#fields),* })),
        ([], skipped) => quote!(#(#skipped)* Ok(Self {})),
        (fields, skipped) => quote! {
            let fields = Self { #(#fields),* };
            #(#skipped)*
            Ok(fields)
        },
    };
    quote! {
        #docs
        impl<#parameters> runtime::ReadFields<'a> for #name {
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn read_fields<AnyRow: runtime::Source<'a>>(#row: &mut AnyRow, #base: u8) -> Result<Self, AnyRow::Error> {
                #body
            }
        }
    }
}

/// Returns the names of the parameters for the row and the first leaf, which a struct without leaves does not use.
fn parameters_of(s: &Struct) -> (Ident, Ident) {
    let prefix = if s.shape.pieces.is_empty() { "_" } else { "" };
    (format_ident!("{prefix}row"), format_ident!("{prefix}base"))
}

/// Emits the expression for a leaf's index in the record.
fn leaf(leaf: u8) -> TokenStream {
    if leaf == 0 {
        return quote!(base);
    }
    let leaf = number(leaf);
    quote!(base + #leaf)
}

/// The code that reads a piece.
enum Read {
    /// The name and the value of a field.
    Field(Ident, TokenStream),
    /// A statement that reads a leaf without a field: a constant, which the row checks, or a length or a count, which
    /// follows from a field.
    Skipped(TokenStream),
}

fn read_piece(model: &Model, s: &Struct, piece: &Piece) -> Read {
    match piece {
        Piece::One { leaf: at, field, kind } => {
            let at = leaf(*at);
            let value = match kind {
                Kind::Bytes => quote!(Bytes::from(row.bytes(#at)?)),
                Kind::Array => quote!(runtime::array(row, #at)?),
                _ => from_number(model, s, field, *kind, &quote!(row.number(#at)?)),
            };
            Read::Field(raw(field), value)
        }
        Piece::Constant { leaf: at, .. } => skipped("constant", *at),
        Piece::Length { leaf: at, .. } => skipped("length", *at),
        Piece::Count { leaf: at, .. } => skipped("count", *at),
        Piece::Nested { base, field } => {
            let at = leaf(*base);
            Read::Field(raw(field), quote!(runtime::ReadFields::read_fields(row, #at)?))
        }
        Piece::Each { count, field, body } => {
            let (at, body) = (leaf(*count), read_item(model, s, field, body));
            Read::Field(raw(field), quote!(runtime::each(row, #at, |row| #body)?))
        }
        Piece::Optional { count, field, body } => {
            let (at, body) = (leaf(*count), read_item(model, s, field, body));
            Read::Field(raw(field), quote!(runtime::optional(row, #at, |row| #body)?))
        }
    }
}

/// Emits the conversion of a leaf's number to the value of its field.
pub(super) fn from_number(model: &Model, s: &Struct, field: &str, kind: Kind, number: &TokenStream) -> TokenStream {
    match kind {
        Kind::Signed => quote!(#number.cast_signed()),
        Kind::Single => quote!(u32::try_from(#number).map_or(f32::NAN, f32::from_bits)),
        Kind::Float => quote!(f64::from_bits(#number)),
        Kind::Named => {
            let ty = named_type(model, s, field);
            quote!(#ty::from_number(#number))
        }
        Kind::Number | Kind::Bytes | Kind::Array => number.clone(),
    }
}

fn skipped(what: &str, at: u8) -> Read {
    let (name, at) = (format_ident!("_{what}"), leaf(at));
    Read::Skipped(quote!(let #name = row.number(#at)?;))
}

/// Emits the expression for an item of a repetition.
fn read_item(model: &Model, s: &Struct, field: &str, body: &Body) -> TokenStream {
    match body {
        Body::One { leaf: at, kind } => {
            let at = leaf(*at);
            match kind {
                Kind::Number => quote!(row.number(#at)),
                Kind::Signed => quote!(row.number(#at).map(u64::cast_signed)),
                Kind::Single => {
                    quote!(row.number(#at).map(|bits| u32::try_from(bits).map_or(f32::NAN, f32::from_bits)))
                }
                Kind::Float => quote!(row.number(#at).map(f64::from_bits)),
                Kind::Named => {
                    let ty = named_type(model, s, field);
                    quote!(row.number(#at).map(#ty::from_number))
                }
                Kind::Bytes => quote!(row.bytes(#at).map(Bytes::from)),
                Kind::Array => quote!(runtime::array(row, #at)),
            }
        }
        Body::Constant { leaf: at, .. } => {
            let at = leaf(*at);
            quote!(row.number(#at).map(|_| ()))
        }
        Body::Vfield { length, data } => {
            let (length, data) = (leaf(*length), leaf(*data));
            quote!(runtime::read_vfield(row, #length, #data))
        }
        Body::Nested { base } => {
            let at = leaf(*base);
            quote!(runtime::ReadFields::read_fields(row, #at))
        }
    }
}

/// Returns the name of the type of a field with named values or bits, or of the items of such a field.
fn named_type(model: &Model, s: &Struct, field: &str) -> Ident {
    let ty = s.shape.fields.iter().find(|f| f.name == field).map(|f| &f.ty);
    let index = match ty {
        Some(Ty::List(item) | Ty::Optional(item)) => match **item {
            Ty::Named(index) => Some(index),
            _ => None,
        },
        Some(Ty::Named(index)) => Some(*index),
        _ => None,
    };
    ident(index.and_then(|index| model.named.get(index)).map_or("u64", |named| &named.name))
}

/// Emits the implementation of `WriteFields`. `docs` explain the trait.
fn write(s: &Struct, docs: &TokenStream) -> TokenStream {
    let name = generic(&s.name, s.shape.bytes);
    let parameters = s.shape.bytes.then(|| quote!(<Bytes: AsRef<[u8]>>));
    let lines = s.shape.pieces.iter().map(|piece| write_piece(s, piece));
    let (row, base) = parameters_of(s);
    quote! {
        #docs
        impl #parameters runtime::WriteFields for #name {
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn write_fields<AnyRow: runtime::Put>(&self, #row: &mut AnyRow, #base: u8) -> Result<(), AnyRow::Error> {
                #(#lines)*
                Ok(())
            }
        }
    }
}

fn write_piece(s: &Struct, piece: &Piece) -> TokenStream {
    match piece {
        Piece::One { leaf: at, field, kind } => {
            let (field, at) = (raw(field), leaf(*at));
            match kind {
                Kind::Number => quote!(row.number(#at, self.#field)?;),
                Kind::Signed => quote!(row.number(#at, self.#field.cast_unsigned())?;),
                Kind::Single => quote!(row.number(#at, self.#field.to_bits().into())?;),
                Kind::Float => quote!(row.number(#at, self.#field.to_bits())?;),
                Kind::Named => quote!(row.number(#at, self.#field.number())?;),
                Kind::Bytes => quote!(row.bytes(#at, self.#field.as_ref())?;),
                Kind::Array => quote!(row.bytes(#at, &self.#field)?;),
            }
        }
        Piece::Constant { leaf: at, value } => {
            let (at, value) = (leaf(*at), number(*value));
            quote!(row.number(#at, #value)?;)
        }
        Piece::Length { leaf: at, field } => {
            let (field, at) = (raw(field), leaf(*at));
            quote!(row.number(#at, self.#field.as_ref().len() as u64)?;)
        }
        Piece::Count { leaf: at, field } => {
            let (name, at) = (raw(field), leaf(*at));
            let ty = s.shape.fields.iter().find(|f| f.name == *field).map(|f| &f.ty);
            if matches!(ty, Some(Ty::Optional(_))) {
                return quote!(row.number(#at, u64::from(self.#name.is_some()))?;);
            }
            quote!(row.number(#at, self.#name.len() as u64)?;)
        }
        Piece::Nested { base, field } => {
            let (field, at) = (raw(field), leaf(*base));
            quote!(runtime::WriteFields::write_fields(&self.#field, row, #at)?;)
        }
        Piece::Each { count, field, body } => {
            let (field, at, body) = (raw(field), leaf(*count), write_item(body));
            quote!(runtime::put_each(row, #at, &self.#field, #body)?;)
        }
        Piece::Optional { count, field, body } => {
            let (field, at, body) = (raw(field), leaf(*count), write_item(body));
            quote!(runtime::put_each(row, #at, self.#field.as_slice(), #body)?;)
        }
    }
}

/// Emits the closure that writes an item of a repetition.
fn write_item(body: &Body) -> TokenStream {
    match body {
        Body::One { leaf: at, kind } => {
            let at = leaf(*at);
            match kind {
                Kind::Number => quote!(|row, item| row.number(#at, *item)),
                Kind::Signed => quote!(|row, item| row.number(#at, item.cast_unsigned())),
                Kind::Single => quote!(|row, item| row.number(#at, item.to_bits().into())),
                Kind::Float => quote!(|row, item| row.number(#at, item.to_bits())),
                Kind::Named => quote!(|row, item| row.number(#at, item.number())),
                Kind::Bytes => quote!(|row, item| row.bytes(#at, item.as_ref())),
                Kind::Array => quote!(|row, item| row.bytes(#at, item)),
            }
        }
        Body::Constant { leaf: at, value } => {
            let (at, value) = (leaf(*at), number(*value));
            quote!(|row, ()| row.number(#at, #value))
        }
        Body::Vfield { length, data } => {
            let (length, data) = (leaf(*length), leaf(*data));
            quote!(|row, item| {
                row.number(#length, item.as_ref().len() as u64)?;
                row.bytes(#data, item.as_ref())
            })
        }
        Body::Nested { base } => {
            let at = leaf(*base);
            quote!(|row, item| runtime::WriteFields::write_fields(item, row, #at))
        }
    }
}

fn family(s: &Struct, docs: &TokenStream) -> TokenStream {
    let name = ident(&s.name);
    let with = generic(&s.name, s.shape.bytes);
    quote! {
        #docs
        impl runtime::Family for #name {
            type With<Bytes> = #with;
            #[inline]
            fn read<'a, Bytes: From<&'a [u8]>, AnyRow: runtime::Source<'a>>(
                row: &mut AnyRow,
            ) -> Result<#with, AnyRow::Error> {
                runtime::ReadFields::read_fields(row, 0)
            }
        }
    }
}

/// Emits the conversions between owned and borrowed bytes.
fn conversions(model: &Model, s: &Struct) -> TokenStream {
    let name = ident(&s.name);
    let fields = s.shape.fields.iter().map(|f| {
        let (name, value) = (raw(&f.name), converted(model, f));
        quote!(#name: #value)
    });
    let conversions = conversion_methods(&name);
    quote! {
        impl<Bytes: AsRef<[u8]>> #name<Bytes> {
            #conversions
            fn with_bytes<'s, NewBytes>(&'s self, bytes: fn(&'s [u8]) -> NewBytes) -> #name<NewBytes> {
                #name { #(#fields),* }
            }
        }
    }
}

/// Emits the methods `to_owned` and `borrow`, which call `with_bytes`.
pub(super) fn conversion_methods(name: &Ident) -> TokenStream {
    quote! {
        /// Returns a copy that owns its bytes.
        #[must_use]
        pub fn to_owned(&self) -> #name {
            self.with_bytes(<[u8]>::to_vec)
        }
        /// Returns a copy that borrows its bytes from this one.
        #[must_use]
        pub fn borrow(&self) -> #name<&[u8]> {
            self.with_bytes(|bytes| bytes)
        }
        /// Returns a copy with byte arrays created by `bytes`.
    }
}

/// Emits the copy of a field with converted bytes.
fn converted(model: &Model, field: &Field) -> TokenStream {
    let name = raw(&field.name);
    match &field.ty {
        ty if !model.has_bytes(ty) => {
            if is_copy(ty) {
                quote!(self.#name)
            } else {
                quote!(self.#name.clone())
            }
        }
        Ty::Bytes => quote!(bytes(self.#name.as_ref())),
        Ty::List(item) => {
            let item = converted_item(item);
            quote!(self.#name.iter().map(#item).collect())
        }
        Ty::Optional(item) => {
            let item = converted_item(item);
            quote!(self.#name.as_ref().map(#item))
        }
        _ => quote!(self.#name.with_bytes(bytes)),
    }
}

fn converted_item(item: &Ty) -> TokenStream {
    match item {
        Ty::Bytes => quote!(|item| bytes(item.as_ref())),
        _ => quote!(|item| item.with_bytes(bytes)),
    }
}

fn is_copy(ty: &Ty) -> bool {
    match ty {
        Ty::U64 | Ty::I64 | Ty::F32 | Ty::F64 | Ty::Named(_) | Ty::Unit | Ty::Array(_) => true,
        Ty::Optional(item) => is_copy(item),
        Ty::Bytes | Ty::Struct(_) | Ty::List(_) => false,
    }
}
