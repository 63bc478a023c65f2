"""Writes conformance vectors: builds traces of both versions around given bytes, and writes the files of a vector."""
import json
import os
import shutil
import struct
import zlib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tests", "vectors")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Trace:
    """A version 1 trace of class 2. The version, the table length, the bytes after the header and the first chunk number can be invalid."""

    def __init__(self, dtd, big=False, version=1, table=0, behind=b"", first=0, features=None, start=None):
        """`features` maps the numbers of required features to names. `start` overrides the header field."""
        pad = sum(1 << number for number in features or {}).to_bytes(8, "little")
        behind = b"".join(bytes([len(name)]) + name for _, name in sorted((features or {}).items())) + bytes(24 * table) + behind
        self.big, self.chunks, self.bases, self.records, self.first = big, [], {}, 0, first
        self.out = b"\x7fMTF" + bytes([2, 2 if big else 1, 0, version]) + pad
        self.out += b"".join(n.to_bytes(8, "big" if big else "little") for n in (table, start or 40 + len(behind), 0)) + behind
        self.chunk(dtd.encode(), kind=1)

    def chunk(self, raw, section=0, kind=0, flags=0, width=0, records=0, group=0, filtered=None, zipped=False, **header):
        """`filtered` is the content after filter 2; `header` overrides header fields. Returns the offset of the chunk header."""
        payload = raw if filtered is None else filtered
        f = dict(codec=0, filter=0 if filtered is None else 2, filtered_len=0 if filtered is None else len(payload))
        if zipped:
            payload, f["codec"] = zlib.compress(payload), 3
        f.update(raw_len=len(raw))
        f.update(header)
        base = self.bases.get(section, 0)
        head = b"MTFC" + bytes([section, kind, f["codec"], f["filter"], flags, width, 2, 2 if self.big else 1])
        head += struct.pack("<IIIIIQI", len(payload), f["raw_len"], records, group, self.first + len(self.chunks), base, f["filtered_len"])
        start = len(self.out)
        self.out += head + struct.pack("<I", crc32c(head + payload)) + payload
        self.chunks.append((start, base, section, kind, f["codec"], flags, len(payload), f["raw_len"], records))
        if kind == 0:
            self.bases[section] = base + len(raw)
        return start

    def stream(self, section, elements, group=0, first=True, width=8):
        raw = b"".join((e % 2**64).to_bytes(width, "big" if self.big else "little") for e in elements)
        return self.chunk(raw, section, 0, 1 | (2 if first else 0), width, len(elements), group)

    def finish(self, records):
        index = b"".join(struct.pack("<QQBBBBIII", *c) for c in self.chunks)
        start = self.chunk(index, kind=2)
        at = struct.pack("<Q", start)
        number = records.to_bytes(8, "big" if self.big else "little")
        return self.out[:32] + number + self.out[40:] + at + struct.pack("<I", crc32c(at)) + b"MTFE"


def trace(parts, records, word=4, order="little"):
    """Returns a version 0 trace with these sections, in order of number, the global section first."""
    number = lambda n: n.to_bytes(word, order)
    url = b"format.dtd"
    start = 16 + 3 * word + len(url) + 3 * word * (len(parts) - 1)
    table, data, at = b"", b"", start
    for section, (head, content) in parts:
        if section:
            table += number(section) + number(at + len(head)) + number(len(content))
        data += head + content
        at += len(head) + len(content)
    header = b"\x7fMTF" + bytes([word // 4, 1 if order == "little" else 2, len(url)]) + bytes(9)
    return header + number(len(parts) - 1) + number(start) + number(records) + url + table + data


def clear(*beginnings):
    """Removes the vectors whose names have one of these prefixes."""
    for kind in ("good", "bad/trace", "bad/dtd"):
        for name in os.listdir(os.path.join(ROOT, kind)):
            if name.startswith(beginnings):
                shutil.rmtree(os.path.join(ROOT, kind, name))


def write(folder, files):
    """Writes the files of a vector: bytes, text, a value as JSON, or the values of a `.jsonl` file line by line."""
    path = os.path.join(ROOT, folder)
    os.makedirs(path)
    for name, content in files.items():
        if name.endswith(".jsonl"):
            content = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in content)
        elif isinstance(content, dict):
            content = json.dumps(content, indent=1) + "\n"
        with open(os.path.join(path, name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())


def line(section, record, /, **fields):
    """Returns a record as the value of a JSON line."""
    return {"@section": section, "@record": record} | fields
