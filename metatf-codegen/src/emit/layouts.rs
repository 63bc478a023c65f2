//! The byte layout of each struct's fields, as a row of the table.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::{number, raw};
use crate::model::{Body, Kind, Piece, Struct};
use crate::names::ident;

/// Emits the row of a struct.
pub(super) fn row(s: &Struct) -> TokenStream {
    let name = ident(&s.name);
    let bytes = s.shape.bytes.then(|| quote!(Bytes));
    let fields = s.shape.fields.iter().map(|f| raw(&f.name));
    let pieces = runs(&s.shape.pieces);
    quote!(struct #name(#bytes) { #(#fields),* } { #(#pieces),* })
}

/// Returns the tokens of the pieces. Plain numbers in consecutive leaves are combined into a single `numbers(..)`.
fn runs(pieces: &[Piece]) -> Vec<TokenStream> {
    let mut tokens = Vec::new();
    let mut rest = pieces;
    while let Some(piece) = rest.first() {
        let run = rest.iter().zip(leaf_of(piece)..).take_while(|(p, leaf)| is_number(p, *leaf)).count();
        if run == 0 {
            tokens.push(one(piece));
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        let (numbers, after) = rest.split_at(run);
        let leaf = Literal::u8_unsuffixed(leaf_of(piece));
        let fields = numbers.iter().filter_map(|p| match p {
            Piece::One { field, .. } => Some(raw(field)),
            _ => None,
        });
        tokens.push(quote!(numbers(#leaf #(#fields)*)));
        rest = after;
    }
    tokens
}

fn is_number(piece: &Piece, at: u8) -> bool {
    matches!(piece, Piece::One { leaf, kind: Kind::Number, .. } if *leaf == at)
}

fn leaf_of(piece: &Piece) -> u8 {
    match piece {
        Piece::One { leaf, .. }
        | Piece::Constant { leaf, .. }
        | Piece::Length { leaf, .. }
        | Piece::Count { leaf, .. }
        | Piece::Nested { base: leaf, .. }
        | Piece::Each { count: leaf, .. }
        | Piece::Optional { count: leaf, .. } => *leaf,
    }
}

fn one(piece: &Piece) -> TokenStream {
    let leaf = Literal::u8_unsuffixed(leaf_of(piece));
    match piece {
        Piece::One { field, kind, .. } => {
            let (kind, field) = (kind_name(*kind), raw(field));
            quote!(#kind(#leaf #field))
        }
        Piece::Constant { value, .. } => {
            let value = number(*value);
            quote!(constant(#leaf #value))
        }
        Piece::Length { field, .. } => {
            let field = raw(field);
            quote!(length(#leaf #field))
        }
        Piece::Count { field, .. } => {
            let field = raw(field);
            quote!(count(#leaf #field))
        }
        Piece::Nested { field, .. } => {
            let field = raw(field);
            quote!(nested(#leaf #field))
        }
        Piece::Each { field, body, .. } => {
            let (field, body) = (raw(field), item(body));
            quote!(each(#leaf #field #body))
        }
        Piece::Optional { field, body, .. } => {
            let (field, body) = (raw(field), item(body));
            quote!(optional(#leaf #field #body))
        }
    }
}

/// Emits the body of a repetition.
fn item(body: &Body) -> TokenStream {
    let leaf = |leaf: &u8| Literal::u8_unsuffixed(*leaf);
    match body {
        Body::One { leaf: at, kind } => {
            let (kind, at) = (kind_name(*kind), leaf(at));
            quote!(#kind #at)
        }
        Body::Constant { leaf: at, value } => {
            let (at, value) = (leaf(at), number(*value));
            quote!(constant #at #value)
        }
        Body::Vfield { length, data } => {
            let (length, data) = (leaf(length), leaf(data));
            quote!(vfield #length #data)
        }
        Body::Nested { base } => {
            let base = leaf(base);
            quote!(nested #base)
        }
    }
}

fn kind_name(kind: Kind) -> TokenStream {
    match kind {
        Kind::Number => quote!(numbers),
        Kind::Signed => quote!(signed),
        Kind::Float => quote!(float),
        Kind::Named => quote!(named),
        Kind::Bytes => quote!(bytes),
        Kind::Array => quote!(array),
    }
}
