//! The types `Trace` and `Writer` of a generated module.

/// Defines `Trace`, which wraps the runtime's type and adds a method for each section.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_trace {
    (
        $trace:ident $protocol:ident;
        $(enum $section:literal $top:ident ($name:ident $(<$b:ident>)?) {
            $(#[$doc:meta])*
            fn $method:ident;
            $($records:tt)*
        })*
        $(elements $stream:literal $variant:ident ($kind:ident $(<$sb:ident>)?) {
            $(#[$sdoc:meta])*
            fn $smethod:ident;
            $($table:tt)*
        })*
    ) => {
        /// Reads a trace. Methods common to all formats are available through [`Deref`](::core::ops::Deref).
        #[derive(Debug)]
        pub struct $trace<'t>($crate::typed::Trace<'t, $protocol>);

        impl $trace<'static> {
            /// Opens a file or a pipe. A file is mapped: if it changes while it is being read, records may be wrong,
            /// and if it is truncated, the program is killed.
            ///
            /// # Errors
            /// Returns an error if the file is not a trace or its DTD does not match this format.
            pub fn open(
                path: impl ::core::convert::AsRef<::std::path::Path>,
            ) -> ::core::result::Result<Self, $crate::typed::OpenError> {
                $crate::typed::TraceOptions::new().open(path).map(Self)
            }

            /// Reads a trace from a file that may change while it is open. The file is not mapped, so truncating it
            /// causes an error instead of a signal.
            ///
            /// # Errors
            /// As for [`open`](Self::open).
            pub fn read(
                path: impl ::core::convert::AsRef<::std::path::Path>,
            ) -> ::core::result::Result<Self, $crate::typed::OpenError> {
                $crate::typed::TraceOptions::new().read_file(path).map(Self)
            }
        }

        impl<'t> $trace<'t> {
            /// Reads a trace in memory.
            ///
            /// # Errors
            /// As for [`open`](Self::open).
            pub fn from_slice(bytes: &'t [u8]) -> ::core::result::Result<Self, $crate::typed::OpenError> {
                $crate::typed::TraceOptions::new().from_slice(bytes).map(Self)
            }

            /// Reads a trace from a stream.
            ///
            /// # Errors
            /// As for [`open`](Self::open).
            pub fn from_read(
                read: impl ::std::io::Read + ::core::marker::Send + 't,
            ) -> ::core::result::Result<Self, $crate::typed::OpenError> {
                $crate::typed::TraceOptions::new().from_read(read).map(Self)
            }

            /// Wraps a trace opened with options (`metatf::typed::TraceOptions`).
            #[must_use]
            pub fn with_options(trace: $crate::typed::Trace<'t, $protocol>) -> Self {
                Self(trace)
            }

            $(
                $(#[$doc])*
                pub fn $method(&mut self) -> $crate::typed::Section<
                    '_, 't, $protocol, $name $(<$crate::__metatf_second!($b, ::std::vec::Vec<u8>)>)?,
                > {
                    self.0.section()
                }
            )*

            $(
                $(#[$sdoc])*
                pub fn $smethod(&mut self) -> $crate::typed::Elements<
                    't, $protocol, $kind $(<$crate::__metatf_second!($sb, ::std::vec::Vec<u8>)>)?,
                > {
                    self.0.elements($stream)
                }
            )*
        }

        impl<'t> ::core::ops::Deref for $trace<'t> {
            type Target = $crate::typed::Trace<'t, $protocol>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl<'t> ::core::ops::DerefMut for $trace<'t> {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }

        impl<'t> ::core::iter::IntoIterator for $trace<'t> {
            type Item = <$crate::typed::Records<'t, $protocol> as ::core::iter::Iterator>::Item;
            type IntoIter = $crate::typed::Records<'t, $protocol>;

            fn into_iter(self) -> Self::IntoIter {
                self.0.into_iter()
            }
        }
    };
}

/// Defines `Writer`, which wraps the runtime's type and adds a method for each record of each section. For stream
/// sections filled by users, see [`__metatf_table`].
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_writer {
    (
        $writer:ident $protocol:ident;
        $($record:literal ($(
            $name:ident $generics:tt $columns:ident
            [$($section:literal $top:ident $enum:ident $variant:ident $method:ident $column:ident),*]
        )?))*
    ) => {
        /// Writes a trace. Methods common to all formats are available through [`Deref`](::core::ops::Deref).
        #[derive(Debug)]
        pub struct $writer<__W: $crate::container::Sink>($crate::typed::Writer<__W, $protocol>);

        impl $writer<::std::io::BufWriter<::std::fs::File>> {
            /// Creates a file.
            ///
            /// # Errors
            /// Returns file system errors.
            pub fn create(path: impl ::core::convert::AsRef<::std::path::Path>) -> $crate::Result<Self> {
                $crate::typed::Writer::create(path).map(Self)
            }
        }

        impl<__W: $crate::container::Sink> $writer<__W> {
            /// Starts a trace with the default options.
            ///
            /// # Errors
            /// Returns an error from the sink.
            pub fn new(sink: __W) -> $crate::Result<Self> {
                $crate::typed::Writer::new(sink).map(Self)
            }

            /// Starts a trace.
            ///
            /// # Errors
            /// Returns an error from the sink.
            pub fn with_options(sink: __W, options: &$crate::container::WriteOptions) -> $crate::Result<Self> {
                $crate::typed::Writer::with_options(sink, options).map(Self)
            }

            /// Writes the remaining data, closes the trace and returns the sink.
            ///
            /// # Errors
            /// Returns an error from the sink.
            pub fn finish(self) -> $crate::Result<__W> {
                self.0.finish()
            }

            /// Drops the writer without printing a message. The trace in the sink remains incomplete.
            pub fn abandon(self) {
                self.0.abandon();
            }

            $($($(
                #[doc = ::core::concat!("Writes a record [`", ::core::stringify!($name), "`].")]
                ///
                /// # Errors
                /// Returns an error from the sink, or one for a value that cannot be encoded.
                #[inline]
                pub fn $method(
                    &mut self,
                    record: &$crate::__metatf_borrowed!($name $generics),
                ) -> $crate::Result<()> {
                    const PLANS: usize =
                        $crate::typed::plans(<$protocol as $crate::typed::Protocol>::FORMAT, $section);
                    self.0.inner().put::<$crate::typed::Shape<$protocol, $section, $record>, _, PLANS>($section, record)
                }
            )*)?)*
        }

        impl<__W: $crate::container::Sink> ::core::ops::Deref for $writer<__W> {
            type Target = $crate::typed::Writer<__W, $protocol>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl<__W: $crate::container::Sink> ::core::ops::DerefMut for $writer<__W> {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }
    };
}

/// Expands to a record's struct with borrowed bytes.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_borrowed {
    ($name:ident ()) => { $name };
    ($name:ident ($b:ident)) => { $name<&[u8]> };
}

/// Adds methods to fill a stream section, and conversions from a value to an element with a single field.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_table {
    ($stream:literal $kind:tt { $(#[$doc:meta])* fn $method:ident; }) => {};
    (
        $stream:literal ($kind:ident $(<$b:ident>)?)
        { $(#[$doc:meta])* fn $method:ident; table $($single:ident $field:ident)?; }
    ) => {
        impl<__W: $crate::container::Sink> Writer<__W> {
            $(#[$doc])*
            pub fn $method(&mut self) -> $crate::typed::Table<
                '_, __W, $kind $(<$crate::__metatf_second!($b, ::std::vec::Vec<u8>)>)?,
            > {
                self.0.table($stream)
            }
        }

        $($crate::__metatf_single! { $single $kind $field })?
    };
}

/// Implements conversions from a value to an element with a single field.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_single {
    (number $name:ident $field:ident) => {
        impl ::core::convert::From<u64> for $name {
            fn from($field: u64) -> Self {
                Self { $field }
            }
        }
    };
    (bytes $name:ident $field:ident) => {
        impl<'b> ::core::convert::From<&'b [u8]> for $name<&'b [u8]> {
            fn from($field: &'b [u8]) -> Self {
                Self { $field }
            }
        }

        impl<'b, const __N: usize> ::core::convert::From<&'b [u8; __N]> for $name<&'b [u8]> {
            fn from($field: &'b [u8; __N]) -> Self {
                Self { $field }
            }
        }

        impl<'b> ::core::convert::From<&'b str> for $name<&'b [u8]> {
            fn from($field: &'b str) -> Self {
                Self { $field: ::core::primitive::str::as_bytes($field) }
            }
        }
    };
}
