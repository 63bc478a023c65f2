"""Makes files of the formats in dtds/gallery, and compares the values that `metatfc dump` prints with those of other readers.

    check.py files FOLDER                makes files, and prints a line for each: the name of its DTD, its byte order and its path
    check.py values FORMAT FILE LINES    compares the JSON lines of a file

The other readers are the modules gettext, gzip, marshal, sqlite3, wave, zipfile, zlib and zoneinfo of Python, and curses where it is available. For all other formats, this file contains a decoder."""
import array
import ast
import contextlib
import datetime
import gettext
import gzip
import hashlib
import importlib.util
import io
import json
import marshal
import os
import py_compile
import shutil
import sqlite3
import struct
import subprocess
import sys
import sysconfig
import tempfile
import wave
import zipfile
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
    pictures = [os.path.join(at, name) for at, _, names in os.walk(library) for name in names if name.endswith(".png")]
    for found in [*generated(folder), *(("png", "big", path) for path in sorted(pictures)[:8])]:
        print(*found)


def generated(folder):
    """Returns the name of the DTD, the byte order and the path of each made file."""
    found = []

    def add(format, order, name, content):
        path = os.path.join(folder, name)
        write(path, content)
        found.append((format, order, path))

    for name, channels, width in [("mono", 1, 1), ("odd", 1, 3), ("stereo", 2, 2)]:
        buffer = io.BytesIO()
        with wave.open(buffer, "wb") as sound:
            sound.setparams((channels, width, 8000, 0, "NONE", ""))
            sound.writeframes(os.urandom(channels * width * 101))
        # Python does not pad the last chunk in every version.
        content = buffer.getvalue()
        content += bytes(len(content) % 2)
        add("wav", "little", f"{name}.wav", content[:4] + struct.pack("<I", len(content) - 8) + content[8:])
    data = b"note" + struct.pack("<I", 3) + b"odd\0"
    head = struct.pack("<IHHIIHH", 18, 3, 1, 8000, 32000, 4, 32) + b"\0\0"
    body = b"WAVEfmt " + head + data + b"data" + struct.pack("<If", 4, 0.5)
    add("wav", "little", "float.wav", b"RIFF" + struct.pack("<I", len(body)) + body)

    packets = b""
    for count in [1, 30, 2]:
        packets += struct.pack(">HHIIIIBBH", 5, count, 1000, 1_700_000_000, 5, count, 0, 1, 0x4064)
        for i in range(count):
            packets += struct.pack(">IIIHHIIIIHHBBBBHHBBH", 0x0A000001 + i, 0xC0A80001, 0, 1, 2, 3 + i, 1500, 10, 90, 443, 50_000 + i, 0, 0x1B, 6, 0, 64500, 64501, 24, 16, 0)
    add("netflow5", "big", "flows.netflow", packets)

    for order, mark in [("little", "<"), ("big", ">")]:
        events = [(1, 30, 1), (4, 4, 458756), (0, 0, 0), (2, 0, -5), (3, 1, 700), (0, 0, 0)]
        add("evdev", order, f"{order}.evdev", b"".join(struct.pack(mark + "qqHHi", 1_700_000_000 + i, i, *event) for i, event in enumerate(events)))
    logins = [(2, 0, b"~", b"~~", b"reboot", b"6.1.0"), (7, 4242, b"pts/0", b"ts/0", b"a" * 32, b"h" * 256), (8, 4242, b"pts/0", b"ts/0", b"", b"")]
    for order, mark in [("little", "<"), ("big", ">")]:
        add("utmp", order, f"{order}.wtmp", b"".join(struct.pack(mark + UTMP, *login, 0, 15, 7, 1_700_000_000, 99, b"\x7f\0\0\x01") for login in logins))

    for version in [2, 3, 4]:
        add("git-index", "big", f"v{version}.index", git_index(version))
    names = sorted(os.urandom(20) for _ in range(300))
    fanout = [sum(name[0] <= first for name in names) for first in range(256)]
    offsets = [12 + 100 * i for i in range(299)] + [1 << 31]
    table = struct.pack(">II256I", 0xFF744F63, 2, *fanout) + b"".join(names) + struct.pack(">300I300I", *range(300), *offsets) + struct.pack(">Q", 1 << 32)
    table += bytes(20)
    add("git-pack-index", "big", "large.idx", table + hashlib.sha1(table).digest())
    add("git-pack-index", "big", "empty.idx", struct.pack(">II", 0xFF744F63, 2) + bytes(1024) + bytes(40))

    for name, header, palette in [
        ("core", struct.pack("<IHHHH", 12, 3, 2, 1, 24), b""),
        ("info", struct.pack("<IiiHHIIiiII", 40, 8, -2, 1, 8, 0, 16, 2835, 2835, 4, 0), bytes(16)),
        ("v5", struct.pack("<IiiHHIIiiII", 124, 2, 3, 1, 24, 0, 24, 0, 0, 0, 0) + bytes(84), b"gap"),
    ]:
        offset = 14 + len(header) + len(palette)
        pixels = os.urandom(24 if name == "v5" else 24 if name == "core" else 16)
        add("bmp", "little", f"{name}.bmp", struct.pack("<2sIII", b"BM", offset + len(pixels), 0, offset) + header + palette + pixels)

    rows = b"".join(b"\0" + os.urandom(6) for _ in range(50))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", 2, 50, 8, 2, 0, 0, 0)), (b"gAMA", struct.pack(">I", 45455)), (b"pHYs", struct.pack(">IIB", 2835, 2835, 1))]
    chunks += [(b"tIME", struct.pack(">HBBBBB", 2026, 11, 27, 2, 25, 4)), (b"tEXt", b"Comment\0words"), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    add("png", "big", "all.png", b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*chunk) for chunk in chunks))

    add("au", "big", "short.au", struct.pack(">4sIIIII", b".snd", 24, 6, 3, 8000, 1) + b"\0\1\0\2\xff\xff")
    add("au", "big", "named.au", struct.pack(">4sIIIII", b".snd", 40, 0xFFFFFFFF, 1, 44100, 2) + b"a few words\0\0\0\0\0" + os.urandom(100))
    for form, extra in [(b"AIFF", b""), (b"AIFC", b"NONE\x0enot compressed\0")]:
        common = struct.pack(">HIHHQ", 1, 5, 16, 16398, 44100 << 48) + extra
        chunks = [(b"COMM", common), (b"NAME", b"odd"), (b"SSND", struct.pack(">II5h", 0, 0, -1, 0, 1, 2, 3))]
        body = form + (b"FVER" + struct.pack(">II", 4, 0xA2805140) if extra else b"")
        body += b"".join(name + struct.pack(">I", len(data)) + data + bytes(len(data) % 2) for name, data in chunks)
        add("aiff", "big", f"{form.decode()}.aiff", b"FORM" + struct.pack(">I", len(body)) + body)

    items = array.array("H", range(12)).tobytes()
    for major, code in [(1, "<H"), (2, "<I"), (3, "<I")]:
        head = repr({"descr": "<u2", "fortran_order": False, "shape": (3, 4)}).encode()
        head += b" " * (-(len(head) + 11) % 64) + b"\n"
        add("npy", "little", f"v{major}.npy", b"\x93NUMPY" + bytes([major, 0]) + struct.pack(code, len(head)) + head + items)

    stream = struct.pack(">HH", 4096, 4096) + (14).to_bytes(3, "big") + (9000).to_bytes(3, "big") + (44100 << 44 | 1 << 41 | 15 << 36 | 1_000_000).to_bytes(8, "big") + os.urandom(16)
    comment = struct.pack("<I4sI", 4, b"made", 1) + struct.pack("<I", 7) + b"TITLE=x"
    blocks = [(0, stream), (3, os.urandom(18)), (4, comment), (1, bytes(500))]
    metadata = b"".join(bytes([kind | (i == 3) << 7]) + len(data).to_bytes(3, "big") + data for i, (kind, data) in enumerate(blocks))
    add("flac", "big", "made.flac", b"fLaC" + metadata + b"\xff\xf8" + os.urandom(100))
    add("flac", "big", "single.flac", b"fLaC\x80\0\0\x22" + stream)

    for name, version in [("made.ttf", 0x00010000), ("made.otf", 0x4F54544F)]:
        tables = [(b"cmap", b"1234"), (b"head", b"5678" * 9), (b"name", b"abc\0")]
        head, body = struct.pack(">IHHHH", version, 3, 32, 1, 16), b""
        for table, data in tables:
            total = sum(struct.unpack(f">{len(data) // 4}I", data)) & 0xFFFFFFFF
            head += struct.pack(">4sIII", table, total, 60 + len(body), len(data))
            body += data
        add("sfnt", "big", name, head + body)

    for name, kind, palette, bits, data in [("palette", 1, 2, 8, b"\0\1\1\0"), ("rgb", 2, 0, 24, os.urandom(12)), ("rle", 10, 0, 24, b"\x83abc")]:
        head = struct.pack("<BBBHHBHHHHBB", 4, palette > 0, kind, 0, palette, 24 if palette else 0, 0, 0, 2, 2, bits, 0x20)
        add("tga", "little", f"{name}.tga", head + b"note" + os.urandom(3 * palette) + data + bytes(8) + b"TRUEVISION-XFILE.\0")

    for size in [512, 4096, 65536]:
        path = os.path.join(folder, f"{size}.sqlite")
        with contextlib.closing(sqlite3.connect(path)) as base:
            base.execute(f"pragma page_size = {size}")
            base.execute("pragma user_version = -7")
            base.execute("pragma application_id = 252006673")
            base.execute("create table words (id integer primary key, word text)")
            base.executemany("insert into words (word) values (?)", [("word" * i,) for i in range(100)])
            base.commit()
        found.append(("sqlite", "big", path))

    add("java-class", "big", "Made.class", java_class())
    if shutil.which("javac"):
        write(os.path.join(folder, "Shown.java"), JAVA.encode())
        if subprocess.run(["javac", "-d", folder, os.path.join(folder, "Shown.java")], stdout=subprocess.DEVNULL).returncode == 0:
            found += [("java-class", "big", os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.startswith("Shown") and name.endswith(".class")]

    archives = [("stored", zipfile.ZIP_STORED, b""), ("deflated", zipfile.ZIP_DEFLATED, b"a remark")]
    for name, method, remark in archives:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            archive.comment = remark
            archive.writestr("folder/", b"")
            archive.writestr("words.txt", b"many words " * 500)
            archive.writestr("gr\u00f6\u00dfe.txt", b"")
            with archive.open(zipfile.ZipInfo("wide.bin"), "w", force_zip64=True) as file:
                file.write(bytes(1000))
        add("zip", "little", f"{name}.zip", buffer.getvalue())
    # An archive with the sizes both before and after the data, and one with the sizes only after the data.
    crc = struct.pack("<III", zlib.crc32(b"data"), 4, 4)
    local = b"PK\3\4" + struct.pack("<HHHHH", 20, 8, 0, 0x5BFB, 0x5D7B) + crc + struct.pack("<HH", 1, 0) + b"adata" + b"PK\7\x08" + crc
    entry = b"PK\1\2" + struct.pack("<HHHHHH", 20, 20, 8, 0, 0x5BFB, 0x5D7B) + crc + struct.pack("<HHHHHII", 1, 0, 0, 0, 0, 0, 0) + b"a"
    add("zip", "little", "descriptor.zip", local + entry + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0))
    buffer = Unseekable()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("words.txt", b"many words " * 500)
    add("zip", "little", "streamed.zip", buffer.getvalue())
    pages = b""
    for i, lacing in enumerate([[30], [255, 255, 3, 0, 128, 127], [], [200] * 255]):
        pages += struct.pack("<4sBBqIIIB", b"OggS", 0, 2 * (i == 0), i * 100, 7, i, 5, len(lacing)) + bytes(lacing) + os.urandom(sum(lacing))
    add("ogg", "little", "made.ogg", pages)

    elements = [(1, struct.pack("<d", 2.5)), (2, b"\5\0\0\0word\0"), (3, b"\5\0\0\0\0"), (4, b"\x0c\0\0\0\x100\0\1\0\0\0\0"), (5, b"\3\0\0\0\x80abc"), (6, b"")]
    elements += [(7, os.urandom(12)), (8, b"\1"), (9, struct.pack("<q", 1_700_000_000_123)), (10, b""), (11, b"a+\0i\0"), (12, b"\2\0\0\0n\0" + bytes(12))]
    elements += [(13, b"\2\0\0\0x\0"), (14, b"\2\0\0\0y\0"), (15, b"\x0b\0\0\0abcdefg"), (16, struct.pack("<i", -7)), (17, struct.pack("<II", 1, 1_700_000_000))]
    elements += [(18, struct.pack("<q", -(1 << 40))), (19, os.urandom(16)), (0x7F, b""), (0xFF, b"")]
    documents = [b"".join(bytes([kind]) + b"key%d\0" % kind + value for kind, value in chosen) for chosen in [elements, [], elements[:2]]]
    add("bson", "little", "made.bson", b"".join(struct.pack("<I", len(document) + 5) + document + b"\0" for document in documents))

    words = [(b"", b"Content-Type: text/plain; charset=UTF-8\n"), (b"big", "gro\u00df".encode()), (b"small", b"klein")]
    for order, mark in [("little", "<"), ("big", ">")]:
        strings, table = b"", []
        for column in range(2):
            for word in words:
                table.append((len(word[column]), 32 + 48 + len(strings)))
                strings += word[column] + b"\0"
        head = struct.pack(mark + "7I", 0x950412DE, 0, 3, 28, 56, 0, 0)
        table = [struct.pack(mark + "II", *pair) for pair in table]
        add("gettext-mo", order, f"{order}.mo", head + b"".join(table[:3]) + b"gap!" + b"".join(table[3:]) + strings)

    # Blocks that are stored and a block of one repeated byte, with each width of the size.
    frames = b""
    for flags, head in [(0x20, b"\x0c"), (0x40, b"\x50\x0c\0"), (0x80 | 0x21, b"\7" + struct.pack("<I", 12)), (0xC0 | 3, b"\x50\7\0\0\0" + struct.pack("<Q", 12)), (2, b"\x50\7\0")]:
        frames += struct.pack("<IB", 0xFD2FB528, flags) + head + (4 << 3).to_bytes(3, "little") + b"text" + (8 << 3 | 2 | 1).to_bytes(3, "little") + b"x"
        frames += struct.pack("<II", 0x184D2A53, 3) + b"any"
    add("zstd", "little", "made.zst", frames)
    frames = struct.pack("<IBBB", 0x184D2204, 0x60, 0x40, 0x82) + struct.pack("<I", 4 | 1 << 31) + b"text" + bytes(4)
    frames += struct.pack("<IBBQIB", 0x184D2204, 0x7D, 0x40, 4, 9, 0) + struct.pack("<I", 4 | 1 << 31) + b"text" + bytes(4) + bytes(4) + b"sums"
    add("lz4", "little", "made.lz4", frames)
    for format, tool in [("zstd", ["zstd", "-q", "-k"]), ("lz4", ["lz4", "-q", "-k", "-BX"])]:
        path = os.path.join(folder, f"tool-{format}")
        write(path, b"many words " * 50_000)
        if shutil.which(tool[0]) and subprocess.run([*tool, path, path + ".out"] if format == "lz4" else [*tool, path, "-o", path + ".out"], stdout=subprocess.DEVNULL).returncode == 0:
            found.append((format, "little", path + ".out"))

    add("ico", "little", "made.ico", struct.pack("<HHH", 0, 1, 2) + struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 32, 5, 38) + struct.pack("<BBBBHHII", 0, 0, 0, 0, 1, 32, 3, 43) + b"firsttwo")
    add("acct", "little", "made.acct", b"".join(struct.pack(ACCT, 2, 3, 0, 256, 1000, 100, 40 + i, 1, 1_700_000_000, 1.5, 3, 0x2001, 900, 0, 0, 7, 8, 0, b"make") for i in range(3)))
    # A pixel of each kind of chunk: rgb, run, difference, luma, index and rgba.
    chunks = b"\xfe\x0a\x14\x1e" + b"\xc1" + b"\x7f" + b"\xa4\x97" + bytes([(10 * 3 + 20 * 5 + 30 * 7 + 255 * 11) % 64]) + b"\xff\1\2\3\4"
    add("qoi", "big", "made.qoi", struct.pack(">4sIIBB", b"qoif", 7, 1, 4, 0) + chunks + bytes(7) + b"\1")
    columns = struct.pack("<11scIBB14x", b"WORD", b"C", 0, 5, 0) + struct.pack("<11scIBB14x", b"NUMBER", b"N", 0, 4, 1)
    rows = b" first 1.0" + b"*fifth-2.5" + b" third12.0"
    add("dbf", "little", "made.dbf", struct.pack("<BBBBIHH20x", 3, 126, 11, 27, 3, 97, 10) + columns + b"\r" + rows + b"\x1a")
    for order, mark in [("little", "<"), ("big", ">")]:
        words = [0x07230203, 0x00010500, 0x70000, 4, 0, 2 << 16 | 17, 1, 3 << 16 | 14, 0, 1, 1 << 16 | 253]
        add("spirv", order, f"{order}.spv", struct.pack(f"{mark}{len(words)}I", *words))
    for magic, code, user in [(0x011A, "h", b""), (0x021E, "i", b"user")]:
        names = b"made|a terminal\0"
        head = struct.pack("<6H", magic, len(names), 3, 3, 2, 6)
        add("terminfo", "little", f"{magic}.terminfo", head + names + b"\1\0\1\0" + struct.pack(f"<3{code}2h", 80, -1, 24, 0, -1) + b"\x1b[2J\0\0" + user)
    for path in ["/lib/terminfo/x/xterm", "/usr/share/terminfo/x/xterm", "/lib/terminfo/l/linux", "/usr/share/terminfo/x/xterm-256color"]:
        if os.path.exists(path) and importlib.util.find_spec("_curses"):
            found.append(("terminfo", "little", path))
    sizes = [0, 5, 300]
    body = b"".join(struct.pack(">IIIIq", size + 1, size, 1, 0, (1 << 55) + i) + os.urandom(size) for i, size in enumerate(sizes))
    add("btsnoop", "big", "made.btsnoop", b"btsnoop\0" + struct.pack(">II", 1, 1002) + body)
    body = b"".join(struct.pack(">6I", size, size, 24 + size + 3, 0, 1_700_000_000, i) + os.urandom(size + 3) for i, size in enumerate(sizes))
    add("snoop", "big", "made.snoop", b"snoop\0\0\0" + struct.pack(">II", 2, 4) + body)
    for order, mark in [("little", "<"), ("big", ">")]:
        events = [struct.pack(mark + BLKTRACE, 0x65617407, i, 1000 * i, 8 * i, 4096, 1 << 17 | i, 42, 8 << 20 | 1, 3, 0, size) + os.urandom(size) for i, size in enumerate([0, 4, 0])]
        add("blktrace", order, f"{order}.blktrace", b"".join(events))
        body = b"\0" + struct.pack(mark + "QQII15sc5H", 0x400000, 0x400028, 5, 100, b"seconds", b"s", *range(5))
        body += b"\1" + struct.pack(mark + "QQI", 0x400001, 0x400010, 7) + b"\2" + struct.pack(mark + "IQQQQ", 2, 1, 2, 3, 4)
        add("gmon", order, f"{order}.gmon", b"gmon" + struct.pack(mark + "I12x", 1) + body)
    events = [(15, 0, b"\4\0" + b"8.0.36".ljust(50, b"\0")), (2, 8, b"select 1"), (4, 32, b"\4\0\0\0\0\0\0\0log.2")]
    add("mysql-binlog", "little", "made.binlog", b"\xfebin" + b"".join(struct.pack(BINLOG, 1_700_000_000, kind, 1, 19 + len(body), 99, flags) + body for kind, flags, body in events))
    batches = [struct.pack(KAFKA, 10 * i, 49 + len(body), -1, 2, 77, 1, 2, 1_700_000_000_000, 1_700_000_000_009, -1, -1, -1, 3) + body for i, body in enumerate([b"", b"records"])]
    add("kafka-log", "big", "made.log", b"".join(batches))
    templates = struct.pack(">HHHHHHI", 256, 2, 8, 4, 0x8001, 4, 29305)
    sets = struct.pack(">HH", 2, 4 + len(templates)) + templates + struct.pack(">HH", 3, 8) + b"opts" + struct.pack(">HH", 256, 12) + b"\x0a\0\0\1\0\0\0\7"
    message = struct.pack(">HHIII", 10, 16 + len(sets), 1_700_000_000, 1, 2) + sets
    add("ipfix", "big", "made.ipfix", message + struct.pack(">HHIII", 10, 16, 1_700_000_001, 2, 2))
    add("pyc", "little", "timed.pyc", compiled(folder, py_compile.PycInvalidationMode.TIMESTAMP))
    add("pyc", "little", "hashed.pyc", compiled(folder, py_compile.PycInvalidationMode.CHECKED_HASH))
    return found


class Unseekable(io.BytesIO):
    def seekable(self):
        return False

    def seek(self, *_):
        raise io.UnsupportedOperation

    def tell(self):
        raise io.UnsupportedOperation


ACCT = "<BBHIIIIIIfHHHHHHHH16s"
BINLOG = "<IBIIIH"
BLKTRACE = "IIQQIIIIIHH"
KAFKA = ">QIiBIHIQQqhiI"
UTMP = "Hxxi32s4s32s256shhiII16s20x"
JAVA = """
class Shown {
    static final long LONG = 1L << 40;
    static final double DOUBLE = 2.5;
    static final float FLOAT = 0.1f;
    static final String TEXT = "gr\\u00f6\\u00dfe";
    interface Listener { void heard(String text) throws Exception; }
    enum Colour { RED, GREEN }
    int count;
    static long sum(long a) { return a + (1L << 41); }
    Listener listener() { return text -> System.out.println(text + count + LONG + 3.75); }
}
"""


def compiled(folder, mode):
    source = os.path.join(folder, "source.py")
    write(source, b"words = ['a', 'b']\n")
    path = py_compile.compile(source, os.path.join(folder, "source.pyc"), invalidation_mode=mode)
    with open(path, "rb") as file:
        return file.read()


def png_chunk(type, data):
    return struct.pack(">I", len(data)) + type + data + struct.pack(">I", zlib.crc32(type + data))


def git_index(version):
    paths = [b"a", b"folder/b.txt", b"folder/c.txt", b"z" * 300]
    content, before = struct.pack(">4sII", b"DIRC", version, len(paths)), b""
    for i, path in enumerate(paths):
        more = version > 2 and i == 1
        entry = struct.pack(">10I", 1_700_000_000 + i, i, 1_600_000_000, 5, 1, 2, 0o100644, 1000, 100, 77 * i) + os.urandom(20)
        entry += struct.pack(">H", len(path) | more << 14) + (struct.pack(">H", 1 << 14) if more else b"")
        if version == 4:
            common = len(os.path.commonprefix([before, path]))
            entry += bytes([len(before) - common]) + path[common:] + b"\0"
        else:
            entry += path + bytes(8 - (len(entry) + len(path)) % 8)
        content, before = content + entry, path
    content += struct.pack(">4sI", b"TREE", 3) + b"odd" + struct.pack(">4sI", b"EOIE", 0)
    return content + hashlib.sha1(content).digest()


def java_class():
    """Returns an empty class with a constant of each kind."""
    constants = [b"\1\0\4Made", b"\7\0\1", b"\1\0\2\xc0\x80", b"\3" + struct.pack(">i", -3), b"\4" + struct.pack(">f", 0.5), b"\5" + struct.pack(">q", -(1 << 40)), None]
    constants += [b"\6" + struct.pack(">d", 2.5), None, b"\x08\0\1", b"\x09\0\2\0\x0d", b"\x0a\0\2\0\x0d", b"\x0b\0\2\0\x0d", b"\x0c\0\1\0\1"]
    constants += [b"\x0f\1\0\x0b", b"\x10\0\1", b"\x11\0\0\0\x0d", b"\x12\0\0\0\x0d", b"\x13\0\1", b"\x14\0\1"]
    pool = b"".join(constant for constant in constants if constant)
    attribute = struct.pack(">HI", 1, 3) + b"odd"
    member = struct.pack(">HHHH", 9, 1, 1, 1) + attribute
    return struct.pack(">IHHH", 0xCAFEBABE, 0, 65, len(constants) + 1) + pool + struct.pack(">HHHHH", 0x21, 2, 0, 1, 2) + (b"\0\1" + member) + (b"\0\1" + member) + b"\0\1" + attribute


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
    globals()["check_" + format.replace("-", "_")](content, records)


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


def check_wav(content, records):
    [head] = [record for record in records if record["@record"] == "head"]
    assert head["size"] == len(content) - 8
    [format] = [record for record in records if record["@record"] == "format"]
    [samples] = [record for record in records if record["@record"] == "samples"]
    keys = ["encoding", "channels", "rate", "byte_rate", "block_size", "bits"]
    assert tuple(format[key] for key in keys) == struct.unpack_from("<HHIIHH", content, content.index(b"fmt ") + 8)
    if format["encoding"] == 3:
        assert struct.unpack("<f", bytes.fromhex(samples["data"])) == (0.5,) and format["extension"] == "0000"
        assert [record["data"] for record in records if record["@record"] == "other"] == [b"odd".hex()]
        return
    with wave.open(io.BytesIO(content)) as sound:
        assert (format["channels"], format["rate"], format["bits"]) == (sound.getnchannels(), sound.getframerate(), sound.getsampwidth() * 8)
        assert bytes.fromhex(samples["data"]) == sound.readframes(sound.getnframes())


def check_netflow5(content, records):
    at = 0
    for packet in records:
        count, uptime, seconds, _, sequence = struct.unpack_from(">HIIII", content, at + 2)
        assert (len(packet["flows"]), packet["uptime"], packet["seconds"], packet["sequence"]) == (count, uptime, seconds, sequence)
        for i, flow in enumerate(packet["flows"]):
            fields = struct.unpack_from(">IIIHHIIIIHHBBBBHHBBH", content, at + 24 + 48 * i)
            assert tuple(flow.values()) == fields
        at += 24 + 48 * count
    assert at == len(content)


def both(format, content):
    """Unpacks items in the byte order in which the first seconds are a time of this century."""
    little = list(struct.iter_unpack("<" + format, content))
    return little if any(field == 1_700_000_000 for field in little[0]) else list(struct.iter_unpack(">" + format, content))


def check_evdev(content, records):
    assert [tuple(record.values())[3:] for record in records] == both("qqHHi", content)


def check_utmp(content, records):
    expected = both(UTMP, content)
    assert len(records) == len(expected)
    for record, (type, pid, line, id, user, host, termination, exit, session, seconds, micros, address) in zip(records, expected):
        numbers = [record[key] for key in ["type", "pid", "termination", "exit", "session", "seconds", "microseconds", "address"]]
        assert numbers == [type, pid, termination, exit, session, seconds, micros, address.hex()]
        for key, value in [("line", line), ("id", id), ("user", user), ("host", host)]:
            text = record[key]
            assert (text if isinstance(text, str) else text["text"]).encode() == value.split(b"\0", 1)[0]


def check_git_index(content, records):
    [index] = records
    version, count = struct.unpack_from(">II", content, 4)
    assert (index["version"], len(index["entries"]), index["checksum"]) == (version, count, hashlib.sha1(content[:-20]).hexdigest())
    at, before = 12, b""
    for entry in index["entries"]:
        numbers = struct.unpack_from(">10I", content, at)
        keys = ["changed", "changed_ns", "modified", "modified_ns", "device", "inode", "mode", "user", "group", "size"]
        assert tuple(entry[key] for key in keys) == numbers
        assert bytes.fromhex(entry["object"]) == content[at + 40 : at + 60]
        flags = int.from_bytes(content[at + 60 : at + 62], "big")
        start = at + 62 + 2 * (flags >> 14 & 1)
        assert entry.get("more") == (1 << 14 if flags >> 14 & 1 else None)
        if version == 4:
            # No name is longer than the 127 bytes of one digit, except for the last.
            [removed] = entry["prefixed"]["removed"]
            end = content.index(0, start + 1)
            name = before[: len(before) - removed] + entry["prefixed"]["suffix"].encode()
            assert name == before[: len(before) - content[start]] + content[start + 1 : end]
            at, before = end + 1, name
        else:
            end = content.index(0, start)
            assert entry["full"]["name"].encode() == content[start:end]
            at += (end - at) // 8 * 8 + 8
    for extension in index["extensions"]:
        length = int.from_bytes(content[at + 4 : at + 8], "big")
        assert (extension["signature"], extension["data"]) == (int.from_bytes(content[at : at + 4], "big"), content[at + 8 : at + 8 + length].hex())
        at += 8 + length
    assert at == len(content) - 20


def check_git_pack_index(content, records):
    [index] = records
    fanout = list(struct.unpack_from(">256I", content, 8))
    count = fanout[255]
    assert index["fanout"] + [index["count"]] == fanout and len(index["names"]) == count
    for i in range(count):
        assert bytes.fromhex(index["names"][i]) == content[1032 + 20 * i : 1052 + 20 * i]
    rest = content[1032 + 20 * count :]
    assert tuple(index["checksums"] + index["offsets"]) == struct.unpack_from(f">{2 * count}I", rest)
    large = sum(offset >> 31 for offset in index["offsets"])
    assert tuple(index["large_offsets"]) == struct.unpack_from(f">{large}Q", rest, 8 * count)
    assert index["pack_checksum"] + index["checksum"] == content[-40:].hex()


def check_bmp(content, records):
    [picture] = records
    offset, length = struct.unpack_from("<II", content, 10)
    core = length == 12
    header = picture["core" if core else "info"]
    assert (picture["size"], bytes.fromhex(picture["pixels"])) == (len(content), content[offset:])
    assert tuple(header.values()) == struct.unpack_from("<HHHH" if core else "<iiHHIIiiII", content, 18)
    assert bytes.fromhex(picture["palette"]) == content[14 + length : offset]


def check_png(content, records):
    at, data = 8, b""
    for chunk in records[1:]:
        length, type = struct.unpack_from(">I4s", content, at)
        body = content[at + 8 : at + 8 + length]
        assert (chunk["length"], chunk["type"], chunk["crc"]) == (length, int.from_bytes(type, "big"), zlib.crc32(type + body))
        fields = {b"IHDR": ("image", ">IIBBBBB"), b"pHYs": ("density", ">IIB"), b"tIME": ("changed", ">HBBBBB")}.get(type)
        if fields:
            assert tuple(chunk[fields[0]].values()) == struct.unpack(fields[1], body)
        elif type == b"gAMA":
            assert chunk["gamma"] == int.from_bytes(body, "big")
        else:
            assert bytes.fromhex(chunk["data"]) == body
        data += body if type == b"IDAT" else b""
        at += 12 + length
    image = records[1]["image"]
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[image["colour"]]
    assert at == len(content)
    if image["interlace"] == 0:
        assert len(zlib.decompress(data)) == image["rows"] * (1 + (image["columns"] * channels * image["depth"] + 7) // 8)


def check_au(content, records):
    [sound] = records
    fields = struct.unpack_from(">IIIII", content, 4)
    assert tuple(sound[key] for key in ["offset", "size", "encoding", "rate", "channels"]) == fields
    assert bytes.fromhex(sound["samples"]) == content[fields[0] :]
    if fields[0] > 24:
        assert sound["annotation"]["text"] == "a few words"


def check_aiff(content, records):
    [common] = [record for record in records if record["@record"] == "common"]
    [samples] = [record for record in records if record["@record"] == "samples"]
    [head] = [record for record in records if record["@record"] == "head"]
    assert (head["size"], common["channels"], common["frames"], common["bits"]) == (len(content) - 8, 1, 5, 16)
    rate = common["rate"]
    assert rate["mantissa"] * 2.0 ** (rate["exponent"] - 16446) == 44100
    assert struct.unpack(">5h", bytes.fromhex(samples["data"])) == (-1, 0, 1, 2, 3)
    assert (b"odd".hex(), "00") in [(record.get("data"), record.get("padding")) for record in records]
    assert bytes.fromhex(common["compression"]) == (b"NONE\x0enot compressed\0" if b"AIFC" in content else b"")


def check_npy(content, records):
    [array_of] = records
    header = array_of["header" if content[6] == 1 else "long_header"]["text"]
    assert ast.literal_eval(header) == {"descr": "<u2", "fortran_order": False, "shape": (3, 4)}
    assert struct.unpack("<12H", bytes.fromhex(array_of["items"])) == tuple(range(12))


def check_flac(content, records):
    [sound] = records
    at = 4
    for block in sound["blocks"]:
        kind, length = content[at], int.from_bytes(content[at + 1 : at + 4], "big")
        assert (block["kind"], block["length"]) == (kind, length)
        if kind & 127:
            assert bytes.fromhex(block["data"]) == content[at + 4 : at + 4 + length]
        at += 4 + length
    stream = sound["blocks"][0]["stream"]
    assert (stream["least_block"], stream["least_frame"], stream["most_frame"]) == (4096, 14, 9000)
    assert (stream["format"] >> 44, stream["format"] & (1 << 36) - 1) == (44100, 1_000_000) and stream["md5"] == content[26:42].hex()
    assert bytes.fromhex(sound["frames"]) == content[at:]


def check_sfnt(content, records):
    [font] = records
    start = 12 + 16 * len(font["tables"])
    assert len(font["tables"]) == int.from_bytes(content[4:6], "big") and bytes.fromhex(font["contents"]) == content[start:]
    for i, table in enumerate(font["tables"]):
        assert tuple(table.values()) == struct.unpack_from(">4I", content, 12 + 16 * i)
        data = content[table["offset"] : table["offset"] + table["length"]]
        data += bytes(-len(data) % 4)
        # The checksum of the table `head` contains the checksum of the file.
        if table["name"] != int.from_bytes(b"head", "big"):
            assert sum(struct.unpack(f">{len(data) // 4}I", data)) & 0xFFFFFFFF == table["checksum"]


def check_tga(content, records):
    [picture] = records
    fields = struct.unpack_from("<BBBHHBHHHHBB", content)
    assert tuple(picture.values())[3 : 3 + len(fields)] == fields
    palette = 22 + picture["palette_length"] * picture["palette_bits"] // 8
    assert picture["id"] == b"note".hex() and bytes.fromhex(picture["palette"]) == content[22:palette]
    assert bytes.fromhex(picture["pixels"]) == content[palette:]


def check_sqlite(content, records):
    [database] = records
    size = database["page_size"] if database["page_size"] > 1 else 65536
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "copy.sqlite")
        write(path, content)
        with contextlib.closing(sqlite3.connect(path)) as base:
            for key in ["user_version", "application_id", "page_count", "freelist_count", "schema_version"]:
                [[value]] = base.execute(f"pragma {key}")
                assert value == database[{"freelist_count": "free_count", "schema_version": "schema_cookie"}.get(key, key)], key
            assert base.execute("pragma page_size").fetchone() == (size,)
            assert base.execute("pragma encoding").fetchone() == ({1: "UTF-8", 2: "UTF-16le", 3: "UTF-16be"}[database["encoding"]],)
    numbers = [value for key, value in database.items() if isinstance(value, int) and not key.startswith("@") and "magic" not in key]
    assert numbers == [*struct.unpack_from(">H6B6IiII", content, 16), *struct.unpack_from(">iIi", content, 60), *struct.unpack_from(">II", content, 92)]
    assert len(database["pages"]) == database["page_count"] - 1
    assert bytes.fromhex(database["first_page"] + "".join(database["pages"])) == content[100:]


def check_java_class(content, records):
    [record] = records
    count, at, slot, texts = int.from_bytes(content[8:10], "big"), 10, 1, {}
    assert (record["minor"], record["major"], record["constant_count"]) == struct.unpack_from(">HHH", content, 4)
    for constant in record["constants"]:
        kind = content[at]
        assert constant["kind"] == kind
        length, at = int.from_bytes(content[at + 1 : at + 3], "big"), at + 1
        key, code = {3: ("integer", ">i"), 4: ("float", ">f"), 5: ("long", ">q"), 6: ("double", ">d"), 15: ("handle", ">BH")}.get(kind, (None, ""))
        if kind == 1:
            texts[slot] = constant["text"]["data"]
            at += 2
            if content[at : at + length].isascii():
                assert texts[slot].encode() == content[at : at + length]
            at += length
        elif kind in (7, 8, 16, 19, 20):
            assert constant["name"] == length
            at += 2
        else:
            key, code = (key, code) if key else ("reference", ">HH")
            value = constant[key]
            value = tuple(value.values()) if isinstance(value, dict) else (value,)
            assert struct.pack(code, *value) == content[at : at + struct.calcsize(code)], (kind, constant)
            at += struct.calcsize(code)
        slot += 2 if kind in (5, 6) else 1
        assert constant["slot_2"] == slot - 1
    assert slot == count

    def number(width):
        nonlocal at
        at += width
        return int.from_bytes(content[at - width : at], "big")

    def attributes(given):
        assert len(given) == number(2)
        for attribute in given:
            nonlocal at
            assert attribute["name"] == number(2) and attribute["name"] in texts
            length = number(4)
            assert bytes.fromhex(attribute["content"]) == content[at : at + length]
            at += length

    assert [record["access"], record["this"], record["super"]] == [number(2) for _ in range(3)]
    assert record["interfaces"] == [number(2) for _ in range(number(2))]
    for members in ["fields", "methods"]:
        assert len(record[members]) == number(2)
        for member in record[members]:
            assert [member["access"], member["name"], member["descriptor"]] == [number(2) for _ in range(3)]
            attributes(member["attributes"])
    attributes(record["attributes"])
    assert at == len(content)


def check_zip(content, records):
    local = [record for record in records if record["@record"] == "local"]
    entries = [record for record in records if record["@record"] == "entry"]
    if local[0]["flags"] & 8 and local[0]["packed"] == 0:
        [unknown] = [record for record in records if record["@record"] == "unknown"]
        rest = struct.pack("<I", unknown["tag"]) + bytes.fromhex(unknown["data"])
        assert content.endswith(rest) and len(rest) == len(content) - 30 - len("words.txt")
        assert zlib.decompressobj(wbits=-15).decompress(rest) == b"many words " * 500
        return
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        assert archive.comment.decode() == records[-1]["remark"] and len(members) == len(local) == len(entries) == records[-1]["entries"]
        for member, file, entry in zip(members, local, entries):
            assert entry["name"] == file["name"] == member.filename
            assert (entry["crc"], entry["packed"], entry["size"], entry["offset"]) == (member.CRC, member.compress_size, member.file_size, member.header_offset)
            assert (entry["date"] >> 9) + 1980 == member.date_time[0] and entry["time"] >> 11 == member.date_time[3]
            data = bytes.fromhex(file["wide" if "wide" in file else "narrow"]["data"])
            assert archive.read(member) == (zlib.decompress(data, wbits=-15) if file["method"] == 8 else data)


def check_pyc(content, records):
    [module] = records
    assert content[:4] == importlib.util.MAGIC_NUMBER == struct.pack("<HH", module["version"], module["magic"])
    code = marshal.loads(bytes.fromhex(module["code"]))
    words = {}
    exec(code, words)
    assert words["words"] == ["a", "b"]
    source = b"words = ['a', 'b']\n"
    if module["flags"]:
        assert module["source_hash"].to_bytes(8, "little") == importlib.util.source_hash(source)
    else:
        assert module["size"] == len(source) and module["modified"] > 1_600_000_000


def check_ogg(content, records):
    at = 0
    for page in records:
        count = content[at + 26]
        lacing = list(content[at + 27 : at + 27 + count])
        position, stream, sequence, crc = struct.unpack_from("<qIII", content, at + 6)
        assert (page["position"], page["stream"], page["sequence"], page["crc"]) == (position, stream, sequence, crc)
        lengths = [segment.get("carry", segment["after"])["sum"] - segment["before"]["sum"] for segment in page["segments"]]
        assert lengths == lacing
        at += 27 + count + sum(lacing)
        assert bytes.fromhex(page["data"]) == content[at - sum(lacing) : at]
    assert at == len(content)


def check_bson(content, records):
    at = 0
    for document in records:
        size = int.from_bytes(content[at : at + 4], "little")
        at, end = at + 4, at + size - 1
        for element in document["elements"]:
            kind, start = content[at], content.index(0, at) + 1
            assert element["name"].encode() == content[at + 1 : start - 1] == b"key%d" % kind
            lengths = {1: 8, 7: 12, 8: 1, 9: 8, 16: 4, 17: 8, 18: 8, 19: 16, 11: 5}
            length = int.from_bytes(content[start : start + 4], "little")
            lengths |= {2: 4 + length, 3: length, 4: length, 5: 5 + length, 12: 16 + length, 13: 4 + length, 14: 4 + length, 15: length}
            at = start + lengths.get(kind, 0)
            body = content[start:at]
            value = element.get("value")
            if kind in (2, 13, 14):
                assert value.encode() + b"\0" == body[4:]
            elif kind in (3, 4, 15):
                assert element["content"] == body[4:].hex()
            elif kind in (5, 12):
                assert value == body[5 if kind == 5 else -12 :].hex() and element.get("namespace") in (None, "n")
            elif kind in (7, 19):
                assert value == body.hex()
            elif kind == 11:
                assert (element["pattern"], element["options"]) == ("a+", "i")
            elif kind == 17:
                assert (element["increment"], element["seconds"]) == struct.unpack("<II", body)
            elif body:
                assert (value,) == struct.unpack({1: "<d", 8: "<B", 9: "<q", 16: "<i", 18: "<q"}[kind], body)
        assert at == end and content[end] == 0
        at += 1
    assert at == len(content)


def check_gettext_mo(content, records):
    [catalog] = records
    known = gettext.GNUTranslations(io.BytesIO(content))
    for original, translation in zip(catalog["originals"], catalog["translations"]):
        source, target = (content[part["offset"] : part["offset"] + part["length"]].decode() for part in (original, translation))
        if source:
            assert known.gettext(source) == target
        else:
            assert known.info()["content-type"] in target
    assert catalog["count"] == len(catalog["originals"]) == 3 and content.endswith(bytes.fromhex(catalog["strings"]))


def check_zstd(content, records):
    frames = [record["data"] for record in records if "data" in record]
    skipped = [record["skipped"] for record in records if "skipped" in record]
    if not skipped:
        [frame] = frames
        # The last block ends before the checksum.
        assert frame["checksum"] == int.from_bytes(content[-4:], "little") and frame["blocks"][-1]["head"] & 1
        assert content[:-4].endswith(bytes.fromhex(frame["blocks"][-1]["content"]))
        return
    assert [part["content"] for part in skipped] == [b"any".hex()] * 5 and len(frames) == 5
    for frame in frames:
        text = b""
        for block in frame["blocks"]:
            data = bytes.fromhex(block["content"])
            text += data * (block["head"] >> 3) if block["head"] >> 1 & 3 == 1 else data
        assert text == b"textxxxxxxxx"
        sizes = {"size_1": 12, "size_2": 268, "size_4": 12, "size_8": 12}
        assert all(frame.get(key) in (None, size) for key, size in sizes.items())
        assert sum(key in frame for key in sizes) == (frame["flags"] != 2)
        assert {frame.get("dictionary_1"), frame.get("dictionary_2"), frame.get("dictionary_4")} <= {None, 7}


def check_lz4(content, records):
    text = b""
    for frame in records:
        for block in frame["blocks"]:
            data = bytes.fromhex(block["content"])
            text += data if block["length"] >> 31 else lz4_block(data)
        assert frame["blocks"][-1]["length"] == 0 and frame.get("size", 4) == 4
    assert text == b"texttext" if len(records) == 2 else text == b"many words " * 50_000


def lz4_block(data):
    """Returns the bytes of a block that is compressed with LZ4."""
    at, out = 0, bytearray()

    def length(number):
        nonlocal at
        while number >= 15:
            at += 1
            number += data[at - 1]
            if data[at - 1] < 255:
                break
        return number

    while at < len(data):
        token = data[at]
        at += 1
        literals = length(token >> 4)
        out += data[at : at + literals]
        at += literals
        if at == len(data):
            break
        distance = int.from_bytes(data[at : at + 2], "little")
        at += 2
        for _ in range(length(token & 15) + 4):
            out.append(out[-distance])
    return bytes(out)


def check_ico(content, records):
    [icon] = records
    assert icon["count"] == len(icon["pictures"]) and bytes.fromhex(icon["contents"]) == content[6 + 16 * icon["count"] :]
    for i, picture in enumerate(icon["pictures"]):
        assert tuple(picture.values()) == struct.unpack_from("<BBBBHHII", content, 6 + 16 * i)
        assert picture["offset"] + picture["size"] <= len(content)


def check_acct(content, records):
    for record, fields in zip(records, struct.iter_unpack(ACCT, content)):
        command = record["command"]
        assert (*list(record.values())[3:-1], command["text"].encode()) == (*fields[:-1], fields[-1].rstrip(b"\0"))
    assert len(records) * 64 == len(content)


def check_qoi(content, records):
    [picture] = records
    assert (picture["columns"], picture["rows"], picture["channels"]) == struct.unpack_from(">IIB", content, 4)
    data, at, seen, pixel, pixels = bytes.fromhex(picture["pixels"]), 0, [(0, 0, 0, 0)] * 64, (0, 0, 0, 255), []
    while at < len(data):
        first, at, run = data[at], at + 1, 1
        if first >= 0xFE:
            end = at + 3 + (first == 0xFF)
            pixel, at = (*data[at:end], *pixel[end - at :]), end
        elif first >> 6 == 0:
            pixel = seen[first]
        elif first >> 6 == 1:
            pixel = (*((pixel[i] + (first >> shift & 3) - 2) & 255 for i, shift in enumerate([4, 2, 0])), pixel[3])
        elif first >> 6 == 2:
            green, at = (first & 63) - 32, at + 1
            steps = [green + (data[at - 1] >> 4) - 8, green, green + (data[at - 1] & 15) - 8]
            pixel = (*((pixel[i] + step) & 255 for i, step in enumerate(steps)), pixel[3])
        else:
            run = (first & 63) + 1
        seen[(pixel[0] * 3 + pixel[1] * 5 + pixel[2] * 7 + pixel[3] * 11) % 64] = pixel
        pixels += [pixel] * run
    assert len(pixels) == picture["columns"] * picture["rows"] and pixels[0] == pixels[5] == (10, 20, 30, 255) and pixels[6] == (1, 2, 3, 4)


def check_dbf(content, records):
    [table] = records
    assert (table["year"], table["month"], table["day"], table["count"]) == (126, 11, 27, 3)
    assert [column["name"]["text"] for column in table["columns"]] == ["WORD", "NUMBER"] and [column["width"] for column in table["columns"]] == [5, 4]
    rows = [bytes.fromhex(row) for row in table["rows"]]
    assert [(row[1:6].strip(), float(row[6:])) for row in rows] == [(b"first", 1.0), (b"fifth", -2.5), (b"third", 12.0)] and table["after"] == "1a"


def check_spirv(content, records):
    words = struct.unpack(f"{'<' if content[0] == 3 else '>'}{len(content) // 4}I", content)
    [head] = [record for record in records if record["@section"] == "head"]
    instructions = [record for record in records if record["@section"] == "instructions"]
    assert tuple(head.values())[-5:] == words[:5]
    assert [word for record in instructions for word in (record["head"], *record["operands"])] == list(words[5:])
    assert [record["head"] & 0xFFFF for record in instructions] == [17, 14, 253]


def check_terminfo(content, records):
    [terminal] = records
    wide = content[0] == 0x1E
    numbers = terminal["wide" if wide else "narrow"]["numbers"]
    strings = bytes.fromhex(terminal["strings"])
    first = terminal["names"].rstrip("\0").split("|")[0]
    if first == "made":
        assert (terminal["flags"], numbers, strings) == ([1, 0, 1], [80, -1, 24], b"\x1b[2J\0\0")
        assert terminal["extended"] == (b"user".hex() if wide else "")
        return
    import curses

    curses.setupterm(first, 1)
    # Some numbers and flags, by their indices in terminfo(5).
    for names, values, get in [({1: "it", 13: "colors", 14: "pairs"}, numbers, curses.tigetnum), ({1: "am", 4: "xenl"}, terminal["flags"], curses.tigetflag)]:
        for i, name in names.items():
            assert max(get(name), 0) == max((values + [0] * 20)[i], 0), name
    for i, name in {1: "bel", 2: "cr", 5: "clear", 10: "cup"}.items():
        offset = terminal["offsets"][i]
        assert curses.tigetstr(name) == (strings[offset : strings.index(0, offset)] if offset >= 0 else None), name


def check_btsnoop(content, records):
    check_packets(content, records, ">IIIIQ")


def check_snoop(content, records):
    check_packets(content, records, ">IIIIII")


def check_packets(content, records, format):
    at = 16
    for packet in (record for record in records if record["@record"] == "packet"):
        fields = struct.unpack_from(format, content, at)
        assert tuple(value for value in packet.values() if isinstance(value, int))[-len(fields) :] == fields
        at += struct.calcsize(format)
        assert bytes.fromhex(packet["data"]) == content[at : at + fields[1]]
        at += len(packet["data"] + packet.get("padding", "")) // 2
    assert at == len(content)


def check_blktrace(content, records):
    at, mark = 0, "<" if content[0] == 7 else ">"
    for event in records:
        fields = struct.unpack_from(mark + BLKTRACE, content, at)
        at += 48 + fields[-1]
        assert (*list(event.values())[3:-1], bytes.fromhex(event["data"])) == (*fields, content[at - fields[-1] : at])
    assert at == len(content) and len(records) == 3


def check_gmon(content, records):
    mark = "<" if content[4] else ">"
    histogram, call, blocks = (record for record in records if record["@section"] == "records")
    numbers = (*(histogram[key] for key in ["low", "high", "count", "rate"]), histogram["dimension"]["text"].encode().ljust(15, b"\0"))
    assert (*numbers, bytes([histogram["abbreviation"]]), *histogram["samples"]) == struct.unpack_from(mark + "QQII15sc5H", content, 21)
    assert (call["from"], call["function"], call["count"]) == struct.unpack_from(mark + "QQI", content, 72)
    assert [number for block in blocks["blocks"] for number in block.values()] == list(struct.unpack_from(mark + "4Q", content, 97))


def check_mysql_binlog(content, records):
    at = 4
    for event in (record for record in records if record["@record"] == "event"):
        fields = struct.unpack_from(BINLOG, content, at)
        assert tuple(event[key] for key in ["time", "type", "server", "size", "next", "flags"]) == fields
        assert bytes.fromhex(event["content"]) == content[at + 19 : at + fields[3]]
        at += fields[3]
    assert at == len(content)


def check_kafka_log(content, records):
    at = 0
    for batch in records:
        fields = struct.unpack_from(KAFKA, content, at)
        assert tuple(batch.values())[3:-1] == fields
        assert bytes.fromhex(batch["records"]) == content[at + 61 : at + 12 + fields[1]]
        at += 12 + fields[1]
    assert at == len(content)


def check_ipfix(content, records):
    first, second = records
    assert (first["length"], second["length"], second["sets"]) == (len(content) - 16, 16, [])
    templates, options, data = first["sets"]
    [template] = templates["templates"]
    assert (first["time"], first["sequence"], first["domain"]) == struct.unpack_from(">III", content, 4)
    assert (template["id"], template["count"], options["content"], data["tag"]) == (256, 2, b"opts".hex(), 256)
    assert template["fields"] == [{"element": 8, "length": 4}, {"element": 0x8001, "length": 4, "company": 29305}]
    assert bytes.fromhex(data["content"]) == b"\x0a\0\0\1\0\0\0\7"


if __name__ == "__main__":
    {"files": files, "values": values}[sys.argv[1]](*sys.argv[2:])
