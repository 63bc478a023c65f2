#!/usr/bin/env python3
"""A second writer, after the specification: writes JSON lines as a trace, and compares it byte for byte with conformance vectors.

  tests/writer.py                 write each vector below vectors/good that lists all its lines, and compare the bytes
  tests/writer.py FOLDER          also write each of these vectors into FOLDER, in version 1 with one chunk per section

The lines are those of `--all` (section 8), so they contain metadata records, which determine every byte of a version 0 file. For version 1,
the lengths and flags of chunks are those of the vector. The writer calls no other code of the project. It has no predicted leaves,
no names of values and no records in byte arrays; a vector that needs them is skipped, and the script fails if it skips too many."""
import json
import os
import re
import struct
import sys

MASK = 2**64 - 1
HERE = os.path.dirname(os.path.abspath(__file__))
TOKEN = re.compile(r"""(?:[ \t-\r]|//[^\n]*|/\*.*?\*/)*(?:(?P<string>"(?:\\.|[^"\\])*")|(?P<chars>'[^']+')|(?P<number>\d\w*)|(?P<name>[A-Za-z_]\w*)|(?P<mark>[=!<>]=|[^\s]))""", re.S)
WORDS = {"none": 0, "baseOffset": 1, "delta": 1, "default": 1, "sectionOffset": 1, "stride": 2, "sectionStride": 2}
PREDEFINED = """vfield: (length, data) { length.width = 1; length.interpretation = none; data.width = length.value; data.interpretation = none; }
comment: vfield { tag.value = 1; }"""


class Unsupported(Exception):
    """A DTD or a line needs something that this writer does not have."""


class Parser:
    """The syntax of section 2."""

    def __init__(self, text):
        self.tokens, at = [], 0
        text = text.lstrip("\ufeff")
        while match := TOKEN.match(text, at):
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self.at = 0

    def peek(self, ahead=0):
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ("end", "")

    def takes(self, mark):
        if self.peek()[1] == mark and self.peek()[0] in ("mark", "name"):
            self.at += 1
            return True
        return False

    def needs(self, mark):
        if not self.takes(mark):
            raise Unsupported(f"{mark} expected, found {self.peek()[1]}")

    def take(self, kind):
        found, text = self.peek()
        if found != kind:
            raise Unsupported(f"{kind} expected, found {text}")
        self.at += 1
        return text

    def integer(self):
        negative = self.takes("-")
        kind, text = self.peek()
        self.at += 1
        number = int.from_bytes(text[1:-1].encode(), "big") if kind == "chars" else int(text.replace("_", ""), 0 if text.startswith("0x") else 10)
        return -number & MASK if negative else number

    def scopes(self):
        scopes = [{"name": None, "number": 0, "records": {}, "props": {}}]
        while self.peek()[0] != "end":
            if self.peek()[1] == "section" and self.peek(1)[0] == "name":
                self.at += 1
                scopes.append({"name": self.take("name"), "number": self.integer(), "records": {}, "props": {}})
                self.needs("{")
                while not self.takes("}"):
                    self.definition(scopes[-1])
            else:
                self.definition(scopes[0])
        return scopes

    def definition(self, scope):
        if self.peek(1)[1] == ":":
            name, block = self.take("name"), {}
            self.needs(":")
            fields = self.field()
            if self.takes("{"):
                while not self.takes("}"):
                    self.property(block)
            self.takes(";")
            scope["records"][name] = (name, fields, block)
        else:
            self.property(scope["props"])

    def property(self, props):
        path = [self.take("name")]
        while self.takes("."):
            kind, text = self.peek()
            self.at += 1
            path.append(text)
        self.needs("=")
        props[tuple(path[:-1]), path[-1]] = self.value()
        self.needs(";")

    def value(self):
        kind, text = self.peek()
        if kind == "string":
            self.at += 1
            return ("text", json.loads(text))
        if kind == "name" and self.peek(1)[1] != ".":
            self.at += 1
            if text in ("bytes", "until") and self.peek()[0] in ("number", "chars"):
                return (text, self.integer())
            if text not in WORDS:
                return ("word", text)
            if text == "baseOffset" and self.peek()[0] == "name":
                path = self.path()
                return ("baseOf", path[:-1])
            return (text, *[self.integer() for _ in range(WORDS[text])])
        return ("expr", self.expression())

    def path(self):
        path = [self.take("name")]
        while self.takes("."):
            path.append(self.take("name"))
        return path

    def expression(self):
        left = self.operators([("+", "-"), ("*", "/", "%")])
        for mark in ("==", "!=", "<=", ">=", "<", ">"):
            if self.takes(mark):
                return (mark, left, self.operators([("+", "-"), ("*", "/", "%")]))
        return left

    def operators(self, levels):
        if not levels:
            return self.atom()
        left = self.operators(levels[1:])
        while self.peek()[1] in levels[0]:
            mark = self.peek()[1]
            self.at += 1
            left = (mark, left, self.operators(levels[1:]))
        return left

    def atom(self):
        if self.takes("("):
            inner = self.expression()
            self.needs(")")
            return inner
        if self.peek()[0] != "name":
            return ("int", self.integer())
        path = self.path()
        last = path.pop()
        return ("bit", path, self.integer()) if last == "bit" else (last, path)

    def is_count(self):
        depth, ahead = 0, 0
        while True:
            text = self.peek(ahead)[1]
            depth += (text == "(") - (text == ")")
            ahead += 1
            if depth == 0:
                return self.peek(ahead)[1] == "*"

    def field(self):
        if self.peek()[1] == "(":
            if self.is_count():
                self.needs("(")
                count = self.expression()
                self.needs(")")
                self.needs("*")
                return ("computed", count, self.field())
            self.needs("(")
            fields = []
            while not self.takes(")"):
                fields.append(self.field())
                self.takes(",")
            return ("group", fields)
        name = self.take("name")
        if self.takes(":"):
            return ("named", name, self.field())
        return ("counted", name, self.field()) if self.takes("*") else ("name", name)


def lists(field, name):
    kind = field[0]
    if kind == "group":
        return any(lists(f, name) for f in field[1])
    return field[1] == name if kind == "name" else lists(field[2], name)


def most(expr):
    """Returns the bound of an expression (3.3)."""
    kind = expr[0]
    if kind == "int":
        return expr[1]
    if kind in ("bit", "==", "!=", "<", "<=", ">", ">="):
        return 1
    if kind in ("value", "width"):
        return MASK
    left, right = most(expr[1]), most(expr[2])
    return {"+": left + right, "*": left * right, "-": left, "/": left, "%": min(left, max(right - 1, 0))}[kind]


class Leaf:
    def __init__(self, name, path, key):
        self.name, self.path, self.key = name, path, key
        self.width, self.interp, self.constant, self.computed, self.format = None, None, None, None, None
        self.cell, self.previous = None, None


class Record:
    """A top-level record: leaves in order, and items as in its list of fields."""

    def __init__(self, dtd, scope, definition):
        self.dtd, self.scope, self.leaves, self.name = dtd, scope, [], definition[0]
        tag = definition[2].get((("tag",), "value"))
        self.catch_all = tag == ("word", "other")
        self.tag = None if tag is None or self.catch_all else tag[1][1]
        names, self.items = {}, []
        frames = [((), definition)]
        if tag is not None and not lists(definition[1], "tag"):
            self.items.append(("leaf", self.leaf("tag", frames, names)))
        self.layout(definition[1], frames, names, self.items)

    def find(self, name, frames, prop):
        """Returns a property, and the number of frames up to its block, or None for the section or the top level (3.1)."""
        for depth, (prefix, definition) in enumerate(frames):
            inner = tuple(part for path, _ in frames[depth + 1:] for part in path)
            if (found := definition[2].get((inner + (name,), prop))) is not None:
                return found, depth
        if frames[-1][1][0] == "vfield":
            return None, None
        for scope in (self.scope, self.dtd.scopes[0]):
            if (found := scope["props"].get(((name,), prop))) is not None:
                return found, None
        return None, None

    def leaf(self, name, frames, names, computed=None):
        path = tuple(part for parts, _ in frames for part in parts) + (name,)
        leaf = Leaf(name, path, key_of(names, name) if computed is None else None)
        self.leaves.append(leaf)
        if computed is not None:
            leaf.computed = self.resolve(computed, frames, True)
            return leaf
        get = lambda prop: self.find(name, frames, prop)[0]
        leaf.format = (get("format") or (None, None))[1]
        if any(get(prop) for prop in ("values", "flags", "section")):
            raise Unsupported("names or records of an array")
        if name == "tag" and len(frames) == 1 and (self.tag is not None or self.catch_all):
            leaf.width, leaf.interp, leaf.constant = self.dtd.tag_width, ("none",), self.tag
            return leaf
        leaf.interp, depth = self.find(name, frames, "interpretation")
        previous = (get("previous") or (None, None))[1]
        # Leaves share a previous value by name, or by one property of the section or of the top level.
        if leaf.interp[0] in ("delta", "stride") and depth is None and previous != "own":
            at_section = self.scope["props"].get(((name,), "interpretation")) is not None
            leaf.cell = ("setting", self.scope["number"] if at_section else 0, name)
        leaf.previous = ("name", name) if previous == "shared" else None
        width, depth = self.find(name, frames, "width")
        if width is not None:
            if width[0] == "expr":
                start = frames[:depth + 1] if depth is not None else frames
                folded = self.resolve(width[1], start, depth is None)
                leaf.width = folded[1] if folded[0] == "int" else folded
            else:
                leaf.width = width
        if (value := get("value")) is not None:
            leaf.constant = self.resolve(value[1], frames, True)[1]
        return leaf

    def resolve(self, expr, frames, outwards):
        """Replaces paths by numbers of leaves."""
        if not expr:
            raise Unsupported("an expression of one word, as `rest`")
        if expr[0] in ("value", "width", "bit"):
            frames = list(frames)
            while True:
                path = tuple(part for parts, _ in frames for part in parts) + tuple(expr[1])
                at = next((i for i in range(len(self.leaves) - 1, -1, -1) if self.leaves[i].path == path and not self.leaves[i].computed), None)
                if at is not None or not outwards or len(frames) == 1:
                    break
                frames.pop()
            if expr[0] == "width":
                return ("int", self.leaves[at].width)
            return ("leaf", at) if expr[0] == "value" else ("bit", at, expr[2])
        if expr[0] == "int":
            return expr
        left, right = self.resolve(expr[1], frames, outwards), self.resolve(expr[2], frames, outwards)
        made = (expr[0], left, right)
        return ("int", evaluate(made, None)) if left[0] == right[0] == "int" else made

    def layout(self, field, frames, names, items, repeated=False):
        own = None
        if field[0] == "named":
            own, field = field[1], field[2]
        kind = field[0]
        if kind == "group":
            for inner in field[1]:
                self.layout(inner, frames, names, items, repeated)
        elif kind == "name":
            if (nested := self.dtd.untagged(self.scope, field[1])) is None:
                items.append(("leaf", self.leaf(field[1], frames, names)))
                return
            inner = []
            key = key_of(names, field[1])
            self.layout(nested[1], frames + [((field[1],), nested)], {}, inner)
            items.append(("nested", key, field[1], inner))
        else:
            if kind == "computed":
                count = self.leaf("", frames, names, field[1])
                items.append(("leaf", count))
            else:
                path = tuple(part for parts, _ in frames for part in parts) + (field[1],)
                count = next((leaf for leaf in reversed(self.leaves) if leaf.path == path), None)
                if count is None:
                    count = self.leaf(field[1], frames, names)
                    items.append(("leaf", count))
            body = field[2]
            is_leaf = body[0] == "name" and self.dtd.untagged(self.scope, body[1]) is None
            name = body[1] if body[0] == "name" else "items" if kind == "computed" else f"{field[1]}_items"
            key, inner = own or key_of(names, name), []
            self.layout(body, frames, {}, inner, True)
            optional = kind == "computed" and most(field[1]) <= 1
            shape = "leaf" if is_leaf else "vfield" if body == ("name", "vfield") else "record" if body[0] == "name" else "group"
            items.append(("repeat", count, key, inner if is_leaf or shape == "group" else inner[0][3], shape, optional))


def key_of(names, name):
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name}_{names[name]}"


def evaluate(expr, last):
    kind = expr[0]
    if kind == "int":
        return expr[1]
    if kind == "leaf":
        return last[expr[1]]
    if kind == "bit":
        return last[expr[1]] >> expr[2] & 1
    a, b = evaluate(expr[1], last), evaluate(expr[2], last)
    return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a // b, "%": lambda: a % b, "==": lambda: int(a == b),
            "!=": lambda: int(a != b), "<": lambda: int(a < b), "<=": lambda: int(a <= b), ">": lambda: int(a > b), ">=": lambda: int(a >= b)}[kind]()


class Dtd:
    """The meaning of a DTD (3): the records of each section."""

    def __init__(self, text):
        if " predicted " in text:
            raise Unsupported("predicted leaves")
        self.scopes = Parser(text).scopes()
        predefined = Parser(PREDEFINED).scopes()[0]["records"]
        top = self.scopes[0]["props"]
        moved = {name: top.get(((name, "tag"), "value"), ("expr", ("int", tag)))[1][1] for name, tag in (("comment", 1), ("section", 2), ("metadata", 3))}
        self.section_tag, self.metadata_tag = moved["section"], moved["metadata"]
        predefined["comment"][2][("tag",), "value"] = ("expr", ("int", moved["comment"]))
        self.tag_width = top.get((("tag",), "width"), ("expr", ("int", 1)))[1][1]
        self.scopes[0]["records"] = predefined | self.scopes[0]["records"]
        is_tagged = lambda definition: (("tag",), "value") in definition[2]
        self.sections = {}
        shared = [Record(self, self.scopes[0], d) for d in self.scopes[0]["records"].values() if is_tagged(d)]
        for scope in self.scopes:
            own = list(scope["records"].values())
            tagged = [d for d in own if is_tagged(d)]
            records, stream = list(shared), None
            if scope["number"] and not tagged:
                elements = [d for d in own if not any(lists(o[1], d[0]) for o in own if o is not d)]
                stream = Record(self, scope, elements[0])
                records = [stream]
            elif scope["number"]:
                records += [Record(self, scope, d) for d in tagged]
            self.sections[scope["number"]] = (scope["name"], {r.name: r for r in records}, stream)

    def untagged(self, scope, name):
        for place in (scope, self.scopes[0]):
            found = place["records"].get(name)
            if found is not None and (("tag",), "value") not in found[2]:
                return found
        return None


class Section:
    """The state of a section (4)."""

    def __init__(self, writer, number):
        self.writer, self.number = writer, number
        self.name, self.records, self.stream = writer.dtd.sections[number]
        self.reset()

    def reset(self):
        self.state, self.cells, self.last = {}, {}, {}
        groups = {}
        for record in self.records.values():
            for at, leaf in enumerate(record.leaves):
                width = leaf.width if isinstance(leaf.width, int) and leaf.width <= 8 else 0
                self.state[record.name, at] = [width, width, leaf.interp]
                # Sharing is transitive.
                keys = [key for key in (leaf.cell, leaf.previous) if key] or [(record.name, at)]
                cell = next((groups[key] for key in keys if key in groups), (record.name, at))
                for key in keys:
                    old = groups.get(key, cell)
                    for known, at_cell in list(groups.items()):
                        if at_cell == old:
                            groups[known] = cell
                    groups[key] = cell
                self.state[record.name, at].append(keys)
        self.groups = groups
        for (name, at), (_, _, interp, keys) in self.state.items():
            if interp and interp[0] in ("delta", "stride"):
                self.cells[groups[keys[0]]] = interp[1]

    def number_of(self, record, at, value):
        """Returns the bytes of a number."""
        width, _, interp, keys = self.state[record.name, at]
        cell, kind = self.groups[keys[0]], interp[0]
        raw, signed = value, kind in ("baseOffset", "baseOf", "delta")
        if kind == "baseOffset":
            raw = value - interp[1]
        elif kind == "baseOf":
            raw = value - self.base(interp[1])
        elif kind == "delta":
            raw = value - self.cells.get(cell, 0)
        elif kind in ("default", "stride", "sectionStride"):
            width, raw = 0, 0
        self.cells[cell] = value
        raw &= MASK
        kept = raw & (1 << 8 * width) - 1
        if signed and width and kept >> 8 * width - 1:
            kept_value = kept | MASK & ~((1 << 8 * width) - 1)
        else:
            kept_value = kept
        if kept_value != raw:
            raise Unsupported(f"{record.name}: {value} does not fit")
        return kept.to_bytes(width, self.writer.order)

    def base(self, path):
        record = self.records[path[0]]
        leaves = record.leaves
        at = next((i for i, leaf in enumerate(leaves) if leaf.path == tuple(path[1:])), None)
        if at is None:
            at = next(i for i, leaf in enumerate(leaves) if leaf.name == path[1])
        return self.last.get((record.name, at), 0)

    def record(self, name, line):
        record = self.records[name]
        out = []
        last = [0] * len(record.leaves)
        line = {"vfield": line["text"]} if name == "comment" else line
        self.items(record, record.items, line, last, out)
        return b"".join(out)

    def items(self, record, items, line, last, out):
        for item in items:
            if item[0] == "leaf":
                leaf = item[1]
                at = next(i for i, known in enumerate(record.leaves) if known is leaf)
                if leaf.computed is not None:
                    last[at] = evaluate(leaf.computed, last)
                    continue
                self.leaf(record, at, line.get(leaf.key), last, out)
            elif item[0] == "nested":
                value = line[item[1]]
                self.items(record, item[3], text_of(item[3], value) if item[2] == "vfield" else value, last, out)
            else:
                _, count, key, inner, shape, optional = item
                at = next(i for i, known in enumerate(record.leaves) if known is count)
                values = ([line[key]] if key in line else []) if optional else line[key]
                if len(values) != last[at]:
                    raise Unsupported(f"{record.name}: {len(values)} items, not {last[at]}")
                for value in values:
                    if shape == "leaf":
                        leaf = inner[0][1]
                        self.leaf(record, next(i for i, known in enumerate(record.leaves) if known is leaf), value, last, out)
                    else:
                        self.items(record, inner, text_of(inner, value) if shape == "vfield" else value, last, out)

    def leaf(self, record, at, value, last, out):
        leaf = record.leaves[at]
        if value is None:
            value = leaf.constant
        if leaf.width is None or isinstance(leaf.width, int) and leaf.width <= 8:
            if isinstance(value, (float, dict)) or leaf.format == "f64":
                value = int(value["hex"], 16) if isinstance(value, dict) else struct.unpack("<Q", struct.pack("<d", value))[0]
            if not isinstance(value, int):
                raise Unsupported(f"a number as {value!r}")
            value &= MASK
            out.append(self.number_of(record, at, value))
            last[at] = self.last[record.name, at] = value
            return
        data = data_of(leaf, value)
        if isinstance(leaf.width, tuple) and leaf.width[0] == "until":
            data += bytes([leaf.width[1]])
        else:
            length = leaf.width if isinstance(leaf.width, int) else leaf.width[1] if leaf.width[0] == "bytes" else evaluate(leaf.width, last)
            if length != len(data):
                raise Unsupported(f"{record.name}: {len(data)} bytes, not {length}")
        out.append(data)

    def metadata(self, line):
        """Writes a metadata record and applies it (4.1)."""
        prop = line["property"]
        size = prop >> 4 or self.writer.word
        values = [line[key] for key in ("value", "value_2") if key in line]
        out = [n.to_bytes(w, self.writer.order) for n, w in ((self.writer.dtd.metadata_tag, self.writer.dtd.tag_width), (line["record"], self.writer.dtd.tag_width))]
        out += [bytes([line["field"], prop])] + [(v & (1 << 8 * size) - 1).to_bytes(size, self.writer.order) for v in values]
        record = next((r for r in self.records.values() if r.tag == line["record"]), None) or next(r for r in self.records.values() if r.catch_all)
        at = line["field"]
        targets = [(record, at)]
        if prop & 8:
            name = record.leaves[at].name
            targets = [(r, i) for r in self.records.values() for i, leaf in enumerate(r.leaves)
                       if leaf.name == name and leaf.constant is None and (leaf.width is None or isinstance(leaf.width, int) and leaf.width <= 8)]
        word = ("width", "none", "baseOffset", "delta", "default", "sectionOffset", "stride", "sectionStride")[prop & 7]
        for target, i in targets:
            state = self.state[target.name, i]
            if word == "width":
                if state[2][0] in ("default", "stride", "sectionStride"):
                    state[1] = values[0] or state[1]
                else:
                    state[0] = values[0]
                    state[1] = values[0] or state[1]
                continue
            state[2] = (word, *values)
            if word in ("delta", "stride"):
                self.cells[self.groups[state[3][0]]] = values[0]
            if word not in ("default", "stride", "sectionStride"):
                state[0] = state[1]
        return b"".join(out)


def text_of(inner, value):
    """Returns the fields of a `vfield`, given its data."""
    data = data_of(inner[-1][1], value)
    return {"length": len(data), "data": {"hex": data.hex()}}


def data_of(leaf, value):
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"]) if "hex" in value else value["text"].encode() + bytes.fromhex(value["tail"])
    is_text = leaf.format in ("utf8", "cstring") or leaf.path == ("vfield", "data") and leaf.format is None and leaf.key == "data" and leaf.is_comment
    if leaf.format == "cstring":
        return value.encode() + b"\0"
    return value.encode() if is_text else bytes.fromhex(value)


Leaf.is_comment = False


def crc32c(data):
    crc = MASK >> 32
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ MASK >> 32


class Writer:
    """Writes lines as a trace (5.1, 5.2)."""

    def __init__(self, text, number, order, url=b""):
        self.text, self.dtd, self.number, self.order, self.url = text, Dtd(text), number, order, url
        for leaf in self.dtd.sections[0][1]["comment"].leaves:
            leaf.is_comment = True
        self.word = 4 * number
        self.sections = {n: Section(self, n) for n in self.dtd.sections}
        self.names = {section.name: n for n, section in self.sections.items()}

    def content(self, line):
        """Returns the section of a line, the bytes of its record, and whether it is a data record or an element."""
        section = self.sections[self.names[line["@section"]]]
        if line["@record"] == "metadata":
            return section.number, section.metadata(line), 0
        return section.number, section.record(line["@record"], line), int(line["@record"] != "comment")

    def int(self, n):
        return n.to_bytes(self.word, self.order)

    def header(self, version, count, start, records):
        head = b"\x7fMTF" + bytes([self.number, 1 if self.order == "little" else 2, len(self.url), version]) + bytes(8)
        return head + self.int(count) + self.int(start) + self.int(records) + self.url

    def version_0(self, lines, has_table, counted, has_global):
        """Writes a file of version 0. The lines of `section` records determine the extents."""
        extents, elements, records, current = [[0, b""]], {}, 0, 0
        for line in lines:
            if line["@record"] == "section":
                extents.append([line["number"], b""])
                continue
            number, data, data_record = self.content(line)
            if self.sections[number].stream:
                elements[number] = elements.get(number, b"") + data
                continue
            records += data_record
            # Records follow in the order of the extents of tagged records.
            while extents[current][0] != number:
                current += 1
            extents[current][1] += data
        for number, data in elements.items():
            own = [extent for extent in extents if extent[0] == number]
            if len(own) != 1:
                raise Unsupported("several extents of a stream section")
            own[0][1] = data
        count = (len(extents) - 1 + has_global) * has_table
        start = 16 + 3 * self.word + len(self.url) + 3 * self.word * count
        out, table, at = b"", b"", start
        for number, data in extents:
            if number:
                data_at = at + self.dtd.tag_width + 1
                out += self.dtd.section_tag.to_bytes(self.dtd.tag_width, self.order) + bytes([number])
            else:
                data_at = at
            if number or has_global:
                table += self.int(number) + self.int(data_at) + self.int(len(data))
            out += data
            at = data_at + len(data)
        return self.header(0, count, start, records * counted) + table * has_table + out

    def version_1(self, lines, plan=None, counted=True):
        """Writes a file of version 1. The plan lists the section, length, flags and width of each data chunk; without a plan, there is one
        chunk for each section."""
        if plan is None:
            streams = sorted(n for n, section in self.sections.items() if section.stream)
            present = [n for n in streams + sorted(set(self.sections) - set(streams)) if any(self.names[line["@section"]] == n for line in lines)]
            plan = [(n, MASK, 1 if i else 3, self.width(n)) for i, n in enumerate(present)]
        chunks = [[section, length, flags, width, b"", 0] for section, length, flags, width in plan]
        own = {number: [chunk for chunk in chunks if chunk[0] == number] for number in self.sections}
        for line in lines:
            if "@group" in line:
                continue
            number = self.names[line["@section"]]
            section, waiting = self.sections[number], own[number]
            # A full chunk is followed by the next, whose flag bit 0 resets the state.
            while len(waiting[0][4]) == waiting[0][1] and len(waiting) > 1:
                waiting.pop(0)
                if waiting[0][2] & 1:
                    section.reset()
            if section.stream and self.width(number):
                section.state[section.stream.name, 0][0] = waiting[0][3]
            _, data, counts = self.content(line)
            waiting[0][4] += data
            waiting[0][5] += counts
        records = sum(chunk[5] for chunk in chunks if not self.sections[chunk[0]].stream)
        out, index, bases, sequence = self.header(1, 0, 16 + 3 * self.word + len(self.url), records * counted), b"", {}, 0

        def write(raw, section=0, kind=0, flags=0, width=0, records=0, group=0):
            nonlocal out, index, sequence
            base = bases.get(section, 0) if kind == 0 else 0
            head = b"MTFC" + bytes([section, kind, 0, 0, flags, width, self.number, 1 if self.order == "little" else 2])
            head += struct.pack("<IIIIIQI", len(raw), len(raw), records, group, sequence, base, 0)
            index += struct.pack("<QQBBBBIII", len(out), base, section, kind, 0, flags, len(raw), len(raw), records)
            sequence += 1
            start = len(out)
            out += head + struct.pack("<I", crc32c(head + raw)) + raw
            bases[section] = base + len(raw)
            return start

        write(self.text.encode(), kind=1)
        bases.clear()
        group = -1
        for section, _, flags, width, raw, count in chunks:
            group += flags >> 1 & 1
            write(raw, section, 0, flags, width, count, 0 if flags & 4 else group)
        start = struct.pack("<Q", write(index, kind=2))
        return out + start + struct.pack("<I", crc32c(start)) + b"MTFE"

    def width(self, number):
        """Returns the width of a stream section of one numeric leaf, or 0."""
        stream = self.sections[number].stream
        single = stream is not None and len(stream.items) == 1 and stream.items[0][0] == "leaf" and isinstance(stream.leaves[0].width, int)
        return stream.leaves[0].width if single else 0


def plan_of(trace, at):
    """Returns the plan of a trace whose chunks begin at an offset."""
    plan = []
    while trace[at:at + 4] == b"MTFC":
        section, kind, codec, filter, flags, width = trace[at + 4:at + 10]
        stored, raw = struct.unpack_from("<II", trace, at + 12)
        if codec or filter or kind > 2:
            raise Unsupported("a codec, a filter or user metadata")
        if kind == 0:
            plan.append((section, raw, flags, width))
        at += 48 + stored
    return plan


def compare(copies):
    """Compares all vectors, and writes copies into a folder if there is one."""
    folder = os.path.join(HERE, "vectors", "good")
    equal, skipped, wrong = [], [], []
    for name in sorted(os.listdir(folder)):
        path = lambda file: os.path.join(folder, name, file)
        if not all(os.path.exists(path(file)) for file in ("format.dtd", "trace.mtf", "expected_all.jsonl")):
            continue
        with open(path("trace.mtf"), "rb") as file:
            expected = file.read()
        with open(path("format.dtd"), encoding="utf-8") as file:
            text = file.read()
        with open(path("expected_all.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        order = "little" if expected[5] == 1 else "big"
        word = 4 * expected[4]
        number = lambda at: int.from_bytes(expected[at:at + word], order)
        try:
            writer = Writer(text, expected[4], order, expected[16 + 3 * word:][:expected[6]])
            if expected[7] == 0:
                table = 16 + 3 * word + expected[6]
                has_global = number(16) > 0 and number(table) == 0
                found = writer.version_0(lines, number(16) > 0, number(16 + 2 * word) > 0, has_global)
            else:
                found = writer.version_1(lines, plan_of(expected, 16 + 3 * word + expected[6]), number(16 + 2 * word) > 0)
        except Unsupported as reason:
            skipped.append(f"{name}: {reason}")
            continue
        (equal if found == expected else wrong).append(name)
        if copies and not any("@group" in line for line in lines):
            again = Writer(text, expected[4], order, b"format.dtd")
            with open(os.path.join(copies, f"{name}.mtf"), "wb") as file:
                file.write(again.version_1([line for line in lines if line["@record"] != "section"]))
    for line in skipped:
        print(f"skipped {line}")
    for name in wrong:
        print(f"{name}: other bytes")
    print(f"{len(equal)} vectors written byte for byte, {len(skipped)} skipped, {len(wrong)} different")
    return len(equal), wrong


def main():
    equal, wrong = compare(sys.argv[1] if len(sys.argv) > 1 else None)
    sys.exit(1 if wrong or equal < 36 else 0)


if __name__ == "__main__":
    main()
