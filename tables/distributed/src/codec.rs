//! Encodes the plan of a trace table for a worker: the name of the table, the root to which trace names are relative,
//! and DataFusion's description of the files.

use std::sync::Arc;

use datafusion::common::{exec_datafusion_err, internal_err};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::from_proto::{parse_protobuf_file_scan_config, parse_table_schema_from_proto};
use datafusion_proto::physical_plan::to_proto::serialize_file_scan_config;
use datafusion_proto::physical_plan::{
    DefaultPhysicalExtensionCodec, PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::FileScanExecConf;
use object_store::path::Path as Location;
use prost::Message as _;

use crate::{TableName, TraceSource};

/// A codec for scans of [`TraceSource`].
#[derive(Debug)]
pub struct TraceCodec;

/// A scan of a table.
#[derive(Clone, PartialEq, prost::Message)]
struct TraceScan {
    #[prost(string, tag = "1")]
    table: String,
    #[prost(string, tag = "2")]
    root: String,
    #[prost(message, optional, tag = "3")]
    files: Option<FileScanExecConf>,
    /// Whether the table contains records rather than a heap.
    #[prost(bool, tag = "4")]
    records: bool,
}

impl PhysicalExtensionCodec for TraceCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        _: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wrong = |what: &dyn std::fmt::Display| exec_datafusion_err!("invalid plan of a trace table: {what}");
        let scan = TraceScan::decode(bytes).map_err(|error| wrong(&error))?;
        let files = scan.files.ok_or_else(|| wrong(&"it contains no files"))?;
        let schema = parse_table_schema_from_proto(&files)?;
        let root = Location::parse(&scan.root).map_err(|error| wrong(&error))?;
        let table = if scan.records { TableName::Records(scan.table) } else { TableName::Heap(scan.table) };
        let source = TraceSource::new(table, &root, schema);
        let codec = DefaultPhysicalExtensionCodec {};
        let context = PhysicalPlanDecodeContext::new(context, &codec);
        let files = parse_protobuf_file_scan_config(&files, &context, converter, Arc::new(source))?;
        Ok(DataSourceExec::from_data_source(files))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let scan =
            node.downcast_ref::<DataSourceExec>().and_then(|exec| exec.data_source().downcast_ref::<FileScanConfig>());
        let Some((files, source)) =
            scan.and_then(|files| Some((files, files.file_source().downcast_ref::<TraceSource>()?)))
        else {
            return internal_err!("{} is not a scan of traces", node.name());
        };
        let conf = serialize_file_scan_config(files, &DefaultPhysicalExtensionCodec {}, converter)?;
        let (table, records) = match source.table().clone() {
            TableName::Heap(table) => (table, false),
            TableName::Records(table) => (table, true),
        };
        let scan = TraceScan { table, root: source.root().to_string(), files: Some(conf), records };
        bytes.extend(scan.encode_to_vec());
        Ok(())
    }
}
