//! The emitters, with a function, a macro and a struct of arguments for each event, and shared items.

use proc_macro2::{Ident, Literal, Punct, Spacing, Span, TokenStream};
use quote::{format_ident, quote};

use crate::docs;
use crate::emitters::{Bits, Emitters, Event, Machine};
use crate::names::ident;
use crate::options::{OptionError, Options};

/// Emits the emitters.
pub(super) fn emit(emitters: &Emitters, options: &Options) -> Result<TokenStream, OptionError> {
    let Some(path) = &options.emitters else { return Ok(TokenStream::new()) };
    let wrong =
        |path: &str| OptionError(format!("expected the path of a module, such as `crate::emit`, found `{path}`"));
    let crate_path = path.strip_prefix("crate::").or(if path == "crate" { Some("") } else { None });
    // Emit `$crate` in two parts, because it must denote the crate of the macro instead of this crate.
    let (dollar, root) = (Punct::new('$', Spacing::Alone), Ident::new("crate", Span::call_site()));
    let here: TokenStream = match crate_path {
        Some("") => quote!(#dollar #root),
        Some(rest) => {
            let rest: TokenStream = rest.parse().map_err(|_| wrong(path))?;
            quote!(#dollar #root::#rest)
        }
        None => path.parse().map_err(|_| wrong(path))?,
    };
    let runtime: TokenStream = options.telemetry_runtime.parse().map_err(|_| wrong(&options.telemetry_runtime))?;
    let (source, table) = (&options.source, &emitters.table);
    let kinds = emitters.kinds.iter();
    let arguments = emitters.events.iter().map(|event| arguments(event, &runtime));
    let has_rare = emitters.events.iter().any(|event| event.rare);
    let functions =
        emitters.events.iter().enumerate().map(|(number, event)| function(number, event, has_rare, &runtime));
    let slot = quote!(#runtime::private::Slot);
    let (slots, new) =
        if has_rare { (2_usize, quote!(#slot::new(), #slot::rare())) } else { (1, quote!(#slot::new())) };
    let macros = emitters.events.iter().map(|event| exported(event, &here));
    let intern = emitters.intern.as_ref().map(|event| intern(event, &runtime));
    let without = (!emitters.without.is_empty()).then(|| {
        let all: Vec<_> = emitters.without.iter().map(ToString::to_string).collect();
        let text = format!(" These records have no emitter: {}.", all.join(", "));
        quote!(#[doc = ""] #[doc = #text])
    });
    Ok(quote! {
        /// The location of each value in an event.
        const EVENTS: &str = #table;
        /// The kinds of events, from bit 0 of the control word.
        pub const KINDS: &[&str] = &[#(#kinds),*];
        /// The telemetry of this format, which can be started and stopped, and determines which kinds are enabled.
        #without
        pub static TELEMETRY: #runtime::Telemetry =
            #runtime::Telemetry::new(#source, DTD, EVENTS, |each| SLOTS.with(|slots| each(slots)));
        ::std::thread_local! {
            static SLOTS: [#slot; #slots] = const { [#new] };
        }
        /// The arguments of events, which are named arguments of the macros.
        #[allow(clippy::struct_field_names, reason = "names come from the DTD")]
        pub mod arguments {
            #(#arguments)*
        }
        #intern
        #(#functions)*
        #(#macros)*
    })
}

fn life(event: &Event) -> Option<TokenStream> {
    let borrows = |machine: Machine| matches!(machine, Machine::Text | Machine::Bytes | Machine::Array(_));
    event.fields.iter().any(|field| borrows(field.machine)).then(|| quote!(<'a>))
}

/// Emits the function that returns the ID of a string.
fn intern(event: &Event, runtime: &TokenStream) -> TokenStream {
    let (name, docs) = (ident(&event.name), docs::attributes(&event.docs));
    quote! {
        #docs
        ///
        /// Returns the ID of a string, which is always the same. The trace contains the string before the first event that refers
        /// to it. A string longer than 255 bytes is truncated.
        pub fn #name(text: &str) -> #runtime::StringId {
            #runtime::private::intern(text)
        }
    }
}

fn arguments(event: &Event, runtime: &TokenStream) -> TokenStream {
    let (name, life) = (ident(&event.arguments), life(event));
    let fields = event.fields.iter().map(|field| {
        let (docs, name, ty) =
            (docs::attributes(&field.docs), super::raw(&field.name), field_type(field.machine, true, runtime));
        quote!(#docs pub #name: #ty)
    });
    let docs = format!(" The arguments of `{}`.", event.name);
    quote! {
        #[doc = #docs]
        #[derive(Clone, Copy, Debug)]
        pub struct #name #life { #(#fields),* }
    }
}

fn field_type(machine: Machine, named: bool, runtime: &TokenStream) -> TokenStream {
    let life = named.then(|| quote!('a));
    match machine {
        Machine::Unsigned(bits) => primitive(&format!("u{bits}")),
        Machine::Signed(bits) => primitive(&format!("i{bits}")),
        Machine::Bool => quote!(bool),
        Machine::F32 | Machine::Single => quote!(f32),
        Machine::F64 => quote!(f64),
        Machine::Id => quote!(#runtime::StringId),
        Machine::Text => quote!(&#life str),
        Machine::Bytes => quote!(&#life [u8]),
        Machine::Array(bytes) => {
            let bytes = Literal::u32_unsuffixed(bytes);
            quote!(&#life [u8; #bytes])
        }
    }
}

fn primitive(name: &str) -> TokenStream {
    let name = Ident::new(name, Span::call_site());
    quote!(#name)
}

fn hidden(event: &Event) -> Ident {
    format_ident!("__emit_{}", event.name.trim_start_matches("r#"))
}

fn function(number: usize, event: &Event, has_rare: bool, runtime: &TokenStream) -> TokenStream {
    let (name, hidden, docs) = (ident(&event.name), hidden(event), docs::attributes(&event.docs));
    let (arguments, names) = (ident(&event.arguments), event.fields.iter().map(|field| super::raw(&field.name)));
    let names: Vec<_> = names.collect();
    let parameters = event.fields.iter().zip(&names).map(|(field, name)| {
        let ty = field_type(field.machine, false, runtime);
        quote!(#name: #ty)
    });
    // Use separate parameters, because they are passed in registers.
    let parameters: Vec<_> = parameters.collect();
    let many = (names.len() > 7)
        .then(|| quote!(#[allow(clippy::too_many_arguments, reason = "the DTD determines the fields")]));
    if !event.compiled {
        return quote! {
            #docs
            #many
            #[inline]
            pub fn #name(#(#parameters),*) {
                let _ = (#(#names,)*);
            }
        };
    }
    let put = format_ident!("__put_{}", event.name.trim_start_matches("r#"));
    let (kind, number) = (Literal::usize_unsuffixed(event.kind), Literal::usize_unsuffixed(number));
    let tails: Vec<_> = event.fields.iter().zip(&names).filter(|(field, _)| !is_number(field.machine)).collect();
    let prepare = tails.iter().map(|(field, name)| {
        let length = length_name(name);
        match field.machine {
            Machine::Text => quote!(let (#length, #name) = #runtime::private::text(#name);),
            Machine::Array(_) => quote!(let #name = #name.as_slice();),
            _ => quote!(let (#length, #name) = #runtime::private::array(#name);),
        }
    });
    let words = event.words.iter().map(|parts| word(event, parts, &names));
    let emit = if tails.is_empty() {
        quote!(TELEMETRY.emit(__slot, #number, [#(#words),*]))
    } else {
        let parts = tails.iter().map(|(_, name)| name);
        quote!(TELEMETRY.emit_tail(__slot, #number, [#(#words),*], [#(#parts),*]))
    };
    let slot = match (has_rare, event.rare) {
        (false, _) => quote!([__slot]),
        (true, false) => quote!([__slot, _]),
        (true, true) => quote!([_, __slot]),
    };
    let fields = (!names.is_empty()).then(|| quote!({ #(#names),* }));
    let fields = fields.unwrap_or_else(|| quote!({}));
    let takes = if names.is_empty() { quote!(_) } else { quote!(arguments::#arguments #fields) };
    quote! {
        #docs
        #many
        #[inline]
        pub fn #name(#(#parameters),*) {
            if TELEMETRY.is_on(#kind) {
                #hidden(arguments::#arguments #fields);
            }
        }
        #[doc(hidden)]
        #[inline(always)]
        pub fn #hidden(event: arguments::#arguments) {
            let #takes = event;
            #put(#(#names),*);
        }
        #many
        #[inline(never)]
        fn #put(#(#parameters),*) {
            #(#prepare)*
            SLOTS.with(|#slot| #emit);
        }
    }
}

fn is_number(machine: Machine) -> bool {
    !matches!(machine, Machine::Text | Machine::Bytes | Machine::Array(_))
}

fn length_name(name: &Ident) -> Ident {
    format_ident!("__length_of_{}", name.to_string().trim_start_matches("r#"))
}

/// Emits the expression for a word.
fn word(event: &Event, parts: &[(u8, Bits)], names: &[Ident]) -> TokenStream {
    let parts = parts.iter().map(|(shift, bits)| {
        let value = match bits {
            Bits::Stamp => quote!(TELEMETRY.stamp()),
            Bits::Length(index) => names.get(*index).map(length_name).map(|name| quote!(#name)).unwrap_or_default(),
            Bits::Value(index) => match (names.get(*index), event.fields.get(*index).map(|field| field.machine)) {
                (Some(name), Some(Machine::Unsigned(64))) => quote!(#name),
                (Some(name), Some(Machine::Unsigned(_) | Machine::Bool)) => quote!(u64::from(#name)),
                (Some(name), Some(Machine::Signed(64))) => quote!(#name.cast_unsigned()),
                (Some(name), Some(Machine::Signed(_))) => quote!(u64::from(#name.cast_unsigned())),
                (Some(name), Some(Machine::F32 | Machine::Single)) => quote!(u64::from(#name.to_bits())),
                (Some(name), Some(Machine::F64)) => quote!(#name.to_bits()),
                (Some(name), Some(Machine::Id)) => quote!(u64::from(#name.number())),
                _ => quote!(0),
            },
        };
        let shift = Literal::u8_unsuffixed(*shift);
        if shift.to_string() == "0" { value } else { quote!((#value << #shift)) }
    });
    quote!(#(#parts)|*)
}

fn exported(event: &Event, here: &TokenStream) -> TokenStream {
    let (name, arguments, hidden) = (ident(&event.name), ident(&event.arguments), hidden(event));
    let kind = Literal::usize_unsuffixed(event.kind);
    let macro_name = format_ident!("__macro_{}", event.name.trim_start_matches("r#"));
    let body = if event.compiled {
        quote! {
            if #here::TELEMETRY.is_on(#kind) {
                #here::#hidden(#here::arguments::#arguments { $($name $(: $value)?),* });
            }
        }
    } else {
        quote! {
            if false {
                let _ = #here::arguments::#arguments { $($name $(: $value)?),* };
            }
        }
    };
    quote! {
        #[allow(unused_macros, reason = "covers the entire format, whatever the program emits")]
        macro_rules! #macro_name {
            ($($name:ident $(= $value:expr)?),* $(,)?) => {
                { #body }
            };
        }
        #[allow(unused_imports, reason = "covers the entire format, whatever the program emits")]
        pub(crate) use #macro_name as #name;
    }
}
