//! Selects the records to print (`--section`, `--record`, `--where`).

use super::condition::Condition;
use crate::dtd;
use crate::failure::{Result, usage};
use metatf::dynamic::{OwnedRecord, Schema, Trace};
use metatf::reader::{At, Event};

/// The selected records.
#[derive(Clone)]
pub(crate) struct Select {
    /// Whether each section is selected, by index; `None` if all sections are selected.
    sections: Option<Vec<bool>>,
    /// Whether each record is selected, by index; `None` if all records are selected.
    records: Option<Vec<bool>>,
    condition: Option<Condition>,
    all: bool,
}

impl Select {
    pub(crate) fn new(
        schema: &Schema,
        sections: &[String],
        records: &[String],
        condition: Option<&str>,
        all: bool,
    ) -> Result<Self> {
        let mut select = Self { sections: None, records: None, condition: None, all };
        for name in sections {
            let index = dtd::section(schema, name)?;
            if !all && schema.section(index).is_some_and(|s| s.stream.is_some()) {
                return usage(format!("--section {name}: elements of stream sections are printed only with --all"));
            }
            let wanted = select.sections.get_or_insert_with(|| vec![false; schema.dtd.sections.len()]);
            if let Some(wanted) = wanted.get_mut(index) {
                *wanted = true;
            }
        }
        for name in records {
            select.add_record(schema, name)?;
        }
        select.condition = condition.map(|text| Condition::new(schema, text)).transpose()?;
        Ok(select)
    }

    /// Selects all records with this name, which may be in several sections.
    fn add_record(&mut self, schema: &Schema, name: &str) -> Result<()> {
        let wanted = self.records.get_or_insert_with(|| vec![false; schema.dtd.records.len()]);
        let mut found = None;
        for ((i, record), wanted) in schema.dtd.records.iter().enumerate().zip(wanted) {
            if record.name == name {
                *wanted = true;
                found = Some(i >= 3 && record.tag.is_some());
            }
        }
        match found {
            None => {
                let names: Vec<&str> = schema.dtd.records.iter().map(|r| r.name.as_str()).collect();
                usage(format!("--record {name}: no such record in the DTD; available records: {}", names.join(", ")))
            }
            Some(false) if !self.all => usage(format!("--record {name}: these records are printed only with --all")),
            _ => Ok(()),
        }
    }

    /// Returns whether everything is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.sections.is_none() && self.records.is_none() && self.condition.is_none()
    }

    /// Skips the groups whose times show that no data record matches the condition. Reading must not have begun.
    ///
    /// # Errors
    /// Returns an error if the times in the trace are invalid.
    pub(crate) fn skip_groups(&self, trace: &mut Trace<'_>) -> metatf::Result<()> {
        let Some(condition) = self.condition.as_ref().filter(|_| !self.all) else { return Ok(()) };
        let reader = trace.reader_mut();
        let times = reader.group_times()?.and_then(|times| condition.times(&times.leaves));
        times.map_or(Ok(()), |times| reader.only_times(times).map(drop))
    }

    /// Returns whether the event may have to be printed. Uses only information available before decoding.
    pub(crate) fn wants(&self, event: Event) -> bool {
        if !self.all && !matches!(event, Event::Record(_)) {
            return false;
        }
        match event {
            Event::Record(at) | Event::Element(at, _) => self.lists(at),
            Event::Comment(at) | Event::Metadata(at, _) | Event::Section(at, _) => {
                self.condition.is_none() && self.lists(at)
            }
            Event::Group(_) => self.condition.is_none() && self.records.is_none(),
            Event::Reset(section) => self.condition.is_none() && self.records.is_none() && self.has_section(section),
        }
    }

    /// Returns whether the condition holds for a record.
    pub(crate) fn holds(&mut self, event: Event, owned: &OwnedRecord) -> bool {
        match (&mut self.condition, event) {
            (Some(condition), Event::Record(at) | Event::Element(at, _)) => condition.holds(at, owned),
            _ => true,
        }
    }

    fn lists(&self, at: At) -> bool {
        self.has_section(at.section)
            && self.records.as_ref().is_none_or(|r| r.get(usize::from(at.record)).copied().unwrap_or(false))
    }

    fn has_section(&self, section: usize) -> bool {
        self.sections.as_ref().is_none_or(|s| s.get(section).copied().unwrap_or(false))
    }
}
