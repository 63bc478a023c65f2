//! Files without a header (spec 5.4): `--raw` and the options that belong to it.

use crate::dtd::{self, DtdArgs};
use crate::failure::{Result, usage};
use crate::input;
use crate::options::{parse_class, parse_order};
use metatf::container::{Class, Order, Reader};
use metatf::dynamic::Schema;

/// Options of commands that read one trace.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RawArgs {
    /// Read a file without a header, which holds one section (needs --class, --order and a DTD)
    #[arg(long, requires_all = ["class", "order"])]
    raw: bool,
    /// With --raw: 1 for 32-bit, 2 for 64-bit
    #[arg(long, requires = "raw", value_parser = parse_class)]
    class: Option<Class>,
    /// With --raw: little or big
    #[arg(long, alias = "byteorder", requires = "raw", value_parser = parse_order)]
    order: Option<Order>,
    /// With --raw: the section that the file is the content of [default: the only one]
    #[arg(long, value_name = "NAME", requires = "raw")]
    section: Option<String>,
}

impl RawArgs {
    /// Returns what is given of a file without a header; `None` without `--raw`.
    pub(crate) fn given(&self) -> Result<Option<Raw<'_>>> {
        if !self.raw {
            return Ok(None);
        }
        Raw::new(self.class, self.order, self.section.as_deref()).map(Some)
    }
}

/// What the caller says of a file without a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    class: Class,
    order: Order,
    section: Option<&'a str>,
}

impl<'a> Raw<'a> {
    /// Puts options together.
    pub(crate) fn new(class: Option<Class>, order: Option<Order>, section: Option<&'a str>) -> Result<Self> {
        let Some((class, order)) = class.zip(order) else { return usage("--raw needs --class and --order") };
        Ok(Self { class, order, section })
    }

    /// Opens a file by a DTD, which is given, or forced.
    pub(crate) fn open(self, path: &str, args: &DtdArgs) -> Result<(Schema, Reader<'static>)> {
        let Some(dtd) = args.force_dtd.as_ref().or(args.dtd.as_ref()) else {
            return usage("--raw needs a DTD: give one with --dtd FILE");
        };
        let schema = Schema::new(dtd::load(dtd)?);
        let number = self.section(&schema).map(|index| schema.section(index).map_or(0, |s| s.number))?;
        Ok((schema, input::raw(path, self.class, self.order, number)?))
    }

    /// Returns the index of the section that the file holds: the one named, or the only one.
    pub(crate) fn section(self, schema: &Schema) -> Result<usize> {
        match (self.section, schema.dtd.sections.as_slice()) {
            (Some(name), _) => dtd::section(schema, name),
            (None, [_]) => Ok(0),
            (None, [_, _]) => Ok(1),
            (None, all) => {
                let names: Vec<&str> = all.iter().filter_map(|s| s.name.as_deref()).collect();
                usage(format!("--raw needs --section, one of: {}", names.join(", ")))
            }
        }
    }
}
