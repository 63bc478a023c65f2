//! Reading the groups of a trace on several threads.

use super::{Schema, Trace};
use crate::dynamic::{Nested, OwnedRecord};
use crate::parallel::{Grouped, ParGroups};
use crate::reader::RecordReader;

impl<'t> Grouped<'t> for Trace<'t> {
    type Group<'g> = Trace<'g>;
    type Shared = Schema;

    fn shared(&self) -> Schema {
        self.schema.clone()
    }

    fn group<'g>(shared: &Schema, reader: RecordReader<'g>) -> Trace<'g> {
        let nested = Nested::new(reader.order());
        Trace {
            has_strings: shared.has_strings(),
            schema: shared.clone(),
            reader,
            record: OwnedRecord::default(),
            nested,
        }
    }

    fn reader_of<'r, 'g: 'r>(group: &'r mut Trace<'g>) -> &'r mut RecordReader<'g> {
        &mut group.reader
    }

    fn whole(&mut self) -> &mut Trace<'t> {
        self
    }
}

impl<'t> Trace<'t> {
    /// Returns the trace's groups, to be read by several threads. Afterwards, the trace is at its end.
    ///
    /// The result of `work` for each group is passed to `take` on the current thread:
    ///
    /// ```
    /// # use metatf::container::WriteOptions;
    /// # use metatf::dynamic::{Item, Line, Schema, OwnedRecord, Trace, Writer};
    /// # let schema = Schema::parse("ticks.dtd", b"section s 1 { tick: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } }")?;
    /// # let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
    /// # let mut owned = OwnedRecord::default();
    /// # for n in 0..3 {
    /// #     writer.write(&Line::Group, &owned)?;
    /// #     let line = schema.read_json(format!("{{\"@section\":\"s\",\"@record\":\"tick\",\"n\":{n}}}").as_bytes(), &mut owned)?;
    /// #     writer.write(&line, &owned)?;
    /// # }
    /// # let file = writer.finish()?;
    /// let mut trace = Trace::from_slice(&file)?;
    /// let mut of_groups = Vec::new();
    /// trace.par_groups().threads(2).ordered(
    ///     |group| {
    ///         let mut sum = 0;
    ///         while let Some(entry) = group.next_entry()? {
    ///             if let Some(Item::Number(n)) = entry.record.get(0) {
    ///                 sum += n;
    ///             }
    ///         }
    ///         Ok::<_, metatf::Error>(sum)
    ///     },
    ///     |sum| {
    ///         of_groups.push(sum);
    ///         Ok(())
    ///     },
    /// )?;
    /// assert_eq!(of_groups, [0, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn par_groups(&mut self) -> ParGroups<'_, 't, Self> {
        ParGroups::new(self)
    }
}
