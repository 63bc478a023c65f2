# Converts raw records on standard input to a Parquet file on standard output, with each column in its smallest encoding
# and zstd at the level given as argument. The file is read back and compared. Without pyarrow, the output is empty.
import sys
from array import array

raw = sys.stdin.buffer.read()
try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    sys.exit(0)

level = int(sys.argv[1])
words = array("q", raw)
names = ["tag", "size", "address", "old"]
columns = [pa.Array.from_buffers(pa.int64(), len(words) // 4, [None, pa.py_buffer(words[i::4])]) for i in range(4)]


def write(columns, encodings, level):
    out = pa.BufferOutputStream()
    pq.write_table(
        pa.table(columns),
        out,
        compression="zstd",
        compression_level=level,
        use_dictionary=[name for name, encoding in encodings.items() if encoding == "DICTIONARY"],
        column_encoding={name: encoding for name, encoding in encodings.items() if encoding != "DICTIONARY"},
        row_group_size=max(1, len(words) // 4),
        dictionary_pagesize_limit=1 << 24,
        write_statistics=False,
    )
    return out.getvalue()


best = {}
for name, column in zip(names, columns):
    encodings = ["DICTIONARY", "PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]
    best[name] = min(encodings, key=lambda encoding: len(write({name: column}, {name: encoding}, min(level, 9))))
file = write(dict(zip(names, columns)), best, level)
table = pq.read_table(pa.BufferReader(file))
again = array("q", bytes(8 * len(words)))
for i, name in enumerate(names):
    again[i::4] = array("q", table.column(name).combine_chunks().buffers()[1].to_pybytes())
if again != words:
    sys.exit("The records read from Parquet differ")
sys.stdout.buffer.write(file)
