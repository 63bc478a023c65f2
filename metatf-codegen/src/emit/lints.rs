//! The attributes that disable lints which depend on the DTD. No other lint of rustc, of rustdoc, or of Clippy's groups
//! `all` and `pedantic` applies to generated code.

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::{Model, Struct, Ty};

/// Emits the attributes. A lint about sizes is disabled only if the format is large, by a cautious estimate.
pub(super) fn emit(model: &Model) -> TokenStream {
    let lines = has_long_functions(model).then(|| quote!(clippy::too_many_lines,));
    let variants = has_large_variants(model).then(|| quote!(clippy::large_enum_variant,));
    quote! {
        #[allow(dead_code, unreachable_pub, reason = "covers the entire format, whatever the program uses")]
        #[allow(
            clippy::enum_variant_names, clippy::struct_field_names, #lines #variants
            reason = "names and sizes come from the DTD"
        )]
    }
}

/// Returns whether a function may have more than 100 lines. A record of a section, a section and a leaf take at most five
/// lines in a function, and a named value one line.
fn has_long_functions(model: &Model) -> bool {
    let records = model.tagged.iter().map(|section| section.records.len());
    let leaves = model.structs.iter().map(|s| s.shape.pieces.len());
    records.chain(leaves).chain([model.tagged.len(), model.streams.len()]).any(|n| n > 18)
        || model.named.iter().any(|named| named.items.len() > 90)
}

/// Returns whether the largest variant of an enum may be 200 bytes larger than the second-largest. The lint does not
/// count the size of type parameters.
fn has_large_variants(model: &Model) -> bool {
    let of_struct = |index: &usize| model.structs.get(*index).map_or(0, |s| size_of_struct(model, s));
    let sections: Vec<Vec<usize>> =
        model.tagged.iter().map(|section| section.records.iter().map(|r| of_struct(&r.item)).collect()).collect();
    let record = sections.iter().map(|sizes| sizes.iter().max().map_or(0, |size| size + 8)).collect();
    let element = model.streams.iter().map(|stream| of_struct(&stream.item)).collect();
    sections.into_iter().chain([record, element]).any(|mut sizes: Vec<usize>| {
        sizes.sort_unstable();
        matches!(sizes.as_slice(), [.., second, largest] if largest - second >= 180)
    })
}

fn size_of_struct(model: &Model, s: &Struct) -> usize {
    s.shape.fields.iter().map(|field| size(model, &field.ty)).sum()
}

fn size(model: &Model, ty: &Ty) -> usize {
    match ty {
        Ty::Unit | Ty::Bytes => 0,
        Ty::U64 | Ty::I64 | Ty::F64 => 8,
        Ty::Named(_) => 16,
        Ty::Array(length) => *length as usize,
        Ty::List(_) => 24,
        Ty::Optional(item) => 8 + size(model, item),
        Ty::Struct(index) => model.structs.get(*index).map_or(0, |s| size_of_struct(model, s)),
    }
}
