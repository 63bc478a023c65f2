//! Files without a header (spec 5.4): those that their first bytes tell, and `--raw` with the options that belong to it.

use crate::dtd::{self, DtdArgs};
use crate::failure::{Result, failed, usage};
use crate::input::{self, Opened, Reopenable};
use crate::options::{parse_class, parse_order};
use metatf::container::{Class, Order, Reader};
use metatf::dynamic::Schema;
use metatf::reader::{FormatRef, RecognizedFile, recognize};
use std::sync::Arc;

/// What a file without a header does not say itself.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct FileArgs {
    /// Read the file as one without a Meta-TF header. With --order, records begin at its first byte; else its first bytes say
    /// how it is read, as they do of each file that is not a trace
    #[arg(long)]
    pub(crate) raw: bool,
    /// With --raw: 1 for 32-bit, 2 for 64-bit [default: 2]
    #[arg(long, requires = "raw", value_parser = parse_class)]
    class: Option<Class>,
    /// With --raw: the byte order of the file, little or big (needs a DTD)
    #[arg(long, alias = "byteorder", requires = "raw", value_parser = parse_order)]
    order: Option<Order>,
    /// With --raw and --order: leave out this many bytes at the beginning of the file
    #[arg(long, value_name = "BYTES", requires_all = ["raw", "order"], default_value_t = 0, hide_default_value = true)]
    skip_bytes: u64,
    /// With --raw and --order: read this many bytes, and leave out what is behind them
    #[arg(long, value_name = "BYTES", requires_all = ["raw", "order"])]
    take_bytes: Option<u64>,
}

/// Options of commands that read one trace, or one such file.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RawArgs {
    #[command(flatten)]
    file: FileArgs,
    /// With --raw and --order: the section that the file is the content of [default: the only one]
    #[arg(long, value_name = "NAME", requires_all = ["raw", "order"])]
    section: Option<String>,
}

impl RawArgs {
    /// Whether the file is said to be one without a header.
    pub(crate) fn is_given(&self) -> bool {
        self.file.raw
    }

    /// Opens a trace, or such a file, and finds the DTD to read it by.
    pub(crate) fn open(&self, path: &str, args: &DtdArgs) -> Result<(Schema, Reader<'static>)> {
        self.file.open(path, self.section.as_deref(), args, false)
    }

    /// As [`open`](Self::open), what can be opened more than once.
    pub(crate) fn reopen(&self, file: &Reopenable, args: &DtdArgs, salvage: bool) -> Result<(Schema, Reader<'static>)> {
        let opened = self.file.open_named((file.path(), file.name()), self.section.as_deref(), args, salvage);
        opened.map_err(|failure| file.named(failure))
    }
}

impl FileArgs {
    /// Whether the caller says how the file is read.
    pub(crate) fn is_read_as_said(&self) -> bool {
        self.raw && self.order.is_some()
    }

    /// Opens a trace, or a file without a header, whose records may be said to be of a section, and finds the DTD to read it by.
    pub(crate) fn open(
        &self,
        path: &str,
        section: Option<&str>,
        args: &DtdArgs,
        salvage: bool,
    ) -> Result<(Schema, Reader<'static>)> {
        self.open_named((path, input::name(path)), section, args, salvage)
    }

    fn open_named(
        &self,
        (path, name): (&str, &str),
        section: Option<&str>,
        args: &DtdArgs,
        salvage: bool,
    ) -> Result<(Schema, Reader<'static>)> {
        let class = self.class.unwrap_or(Class::Bits64);
        if let Some(order) = self.order.filter(|_| self.raw) {
            return Raw { class, order, section, skip: self.skip_bytes, take: self.take_bytes }.open(path, args);
        }
        let mut reader = match if self.raw {
            input::raw(path, class, Order::Little, 0).map(Opened::Raw)
        } else {
            input::any(path, salvage)
        }? {
            Opened::Raw(reader) => reader,
            Opened::Trace(reader) => {
                let schema = dtd::find(&reader, name, args, salvage)?;
                return Ok((schema, reader));
            }
        };
        match Recognized::find(&reader, name, args)? {
            Recognized::As(schema, file) => {
                reader.set_raw_file(file.order, file.section, file.parts);
                Ok((schema, reader))
            }
            // Behind damage there may be chunks of a trace.
            Recognized::No(_) if salvage && !self.raw => {
                let reader = input::trace(path, true)?;
                let schema = dtd::find(&reader, name, args, true)?;
                Ok((schema, reader))
            }
            Recognized::No(why) => failed(format!("{name}: {why}")),
        }
    }
}

/// What the first bytes of a file tell.
enum Recognized {
    /// It is read by this DTD.
    As(Schema, RecognizedFile),
    /// It is not known, for this reason.
    No(String),
}

impl Recognized {
    /// Asks the DTD that is named, or else all that are built in.
    fn find(reader: &Reader<'_>, name: &str, args: &DtdArgs) -> Result<Self> {
        let bytes = reader.input().unwrap_or_default();
        let class = reader.header().class;
        let named = args.force_dtd.as_ref().or(args.dtd.as_ref());
        let schemas = match named {
            Some(dtd) => vec![(dtd.clone(), Schema::new(dtd::load(dtd)?))],
            None => dtd::of_raw_files(),
        };
        let mut found = Vec::new();
        for (dtd, schema) in &schemas {
            let file = recognize(&FormatRef::Shared(Arc::clone(&schema.format)), bytes, class);
            match file.map_err(|e| (metatf::explain(&schema.format, &e).to_string(), dtd)) {
                Ok(file) => found.extend(file.map(|file| (dtd, schema, file))),
                Err((error, dtd)) => return failed(format!("{name}: it begins as a file of {dtd} does, but {error}")),
            }
        }
        match found.as_slice() {
            [(_, schema, file)] => Ok(Self::As((*schema).clone(), file.clone())),
            [] => Ok(Self::No(unknown(bytes, named, &schemas))),
            several => {
                let names: Vec<&str> = several.iter().map(|(dtd, ..)| dtd.as_str()).collect();
                usage(format!("{name}: it may be a file of {}: name the DTD (--dtd NAME)", names.join(" or of ")))
            }
        }
    }
}

/// Why a file is not known, and what can be done.
fn unknown(bytes: &[u8], named: Option<&String>, schemas: &[(String, Schema)]) -> String {
    let no_trace = Reader::from_slice(bytes).err().map_or_else(String::new, |error| error.to_string());
    let raw = "--raw --order little|big --dtd FILE [--skip-bytes N] reads any file of records";
    match named {
        Some(dtd) if schemas.iter().all(|(_, schema)| schema.format.raw.is_none()) => {
            format!("{no_trace}; {dtd} does not say how files without a header begin; {raw}")
        }
        Some(dtd) => format!("{no_trace}; nor does it begin as a file of {dtd} does; {raw}"),
        None => {
            let tried: Vec<&str> = schemas.iter().map(|(dtd, _)| dtd.as_str()).collect();
            format!(
                "{no_trace}; nor does it begin as a file of {} does; --dtd FILE tries another DTD, and {raw}",
                tried.join(", ")
            )
        }
    }
}

/// What the caller says of a file without a header.
#[derive(Clone, Copy, Debug)]
struct Raw<'a> {
    class: Class,
    order: Order,
    section: Option<&'a str>,
    skip: u64,
    take: Option<u64>,
}

impl Raw<'_> {
    /// Opens a file by a DTD, which is given, or forced.
    fn open(self, path: &str, args: &DtdArgs) -> Result<(Schema, Reader<'static>)> {
        let Some(dtd) = args.force_dtd.as_ref().or(args.dtd.as_ref()) else {
            return usage("--raw with --order needs a DTD: name one (--dtd FILE)");
        };
        let schema = Schema::new(dtd::load(dtd)?);
        let number = self.section(&schema).map(|index| schema.section(index).map_or(0, |s| s.number))?;
        let mut reader = input::raw(path, self.class, self.order, number)?;
        if self.skip > 0 || self.take.is_some() {
            let end = self.take.map_or(u64::MAX, |take| self.skip.saturating_add(take));
            let there = reader.input().map_or(0, <[u8]>::len) as u64;
            if let Some(take) = self.take.filter(|_| there < end) {
                return failed(format!(
                    "{}: it has {there} bytes, too few for --skip-bytes {} and --take-bytes {take}; without --take-bytes it is read to its end",
                    input::name(path),
                    self.skip
                ));
            }
            reader.set_raw_parts(std::iter::once(self.skip..end));
        }
        Ok((schema, reader))
    }

    /// Returns the index of the section that the file holds: the one named, or the only one.
    fn section(self, schema: &Schema) -> Result<usize> {
        match (self.section, schema.dtd.sections.as_slice()) {
            (Some(name), _) => dtd::section(schema, name),
            (None, [_]) => Ok(0),
            (None, all) => {
                let records = (0..).zip(all).skip(1).filter(|(_, s)| !schema.format.is_around_records(s.number));
                if let [(only, _)] = *records.collect::<Vec<_>>() {
                    return Ok(only);
                }
                let names: Vec<&str> = all.iter().filter_map(|s| s.name.as_deref()).collect();
                usage(format!("--raw needs --section, one of: {}", names.join(", ")))
            }
        }
    }
}
