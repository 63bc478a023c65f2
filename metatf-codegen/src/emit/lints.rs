//! The attributes that disable lints which depend on the DTD. No other lint of rustc, of rustdoc, or of Clippy's groups
//! `all` and `pedantic` applies to generated code.

use heck::ToSnakeCase;
use proc_macro2::TokenStream;
use quote::quote;

use crate::model::{Model, Struct, Ty};

/// Emits the attributes. A lint about names or sizes is disabled only if a cautious estimate shows that the format may
/// need it.
pub(super) fn emit(model: &Model) -> TokenStream {
    let fields = has_alike_fields(model).then(|| quote!(clippy::struct_field_names,));
    let variants = has_alike_variants(model).then(|| quote!(clippy::enum_variant_names,));
    let lines = has_long_functions(model).then(|| quote!(clippy::too_many_lines,));
    let large = has_large_variants(model).then(|| quote!(clippy::large_enum_variant,));
    let lints = quote!(#variants #large #fields #lines);
    let of_dtd = (!lints.is_empty()).then(|| quote!(#[allow(#lints reason = "names and sizes come from the DTD")]));
    quote! {
        #[allow(dead_code, unreachable_pub, reason = "covers the entire format, whatever the program uses")]
        #of_dtd
    }
}

fn has_alike_fields(model: &Model) -> bool {
    model.structs.iter().any(|s| are_alike(&s.name, s.shape.fields.iter().map(|f| f.name.trim_start_matches("r#"))))
}

fn has_alike_variants(model: &Model) -> bool {
    let sections = model.tagged.iter().map(|section| {
        let variants = section.records.iter().map(|listed| listed.variant.as_str());
        (section.name.as_str(), variants.collect())
    });
    let named = model.named.iter().filter(|named| !named.flags).map(|named| {
        let variants = named.items.iter().map(|item| item.name.as_str());
        (named.name.as_str(), variants.chain(["Unknown"]).collect())
    });
    let record = ("Record", model.tagged.iter().map(|section| section.variant.as_str()).collect());
    let element = ("Element", model.streams.iter().map(|stream| stream.variant.as_str()).collect());
    let mut all = sections.chain(named).chain([record, element]);
    all.any(|(name, variants): (&str, Vec<&str>)| are_alike(name, variants.into_iter()))
}

/// Returns whether three or more names begin or end with the same word, or one of them with the name of their type.
fn are_alike<'n>(of: &str, names: impl Iterator<Item = &'n str>) -> bool {
    let of = of.to_snake_case();
    let names: Vec<String> = names.map(ToSnakeCase::to_snake_case).collect();
    let all_same = |word: fn(&str) -> Option<&str>| {
        let mut words = names.iter().map(|name| word(name));
        let first = words.next().flatten();
        words.all(|word| word == first)
    };
    let repeats = |name: &String| name.starts_with(&of) || name.ends_with(&of);
    let (first, last) = (all_same(|name| name.split('_').next()), all_same(|name| name.rsplit('_').next()));
    names.len() > 2 && (first || last || names.iter().any(repeats))
}

/// Returns whether a function may have more than 100 lines. A record of a section, a section and a leaf take at most
/// five lines in a function, and a named value one line.
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
        Ty::F32 => 4,
        Ty::U64 | Ty::I64 | Ty::F64 => 8,
        Ty::Named(_) => 16,
        Ty::Array(length) => *length as usize,
        Ty::List(_) => 24,
        Ty::Optional(item) => 8 + size(model, item),
        Ty::Struct(index) => model.structs.get(*index).map_or(0, |s| size_of_struct(model, s)),
    }
}
