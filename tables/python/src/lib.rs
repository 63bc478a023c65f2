//! The Python module `hatf`: traces of any Meta-TF format, and heap traces.
//!
//! Tables implement [`metatf_arrow::Table`] and are exported only through Arrow's C interface: every library that
//! supports the PyCapsule protocol imports them without a copy, and no particular library is required. The interpreter
//! is released while records are decoded, and checked for signals between batches.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod capsule;
mod cell;
mod columns;
mod dtd;
mod error;
mod files;
mod heap;
mod html;
mod load;
mod names;
mod page;
mod record;
mod signals;
mod table;
mod trace;
mod tuples;
mod writer;

use pyo3::prelude::*;

/// Read and write binary traces, and analyze heap traces.
///
/// pyarrow, polars, pandas and DuckDB accept the tables of a trace directly. Records are named tuples:
///
/// >>> import hatf, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "ticks.mtf"
/// >>> dtd = hatf.Dtd("section s 1 { tick: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } }")
/// >>> with hatf.Writer(dtd, path) as w:
/// ...     for n in range(3):
/// ...         w.write("tick", n=n)
/// >>> with hatf.open(path) as t:
/// ...     for record in t:
/// ...         print(record)
/// tick(n=0)
/// tick(n=1)
/// tick(n=2)
#[pymodule]
#[pyo3(name = "hatf")]
fn hatf_module(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<error::Error>())?;
    module.add_class::<dtd::Dtd>()?;
    module.add_class::<dtd::Section>()?;
    module.add_class::<dtd::Record>()?;
    module.add_class::<dtd::Field>()?;
    module.add_class::<trace::Trace>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<files::Files>()?;
    module.add_class::<heap::Heap>()?;
    module.add_class::<page::Page>()?;
    module.add_class::<writer::Writer>()?;
    module.add_function(wrap_pyfunction!(trace::open, module)?)?;
    module.add_function(wrap_pyfunction!(files::scan, module)?)?;
    module.add_function(wrap_pyfunction!(heap::heap, module)?)?;
    module.add_function(wrap_pyfunction!(record::record, module)?)
}
