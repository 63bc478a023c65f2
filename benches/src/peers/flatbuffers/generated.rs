pub use root::*;

const _: () = ::planus::check_version_compatibility("planus-1.3.0");

/// The root namespace
///
/// Generated from these locations:
/// * File `call.fbs`
#[no_implicit_prelude]
#[allow(clippy::needless_lifetimes)]
mod root {
    /// The namespace `heap`
    ///
    /// Generated from these locations:
    /// * File `call.fbs`
    pub mod heap {
        /// The table `Alloc` in the namespace `heap`
        ///
        /// Generated from these locations:
        /// * Table `Alloc` in the file `call.fbs:5`
        #[derive(Clone, Debug, PartialEq, PartialOrd, Eq, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub struct Alloc {
            /// The field `size` in the table `Alloc`
            pub size: u64,
            /// The field `address` in the table `Alloc`
            pub address: u64,
        }

        #[allow(clippy::derivable_impls)]
        impl ::core::default::Default for Alloc {
            fn default() -> Self {
                Self { size: 0, address: 0 }
            }
        }

        impl Alloc {
            /// Creates a [AllocBuilder] for serializing an instance of this table.
            #[inline]
            pub fn builder() -> AllocBuilder<()> {
                AllocBuilder(())
            }

            #[allow(clippy::too_many_arguments)]
            pub fn create(
                builder: &mut ::planus::Builder,
                field_size: impl ::planus::WriteAsDefault<u64, u64>,
                field_address: impl ::planus::WriteAsDefault<u64, u64>,
            ) -> ::planus::Offset<Self> {
                let prepared_size = field_size.prepare(builder, &0);
                let prepared_address = field_address.prepare(builder, &0);

                let mut table_writer: ::planus::table_writer::TableWriter<8> = ::core::default::Default::default();
                if prepared_size.is_some() {
                    table_writer.write_entry::<u64>(0);
                }
                if prepared_address.is_some() {
                    table_writer.write_entry::<u64>(1);
                }

                unsafe {
                    table_writer.finish(builder, |object_writer| {
                        if let ::core::option::Option::Some(prepared_size) = prepared_size {
                            object_writer.write::<_, _, 8>(&prepared_size);
                        }
                        if let ::core::option::Option::Some(prepared_address) = prepared_address {
                            object_writer.write::<_, _, 8>(&prepared_address);
                        }
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<::planus::Offset<Alloc>> for Alloc {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Alloc> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl ::planus::WriteAsOptional<::planus::Offset<Alloc>> for Alloc {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::Offset<Alloc>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl ::planus::WriteAsOffset<Alloc> for Alloc {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Alloc> {
                Alloc::create(builder, self.size, self.address)
            }
        }

        /// Builder for serializing an instance of the [Alloc] type.
        ///
        /// Can be created using the [Alloc::builder] method.
        #[derive(Debug)]
        #[must_use]
        pub struct AllocBuilder<State>(State);

        impl AllocBuilder<()> {
            /// Setter for the [`size` field](Alloc#structfield.size).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn size<T0>(self, value: T0) -> AllocBuilder<(T0,)>
            where
                T0: ::planus::WriteAsDefault<u64, u64>,
            {
                AllocBuilder((value,))
            }

            /// Sets the [`size` field](Alloc#structfield.size) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn size_as_default(self) -> AllocBuilder<(::planus::DefaultValue,)> {
                self.size(::planus::DefaultValue)
            }
        }

        impl<T0> AllocBuilder<(T0,)> {
            /// Setter for the [`address` field](Alloc#structfield.address).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn address<T1>(self, value: T1) -> AllocBuilder<(T0, T1)>
            where
                T1: ::planus::WriteAsDefault<u64, u64>,
            {
                let (v0,) = self.0;
                AllocBuilder((v0, value))
            }

            /// Sets the [`address` field](Alloc#structfield.address) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn address_as_default(self) -> AllocBuilder<(T0, ::planus::DefaultValue)> {
                self.address(::planus::DefaultValue)
            }
        }

        impl<T0, T1> AllocBuilder<(T0, T1)> {
            /// Finish writing the builder to get an [Offset](::planus::Offset) to a serialized [Alloc].
            #[inline]
            pub fn finish(self, builder: &mut ::planus::Builder) -> ::planus::Offset<Alloc>
            where
                Self: ::planus::WriteAsOffset<Alloc>,
            {
                ::planus::WriteAsOffset::prepare(&self, builder)
            }
        }

        impl<T0: ::planus::WriteAsDefault<u64, u64>, T1: ::planus::WriteAsDefault<u64, u64>>
            ::planus::WriteAs<::planus::Offset<Alloc>> for AllocBuilder<(T0, T1)>
        {
            type Prepared = ::planus::Offset<Alloc>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Alloc> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl<T0: ::planus::WriteAsDefault<u64, u64>, T1: ::planus::WriteAsDefault<u64, u64>>
            ::planus::WriteAsOptional<::planus::Offset<Alloc>> for AllocBuilder<(T0, T1)>
        {
            type Prepared = ::planus::Offset<Alloc>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::Offset<Alloc>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl<T0: ::planus::WriteAsDefault<u64, u64>, T1: ::planus::WriteAsDefault<u64, u64>>
            ::planus::WriteAsOffset<Alloc> for AllocBuilder<(T0, T1)>
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Alloc> {
                let (v0, v1) = &self.0;
                Alloc::create(builder, v0, v1)
            }
        }

        /// Reference to a deserialized [Alloc].
        #[derive(Copy, Clone)]
        pub struct AllocRef<'a>(#[allow(dead_code)] ::planus::table_reader::Table<'a>);

        impl<'a> AllocRef<'a> {
            /// Getter for the [`size` field](Alloc#structfield.size).
            #[inline]
            pub fn size(&self) -> ::planus::Result<u64> {
                ::core::result::Result::Ok(self.0.access(0, "Alloc", "size")?.unwrap_or(0))
            }

            /// Getter for the [`address` field](Alloc#structfield.address).
            #[inline]
            pub fn address(&self) -> ::planus::Result<u64> {
                ::core::result::Result::Ok(self.0.access(1, "Alloc", "address")?.unwrap_or(0))
            }
        }

        impl<'a> ::core::fmt::Debug for AllocRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("AllocRef");
                f.field("size", &self.size());
                f.field("address", &self.address());
                f.finish()
            }
        }

        impl<'a> ::core::convert::TryFrom<AllocRef<'a>> for Alloc {
            type Error = ::planus::Error;

            #[allow(unreachable_code)]
            fn try_from(value: AllocRef<'a>) -> ::planus::Result<Self> {
                ::core::result::Result::Ok(Self {
                    size: ::core::convert::TryInto::try_into(value.size()?)?,
                    address: ::core::convert::TryInto::try_into(value.address()?)?,
                })
            }
        }

        impl<'a> ::planus::TableRead<'a> for AllocRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                ::core::result::Result::Ok(Self(::planus::table_reader::Table::from_buffer(buffer, offset)?))
            }
        }

        impl<'a> ::planus::VectorReadInner<'a> for AllocRef<'a> {
            type Error = ::planus::Error;
            const STRIDE: usize = 4;

            unsafe fn from_buffer(buffer: ::planus::SliceWithStartOffset<'a>, offset: usize) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(buffer, offset)
                    .map_err(|error_kind| error_kind.with_error_location("[AllocRef]", "get", buffer.offset_from_start))
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<::planus::Offset<Alloc>> for Alloc {
            type Value = ::planus::Offset<Alloc>;
            const STRIDE: usize = 4;
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> Self::Value {
                ::planus::WriteAs::prepare(self, builder)
            }

            #[inline]
            unsafe fn write_values(
                values: &[::planus::Offset<Alloc>],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 4];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (Self::STRIDE * i) as u32,
                    );
                }
            }
        }

        impl<'a> ::planus::ReadAsRoot<'a> for AllocRef<'a> {
            fn read_as_root(slice: &'a [u8]) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(
                    ::planus::SliceWithStartOffset { buffer: slice, offset_from_start: 0 },
                    0,
                )
                .map_err(|error_kind| error_kind.with_error_location("[AllocRef]", "read_as_root", 0))
            }
        }

        /// The table `Realloc` in the namespace `heap`
        ///
        /// Generated from these locations:
        /// * Table `Realloc` in the file `call.fbs:6`
        #[derive(Clone, Debug, PartialEq, PartialOrd, Eq, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub struct Realloc {
            /// The field `old` in the table `Realloc`
            pub old: u64,
            /// The field `address` in the table `Realloc`
            pub address: u64,
        }

        #[allow(clippy::derivable_impls)]
        impl ::core::default::Default for Realloc {
            fn default() -> Self {
                Self { old: 0, address: 0 }
            }
        }

        impl Realloc {
            /// Creates a [ReallocBuilder] for serializing an instance of this table.
            #[inline]
            pub fn builder() -> ReallocBuilder<()> {
                ReallocBuilder(())
            }

            #[allow(clippy::too_many_arguments)]
            pub fn create(
                builder: &mut ::planus::Builder,
                field_old: impl ::planus::WriteAsDefault<u64, u64>,
                field_address: impl ::planus::WriteAsDefault<u64, u64>,
            ) -> ::planus::Offset<Self> {
                let prepared_old = field_old.prepare(builder, &0);
                let prepared_address = field_address.prepare(builder, &0);

                let mut table_writer: ::planus::table_writer::TableWriter<8> = ::core::default::Default::default();
                if prepared_old.is_some() {
                    table_writer.write_entry::<u64>(0);
                }
                if prepared_address.is_some() {
                    table_writer.write_entry::<u64>(1);
                }

                unsafe {
                    table_writer.finish(builder, |object_writer| {
                        if let ::core::option::Option::Some(prepared_old) = prepared_old {
                            object_writer.write::<_, _, 8>(&prepared_old);
                        }
                        if let ::core::option::Option::Some(prepared_address) = prepared_address {
                            object_writer.write::<_, _, 8>(&prepared_address);
                        }
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<::planus::Offset<Realloc>> for Realloc {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Realloc> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl ::planus::WriteAsOptional<::planus::Offset<Realloc>> for Realloc {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::Offset<Realloc>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl ::planus::WriteAsOffset<Realloc> for Realloc {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Realloc> {
                Realloc::create(builder, self.old, self.address)
            }
        }

        /// Builder for serializing an instance of the [Realloc] type.
        ///
        /// Can be created using the [Realloc::builder] method.
        #[derive(Debug)]
        #[must_use]
        pub struct ReallocBuilder<State>(State);

        impl ReallocBuilder<()> {
            /// Setter for the [`old` field](Realloc#structfield.old).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn old<T0>(self, value: T0) -> ReallocBuilder<(T0,)>
            where
                T0: ::planus::WriteAsDefault<u64, u64>,
            {
                ReallocBuilder((value,))
            }

            /// Sets the [`old` field](Realloc#structfield.old) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn old_as_default(self) -> ReallocBuilder<(::planus::DefaultValue,)> {
                self.old(::planus::DefaultValue)
            }
        }

        impl<T0> ReallocBuilder<(T0,)> {
            /// Setter for the [`address` field](Realloc#structfield.address).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn address<T1>(self, value: T1) -> ReallocBuilder<(T0, T1)>
            where
                T1: ::planus::WriteAsDefault<u64, u64>,
            {
                let (v0,) = self.0;
                ReallocBuilder((v0, value))
            }

            /// Sets the [`address` field](Realloc#structfield.address) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn address_as_default(self) -> ReallocBuilder<(T0, ::planus::DefaultValue)> {
                self.address(::planus::DefaultValue)
            }
        }

        impl<T0, T1> ReallocBuilder<(T0, T1)> {
            /// Finish writing the builder to get an [Offset](::planus::Offset) to a serialized [Realloc].
            #[inline]
            pub fn finish(self, builder: &mut ::planus::Builder) -> ::planus::Offset<Realloc>
            where
                Self: ::planus::WriteAsOffset<Realloc>,
            {
                ::planus::WriteAsOffset::prepare(&self, builder)
            }
        }

        impl<T0: ::planus::WriteAsDefault<u64, u64>, T1: ::planus::WriteAsDefault<u64, u64>>
            ::planus::WriteAs<::planus::Offset<Realloc>> for ReallocBuilder<(T0, T1)>
        {
            type Prepared = ::planus::Offset<Realloc>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Realloc> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl<T0: ::planus::WriteAsDefault<u64, u64>, T1: ::planus::WriteAsDefault<u64, u64>>
            ::planus::WriteAsOptional<::planus::Offset<Realloc>> for ReallocBuilder<(T0, T1)>
        {
            type Prepared = ::planus::Offset<Realloc>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::Offset<Realloc>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl<T0: ::planus::WriteAsDefault<u64, u64>, T1: ::planus::WriteAsDefault<u64, u64>>
            ::planus::WriteAsOffset<Realloc> for ReallocBuilder<(T0, T1)>
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Realloc> {
                let (v0, v1) = &self.0;
                Realloc::create(builder, v0, v1)
            }
        }

        /// Reference to a deserialized [Realloc].
        #[derive(Copy, Clone)]
        pub struct ReallocRef<'a>(#[allow(dead_code)] ::planus::table_reader::Table<'a>);

        impl<'a> ReallocRef<'a> {
            /// Getter for the [`old` field](Realloc#structfield.old).
            #[inline]
            pub fn old(&self) -> ::planus::Result<u64> {
                ::core::result::Result::Ok(self.0.access(0, "Realloc", "old")?.unwrap_or(0))
            }

            /// Getter for the [`address` field](Realloc#structfield.address).
            #[inline]
            pub fn address(&self) -> ::planus::Result<u64> {
                ::core::result::Result::Ok(self.0.access(1, "Realloc", "address")?.unwrap_or(0))
            }
        }

        impl<'a> ::core::fmt::Debug for ReallocRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("ReallocRef");
                f.field("old", &self.old());
                f.field("address", &self.address());
                f.finish()
            }
        }

        impl<'a> ::core::convert::TryFrom<ReallocRef<'a>> for Realloc {
            type Error = ::planus::Error;

            #[allow(unreachable_code)]
            fn try_from(value: ReallocRef<'a>) -> ::planus::Result<Self> {
                ::core::result::Result::Ok(Self {
                    old: ::core::convert::TryInto::try_into(value.old()?)?,
                    address: ::core::convert::TryInto::try_into(value.address()?)?,
                })
            }
        }

        impl<'a> ::planus::TableRead<'a> for ReallocRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                ::core::result::Result::Ok(Self(::planus::table_reader::Table::from_buffer(buffer, offset)?))
            }
        }

        impl<'a> ::planus::VectorReadInner<'a> for ReallocRef<'a> {
            type Error = ::planus::Error;
            const STRIDE: usize = 4;

            unsafe fn from_buffer(buffer: ::planus::SliceWithStartOffset<'a>, offset: usize) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(buffer, offset).map_err(|error_kind| {
                    error_kind.with_error_location("[ReallocRef]", "get", buffer.offset_from_start)
                })
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<::planus::Offset<Realloc>> for Realloc {
            type Value = ::planus::Offset<Realloc>;
            const STRIDE: usize = 4;
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> Self::Value {
                ::planus::WriteAs::prepare(self, builder)
            }

            #[inline]
            unsafe fn write_values(
                values: &[::planus::Offset<Realloc>],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 4];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (Self::STRIDE * i) as u32,
                    );
                }
            }
        }

        impl<'a> ::planus::ReadAsRoot<'a> for ReallocRef<'a> {
            fn read_as_root(slice: &'a [u8]) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(
                    ::planus::SliceWithStartOffset { buffer: slice, offset_from_start: 0 },
                    0,
                )
                .map_err(|error_kind| error_kind.with_error_location("[ReallocRef]", "read_as_root", 0))
            }
        }

        /// The table `Free` in the namespace `heap`
        ///
        /// Generated from these locations:
        /// * Table `Free` in the file `call.fbs:7`
        #[derive(Clone, Debug, PartialEq, PartialOrd, Eq, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub struct Free {
            /// The field `address` in the table `Free`
            pub address: u64,
        }

        #[allow(clippy::derivable_impls)]
        impl ::core::default::Default for Free {
            fn default() -> Self {
                Self { address: 0 }
            }
        }

        impl Free {
            /// Creates a [FreeBuilder] for serializing an instance of this table.
            #[inline]
            pub fn builder() -> FreeBuilder<()> {
                FreeBuilder(())
            }

            #[allow(clippy::too_many_arguments)]
            pub fn create(
                builder: &mut ::planus::Builder,
                field_address: impl ::planus::WriteAsDefault<u64, u64>,
            ) -> ::planus::Offset<Self> {
                let prepared_address = field_address.prepare(builder, &0);

                let mut table_writer: ::planus::table_writer::TableWriter<6> = ::core::default::Default::default();
                if prepared_address.is_some() {
                    table_writer.write_entry::<u64>(0);
                }

                unsafe {
                    table_writer.finish(builder, |object_writer| {
                        if let ::core::option::Option::Some(prepared_address) = prepared_address {
                            object_writer.write::<_, _, 8>(&prepared_address);
                        }
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<::planus::Offset<Free>> for Free {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Free> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl ::planus::WriteAsOptional<::planus::Offset<Free>> for Free {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::Offset<Free>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl ::planus::WriteAsOffset<Free> for Free {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Free> {
                Free::create(builder, self.address)
            }
        }

        /// Builder for serializing an instance of the [Free] type.
        ///
        /// Can be created using the [Free::builder] method.
        #[derive(Debug)]
        #[must_use]
        pub struct FreeBuilder<State>(State);

        impl FreeBuilder<()> {
            /// Setter for the [`address` field](Free#structfield.address).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn address<T0>(self, value: T0) -> FreeBuilder<(T0,)>
            where
                T0: ::planus::WriteAsDefault<u64, u64>,
            {
                FreeBuilder((value,))
            }

            /// Sets the [`address` field](Free#structfield.address) to the default value.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn address_as_default(self) -> FreeBuilder<(::planus::DefaultValue,)> {
                self.address(::planus::DefaultValue)
            }
        }

        impl<T0> FreeBuilder<(T0,)> {
            /// Finish writing the builder to get an [Offset](::planus::Offset) to a serialized [Free].
            #[inline]
            pub fn finish(self, builder: &mut ::planus::Builder) -> ::planus::Offset<Free>
            where
                Self: ::planus::WriteAsOffset<Free>,
            {
                ::planus::WriteAsOffset::prepare(&self, builder)
            }
        }

        impl<T0: ::planus::WriteAsDefault<u64, u64>> ::planus::WriteAs<::planus::Offset<Free>> for FreeBuilder<(T0,)> {
            type Prepared = ::planus::Offset<Free>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Free> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl<T0: ::planus::WriteAsDefault<u64, u64>> ::planus::WriteAsOptional<::planus::Offset<Free>> for FreeBuilder<(T0,)> {
            type Prepared = ::planus::Offset<Free>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::Offset<Free>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl<T0: ::planus::WriteAsDefault<u64, u64>> ::planus::WriteAsOffset<Free> for FreeBuilder<(T0,)> {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Free> {
                let (v0,) = &self.0;
                Free::create(builder, v0)
            }
        }

        /// Reference to a deserialized [Free].
        #[derive(Copy, Clone)]
        pub struct FreeRef<'a>(#[allow(dead_code)] ::planus::table_reader::Table<'a>);

        impl<'a> FreeRef<'a> {
            /// Getter for the [`address` field](Free#structfield.address).
            #[inline]
            pub fn address(&self) -> ::planus::Result<u64> {
                ::core::result::Result::Ok(self.0.access(0, "Free", "address")?.unwrap_or(0))
            }
        }

        impl<'a> ::core::fmt::Debug for FreeRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("FreeRef");
                f.field("address", &self.address());
                f.finish()
            }
        }

        impl<'a> ::core::convert::TryFrom<FreeRef<'a>> for Free {
            type Error = ::planus::Error;

            #[allow(unreachable_code)]
            fn try_from(value: FreeRef<'a>) -> ::planus::Result<Self> {
                ::core::result::Result::Ok(Self { address: ::core::convert::TryInto::try_into(value.address()?)? })
            }
        }

        impl<'a> ::planus::TableRead<'a> for FreeRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                ::core::result::Result::Ok(Self(::planus::table_reader::Table::from_buffer(buffer, offset)?))
            }
        }

        impl<'a> ::planus::VectorReadInner<'a> for FreeRef<'a> {
            type Error = ::planus::Error;
            const STRIDE: usize = 4;

            unsafe fn from_buffer(buffer: ::planus::SliceWithStartOffset<'a>, offset: usize) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(buffer, offset)
                    .map_err(|error_kind| error_kind.with_error_location("[FreeRef]", "get", buffer.offset_from_start))
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<::planus::Offset<Free>> for Free {
            type Value = ::planus::Offset<Free>;
            const STRIDE: usize = 4;
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> Self::Value {
                ::planus::WriteAs::prepare(self, builder)
            }

            #[inline]
            unsafe fn write_values(
                values: &[::planus::Offset<Free>],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 4];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (Self::STRIDE * i) as u32,
                    );
                }
            }
        }

        impl<'a> ::planus::ReadAsRoot<'a> for FreeRef<'a> {
            fn read_as_root(slice: &'a [u8]) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(
                    ::planus::SliceWithStartOffset { buffer: slice, offset_from_start: 0 },
                    0,
                )
                .map_err(|error_kind| error_kind.with_error_location("[FreeRef]", "read_as_root", 0))
            }
        }

        /// The union `Kind` in the namespace `heap`
        ///
        /// Generated from these locations:
        /// * Union `Kind` in the file `call.fbs:9`
        #[derive(Clone, Debug, PartialEq, PartialOrd, Eq, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub enum Kind {
            /// The variant `alloc` in the union `Kind`
            Alloc(::planus::alloc::boxed::Box<self::Alloc>),

            /// The variant `realloc` in the union `Kind`
            Realloc(::planus::alloc::boxed::Box<self::Realloc>),

            /// The variant `free` in the union `Kind`
            Free(::planus::alloc::boxed::Box<self::Free>),
        }

        impl Kind {
            /// Creates a [KindBuilder] for serializing an instance of this table.
            #[inline]
            pub fn builder() -> KindBuilder<::planus::Uninitialized> {
                KindBuilder(::planus::Uninitialized)
            }

            #[inline]
            pub fn create_alloc(
                builder: &mut ::planus::Builder,
                value: impl ::planus::WriteAsOffset<self::Alloc>,
            ) -> ::planus::UnionOffset<Self> {
                ::planus::UnionOffset::new(1, value.prepare(builder).downcast())
            }

            #[inline]
            pub fn create_realloc(
                builder: &mut ::planus::Builder,
                value: impl ::planus::WriteAsOffset<self::Realloc>,
            ) -> ::planus::UnionOffset<Self> {
                ::planus::UnionOffset::new(2, value.prepare(builder).downcast())
            }

            #[inline]
            pub fn create_free(
                builder: &mut ::planus::Builder,
                value: impl ::planus::WriteAsOffset<self::Free>,
            ) -> ::planus::UnionOffset<Self> {
                ::planus::UnionOffset::new(3, value.prepare(builder).downcast())
            }
        }

        impl ::planus::WriteAsUnion<Kind> for Kind {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::UnionOffset<Self> {
                match self {
                    Self::Alloc(value) => Self::create_alloc(builder, value),
                    Self::Realloc(value) => Self::create_realloc(builder, value),
                    Self::Free(value) => Self::create_free(builder, value),
                }
            }
        }

        impl ::planus::WriteAsOptionalUnion<Kind> for Kind {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::UnionOffset<Self>> {
                ::core::option::Option::Some(::planus::WriteAsUnion::prepare(self, builder))
            }
        }

        /// Builder for serializing an instance of the [Kind] type.
        ///
        /// Can be created using the [Kind::builder] method.
        #[derive(Debug)]
        #[must_use]
        pub struct KindBuilder<T>(T);

        impl KindBuilder<::planus::Uninitialized> {
            /// Creates an instance of the [`alloc` variant](Kind#variant.Alloc).
            #[inline]
            pub fn alloc<T>(self, value: T) -> KindBuilder<::planus::Initialized<1, T>>
            where
                T: ::planus::WriteAsOffset<self::Alloc>,
            {
                KindBuilder(::planus::Initialized(value))
            }

            /// Creates an instance of the [`realloc` variant](Kind#variant.Realloc).
            #[inline]
            pub fn realloc<T>(self, value: T) -> KindBuilder<::planus::Initialized<2, T>>
            where
                T: ::planus::WriteAsOffset<self::Realloc>,
            {
                KindBuilder(::planus::Initialized(value))
            }

            /// Creates an instance of the [`free` variant](Kind#variant.Free).
            #[inline]
            pub fn free<T>(self, value: T) -> KindBuilder<::planus::Initialized<3, T>>
            where
                T: ::planus::WriteAsOffset<self::Free>,
            {
                KindBuilder(::planus::Initialized(value))
            }
        }

        impl<const N: u8, T> KindBuilder<::planus::Initialized<N, T>> {
            /// Finish writing the builder to get an [UnionOffset](::planus::UnionOffset) to a serialized [Kind].
            #[inline]
            pub fn finish(self, builder: &mut ::planus::Builder) -> ::planus::UnionOffset<Kind>
            where
                Self: ::planus::WriteAsUnion<Kind>,
            {
                ::planus::WriteAsUnion::prepare(&self, builder)
            }
        }

        impl<T> ::planus::WriteAsUnion<Kind> for KindBuilder<::planus::Initialized<1, T>>
        where
            T: ::planus::WriteAsOffset<self::Alloc>,
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::UnionOffset<Kind> {
                ::planus::UnionOffset::new(1, (self.0).0.prepare(builder).downcast())
            }
        }

        impl<T> ::planus::WriteAsOptionalUnion<Kind> for KindBuilder<::planus::Initialized<1, T>>
        where
            T: ::planus::WriteAsOffset<self::Alloc>,
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::UnionOffset<Kind>> {
                ::core::option::Option::Some(::planus::WriteAsUnion::prepare(self, builder))
            }
        }
        impl<T> ::planus::WriteAsUnion<Kind> for KindBuilder<::planus::Initialized<2, T>>
        where
            T: ::planus::WriteAsOffset<self::Realloc>,
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::UnionOffset<Kind> {
                ::planus::UnionOffset::new(2, (self.0).0.prepare(builder).downcast())
            }
        }

        impl<T> ::planus::WriteAsOptionalUnion<Kind> for KindBuilder<::planus::Initialized<2, T>>
        where
            T: ::planus::WriteAsOffset<self::Realloc>,
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::UnionOffset<Kind>> {
                ::core::option::Option::Some(::planus::WriteAsUnion::prepare(self, builder))
            }
        }
        impl<T> ::planus::WriteAsUnion<Kind> for KindBuilder<::planus::Initialized<3, T>>
        where
            T: ::planus::WriteAsOffset<self::Free>,
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::UnionOffset<Kind> {
                ::planus::UnionOffset::new(3, (self.0).0.prepare(builder).downcast())
            }
        }

        impl<T> ::planus::WriteAsOptionalUnion<Kind> for KindBuilder<::planus::Initialized<3, T>>
        where
            T: ::planus::WriteAsOffset<self::Free>,
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::UnionOffset<Kind>> {
                ::core::option::Option::Some(::planus::WriteAsUnion::prepare(self, builder))
            }
        }

        /// Reference to a deserialized [Kind].
        #[derive(Copy, Clone, Debug)]
        pub enum KindRef<'a> {
            Alloc(self::AllocRef<'a>),
            Realloc(self::ReallocRef<'a>),
            Free(self::FreeRef<'a>),
        }

        impl<'a> ::core::convert::TryFrom<KindRef<'a>> for Kind {
            type Error = ::planus::Error;

            fn try_from(value: KindRef<'a>) -> ::planus::Result<Self> {
                ::core::result::Result::Ok(match value {
                    KindRef::Alloc(value) => {
                        Self::Alloc(::planus::alloc::boxed::Box::new(::core::convert::TryFrom::try_from(value)?))
                    }

                    KindRef::Realloc(value) => {
                        Self::Realloc(::planus::alloc::boxed::Box::new(::core::convert::TryFrom::try_from(value)?))
                    }

                    KindRef::Free(value) => {
                        Self::Free(::planus::alloc::boxed::Box::new(::core::convert::TryFrom::try_from(value)?))
                    }
                })
            }
        }

        impl<'a> ::planus::TableReadUnion<'a> for KindRef<'a> {
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                tag: u8,
                field_offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                match tag {
                    1 => {
                        ::core::result::Result::Ok(Self::Alloc(::planus::TableRead::from_buffer(buffer, field_offset)?))
                    }
                    2 => ::core::result::Result::Ok(Self::Realloc(::planus::TableRead::from_buffer(
                        buffer,
                        field_offset,
                    )?)),
                    3 => {
                        ::core::result::Result::Ok(Self::Free(::planus::TableRead::from_buffer(buffer, field_offset)?))
                    }
                    _ => ::core::result::Result::Err(::planus::errors::ErrorKind::UnknownUnionTag { tag }),
                }
            }
        }

        impl<'a> ::planus::VectorReadUnion<'a> for KindRef<'a> {
            const VECTOR_NAME: &'static str = "[KindRef]";
        }

        /// The table `Call` in the namespace `heap`
        ///
        /// Generated from these locations:
        /// * Table `Call` in the file `call.fbs:11`
        #[derive(Clone, Debug, PartialEq, PartialOrd, Eq, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub struct Call {
            /// The field `kind` in the table `Call`
            pub kind: ::core::option::Option<self::Kind>,
        }

        #[allow(clippy::derivable_impls)]
        impl ::core::default::Default for Call {
            fn default() -> Self {
                Self { kind: ::core::default::Default::default() }
            }
        }

        impl Call {
            /// Creates a [CallBuilder] for serializing an instance of this table.
            #[inline]
            pub fn builder() -> CallBuilder<()> {
                CallBuilder(())
            }

            #[allow(clippy::too_many_arguments)]
            pub fn create(
                builder: &mut ::planus::Builder,
                field_kind: impl ::planus::WriteAsOptionalUnion<self::Kind>,
            ) -> ::planus::Offset<Self> {
                let prepared_kind = field_kind.prepare(builder);

                let mut table_writer: ::planus::table_writer::TableWriter<8> = ::core::default::Default::default();
                if prepared_kind.is_some() {
                    table_writer.write_entry::<::planus::Offset<self::Kind>>(1);
                }
                if prepared_kind.is_some() {
                    table_writer.write_entry::<u8>(0);
                }

                unsafe {
                    table_writer.finish(builder, |object_writer| {
                        if let ::core::option::Option::Some(prepared_kind) = prepared_kind {
                            object_writer.write::<_, _, 4>(&prepared_kind.offset());
                        }
                        if let ::core::option::Option::Some(prepared_kind) = prepared_kind {
                            object_writer.write::<_, _, 1>(&prepared_kind.tag());
                        }
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<::planus::Offset<Call>> for Call {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Call> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl ::planus::WriteAsOptional<::planus::Offset<Call>> for Call {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::Offset<Call>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl ::planus::WriteAsOffset<Call> for Call {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Call> {
                Call::create(builder, &self.kind)
            }
        }

        /// Builder for serializing an instance of the [Call] type.
        ///
        /// Can be created using the [Call::builder] method.
        #[derive(Debug)]
        #[must_use]
        pub struct CallBuilder<State>(State);

        impl CallBuilder<()> {
            /// Setter for the [`kind` field](Call#structfield.kind).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn kind<T0>(self, value: T0) -> CallBuilder<(T0,)>
            where
                T0: ::planus::WriteAsOptionalUnion<self::Kind>,
            {
                CallBuilder((value,))
            }

            /// Sets the [`kind` field](Call#structfield.kind) to null.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn kind_as_null(self) -> CallBuilder<((),)> {
                self.kind(())
            }
        }

        impl<T0> CallBuilder<(T0,)> {
            /// Finish writing the builder to get an [Offset](::planus::Offset) to a serialized [Call].
            #[inline]
            pub fn finish(self, builder: &mut ::planus::Builder) -> ::planus::Offset<Call>
            where
                Self: ::planus::WriteAsOffset<Call>,
            {
                ::planus::WriteAsOffset::prepare(&self, builder)
            }
        }

        impl<T0: ::planus::WriteAsOptionalUnion<self::Kind>> ::planus::WriteAs<::planus::Offset<Call>> for CallBuilder<(T0,)> {
            type Prepared = ::planus::Offset<Call>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Call> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl<T0: ::planus::WriteAsOptionalUnion<self::Kind>> ::planus::WriteAsOptional<::planus::Offset<Call>>
            for CallBuilder<(T0,)>
        {
            type Prepared = ::planus::Offset<Call>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::Offset<Call>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl<T0: ::planus::WriteAsOptionalUnion<self::Kind>> ::planus::WriteAsOffset<Call> for CallBuilder<(T0,)> {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Call> {
                let (v0,) = &self.0;
                Call::create(builder, v0)
            }
        }

        /// Reference to a deserialized [Call].
        #[derive(Copy, Clone)]
        pub struct CallRef<'a>(#[allow(dead_code)] ::planus::table_reader::Table<'a>);

        impl<'a> CallRef<'a> {
            /// Getter for the [`kind` field](Call#structfield.kind).
            #[inline]
            pub fn kind(&self) -> ::planus::Result<::core::option::Option<self::KindRef<'a>>> {
                self.0.access_union(0, "Call", "kind")
            }
        }

        impl<'a> ::core::fmt::Debug for CallRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("CallRef");
                if let ::core::option::Option::Some(field_kind) = self.kind().transpose() {
                    f.field("kind", &field_kind);
                }
                f.finish()
            }
        }

        impl<'a> ::core::convert::TryFrom<CallRef<'a>> for Call {
            type Error = ::planus::Error;

            #[allow(unreachable_code)]
            fn try_from(value: CallRef<'a>) -> ::planus::Result<Self> {
                ::core::result::Result::Ok(Self {
                    kind: if let ::core::option::Option::Some(kind) = value.kind()? {
                        ::core::option::Option::Some(::core::convert::TryInto::try_into(kind)?)
                    } else {
                        ::core::option::Option::None
                    },
                })
            }
        }

        impl<'a> ::planus::TableRead<'a> for CallRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                ::core::result::Result::Ok(Self(::planus::table_reader::Table::from_buffer(buffer, offset)?))
            }
        }

        impl<'a> ::planus::VectorReadInner<'a> for CallRef<'a> {
            type Error = ::planus::Error;
            const STRIDE: usize = 4;

            unsafe fn from_buffer(buffer: ::planus::SliceWithStartOffset<'a>, offset: usize) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(buffer, offset)
                    .map_err(|error_kind| error_kind.with_error_location("[CallRef]", "get", buffer.offset_from_start))
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<::planus::Offset<Call>> for Call {
            type Value = ::planus::Offset<Call>;
            const STRIDE: usize = 4;
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> Self::Value {
                ::planus::WriteAs::prepare(self, builder)
            }

            #[inline]
            unsafe fn write_values(
                values: &[::planus::Offset<Call>],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 4];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (Self::STRIDE * i) as u32,
                    );
                }
            }
        }

        impl<'a> ::planus::ReadAsRoot<'a> for CallRef<'a> {
            fn read_as_root(slice: &'a [u8]) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(
                    ::planus::SliceWithStartOffset { buffer: slice, offset_from_start: 0 },
                    0,
                )
                .map_err(|error_kind| error_kind.with_error_location("[CallRef]", "read_as_root", 0))
            }
        }

        /// The table `Batch` in the namespace `heap`
        ///
        /// Generated from these locations:
        /// * Table `Batch` in the file `call.fbs:14`
        #[derive(Clone, Debug, PartialEq, PartialOrd, Eq, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        pub struct Batch {
            /// The field `calls` in the table `Batch`
            pub calls: ::core::option::Option<::planus::alloc::vec::Vec<self::Call>>,
        }

        #[allow(clippy::derivable_impls)]
        impl ::core::default::Default for Batch {
            fn default() -> Self {
                Self { calls: ::core::default::Default::default() }
            }
        }

        impl Batch {
            /// Creates a [BatchBuilder] for serializing an instance of this table.
            #[inline]
            pub fn builder() -> BatchBuilder<()> {
                BatchBuilder(())
            }

            #[allow(clippy::too_many_arguments)]
            pub fn create(
                builder: &mut ::planus::Builder,
                field_calls: impl ::planus::WriteAsOptional<::planus::Offset<[::planus::Offset<self::Call>]>>,
            ) -> ::planus::Offset<Self> {
                let prepared_calls = field_calls.prepare(builder);

                let mut table_writer: ::planus::table_writer::TableWriter<6> = ::core::default::Default::default();
                if prepared_calls.is_some() {
                    table_writer.write_entry::<::planus::Offset<[::planus::Offset<self::Call>]>>(0);
                }

                unsafe {
                    table_writer.finish(builder, |object_writer| {
                        if let ::core::option::Option::Some(prepared_calls) = prepared_calls {
                            object_writer.write::<_, _, 4>(&prepared_calls);
                        }
                    });
                }
                builder.current_offset()
            }
        }

        impl ::planus::WriteAs<::planus::Offset<Batch>> for Batch {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Batch> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl ::planus::WriteAsOptional<::planus::Offset<Batch>> for Batch {
            type Prepared = ::planus::Offset<Self>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::Offset<Batch>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl ::planus::WriteAsOffset<Batch> for Batch {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Batch> {
                Batch::create(builder, &self.calls)
            }
        }

        /// Builder for serializing an instance of the [Batch] type.
        ///
        /// Can be created using the [Batch::builder] method.
        #[derive(Debug)]
        #[must_use]
        pub struct BatchBuilder<State>(State);

        impl BatchBuilder<()> {
            /// Setter for the [`calls` field](Batch#structfield.calls).
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn calls<T0>(self, value: T0) -> BatchBuilder<(T0,)>
            where
                T0: ::planus::WriteAsOptional<::planus::Offset<[::planus::Offset<self::Call>]>>,
            {
                BatchBuilder((value,))
            }

            /// Sets the [`calls` field](Batch#structfield.calls) to null.
            #[inline]
            #[allow(clippy::type_complexity)]
            pub fn calls_as_null(self) -> BatchBuilder<((),)> {
                self.calls(())
            }
        }

        impl<T0> BatchBuilder<(T0,)> {
            /// Finish writing the builder to get an [Offset](::planus::Offset) to a serialized [Batch].
            #[inline]
            pub fn finish(self, builder: &mut ::planus::Builder) -> ::planus::Offset<Batch>
            where
                Self: ::planus::WriteAsOffset<Batch>,
            {
                ::planus::WriteAsOffset::prepare(&self, builder)
            }
        }

        impl<T0: ::planus::WriteAsOptional<::planus::Offset<[::planus::Offset<self::Call>]>>>
            ::planus::WriteAs<::planus::Offset<Batch>> for BatchBuilder<(T0,)>
        {
            type Prepared = ::planus::Offset<Batch>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Batch> {
                ::planus::WriteAsOffset::prepare(self, builder)
            }
        }

        impl<T0: ::planus::WriteAsOptional<::planus::Offset<[::planus::Offset<self::Call>]>>>
            ::planus::WriteAsOptional<::planus::Offset<Batch>> for BatchBuilder<(T0,)>
        {
            type Prepared = ::planus::Offset<Batch>;

            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::core::option::Option<::planus::Offset<Batch>> {
                ::core::option::Option::Some(::planus::WriteAsOffset::prepare(self, builder))
            }
        }

        impl<T0: ::planus::WriteAsOptional<::planus::Offset<[::planus::Offset<self::Call>]>>>
            ::planus::WriteAsOffset<Batch> for BatchBuilder<(T0,)>
        {
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> ::planus::Offset<Batch> {
                let (v0,) = &self.0;
                Batch::create(builder, v0)
            }
        }

        /// Reference to a deserialized [Batch].
        #[derive(Copy, Clone)]
        pub struct BatchRef<'a>(#[allow(dead_code)] ::planus::table_reader::Table<'a>);

        impl<'a> BatchRef<'a> {
            /// Getter for the [`calls` field](Batch#structfield.calls).
            #[inline]
            pub fn calls(
                &self,
            ) -> ::planus::Result<::core::option::Option<::planus::Vector<'a, ::planus::Result<self::CallRef<'a>>>>>
            {
                self.0.access(0, "Batch", "calls")
            }
        }

        impl<'a> ::core::fmt::Debug for BatchRef<'a> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut f = f.debug_struct("BatchRef");
                if let ::core::option::Option::Some(field_calls) = self.calls().transpose() {
                    f.field("calls", &field_calls);
                }
                f.finish()
            }
        }

        impl<'a> ::core::convert::TryFrom<BatchRef<'a>> for Batch {
            type Error = ::planus::Error;

            #[allow(unreachable_code)]
            fn try_from(value: BatchRef<'a>) -> ::planus::Result<Self> {
                ::core::result::Result::Ok(Self {
                    calls: if let ::core::option::Option::Some(calls) = value.calls()? {
                        ::core::option::Option::Some(calls.to_vec_result()?)
                    } else {
                        ::core::option::Option::None
                    },
                })
            }
        }

        impl<'a> ::planus::TableRead<'a> for BatchRef<'a> {
            #[inline]
            fn from_buffer(
                buffer: ::planus::SliceWithStartOffset<'a>,
                offset: usize,
            ) -> ::core::result::Result<Self, ::planus::errors::ErrorKind> {
                ::core::result::Result::Ok(Self(::planus::table_reader::Table::from_buffer(buffer, offset)?))
            }
        }

        impl<'a> ::planus::VectorReadInner<'a> for BatchRef<'a> {
            type Error = ::planus::Error;
            const STRIDE: usize = 4;

            unsafe fn from_buffer(buffer: ::planus::SliceWithStartOffset<'a>, offset: usize) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(buffer, offset)
                    .map_err(|error_kind| error_kind.with_error_location("[BatchRef]", "get", buffer.offset_from_start))
            }
        }

        /// # Safety
        /// The planus compiler generates implementations that initialize
        /// the bytes in `write_values`.
        unsafe impl ::planus::VectorWrite<::planus::Offset<Batch>> for Batch {
            type Value = ::planus::Offset<Batch>;
            const STRIDE: usize = 4;
            #[inline]
            fn prepare(&self, builder: &mut ::planus::Builder) -> Self::Value {
                ::planus::WriteAs::prepare(self, builder)
            }

            #[inline]
            unsafe fn write_values(
                values: &[::planus::Offset<Batch>],
                bytes: *mut ::core::mem::MaybeUninit<u8>,
                buffer_position: u32,
            ) {
                let bytes = bytes as *mut [::core::mem::MaybeUninit<u8>; 4];
                for (i, v) in ::core::iter::Iterator::enumerate(values.iter()) {
                    ::planus::WriteAsPrimitive::write(
                        v,
                        ::planus::Cursor::new(unsafe { &mut *bytes.add(i) }),
                        buffer_position - (Self::STRIDE * i) as u32,
                    );
                }
            }
        }

        impl<'a> ::planus::ReadAsRoot<'a> for BatchRef<'a> {
            fn read_as_root(slice: &'a [u8]) -> ::planus::Result<Self> {
                ::planus::TableRead::from_buffer(
                    ::planus::SliceWithStartOffset { buffer: slice, offset_from_start: 0 },
                    0,
                )
                .map_err(|error_kind| error_kind.with_error_location("[BatchRef]", "read_as_root", 0))
            }
        }
    }
}
