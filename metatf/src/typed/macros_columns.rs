//! The macro that puts names to columns.

/// `Columns`: the runtime's, with a method for each record of each section, and a struct for each record.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_columns {
    ($columns:ident $format:ident; $(
        $name:ident($of:ident) $record:literal [$($method:ident $section:literal),*]
            { $($field:ident $kind:ident $leaf:literal),* };
    )*) => {
        /// Records in columns, to be filled by `next_columns`. Everything that is the same for all formats comes by
        /// [`Deref`](::core::ops::Deref).
        #[derive(Clone, Debug)]
        pub struct $columns($crate::columns::Columns);

        impl ::core::default::Default for $columns {
            fn default() -> Self {
                Self($crate::columns::Columns::of(&$format))
            }
        }

        impl $columns {
            $($(
                #[doc = ::core::concat!("The records [`", ::core::stringify!($of), "`].")]
                #[must_use]
                pub fn $method(&self) -> $name<'_> {
                    $name::of(&self.0, $section)
                }
            )*)*
        }

        $(
            #[doc = ::core::concat!("Records [`", ::core::stringify!($of), "`] in columns: all values of a field side by side.")]
            #[derive(Clone, Copy, Debug, Default)]
            pub struct $name<'c> {
                /// How many records there are.
                pub records: usize,
                $(pub $field: $crate::__metatf_column_type!('c $kind),)*
                columns: ::core::marker::PhantomData<&'c $columns>,
            }

            impl<'c> $name<'c> {
                fn of(columns: &'c $crate::columns::Columns, section: usize) -> Self {
                    match columns.record_of(&$format, section, $record) {
                        ::core::option::Option::Some(columns) => Self {
                            records: columns.len(),
                            $($field: $crate::__metatf_column!(columns $kind $leaf),)*
                            columns: ::core::marker::PhantomData,
                        },
                        ::core::option::Option::None => ::core::default::Default::default(),
                    }
                }
            }
        )*

        impl ::core::ops::Deref for $columns {
            type Target = $crate::columns::Columns;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl ::core::ops::DerefMut for $columns {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }
    };
}

/// The values of a leaf.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_column {
    ($columns:ident unsigned $leaf:literal) => {
        $columns.numbers($leaf)
    };
    ($columns:ident signed $leaf:literal) => {
        $columns.signed($leaf)
    };
    ($columns:ident float $leaf:literal) => {
        $columns.floats($leaf)
    };
    ($columns:ident arrays $leaf:literal) => {
        $columns.arrays($leaf)
    };
}

/// The type of a leaf's values.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_column_type {
    ($c:lifetime unsigned) => { &$c [u64] };
    ($c:lifetime signed) => { &$c [i64] };
    ($c:lifetime float) => { &$c [f64] };
    ($c:lifetime arrays) => { $crate::columns::Arrays<$c> };
}
