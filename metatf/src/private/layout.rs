//! Table row `struct`: the code that reads and writes a generated struct. The macros use repetitions and never recurse
//! over a record's length, so a record of 255 leaves stays far from the compiler's limits. All paths are absolute,
//! because generated types may be called `Option`.

/// Expands to all arguments except the first one, a type parameter that only drives a macro repetition.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_second {
    ($first:ident, $($second:tt)*) => { $($second)* };
}

/// Implements reading and writing for a struct, given its fields and the reading and writing of each leaf.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_struct {
    ($name:ident ($($b:ident)?) { $($field:ident),* } { $($kind:ident($($arg:tt)*)),* }) => {
        impl<'a $(, $b: ::core::convert::From<&'a [u8]>)?> $crate::typed::ReadFields<'a> for $name $(<$b>)? {
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn read_fields<__R: $crate::typed::Source<'a>>(
                row: &mut __R,
                base: u8,
            ) -> ::core::result::Result<Self, <__R as $crate::Row<'a>>::Error> {
                $($crate::__metatf_read!(row base $kind $($arg)*);)*
                ::core::result::Result::Ok(Self { $($field),* })
            }
        }

        impl $(<$b: ::core::convert::AsRef<[u8]>>)? $crate::typed::WriteFields for $name $(<$b>)? {
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn write_fields<__W: $crate::Put>(
                &self,
                row: &mut __W,
                base: u8,
            ) -> ::core::result::Result<(), __W::Error> {
                let this = self;
                $($crate::__metatf_write!(this row base $kind $($arg)*);)*
                ::core::result::Result::Ok(())
            }
        }

        impl<'s, __C $(, $b: ::core::convert::AsRef<[u8]>)?> $crate::typed::Rebytes<'s, __C> for $name $(<$b>)? {
            type Out = $name $(<$crate::__metatf_second!($b, __C)>)?;

            fn rebytes(&'s self, bytes: fn(&'s [u8]) -> __C) -> Self::Out {
                let this = self;
                $($crate::__metatf_rebytes!(this bytes $kind $($arg)*);)*
                $name { $($field),* }
            }
        }

        impl $crate::typed::Family for $name $(<$crate::__metatf_second!($b, ::std::vec::Vec<u8>)>)? {
            type With<__B> = $name $(<$crate::__metatf_second!($b, __B)>)?;

            #[inline]
            fn read<'a, __B: ::core::convert::From<&'a [u8]>, __R: $crate::typed::Source<'a>>(
                row: &mut __R,
            ) -> ::core::result::Result<Self::With<__B>, <__R as $crate::Row<'a>>::Error> {
                $crate::typed::ReadFields::read_fields(row, 0)
            }
        }

        $crate::__metatf_conversions! { $name $(<$b>)? }
    };
}

/// Defines `to_owned` and `borrow` for structs with bytes.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_conversions {
    ($name:ident) => {};
    ($name:ident<$b:ident>) => {
        impl<$b: ::core::convert::AsRef<[u8]>> $name<$b> {
            /// Returns a copy that owns its bytes.
            #[must_use]
            pub fn to_owned(&self) -> $name<::std::vec::Vec<u8>> {
                $crate::typed::Rebytes::rebytes(self, <[u8]>::to_vec)
            }

            /// Returns a copy that borrows its bytes from this one.
            #[must_use]
            pub fn borrow(&self) -> $name<&[u8]> {
                $crate::typed::Rebytes::rebytes(self, |bytes| bytes)
            }
        }
    };
}

/// Expands to statements that read one piece of a layout and bind its fields.
#[doc(hidden)]
#[macro_export]
#[collapse_debuginfo(no)]
macro_rules! __metatf_read {
    ($row:ident $base:ident numbers $leaf:literal $($field:ident)+) => {
        let leaf = $base + $leaf;
        $(
            let $field = $crate::Row::number($row, leaf)?;
            let leaf = leaf.wrapping_add(1);
        )+
    };
    ($row:ident $base:ident signed $leaf:literal $field:ident) => {
        let $field = $crate::typed::signed($crate::Row::number($row, $base + $leaf)?);
    };
    ($row:ident $base:ident float $leaf:literal $field:ident) => {
        let $field = $crate::typed::float($crate::Row::number($row, $base + $leaf)?);
    };
    ($row:ident $base:ident named $leaf:literal $field:ident) => {
        let $field = ::core::convert::From::<u64>::from($crate::Row::number($row, $base + $leaf)?);
    };
    ($row:ident $base:ident bytes $leaf:literal $field:ident) => {
        let $field = ::core::convert::From::from($crate::Row::bytes($row, $base + $leaf)?);
    };
    ($row:ident $base:ident array $leaf:literal $field:ident) => {
        let $field = $crate::typed::array($row, $base + $leaf)?;
    };
    ($row:ident $base:ident nested $leaf:literal $field:ident) => {
        let $field = $crate::typed::ReadFields::read_fields($row, $base + $leaf)?;
    };
    ($row:ident $base:ident each $count:literal $field:ident $($item:tt)+) => {
        let $field =
            $crate::typed::each($row, $base + $count, |row| $crate::__metatf_read_item!(row $base $($item)+))?;
    };
    ($row:ident $base:ident optional $count:literal $field:ident $($item:tt)+) => {
        let $field =
            $crate::typed::optional($row, $base + $count, |row| $crate::__metatf_read_item!(row $base $($item)+))?;
    };
    // A constant, a length or a count is checked or implied and is not a field.
    ($row:ident $base:ident $kind:ident $leaf:literal $what:tt) => {
        $crate::Row::number($row, $base + $leaf)?;
    };
}

/// Expands to an expression that reads an item of a repetition.
#[doc(hidden)]
#[macro_export]
#[collapse_debuginfo(no)]
macro_rules! __metatf_read_item {
    ($row:ident $base:ident numbers $leaf:literal) => {
        $crate::Row::number($row, $base + $leaf)
    };
    ($row:ident $base:ident signed $leaf:literal) => {
        $crate::Row::number($row, $base + $leaf).map($crate::typed::signed)
    };
    ($row:ident $base:ident float $leaf:literal) => {
        $crate::Row::number($row, $base + $leaf).map($crate::typed::float)
    };
    ($row:ident $base:ident named $leaf:literal) => {
        $crate::Row::number($row, $base + $leaf).map(::core::convert::From::<u64>::from)
    };
    ($row:ident $base:ident constant $leaf:literal $value:literal) => {
        $crate::Row::number($row, $base + $leaf).map(::core::mem::drop)
    };
    ($row:ident $base:ident bytes $leaf:literal) => {
        $crate::Row::bytes($row, $base + $leaf).map(::core::convert::From::from)
    };
    ($row:ident $base:ident array $leaf:literal) => {
        $crate::typed::array($row, $base + $leaf)
    };
    ($row:ident $base:ident vfield $length:literal $leaf:literal) => {
        $crate::typed::read_vfield($row, $base + $length, $base + $leaf)
    };
    ($row:ident $base:ident nested $leaf:literal) => {
        $crate::typed::ReadFields::read_fields($row, $base + $leaf)
    };
}

/// Expands to statements that write one piece of a layout.
#[doc(hidden)]
#[macro_export]
#[collapse_debuginfo(no)]
macro_rules! __metatf_write {
    ($this:ident $row:ident $base:ident numbers $leaf:literal $($field:ident)+) => {
        let leaf = $base + $leaf;
        $(
            $crate::Put::number($row, leaf, $this.$field)?;
            let leaf = leaf.wrapping_add(1);
        )+
    };
    ($this:ident $row:ident $base:ident signed $leaf:literal $field:ident) => {
        $crate::Put::number($row, $base + $leaf, $crate::typed::unsigned($this.$field))?;
    };
    ($this:ident $row:ident $base:ident float $leaf:literal $field:ident) => {
        $crate::Put::number($row, $base + $leaf, $crate::typed::float_bits($this.$field))?;
    };
    ($this:ident $row:ident $base:ident named $leaf:literal $field:ident) => {
        $crate::Put::number($row, $base + $leaf, ::core::convert::Into::<u64>::into($this.$field))?;
    };
    ($this:ident $row:ident $base:ident constant $leaf:literal $value:literal) => {
        $crate::Put::number($row, $base + $leaf, $value)?;
    };
    ($this:ident $row:ident $base:ident length $leaf:literal $field:ident) => {
        $crate::typed::put_length($row, $base + $leaf, &$this.$field)?;
    };
    ($this:ident $row:ident $base:ident count $leaf:literal $field:ident) => {
        $crate::Put::number($row, $base + $leaf, $this.$field.as_slice().len() as u64)?;
    };
    ($this:ident $row:ident $base:ident nested $leaf:literal $field:ident) => {
        $crate::typed::WriteFields::write_fields(&$this.$field, $row, $base + $leaf)?;
    };
    ($this:ident $row:ident $base:ident each $count:literal $field:ident $($item:tt)+) => {
        $crate::typed::put_each($row, $base + $count, &$this.$field, |row, item| {
            $crate::__metatf_write_item!(item row $base $($item)+)
        })?;
    };
    ($this:ident $row:ident $base:ident optional $count:literal $field:ident $($item:tt)+) => {
        $crate::typed::put_each($row, $base + $count, $this.$field.as_slice(), |row, item| {
            $crate::__metatf_write_item!(item row $base $($item)+)
        })?;
    };
    ($this:ident $row:ident $base:ident $bytes:ident $leaf:literal $field:ident) => {
        $crate::Put::bytes($row, $base + $leaf, ::core::convert::AsRef::<[u8]>::as_ref(&$this.$field))?;
    };
}

/// Expands to an expression that writes an item of a repetition.
#[doc(hidden)]
#[macro_export]
#[collapse_debuginfo(no)]
macro_rules! __metatf_write_item {
    ($item:ident $row:ident $base:ident numbers $leaf:literal) => {
        $crate::Put::number($row, $base + $leaf, *$item)
    };
    ($item:ident $row:ident $base:ident signed $leaf:literal) => {
        $crate::Put::number($row, $base + $leaf, $crate::typed::unsigned(*$item))
    };
    ($item:ident $row:ident $base:ident float $leaf:literal) => {
        $crate::Put::number($row, $base + $leaf, $crate::typed::float_bits(*$item))
    };
    ($item:ident $row:ident $base:ident named $leaf:literal) => {
        $crate::Put::number($row, $base + $leaf, ::core::convert::Into::<u64>::into(*$item))
    };
    ($item:ident $row:ident $base:ident constant $leaf:literal $value:literal) => {{
        let () = $item;
        $crate::Put::number($row, $base + $leaf, $value)
    }};
    ($item:ident $row:ident $base:ident vfield $length:literal $leaf:literal) => {{
        $crate::typed::put_length($row, $base + $length, $item)?;
        $crate::Put::bytes($row, $base + $leaf, ::core::convert::AsRef::<[u8]>::as_ref($item))
    }};
    ($item:ident $row:ident $base:ident nested $leaf:literal) => {
        $crate::typed::WriteFields::write_fields($item, $row, $base + $leaf)
    };
    ($item:ident $row:ident $base:ident $bytes:ident $leaf:literal) => {
        $crate::Put::bytes($row, $base + $leaf, ::core::convert::AsRef::<[u8]>::as_ref($item))
    };
}

/// Expands to statements that bind copies of a piece's fields with a different type for their bytes.
#[doc(hidden)]
#[macro_export]
#[collapse_debuginfo(no)]
macro_rules! __metatf_rebytes {
    ($this:ident $bytes:ident numbers $leaf:literal $($field:ident)+) => { $(let $field = $this.$field;)+ };
    ($this:ident $bytes:ident signed $leaf:literal $field:ident) => { let $field = $this.$field; };
    ($this:ident $bytes:ident float $leaf:literal $field:ident) => { let $field = $this.$field; };
    ($this:ident $bytes:ident named $leaf:literal $field:ident) => { let $field = $this.$field; };
    ($this:ident $bytes:ident array $leaf:literal $field:ident) => { let $field = $this.$field; };
    ($this:ident $bytes:ident bytes $leaf:literal $field:ident) => {
        let $field = $bytes(::core::convert::AsRef::<[u8]>::as_ref(&$this.$field));
    };
    ($this:ident $bytes:ident nested $leaf:literal $field:ident) => {
        let $field = $crate::typed::Rebytes::rebytes(&$this.$field, $bytes);
    };
    ($this:ident $bytes:ident each $count:literal $field:ident nested $leaf:literal) => {
        let $field =
            $this.$field.iter().map(|item| $crate::typed::Rebytes::rebytes(item, $bytes)).collect();
    };
    ($this:ident $bytes:ident each $count:literal $field:ident bytes $leaf:literal) => {
        let $field = $this.$field.iter().map(|item| $bytes(::core::convert::AsRef::<[u8]>::as_ref(item))).collect();
    };
    ($this:ident $bytes:ident each $count:literal $field:ident vfield $length:literal $leaf:literal) => {
        let $field = $this.$field.iter().map(|item| $bytes(::core::convert::AsRef::<[u8]>::as_ref(item))).collect();
    };
    ($this:ident $bytes:ident optional $count:literal $field:ident nested $leaf:literal) => {
        let $field = $this.$field.as_ref().map(|item| $crate::typed::Rebytes::rebytes(item, $bytes));
    };
    ($this:ident $bytes:ident optional $count:literal $field:ident bytes $leaf:literal) => {
        let $field = $this.$field.as_ref().map(|item| $bytes(::core::convert::AsRef::<[u8]>::as_ref(item)));
    };
    ($this:ident $bytes:ident optional $count:literal $field:ident vfield $length:literal $leaf:literal) => {
        let $field = $this.$field.as_ref().map(|item| $bytes(::core::convert::AsRef::<[u8]>::as_ref(item)));
    };
    ($this:ident $bytes:ident $each:ident $count:literal $field:ident $($item:tt)+) => {
        let $field = ::core::clone::Clone::clone(&$this.$field);
    };
    ($this:ident $bytes:ident $kind:ident $leaf:literal $what:tt) => {};
}
