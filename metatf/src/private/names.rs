//! Table rows `values` and `flags`: types for numbers with named values or bits.
//!
//! These types affect neither the stored bytes nor the read loops. A record's number is converted to such a type when
//! its field is created.

/// Implements the methods of a generated enum, given rows with a number, a variant and a name each.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_values {
    ($type:ident { $($value:literal $variant:ident $name:literal),* }) => {
        impl $type {
            /// Returns the value for a number.
            #[must_use]
            #[inline]
            pub const fn from_number(number: u64) -> Self {
                match number {
                    $($value => Self::$variant,)*
                    number => Self::Unknown(number),
                }
            }

            /// Returns the stored number.
            #[must_use]
            #[inline]
            pub const fn number(self) -> u64 {
                match self {
                    $(Self::$variant => $value,)*
                    Self::Unknown(number) => number,
                }
            }

            /// Returns the name in the DTD, if the value has one.
            #[must_use]
            pub const fn name(self) -> ::core::option::Option<&'static str> {
                match self.number() {
                    $($value => ::core::option::Option::Some($name),)*
                    _ => ::core::option::Option::None,
                }
            }
        }

        // Values are compared by number, so `Unknown` with the number of a named variant equals that variant.
        impl ::core::cmp::PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.number() == other.number()
            }
        }

        impl ::core::cmp::Eq for $type {}

        impl ::core::cmp::PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> ::core::option::Option<::core::cmp::Ordering> {
                ::core::option::Option::Some(::core::cmp::Ord::cmp(self, other))
            }
        }

        impl ::core::cmp::Ord for $type {
            fn cmp(&self, other: &Self) -> ::core::cmp::Ordering {
                ::core::cmp::Ord::cmp(&self.number(), &other.number())
            }
        }

        impl ::core::hash::Hash for $type {
            fn hash<__H: ::core::hash::Hasher>(&self, state: &mut __H) {
                ::core::hash::Hash::hash(&self.number(), state);
            }
        }

        impl ::core::default::Default for $type {
            fn default() -> Self {
                Self::from_number(0)
            }
        }

        impl ::core::fmt::Display for $type {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self.name() {
                    ::core::option::Option::Some(name) => f.pad(name),
                    ::core::option::Option::None => ::core::fmt::Display::fmt(&self.number(), f),
                }
            }
        }

        $crate::__metatf_named_numbers! { $type }
    };
}

/// Implements the methods of a generated flags struct, given rows with a bit, a constant and a name each.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_flags {
    ($type:ident { $($bit:literal $(- $last:literal)? $flag:ident $name:literal),* }) => {
        impl $type {
            $(
                #[doc = ::core::concat!("Bit ", $bit, $(" to ", $last,)? ".")]
                pub const $flag: Self = Self($crate::typed::bits($bit, &[$($last)?]));
            )*

            /// Returns the flags of a number.
            #[must_use]
            #[inline]
            pub const fn from_number(number: u64) -> Self {
                Self(number)
            }

            /// Returns the stored number.
            #[must_use]
            #[inline]
            pub const fn number(self) -> u64 {
                self.0
            }

            /// Returns the number represented by these bits, ignoring all other bits.
            #[must_use]
            #[inline]
            pub const fn bits(self, bits: Self) -> u64 {
                match bits.0 {
                    0 => 0,
                    mask => (self.0 & mask) >> mask.trailing_zeros(),
                }
            }

            /// Returns whether all of these flags are set.
            #[must_use]
            #[inline]
            pub const fn contains(self, flags: Self) -> bool {
                self.0 & flags.0 == flags.0
            }

            /// Returns whether any of these flags are set.
            #[must_use]
            #[inline]
            pub const fn intersects(self, flags: Self) -> bool {
                self.0 & flags.0 != 0
            }
        }

        impl ::core::ops::BitOr for $type {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl ::core::ops::BitOrAssign for $type {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl ::core::fmt::Display for $type {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                $crate::typed::fmt_flags(f, self.0, &[$(($type::$flag.0, $name)),*])
            }
        }

        $crate::__metatf_named_numbers! { $type }
    };
}

/// Implements conversions from and to numbers, which reading and writing of fields rely on.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_named_numbers {
    ($type:ident) => {
        impl ::core::convert::From<u64> for $type {
            #[inline]
            fn from(number: u64) -> Self {
                Self::from_number(number)
            }
        }

        impl ::core::convert::From<$type> for u64 {
            #[inline]
            fn from(value: $type) -> Self {
                value.number()
            }
        }
    };
}
