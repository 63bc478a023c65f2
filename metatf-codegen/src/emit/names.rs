//! The types of numbers with named values or bits, which are enums or structs of flags.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use metatf_parser::schema::Bits;

use super::structs::attributes;
use super::{hexadecimal, number};
use crate::docs;
use crate::model::{Model, NamedType};
use crate::names::ident;
use crate::options::OptionError;

/// Emits all types.
pub(super) fn emit(model: &Model) -> Result<TokenStream, OptionError> {
    model.named.iter().map(one).collect()
}

fn one(named: &NamedType) -> Result<TokenStream, OptionError> {
    let (docs, attributes) = (docs::attributes(&named.docs), attributes(&named.attributes)?);
    let name = ident(&named.name);
    let item = if named.flags { flags(named, &name, &attributes) } else { values(named, &name, &attributes) };
    Ok(quote! {
        #docs
        #item
        impl From<u64> for #name {
            fn from(number: u64) -> Self {
                Self::from_number(number)
            }
        }
        impl From<#name> for u64 {
            fn from(value: #name) -> Self {
                value.number()
            }
        }
    })
}

fn values(named: &NamedType, name: &Ident, attributes: &TokenStream) -> TokenStream {
    let variants = named.items.iter().map(|item| {
        let (docs, variant) = (docs::attributes(std::slice::from_ref(&item.docs)), ident(&item.name));
        quote!(#docs #variant,)
    });
    let items: Vec<_> = named.items.iter().map(|item| (number(item.number), ident(&item.name), &item.text)).collect();
    let from = items.iter().map(|(number, variant, _)| quote!(#number => Self::#variant,));
    let numbers = items.iter().map(|(number, variant, _)| quote!(Self::#variant => #number,));
    let names = items.iter().map(|(number, _, text)| quote!(#number => Some(#text),));
    quote! {
        #[derive(Clone, Copy, Debug)]
        #attributes
        pub enum #name {
            #(#variants)*
            /// A value without a name.
            Unknown(u64),
        }
        impl #name {
            /// Returns the value for a number.
            #[must_use]
            pub const fn from_number(number: u64) -> Self {
                match number {
                    #(#from)*
                    number => Self::Unknown(number),
                }
            }
            /// Returns the stored number.
            #[must_use]
            pub const fn number(self) -> u64 {
                match self {
                    #(#numbers)*
                    Self::Unknown(number) => number,
                }
            }
            /// Returns the name in the DTD, if the value has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.number() {
                    #(#names)*
                    _ => None,
                }
            }
        }
        /// Compares by number, so `Unknown` with the number of a named value equals that value.
        impl PartialEq for #name {
            fn eq(&self, other: &Self) -> bool {
                self.number() == other.number()
            }
        }
        impl Eq for #name {}
        impl PartialOrd for #name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for #name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.number().cmp(&other.number())
            }
        }
        impl std::hash::Hash for #name {
            fn hash<AnyHasher: std::hash::Hasher>(&self, state: &mut AnyHasher) {
                std::hash::Hash::hash(&self.number(), state);
            }
        }
        impl Default for #name {
            fn default() -> Self {
                Self::from_number(0)
            }
        }
        impl std::fmt::Display for #name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => std::fmt::Display::fmt(&self.number(), f),
                }
            }
        }
    }
}

fn flags(named: &NamedType, name: &Ident, attributes: &TokenStream) -> TokenStream {
    let constants = named.items.iter().map(|item| {
        let (bits, constant) = (Bits::of(item.number), ident(&item.name));
        let (docs, value) = if bits.is_flag() {
            (format!(" Bit {}.", bits.first), format!("1 << {}", bits.first))
        } else {
            let mask = u64::MAX >> (63 - (bits.last - bits.first)) << bits.first;
            (format!(" Bit {} to {}.", bits.first, bits.last), hexadecimal(mask).to_string())
        };
        let value: TokenStream = value.parse().unwrap_or_default();
        quote!(#[doc = #docs] pub const #constant: Self = Self(#value);)
    });
    let texts = named.items.iter().map(|item| {
        let (constant, text) = (ident(&item.name), Literal::string(&item.text));
        quote!((Self::#constant.0, #text))
    });
    quote! {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #attributes
        pub struct #name(pub u64);
        impl #name {
            #(#constants)*
            /// Returns the flags of a number.
            #[must_use]
            pub const fn from_number(number: u64) -> Self {
                Self(number)
            }
            /// Returns the stored number.
            #[must_use]
            pub const fn number(self) -> u64 {
                self.0
            }
            /// Returns the value of the bits in `bits`, shifted so that the lowest of them is bit 0.
            #[must_use]
            pub const fn bits(self, bits: Self) -> u64 {
                match bits.0 {
                    0 => 0,
                    mask => (self.0 & mask) >> mask.trailing_zeros(),
                }
            }
            /// Returns whether all of these flags are set.
            #[must_use]
            pub const fn contains(self, flags: Self) -> bool {
                self.0 & flags.0 == flags.0
            }
            /// Returns whether any of these flags are set.
            #[must_use]
            pub const fn intersects(self, flags: Self) -> bool {
                self.0 & flags.0 != 0
            }
        }
        impl std::ops::BitOr for #name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
        impl std::ops::BitOrAssign for #name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }
        impl std::fmt::Display for #name {
            /// Prints the names of the set flags, separated by `|`, and then the other bits as a number.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                runtime::fmt_flags(f, self.0, &[#(#texts),*])
            }
        }
    }
}
