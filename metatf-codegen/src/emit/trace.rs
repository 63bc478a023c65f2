//! The types `Trace` and `Writer` of a generated module. They wrap the types of the runtime and add a method for each
//! section, record and table.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::enums::item_type;
use super::protocol::{leaves, record_type};
use super::structs::from_number;
use super::{number, raw};
use crate::docs;
use crate::model::{Filled, Listed, Model, Stream, Struct, Ty};
use crate::names::ident;

/// Emits `Trace`.
pub(super) fn trace(model: &Model) -> TokenStream {
    let sections = model.tagged.iter().map(|section| {
        let docs =
            docs::above(&section.docs, format!("Returns a reader of the records in section `{}`.", section.title));
        let (docs, method, name) = (docs::attributes(&docs), ident(&section.method), ident(&section.name));
        quote! {
            #docs
            pub fn #method(&mut self) -> runtime::Section<'_, 't, Protocol, #name> {
                self.0.section()
            }
        }
    });
    let elements = model.streams.iter().map(|stream| {
        let mut docs = docs::above(
            &stream.docs,
            format!(
                "Provides access by offset to the elements of section `{}` that have been read so far.",
                stream.title
            ),
        );
        if let Some(values) = filled(stream) {
            let examine = format!(
                "The writer adds these elements, {values}, and readers use them to restore the values. No field contains an offset of \
                                   such an element; this method is for programs that examine how a trace is encoded."
            );
            docs.push(String::new());
            docs.extend(docs::wrapped(&examine, ""));
        }
        let (docs, method) = (docs::attributes(&docs), ident(&stream.method));
        let (element, index) = (element(model, stream), number(stream.index as u64));
        quote! {
            #docs
            pub fn #method(&mut self) -> runtime::Elements<'t, Protocol, #element> {
                self.0.elements(#index)
            }
        }
    });
    quote! {
        /// Reads a trace. Methods common to all formats are available through [`Deref`](std::ops::Deref).
        #[derive(Debug)]
        pub struct Trace<'t>(runtime::Trace<'t, Protocol>);
        impl Trace<'static> {
            /// Opens a file or a pipe. A file is mapped: if it changes while it is being read, records may be wrong,
            /// and if it is truncated, the program is killed.
            ///
            /// # Errors
            /// Returns an error if the file cannot be read or is not a trace, or if its DTD does not match this format.
            pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self, runtime::OpenError> {
                runtime::TraceOptions::new().open(path).map(Self)
            }
            /// Opens a file that may change while it is being read. The file is not mapped, so truncating it causes an
            /// error instead of a signal.
            ///
            /// # Errors
            /// As for [`open`](Self::open).
            pub fn read_file(path: impl AsRef<std::path::Path>) -> Result<Self, runtime::OpenError> {
                runtime::TraceOptions::new().read_file(path).map(Self)
            }
        }
        impl<'t> Trace<'t> {
            /// Reads a trace in memory.
            ///
            /// # Errors
            /// As for [`open`](Self::open).
            pub fn from_slice(bytes: &'t [u8]) -> Result<Self, runtime::OpenError> {
                runtime::TraceOptions::new().from_slice(bytes).map(Self)
            }
            /// Reads a trace from a stream.
            ///
            /// # Errors
            /// As for [`open`](Self::open).
            pub fn from_read(stream: impl std::io::Read + Send + 't) -> Result<Self, runtime::OpenError> {
                runtime::TraceOptions::new().from_read(stream).map(Self)
            }
            /// Reads a trace that was opened with options, such as `TraceOptions::new().salvage(true).open(path)?` with
            /// `metatf::typed::TraceOptions`.
            #[must_use]
            pub fn from_opened(opened: runtime::Trace<'t, Protocol>) -> Self {
                Self(opened)
            }
            #(#sections)*
            #(#elements)*
        }
        impl<'t> std::ops::Deref for Trace<'t> {
            type Target = runtime::Trace<'t, Protocol>;
            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }
        impl std::ops::DerefMut for Trace<'_> {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }
        impl<'t> IntoIterator for Trace<'t> {
            type Item = runtime::Result<Record>;
            type IntoIter = runtime::Records<'t, Protocol>;
            fn into_iter(self) -> Self::IntoIter {
                self.0.into_iter()
            }
        }
    }
}

/// Emits `Writer`.
pub(super) fn writer(model: &Model) -> TokenStream {
    let records = model.tagged.iter().flat_map(|section| {
        section.records.iter().filter_map(|listed| {
            let item = model.structs.get(listed.item)?;
            let (method, name) = (ident(&listed.method), ident(&item.name));
            let record = if item.shape.bytes { quote!(#name<&[u8]>) } else { quote!(#name) };
            let (record_type, leaves) = (record_type(listed), leaves(section));
            let docs = format!(" Writes a record of type [`{}`].", item.name);
            let next = (!listed.next.is_empty()).then(|| next_record(model, listed, item));
            Some(quote! {
                #[doc = #docs]
                ///
                /// # Errors
                /// Returns an error from the sink, or one for a value that cannot be encoded.
                #[inline]
                pub fn #method(&mut self, record: &#record) -> runtime::Result<()> {
                    self.0.inner().put::<#record_type, _, #leaves>(record)
                }
                #next
            })
        })
    });
    let tables = model.streams.iter().filter(|stream| filled(stream).is_none()).map(|stream| {
        let mut docs = docs::above(&stream.docs, format!("Provides access to section `{}` for adding elements.", stream.title));
        if !stream.is_table {
            let unused = "If you select `sectionStride` with this section for a field, by the method `set` or `set_all` of the \
                          runtime's writer, the writer adds the elements, and you must not add any. Otherwise, no field refers to the \
                          section, and its elements are an independent list.";
            docs.push(String::new());
            docs.extend(docs::wrapped(unused, ""));
        }
        let (docs, method) = (docs::attributes(&docs), ident(&stream.method));
        let (element, index) = (element(model, stream), number(stream.index as u64));
        quote! {
            #docs
            pub fn #method(&mut self) -> runtime::Table<'_, AnySink, #element> {
                self.0.table(#index)
            }
        }
    });
    let singles =
        model.streams.iter().filter(|stream| filled(stream).is_none()).filter_map(|stream| single(model, stream));
    let without = model.streams.iter().filter_map(|stream| {
        let docs = format!(" Section `{}` has no method, because the writer adds its elements,", stream.title);
        let values = format!(" {}.", filled(stream)?);
        Some(quote!(#[doc = ""] #[doc = #docs] #[doc = #values]))
    });
    quote! {
        /// Writes a trace. Methods common to all formats are available through [`Deref`](std::ops::Deref).
        #(#without)*
        #[derive(Debug)]
        pub struct Writer<AnySink: runtime::Sink>(runtime::Writer<AnySink, Protocol>);
        impl Writer<std::io::BufWriter<std::fs::File>> {
            /// Creates a file.
            ///
            /// # Errors
            /// Returns file system errors.
            pub fn create(path: impl AsRef<std::path::Path>) -> runtime::Result<Self> {
                runtime::Writer::create(path).map(Self)
            }
        }
        impl<AnySink: runtime::Sink> Writer<AnySink> {
            /// Starts a trace with the default options.
            ///
            /// # Errors
            /// Returns an error from the sink.
            pub fn new(sink: AnySink) -> runtime::Result<Self> {
                runtime::Writer::new(sink).map(Self)
            }
            /// Starts a trace with these options.
            ///
            /// # Errors
            /// Returns an error from the sink.
            pub fn with_options(sink: AnySink, options: &runtime::WriteOptions) -> runtime::Result<Self> {
                runtime::Writer::with_options(sink, options).map(Self)
            }
            /// Writes the remaining data, closes the trace and returns the sink.
            ///
            /// # Errors
            /// Returns an error from the sink.
            pub fn finish(self) -> runtime::Result<AnySink> {
                self.0.finish()
            }
            /// Drops the writer without the message that an unfinished writer prints. The trace in the sink remains
            /// incomplete.
            pub fn abandon(self) {
                self.0.abandon();
            }
            #(#records)*
            #(#tables)*
        }
        impl<AnySink: runtime::Sink> std::ops::Deref for Writer<AnySink> {
            type Target = runtime::Writer<AnySink, Protocol>;
            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }
        impl<AnySink: runtime::Sink> std::ops::DerefMut for Writer<AnySink> {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }
        #(#singles)*
    }
}

/// Emits the method that returns a record with the next values of fields that store no bytes.
fn next_record(model: &Model, listed: &Listed, item: &Struct) -> TokenStream {
    let (method, name, record_type) = (ident(&listed.next), ident(&item.name), record_type(listed));
    let (lifetime, record) =
        if item.shape.bytes { (quote!(<'b>), quote!(#name<&'b [u8]>)) } else { (quote!(), quote!(#name)) };
    let fields = listed.implied.iter().map(|implied| {
        let (field, leaf) = (raw(&implied.field), number(implied.leaf));
        let value = match implied.value {
            Some(value) => {
                let value = Literal::u64_suffixed(value);
                quote!(#value)
            }
            None => quote!(self.0.next_value::<#record_type>(#leaf)),
        };
        let value = from_number(model, item, &implied.field, implied.kind, &value);
        quote!(#field: #value)
    });
    let others = (listed.implied.len() < item.shape.fields.len()).then(|| quote!(..#name::default()));
    let names: Vec<String> = listed.implied.iter().map(|implied| format!("`{}`", implied.field)).collect();
    let docs = format!(
        " Returns a record in which the fields that store no bytes have their next values: {}.",
        names.join(", ")
    );
    let given = item.shape.fields.iter().map(|field| &field.name).find(|name| !names.contains(&format!("`{name}`")));
    let example = given.map(|given| {
        let example = format!(
            " Other fields are empty or 0. Example: `{} {{ {given}, ..writer.{}() }}`.",
            item.name, listed.next
        );
        quote!(#[doc = #example])
    });
    let strides = listed.implied.iter().any(|implied| implied.value.is_none()).then(|| {
        quote! {
            ///
            /// The writer contains a counter for each field with the interpretation `stride`, and each call advances these
            /// counters, whether or not the record is written. So call this method once for each record. The writer adds a
            /// metadata record if a value is skipped. It also adds one before the first record of this type in each later group,
            /// because each group starts with the initial values.
        }
    });
    quote! {
        #[doc = #docs]
        #example
        #strides
        #[must_use]
        pub fn #method #lifetime(&self) -> #record {
            #name { #(#fields,)* #others }
        }
    }
}

/// Describes the elements of a stream section that the writer adds. Returns `None` if users add the elements.
fn filled(stream: &Stream) -> Option<&'static str> {
    match stream.filled {
        Filled::Users => None,
        Filled::Strides => Some("which are the values of `sectionStride` fields"),
        Filled::Models => Some("which describe the values that models do not predict"),
    }
}

/// Returns the type of a stream section's elements, which owns its bytes.
fn element(model: &Model, stream: &Stream) -> TokenStream {
    model.structs.get(stream.item).map_or_else(
        || item_type(model, stream.item),
        |item| {
            let name = ident(&item.name);
            quote!(#name)
        },
    )
}

/// Emits the conversions from the single field of an element, which allow for `names().intern("int")`.
fn single(model: &Model, stream: &Stream) -> Option<TokenStream> {
    let item = model.structs.get(stream.item)?;
    let [field] = item.shape.fields.as_slice() else { return None };
    let (name, field_name) = (ident(&item.name), raw(&field.name));
    let forms = if field.ty == Ty::Bytes { ", as bytes or as a string" } else { "" };
    let add = if stream.is_table { "intern" } else { "push" };
    let docs =
        format!(" Lets `writer.{}().{add}(..)` accept the value of the only field{forms}.", ident(&stream.method));
    match field.ty {
        Ty::U64 => Some(quote! {
            #[doc = #docs]
            impl From<u64> for #name {
                fn from(#field_name: u64) -> Self {
                    Self { #field_name }
                }
            }
        }),
        Ty::Bytes => Some(quote! {
            #[doc = #docs]
            impl<'b> From<&'b [u8]> for #name<&'b [u8]> {
                fn from(#field_name: &'b [u8]) -> Self {
                    Self { #field_name }
                }
            }
            impl<'b, const N: usize> From<&'b [u8; N]> for #name<&'b [u8]> {
                fn from(#field_name: &'b [u8; N]) -> Self {
                    Self { #field_name }
                }
            }
            impl<'b> From<&'b str> for #name<&'b [u8]> {
                fn from(#field_name: &'b str) -> Self {
                    Self { #field_name: #field_name.as_bytes() }
                }
            }
        }),
        _ => None,
    }
}
