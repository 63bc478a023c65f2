//! Files without a header (spec 5.4): `--raw` and the options that belong to it.

use crate::dtd::{self, DtdArgs};
use crate::failure::{Result, failed, usage};
use crate::input::{self, Reopenable};
use crate::options::{parse_class, parse_order};
use metatf::container::{Class, Order, Reader};
use metatf::dynamic::Schema;

/// What a file without a header does not say itself.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct FileArgs {
    /// Read a file without a header, which holds one section (needs --class, --order and a DTD)
    #[arg(long, requires_all = ["class", "order"])]
    pub(crate) raw: bool,
    /// With --raw: 1 for 32-bit, 2 for 64-bit
    #[arg(long, requires = "raw", value_parser = parse_class)]
    class: Option<Class>,
    /// With --raw: little or big
    #[arg(long, alias = "byteorder", requires = "raw", value_parser = parse_order)]
    order: Option<Order>,
    /// With --raw: leave out this many bytes at the beginning of the file
    #[arg(long, value_name = "BYTES", requires = "raw", default_value_t = 0, hide_default_value = true)]
    skip_bytes: u64,
    /// With --raw: read this many bytes, and leave out what is behind them
    #[arg(long, value_name = "BYTES", requires = "raw")]
    take_bytes: Option<u64>,
}

/// Options of commands that read one trace, or one such file.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RawArgs {
    #[command(flatten)]
    file: FileArgs,
    /// With --raw: the section that the file is the content of [default: the only one]
    #[arg(long, value_name = "NAME", requires = "raw")]
    section: Option<String>,
}

impl RawArgs {
    /// Returns what is given of a file without a header; `None` without `--raw`.
    pub(crate) fn given(&self) -> Result<Option<Raw<'_>>> {
        self.file.given(self.section.as_deref())
    }

    /// Opens a trace, or such a file, and finds the DTD to read it by.
    pub(crate) fn open(&self, path: &str, args: &DtdArgs) -> Result<(Schema, Reader<'static>)> {
        if let Some(raw) = self.given()? {
            return raw.open(path, args);
        }
        let reader = input::trace(path, false)?;
        let schema = dtd::find(&reader, input::name(path), args, false)?;
        Ok((schema, reader))
    }

    /// As [`open`](Self::open), what can be opened more than once.
    pub(crate) fn reopen(&self, file: &Reopenable, args: &DtdArgs, salvage: bool) -> Result<(Schema, Reader<'static>)> {
        if let Some(raw) = self.given()? {
            return raw.open(file.path(), args).map_err(|failure| file.named(failure));
        }
        let reader = file.open(salvage)?;
        let schema = dtd::find(&reader, file.name(), args, salvage)?;
        Ok((schema, reader))
    }
}

impl FileArgs {
    /// Returns what is given of a file without a header, with the section it holds; `None` without `--raw`.
    pub(crate) fn given<'a>(&self, section: Option<&'a str>) -> Result<Option<Raw<'a>>> {
        if !self.raw {
            return Ok(None);
        }
        let Some((class, order)) = self.class.zip(self.order) else { return usage("--raw needs --class and --order") };
        Ok(Some(Raw { class, order, section, skip: self.skip_bytes, take: self.take_bytes }))
    }
}

/// What the caller says of a file without a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    class: Class,
    order: Order,
    section: Option<&'a str>,
    skip: u64,
    take: Option<u64>,
}

impl Raw<'_> {
    /// Opens a file by a DTD, which is given, or forced.
    pub(crate) fn open(self, path: &str, args: &DtdArgs) -> Result<(Schema, Reader<'static>)> {
        let Some(dtd) = args.force_dtd.as_ref().or(args.dtd.as_ref()) else {
            return usage("--raw needs a DTD: name one (--dtd FILE)");
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

    /// Returns the index of the section that the file holds: the one named, or the only one whose records are not those of byte
    /// arrays.
    pub(crate) fn section(self, schema: &Schema) -> Result<usize> {
        let leaves = || schema.dtd.records.iter().flat_map(|record| &record.leaves);
        let nested = |number: u8| leaves().any(|leaf| leaf.section == Some(number));
        let sections = schema.dtd.sections.iter().enumerate().skip(1);
        let all: Vec<usize> = sections.filter(|(_, s)| !nested(s.number)).map(|(index, _)| index).collect();
        match (self.section, all.as_slice()) {
            (Some(name), _) => dtd::section(schema, name),
            (None, []) => Ok(0),
            (None, [only]) => Ok(*only),
            (None, all) => {
                let names: Vec<&str> = all.iter().filter_map(|index| schema.section(*index)?.name.as_deref()).collect();
                usage(format!("--raw needs --section, one of: {}", names.join(", ")))
            }
        }
    }
}
