//! Table rows `enum` and `elements`: the connection between the generated enums and the format's numbers. As in all
//! macros here, generated types may have any name, such as `Option` or `R`.

/// Implements the module's [`Protocol`](crate::typed::Protocol) and the reading and writing of its enums.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_sections {
    (
        $source:literal $format:ident $protocol:ident;
        $record:ident $(<$rb:ident>)? $($element:ident $(<$eb:ident>)?)?;
        $(enum $section:literal $top:ident ($name:ident $(<$b:ident>)?) {
            $($($index:literal $variant:ident),+;)*
        })*
        $(elements $stream:literal $kind:ident $elements:tt;)*
    ) => {
        impl $crate::typed::Protocol for $protocol {
            const SOURCE: &'static str = $source;
            type Record<__B> = $record $(<$crate::__metatf_second!($rb, __B)>)?;
            type Element<__B> = $crate::__metatf_element!($($element $(<$crate::__metatf_second!($eb, __B)>)?)?);

            const FORMAT: &'static $crate::format::Format = &$format;

            #[inline]
            fn record<'a, __B: ::core::convert::From<&'a [u8]>, __R: $crate::typed::Source<'a>>(
                section: usize,
                record: u16,
                row: &mut __R,
            ) -> ::core::result::Result<Self::Record<__B>, <__R as $crate::Row<'a>>::Error> {
                match section {
                    $($section => <$name $(<$crate::__metatf_second!($b, ::std::vec::Vec<u8>)>)?
                        as $crate::typed::SectionFamily>::read::<__B, __R>(record, row).map($record::$top),)*
                    _ => ::core::result::Result::Err($crate::Row::stop(row, $crate::generated::no_such_record())),
                }
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn run<'r, __B: ::core::convert::From<&'r [u8]>, __C>(
                section: usize,
                run: &mut impl $crate::typed::Reads<'r>,
                mut each: impl ::core::ops::FnMut(Self::Record<__B>) -> ::core::ops::ControlFlow<__C>,
            ) -> ::core::ops::ControlFlow<__C> {
                match section {
                    $($section => <$name $(<$crate::__metatf_second!($b, ::std::vec::Vec<u8>)>)?
                        as $crate::typed::SectionFamily>::run::<__B, __C>(run, |found| each($record::$top(found))),)*
                    _ => ::core::ops::ControlFlow::Continue(()),
                }
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn one<'r, __B: ::core::convert::From<&'r [u8]>, __O: $crate::typed::ReadsOne<'r>, __T>(
                one: __O,
                found: impl ::core::ops::FnOnce(Self::Record<__B>) -> __T,
                none: impl ::core::ops::FnOnce(__O) -> __T,
            ) -> __T {
                match $crate::typed::ReadsOne::section(&one) {
                    $($section => <$name $(<$crate::__metatf_second!($b, ::std::vec::Vec<u8>)>)?
                        as $crate::typed::SectionFamily>::one::<__B, __O, __T>(one, |record| found($record::$top(record)), none),)*
                    _ => none(one),
                }
            }

            #[inline]
            fn element<'a, __B: ::core::convert::From<&'a [u8]>, __R: $crate::typed::Source<'a>>(
                section: usize,
                row: &mut __R,
            ) -> ::core::result::Result<Self::Element<__B>, <__R as $crate::Row<'a>>::Error> {
                match section {
                    $($stream => $crate::typed::ReadFields::read_fields(row, 0).map(Element::$kind),)*
                    _ => ::core::result::Result::Err($crate::Row::stop(row, $crate::generated::no_such_record())),
                }
            }
        }

        impl $(<$rb: ::core::convert::AsRef<[u8]>>)? $crate::typed::DataRecord for $record $(<$rb>)? {
            const SECTION: ::core::option::Option<usize> = $crate::typed::only_section(&[$($section),*]);

            #[inline]
            fn place(&self) -> (usize, u16) {
                match *self { $(Self::$top(ref section) => $crate::typed::DataRecord::place(section),)* }
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn put<__W: $crate::typed::Puts>(&self, writer: &mut __W) -> __W::Done {
                match *self { $(Self::$top(ref section) => $crate::typed::DataRecord::put(section, writer),)* }
            }
        }

        $(
            impl $crate::typed::SectionFamily for $name $(<$crate::__metatf_second!($b, ::std::vec::Vec<u8>)>)? {
                const SECTION: usize = $section;
                const HAS_STREAMED: bool = $crate::typed::has_streamed(&$format, $section);
                const CAN_SPECIALIZE: bool = $crate::typed::can_specialize(&$format, $section);
                type With<__B> = $name $(<$crate::__metatf_second!($b, __B)>)?;

                #[inline]
                fn read<'a, __B: ::core::convert::From<&'a [u8]>, __R: $crate::typed::Source<'a>>(
                    record: u16,
                    row: &mut __R,
                ) -> ::core::result::Result<Self::With<__B>, <__R as $crate::Row<'a>>::Error> {
                    match record {
                        $($($index => $crate::typed::ReadFields::read_fields(row, 0).map($name::$variant),)*)*
                        _ => ::core::result::Result::Err($crate::Row::stop(row, $crate::generated::no_such_record())),
                    }
                }

                #[cfg_attr(not(debug_assertions), inline(always))]
                fn run<'r, __B: ::core::convert::From<&'r [u8]>, __C>(
                    reads: &mut impl $crate::typed::Reads<'r>,
                    each: impl ::core::ops::FnMut(Self::With<__B>) -> ::core::ops::ControlFlow<__C>,
                ) -> ::core::ops::ControlFlow<__C> {
                    reads.section::<Self, __B, { $crate::typed::plans(&$format, $section) }, __C>(each)
                }

                #[cfg_attr(not(debug_assertions), inline(always))]
                fn one<'r, __B: ::core::convert::From<&'r [u8]>, __O: $crate::typed::ReadsOne<'r>, __T>(
                    one: __O,
                    found: impl ::core::ops::FnOnce(Self::With<__B>) -> __T,
                    none: impl ::core::ops::FnOnce(__O) -> __T,
                ) -> __T {
                    one.read::<Self, __B, { $crate::typed::plans(&$format, $section) }, __T>(found, none)
                }

                #[cfg_attr(not(debug_assertions), inline(always))]
                fn row<'r, __B: ::core::convert::From<&'r [u8]>, __O: $crate::typed::OneRow<'r>, __T>(
                    row: __O,
                    found: impl ::core::ops::FnOnce(Self::With<__B>) -> __T,
                    none: impl ::core::ops::FnOnce(__O) -> __T,
                ) -> __T {
                    use $crate::typed::Known as _;
                    if let ::core::option::Option::Some(tag) = row.tag($format.tag_width as usize) {
                        $(if $crate::typed::among(tag, &[$($crate::typed::Shape::<$protocol, $section, $index>::LISTED),*]) {
                            $(if tag == $crate::typed::Shape::<$protocol, $section, $index>::TAG
                                && !$crate::typed::Shape::<$protocol, $section, $index>::IS_CATCH_ALL
                            {
                                return row.read::<$crate::typed::Shape<$protocol, $section, $index>, _, _>(
                                    |record| found($name::$variant(record)),
                                    none,
                                );
                            })*
                        })*
                    }
                    none(row)
                }

                #[cfg_attr(not(debug_assertions), inline(always))]
                fn rows<'r, __B: ::core::convert::From<&'r [u8]>, __C>(
                    rows: &mut impl $crate::typed::Rows<'r>,
                    mut each: impl ::core::ops::FnMut(Self::With<__B>) -> ::core::ops::ControlFlow<__C>,
                ) -> ::core::ops::ControlFlow<__C> {
                    use $crate::typed::Known as _;
                    while let ::core::option::Option::Some(tag) = rows.tag($format.tag_width as usize) {
                        let record = '__record: {
                            $(if $crate::typed::among(tag, &[$($crate::typed::Shape::<$protocol, $section, $index>::LISTED),*]) {
                                $(if tag == $crate::typed::Shape::<$protocol, $section, $index>::TAG
                                    && !$crate::typed::Shape::<$protocol, $section, $index>::IS_CATCH_ALL
                                {
                                    break '__record rows
                                        .read::<$crate::typed::Shape<$protocol, $section, $index>, _>()
                                        .map($name::$variant);
                                })*
                            })*
                            ::core::option::Option::None
                        };
                        match record {
                            ::core::option::Option::Some(record) => each(record)?,
                            ::core::option::Option::None => {
                                // Keeps the variables of the loop in registers, rather than the variables of the code
                                // after it.
                                ::core::hint::cold_path();
                                break;
                            }
                        }
                    }
                    ::core::ops::ControlFlow::Continue(())
                }
            }

            impl $(<$b: ::core::convert::AsRef<[u8]>>)? $crate::typed::DataRecord for $name $(<$b>)? {
                const SECTION: ::core::option::Option<usize> = ::core::option::Option::Some($section);

                #[inline]
                fn place(&self) -> (usize, u16) {
                    match *self { $($(Self::$variant(..) => ($section, $index),)*)* }
                }

                #[cfg_attr(not(debug_assertions), inline(always))]
                fn put<__W: $crate::typed::Puts>(&self, writer: &mut __W) -> __W::Done {
                    const PLANS: usize = $crate::typed::plans(&$format, $section);
                    match *self {
                        $($(Self::$variant(ref record) => $crate::typed::Puts::put::<
                            $crate::typed::Shape<$protocol, $section, $index>,
                            _,
                            PLANS,
                        >(writer, $section, record),)*)*
                    }
                }
            }
        )*
    };
}

/// Finds a record's struct among the variants of its sections.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_places {
    ($index:literal ()) => {};
    ($index:literal ($of:ident [$($section:literal $top:ident $name:ident $variant:ident),*])) => {
        impl $crate::typed::RecordType<Protocol> for $of {
            const PLACES: &'static [(usize, u16)] = &[$(($section, $index)),*];

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn pick<__B>(
                record: <Protocol as $crate::typed::Protocol>::Record<__B>,
            ) -> ::core::option::Option<<Self as $crate::typed::Family>::With<__B>> {
                match record {
                    $(Record::$top($name::$variant(record)) => ::core::option::Option::Some(record),)*
                    _ => ::core::option::Option::None,
                }
            }
        }
    };
}

/// Expands to the type of a module's stream elements, or an uninhabited type if the module has no stream sections.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_element {
    () => { ::core::convert::Infallible };
    ($($element:tt)+) => { $($element)+ };
}

/// Expands to all arguments except the first one, a type parameter that only drives a macro repetition.
#[doc(hidden)]
#[macro_export]
macro_rules! __metatf_second {
    ($first:ident, $($second:tt)*) => { $($second)* };
}
