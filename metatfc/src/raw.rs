//! Opens files without a header (spec 5.4), which are recognized by their first bytes or specified by `--raw` and its
//! options.

use crate::by_name;
use crate::dtd::{self, DtdArgs};
use crate::failure::{Result, failed, usage};
use crate::input::{self, Opened, Reopenable};
use crate::options::{parse_class, parse_order};
use metatf::ErrorKind;
use metatf::container::{Class, Order, Reader};
use metatf::dynamic::Schema;
use metatf::reader::{FormatRef, RecognizedFile, begins_as, recognize};
use metatf_parser::schema::{Dtd, Section};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options that describe a file without a header.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct FileArgs {
    /// Read a file without a Meta-TF header. With --order, records start at the first byte; without --order, the first
    /// bytes identify the format, as for any file that is not a trace
    #[arg(long)]
    pub(crate) raw: bool,
    /// With --raw: 1 for 32-bit, 2 for 64-bit [default: 2]
    #[arg(long, value_parser = parse_class)]
    class: Option<Class>,
    /// With --raw: the byte order of the file, little or big (requires a DTD)
    #[arg(long, alias = "byteorder", value_parser = parse_order)]
    order: Option<Order>,
    /// With --raw and --order: skip this many bytes at the beginning of the file
    #[arg(long, value_name = "BYTES", requires_all = ["raw", "order"], default_value_t = 0, hide_default_value = true)]
    skip_bytes: u64,
    /// With --raw and --order: read only this many bytes, and ignore the rest
    #[arg(long, value_name = "BYTES", requires_all = ["raw", "order"])]
    take_bytes: Option<u64>,
}

/// Options of commands that read one trace or one file without a header.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct RawArgs {
    #[command(flatten)]
    file: FileArgs,
    /// With --raw and --order: the section that the file contains [default: the only one]
    #[arg(long, value_name = "NAME", requires_all = ["raw", "order"])]
    section: Option<String>,
}

impl RawArgs {
    /// Returns whether `--raw` is set.
    pub(crate) fn is_given(&self) -> bool {
        self.file.raw
    }

    /// Returns whether the class or the byte order is set.
    pub(crate) fn has_layout(&self) -> bool {
        self.file.class.is_some() || self.file.order.is_some()
    }

    /// Returns the class, by default 64-bit.
    pub(crate) fn class(&self) -> Class {
        self.file.class.unwrap_or(Class::Bits64)
    }

    /// Returns the byte order, by default little.
    pub(crate) fn order(&self) -> Order {
        self.file.order.unwrap_or(Order::Little)
    }

    /// Opens a trace or a file without a header, and finds its DTD.
    pub(crate) fn open(&self, path: &Path, args: &DtdArgs) -> Result<(Schema, Reader<'static>)> {
        self.file.open(path, self.section.as_deref(), args, false)
    }

    /// Copies input that can be read only once. Fails if the first bytes match neither a trace nor a known format,
    /// unless `salvage` is set.
    pub(crate) fn reopenable(&self, path: &Path, args: &DtdArgs, salvage: bool) -> Result<Reopenable> {
        let known = Known::new(args);
        let is_raw = |head: &[u8]| if self.file.raw { Some(true) } else { known.begins(head) };
        Reopenable::new(path, &is_raw, |head| match Reader::from_slice(head) {
            Err(error) if matches!(error.kind, ErrorKind::NotATrace(..)) && !salvage => {
                failed(format!("{}: {}", input::name(path), known.unknown(&error)?))
            }
            _ => Ok(()),
        })
    }

    /// Opens an input that can be opened repeatedly, like [`open`](Self::open).
    pub(crate) fn reopen(&self, file: &Reopenable, args: &DtdArgs, salvage: bool) -> Result<(Schema, Reader<'static>)> {
        let opened = self.file.open_named((file.path(), file.name()), self.section.as_deref(), args, salvage);
        opened.map_err(|failure| file.named(failure))
    }
}

impl FileArgs {
    /// Returns whether the options specify how to read the file.
    pub(crate) fn is_read_as_said(&self) -> bool {
        self.raw && self.order.is_some()
    }

    /// Opens a trace or a file without a header, and finds its DTD. The caller may specify the section of the file.
    pub(crate) fn open(
        &self,
        path: &Path,
        section: Option<&str>,
        args: &DtdArgs,
        salvage: bool,
    ) -> Result<(Schema, Reader<'static>)> {
        self.open_named((path, &input::name(path)), section, args, salvage)
    }

    fn open_named(
        &self,
        (path, name): (&Path, &str),
        section: Option<&str>,
        args: &DtdArgs,
        salvage: bool,
    ) -> Result<(Schema, Reader<'static>)> {
        if !self.raw && (self.class.is_some() || self.order.is_some()) {
            return usage("--class and --order describe a file without a header: add --raw");
        }
        let class = self.class.unwrap_or(Class::Bits64);
        if let Some(order) = self.order.filter(|_| self.raw) {
            return Raw { class, order, section, skip: self.skip_bytes, take: self.take_bytes }.open(path, args);
        }
        let known = Known::new(args);
        let mut reader = if self.raw {
            input::raw(path, class, Order::Little, 0)?
        } else {
            match input::any((path, name), salvage, &|head| known.begins(head))? {
                Ok(Opened::Raw(reader)) => reader,
                Ok(Opened::Trace(reader)) => {
                    let schema = dtd::find(&reader, name, args, salvage)?;
                    return by_name::open(name, (schema, reader), args);
                }
                Err(error) if matches!(error.kind, ErrorKind::NotATrace(..)) => {
                    return failed(format!("{name}: {}", known.unknown(&error)?));
                }
                Err(error) => return failed(format!("{name}: {error}")),
            }
        };
        let (schema, file) = known.recognized(&reader, name)?;
        reader.set_raw_file(file.order, file.section, file.parts);
        Ok((schema, reader))
    }
}

/// The DTDs that may describe a file: the DTD on the command line, or else all available DTDs that describe how files
/// begin.
struct Known<'a> {
    args: &'a DtdArgs,
    /// The DTDs with their names. They are loaded only once, because a DTD may be read from standard input.
    schemas: OnceCell<Vec<(String, Schema)>>,
}

impl<'a> Known<'a> {
    fn new(args: &'a DtdArgs) -> Self {
        Self { args, schemas: OnceCell::new() }
    }

    fn named(&self) -> Option<&PathBuf> {
        self.args.force_dtd.as_ref().or(self.args.dtd.as_ref())
    }

    fn schemas(&self) -> Result<&[(String, Schema)]> {
        if let Some(schemas) = self.schemas.get() {
            return Ok(schemas);
        }
        let schemas = match self.named() {
            Some(dtd) => vec![(input::name(dtd).into_owned(), Schema::new(dtd::load(dtd)?))],
            None => dtd::of_raw_files(),
        };
        Ok(self.schemas.get_or_init(|| schemas))
    }

    /// Returns whether `head` is the beginning of a file that one of the DTDs describes, or `None` if there are too few
    /// bytes to decide.
    fn begins(&self, head: &[u8]) -> Option<bool> {
        // An unreadable DTD is reported later, when the entire file is checked.
        let Ok(schemas) = self.schemas() else { return Some(true) };
        let each = schemas.iter().map(|(_, schema)| begins_as(&shared(schema), head, Class::Bits64));
        each.reduce(|one, other| if one == Some(true) || other == Some(false) { one } else { other })
            .unwrap_or(Some(false))
    }

    /// Returns the first DTD that describes a file without an error, and how to read the file (spec 5.4).
    fn recognized(&self, reader: &Reader<'_>, name: &str) -> Result<(Schema, RecognizedFile)> {
        let bytes = reader.input().unwrap_or_default();
        let mut first_error = None;
        for (dtd, schema) in self.schemas()? {
            match recognize(&shared(schema), bytes, reader.header().class) {
                Ok(Some(file)) => return Ok((schema.clone(), file)),
                Ok(None) => {}
                Err(error) => {
                    first_error.get_or_insert_with(|| {
                        let error = metatf::explain(&schema.format, &error);
                        format!("{name}: it begins like a file of {dtd}, but {error}")
                    });
                }
            }
        }
        if let Some(message) = first_error {
            return failed(message);
        }
        match Reader::from_slice(bytes) {
            Err(error) => failed(format!("{name}: {}", self.unknown(&error)?)),
            Ok(_) => usage(format!("{name} is a trace: omit --raw")),
        }
    }

    /// Returns a message that explains why a file is neither a trace nor in a known format, and what to do.
    fn unknown(&self, no_trace: &metatf::Error) -> Result<String> {
        let raw = "to read any file of records, use --raw --order little|big --dtd FILE [--skip-bytes N]";
        let schemas = self.schemas()?;
        let tried = schemas.iter().map(|(dtd, _)| dtd.as_str()).collect::<Vec<_>>().join(", ");
        let says_nothing = schemas.iter().all(|(_, schema)| schema.format.raw.is_none());
        Ok(match self.named() {
            Some(_) if says_nothing => {
                format!("{no_trace}; {tried} does not describe how files without a header begin; {raw}")
            }
            Some(_) => format!("{no_trace}; its first bytes do not match {tried}; {raw}"),
            None => {
                format!("{no_trace}; its first bytes match none of {tried}; to try another DTD, use --dtd FILE; {raw}")
            }
        })
    }
}

/// Returns the built-in DTD of a file without a header, or `None` for any other file and for input that can be read
/// only once.
pub(crate) fn dtd_of(path: &Path) -> Option<Arc<Dtd>> {
    let mut file = std::fs::File::open(path).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?;
    let args = DtdArgs::default();
    let known = Known::new(&args);
    let (head, is_raw) = metatf_cli::read_head(&mut file, &|head| known.begins(head)).ok()?;
    let mut schemas = known.schemas().ok().filter(|_| is_raw)?.iter().map(|(_, schema)| schema);
    schemas
        .find(|schema| begins_as(&shared(schema), &head, Class::Bits64) == Some(true))
        .map(|schema| schema.dtd.clone())
}

fn shared(schema: &Schema) -> FormatRef {
    FormatRef::Shared(Arc::clone(&schema.format))
}

/// Options that specify how to read a file without a header.
#[derive(Clone, Copy, Debug)]
struct Raw<'a> {
    class: Class,
    order: Order,
    section: Option<&'a str>,
    skip: u64,
    take: Option<u64>,
}

impl Raw<'_> {
    /// Opens a file with a DTD, which must be specified on the command line.
    fn open(self, path: &Path, args: &DtdArgs) -> Result<(Schema, Reader<'static>)> {
        let Some(dtd) = args.force_dtd.as_ref().or(args.dtd.as_ref()) else {
            return usage("--raw with --order requires a DTD: add --dtd FILE");
        };
        let schema = Schema::new(dtd::load(dtd)?);
        let number = self.section(&schema).map(|index| schema.section(index).map_or(0, |s| s.number))?;
        let mut reader = input::raw(path, self.class, self.order, number)?;
        if self.skip > 0 || self.take.is_some() {
            let end = self.take.map_or(u64::MAX, |take| self.skip.saturating_add(take));
            let there = reader.input().map_or(0, <[u8]>::len) as u64;
            if let Some(take) = self.take.filter(|_| there < end) {
                return failed(format!(
                    "{}: the file has only {there} bytes, too few for --skip-bytes {} and --take-bytes {take}; to read \
                     to the end of the file, omit --take-bytes",
                    input::name(path),
                    self.skip
                ));
            }
            reader.set_raw_parts(std::iter::once(self.skip..end));
        }
        Ok((schema, reader))
    }

    /// Returns the index of the section that the file contains, which is the specified section or the only possible
    /// section.
    fn section(self, schema: &Schema) -> Result<usize> {
        match (self.section, schema.dtd.sections.as_slice()) {
            (Some(name), _) => dtd::section(schema, name),
            (None, [_]) => Ok(0),
            (None, all) => {
                let elsewhere =
                    |s: &Section| schema.format.is_around_records(s.number) || schema.dtd.is_of_arrays(s.number);
                let records: Vec<_> = (0..).zip(all).skip(1).filter(|(_, s)| !elsewhere(s)).collect();
                if let [(only, _)] = *records {
                    return Ok(only);
                }
                let names: Vec<&str> = records.iter().filter_map(|(_, s)| s.name.as_deref()).collect();
                usage(format!("--raw requires --section with one of these sections: {}", names.join(", ")))
            }
        }
    }
}
