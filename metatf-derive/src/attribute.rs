//! Parses the attribute's arguments, finds the DTD, and inserts the generated tokens into the module.

use std::path::Path;

use metatf_codegen::{Error, Options, generate_source};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Item, ItemMod, LitStr};

/// The arguments `dtd = ".."` and, optionally, `runtime = ".."`, `expect_widths = ".."` and `emitters = ".."`.
struct Arguments {
    dtd: LitStr,
    runtime: Option<LitStr>,
    expect_widths: Option<LitStr>,
    emitters: Option<LitStr>,
}

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let arguments = parse(arguments)?;
    let mut module: ItemMod = syn::parse2(item)
        .map_err(|e| syn::Error::new(e.span(), "`#[metatf]` must be applied to a module: `mod name {}`"))?;
    let Some((_, items)) = &mut module.content else {
        return Err(syn::Error::new_spanned(
            &module,
            "expected a module with a body, which may be empty: `mod name {}`",
        ));
    };
    let span = arguments.dtd.span();
    let error = |text: String| syn::Error::new(span, text);
    let root = std::env::var("CARGO_MANIFEST_DIR").map_err(|_| error("CARGO_MANIFEST_DIR is not set".to_owned()))?;
    let path = Path::new(&root).join(arguments.dtd.value());
    let shown = path.display().to_string();
    let text = std::fs::read(&path).map_err(|e| {
        let path = arguments.dtd.value();
        error(format!("cannot read the DTD `{path}` (the path is relative to the directory of Cargo.toml): {e}"))
    })?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let mut options = Options::new(name);
    if let Some(runtime) = arguments.runtime {
        options.runtime = runtime.value();
    }
    if let Some(widths) = &arguments.expect_widths {
        options.expected_widths = expected_widths(widths)?;
    }
    options.emitters = arguments.emitters.map(|path| path.value());
    let generated = generate_source(&text, &options).map_err(|e| match e {
        Error::Dtd(diagnostics) => error(format!("the DTD has errors\n\n{diagnostics}")),
        other => error(other.to_string()),
    })?;
    // `include_bytes!` makes the compiler rebuild the crate when the DTD changes.
    items.push(Item::Verbatim(quote!(
        const _: &[u8] = ::core::include_bytes!(#shown);
    )));
    items.push(Item::Verbatim(generated.tokens));
    Ok(quote!(#module))
}

fn parse(arguments: TokenStream) -> syn::Result<Arguments> {
    let (mut dtd, mut runtime, mut expect_widths, mut emitters) = (None, None, None, None);
    let parser = syn::meta::parser(|meta| {
        let slot = match meta.path.get_ident().map(ToString::to_string).as_deref() {
            Some("dtd") => &mut dtd,
            Some("runtime") => &mut runtime,
            Some("expect_widths") => &mut expect_widths,
            Some("emitters") => &mut emitters,
            _ => {
                return Err(meta.error(
                    "unknown argument: expected `dtd`, `runtime`, `expect_widths` or `emitters`, each followed by `= \
                     \"..\"`",
                ));
            }
        };
        let value: LitStr = meta.value()?.parse()?;
        match slot.replace(value) {
            Some(_) => Err(meta.error("this argument is specified twice")),
            None => Ok(()),
        }
    });
    syn::parse::Parser::parse2(parser, arguments)?;
    let missing = || {
        syn::Error::new(Span::call_site(), "the DTD is missing: write `#[metatf(dtd = \"path/from/Cargo.toml.dtd\")]`")
    };
    Ok(Arguments { dtd: dtd.ok_or_else(missing)?, runtime, expect_widths, emitters })
}

/// Parses `"address = 8, alloc.size = 4"`.
fn expected_widths(text: &LitStr) -> syn::Result<Vec<(String, u8)>> {
    let one = |pair: &str| {
        let (path, bytes) = pair.split_once('=')?;
        Some((path.trim().to_owned(), bytes.trim().parse().ok()?))
    };
    let value = text.value();
    let pairs = value.split(',').filter(|pair| !pair.trim().is_empty());
    pairs
        .map(|pair| {
            one(pair).ok_or_else(|| {
                syn::Error::new(
                    text.span(),
                    "expected fields and their widths in bytes, such as `address = 8, size = 4`",
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the module contains the generator's tokens, byte for byte after formatting.
    #[test]
    fn the_generators_tokens() {
        let text = std::fs::read("tests/dtds/good.dtd").unwrap();
        let expected = generate_source(&text, &Options::new("good.dtd")).unwrap();
        let tokens = expand(
            quote!(dtd = "tests/dtds/good.dtd"),
            quote!(
                mod m {}
            ),
        )
        .unwrap();
        let module: ItemMod = syn::parse2(tokens).unwrap();
        let (_, items) = module.content.unwrap();
        let items = items.iter().skip(1); // The `include_bytes!`.
        let source = metatf_codegen::render(&quote!(#(#items)*), "good.dtd");
        assert_eq!(source, expected.source);
    }
}
