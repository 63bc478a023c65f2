//! The columns of a generated module.

/// Defines `Columns`, which wraps the runtime's type and adds a method for each record of each section.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_columns {
    ($columns:ident $format:ident; $($record:literal ($(
        $of:ident $generics:tt $name:ident
        [$($section:literal $top:ident $enum:ident $variant:ident $write:ident $method:ident),*]
    )?))*) => {
        /// Records as columns, to be filled by `next_columns`. Methods common to all formats are available through
        /// [`Deref`](::core::ops::Deref).
        #[derive(Clone, Debug)]
        pub struct $columns($crate::columns::Columns);

        impl ::core::default::Default for $columns {
            fn default() -> Self {
                Self($crate::columns::Columns::of(&$format))
            }
        }

        impl $columns {
            $($($(
                #[doc = ::core::concat!("Returns the columns of the records [`", ::core::stringify!($of), "`].")]
                #[must_use]
                pub fn $method(&self) -> $name<'_> {
                    $name::of(&self.0, $section)
                }
            )*)?)*
        }

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

/// Defines the struct with a record's columns.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_record_columns {
    ($record:literal () $leaves:tt) => {};
    ($record:literal ($of:ident $generics:tt $name:ident $places:tt) {
        $($path:literal $(($in:literal))? $kind:ident($($arg:tt)*) $(= $constant:literal)? $(~ $was:literal)*
            $(-> $leaf:literal $field:ident $type:tt)?),* $(; $($steps:tt)*)?
    }) => {
        #[doc = ::core::concat!("The columns of the records [`", ::core::stringify!($of), "`]. Each field is a column of its values.")]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name<'c> {
            /// Number of records.
            pub records: usize,
            $($(
                #[doc = ::core::concat!("The values of `", $path, "`.")]
                pub $field: $crate::__metatf_column_type!('c $type),
            )?)*
            columns: ::core::marker::PhantomData<&'c Columns>,
        }

        impl<'c> $name<'c> {
            fn of(columns: &'c $crate::columns::Columns, section: usize) -> Self {
                match columns.record_of(&FORMAT, section, $record) {
                    ::core::option::Option::Some(columns) => Self {
                        records: columns.len(),
                        $($($field: $crate::__metatf_column!(columns $type $leaf),)?)*
                        columns: ::core::marker::PhantomData,
                    },
                    ::core::option::Option::None => ::core::default::Default::default(),
                }
            }
        }
    };
}

/// Expands to an expression that returns the values of a leaf.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_column {
    ($columns:ident u64 $leaf:literal) => {
        $columns.numbers($leaf)
    };
    ($columns:ident i64 $leaf:literal) => {
        $columns.signed($leaf)
    };
    ($columns:ident f64 $leaf:literal) => {
        $columns.floats($leaf)
    };
    ($columns:ident [u8] $leaf:literal) => {
        $columns.arrays($leaf)
    };
}

/// Expands to the type of a leaf's values.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_column_type {
    ($c:lifetime [u8]) => { $crate::columns::Arrays<$c> };
    ($c:lifetime $number:ident) => { &$c [$number] };
}
