//! Exports and imports tables through Arrow's C interface, in the capsules that Python libraries exchange.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_schema::Schema;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::CStr;

use crate::error;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// Returns a stream of batches as a capsule. If the consumer does not release the stream, the capsule does.
pub(crate) fn of_stream(py: Python<'_>, batches: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), STREAM)
}

/// Returns a schema as a capsule.
pub(crate) fn of_schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(error::plain)?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// Returns the batches of another library's table.
pub(crate) fn stream_of(table: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let capsule = table.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: by the protocol, a capsule of this name contains a stream, which does not move while the capsule exists,
    // and every consumer leaves a released stream behind, as `from_raw` does.
    let stream = unsafe { ArrowArrayStreamReader::from_raw(stream.as_ptr()) };
    stream.map_err(error::plain)
}
