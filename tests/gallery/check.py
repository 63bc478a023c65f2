"""Makes files of the formats in dtds/gallery, and compares the values that `metatfc dump` prints with those of other readers.

    check.py files FOLDER                makes files, and prints a line for each: the name of its DTD, its byte order and its path
    check.py values FORMAT FILE LINES    compares the JSON lines of a file

The other readers are Python's modules gzip, zlib and zoneinfo, and for pictures a decoder of LZW in this file."""
import datetime
import gzip
import io
import json
import os
import struct
import sys
import sysconfig
import zlib
import zoneinfo

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia"]


def files(folder):
    for name, data, options in [
        ("empty", b"", {"mtime": 0}),
        ("text", b"many words " * 5000, {"mtime": 1_700_000_000, "filename": "words.txt"}),
        ("best", os.urandom(100_000), {"mtime": 1, "compresslevel": 9}),
    ]:
        path = os.path.join(folder, f"{name}.gz")
        buffer = io.BytesIO()
        with gzip.GzipFile(fileobj=buffer, mode="wb", **({"filename": ""} | options)) as file:
            file.write(data)
        write(path, buffer.getvalue())
        print("gzip little", path)
    # All optional parts of a header.
    raw = zlib.compressobj(wbits=-15)
    body = raw.compress(b"all parts") + raw.flush()
    head = b"\x1f\x8b\x08\x1f" + struct.pack("<IBB", 1_600_000_000, 2, 3) + b"\x05\0extra" + b"name\0" + b"a remark\0"
    head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    path = os.path.join(folder, "all.gz")
    write(path, head + body + struct.pack("<II", zlib.crc32(b"all parts"), 9))
    print("gzip little", path)
    for zone in ZONES:
        for root in zoneinfo.TZPATH:
            path = os.path.join(root, zone)
            if os.path.exists(path):
                print("tzif big", path)
                break
    found = [os.path.join(folder, "made.gif")]
    write(found[0], picture())
    library = sysconfig.get_paths()["stdlib"]
    for at, _, names in os.walk(library):
        found += [os.path.join(at, name) for name in names if name.endswith(".gif")]
    for path in sorted(found)[:12]:
        print("gif little", path)


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def picture():
    """Returns a picture of 300 x 2 pixels in several blocks: one clear code before each pixel, and bytes after its end."""
    bits = []
    for pixel in range(600):
        bits += [0, 0, 1, *(pixel % 4 >> bit & 1 for bit in range(3))]
    bits += [1, 0, 1]
    codes = bytes(sum(bit << i for i, bit in enumerate(bits[at : at + 8])) for at in range(0, len(bits), 8))
    blocks = b"".join(bytes([len(codes[at : at + 255])]) + codes[at : at + 255] for at in range(0, len(codes), 255)) + b"\0"
    palette = bytes(range(12))
    image = b"," + struct.pack("<HHHHBB", 0, 0, 300, 2, 0, 2) + blocks
    comment = b"!\xfe" + b"\x05hello\0"
    return b"GIF89a" + struct.pack("<HHBBB", 300, 2, 0x81, 0, 0) + palette + comment + image + b";after"


def unpacked(code_size, data):
    """Returns the pixels of a picture that is compressed with LZW."""
    clear, number, bits, width, at = 1 << code_size, int.from_bytes(data, "little"), 8 * len(data), code_size + 1, 0
    table, before, pixels = [], None, bytearray()
    while at + width <= bits:
        code = number >> at & (1 << width) - 1
        at += width
        if code == clear:
            table = [bytes([i]) for i in range(clear)] + [b"", b""]
            width, before = code_size + 1, None
            continue
        if code == clear + 1:
            break
        entry = table[code] if code < len(table) else before + before[:1]
        pixels += entry
        if before is not None and len(table) < 4096:
            table.append(before + entry[:1])
        before = entry
        if len(table) == 1 << width and width < 12:
            width += 1
    return bytes(pixels)


def values(format, path, lines):
    with open(path, "rb") as file:
        content = file.read()
    with open(lines, encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    {"gzip": check_gzip, "tzif": check_tzif, "gif": check_gif}[format](content, records)


def check_gzip(content, records):
    [member] = records
    data = zlib.decompress(bytes.fromhex(member["data"]), wbits=-15)
    assert data == gzip.decompress(content)
    assert member["crc"] == zlib.crc32(data) and member["size"] == len(data)
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        file.read()
        assert member["mtime"] == file.mtime
    if content[3] == 0x1F:
        assert (member["extra"]["fields"], member["name"], member["remark"]) == (b"extra".hex(), "name", "a remark")


def check_tzif(content, records):
    [zone] = records
    wide = zone["wide"]
    key = zoneinfo.ZoneInfo.from_file(io.BytesIO(content))
    names = bytes.fromhex(wide["names"])
    assert len(wide["times"]) == len(wide["indices"]) and wide["rule"].encode() == content.rstrip(b"\n").rsplit(b"\n", 1)[1]
    for time, index in zip(wide["times"], wide["indices"]):
        if abs(time) > 60_000_000_000:
            continue
        kind = wide["types"][index]
        local = (datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(seconds=time)).astimezone(key)
        assert local.utcoffset().total_seconds() == kind["offset"], (time, kind)
        assert local.tzname().encode() == names[kind["name"] :].split(b"\0", 1)[0]


def check_gif(content, records):
    [head] = [record for record in records if record["@section"] == "head"]
    assert (head["columns"], head["rows"]) == struct.unpack("<HH", content[6:10])
    images = [record for record in records if record["@record"] == "image"]
    assert images and records[-2]["@record"] == "end" or records[-1]["@record"] == "end"
    for image in images:
        pixels = unpacked(image["code_size"], bytes.fromhex("".join(image["blocks"])))
        assert image["blocks"][-1] == "" and len(pixels) == image["columns"] * image["rows"], len(pixels)
    [end] = [record for record in records if record["@record"] == "end"]
    assert content.endswith(b";" + bytes.fromhex(end["appended"]))


if __name__ == "__main__":
    {"files": files, "values": values}[sys.argv[1]](*sys.argv[2:])
