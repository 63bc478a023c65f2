// Tests that Meta-TF DTDs and XML DTDs are distinguished by their beginning. Run by `npm test`; requires only esbuild.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(import.meta.url);
const source = fs.readFileSync(new URL("../src/recognize.ts", import.meta.url), "utf8");
const { code } = require("esbuild").transformSync(source, { loader: "ts", format: "esm" });
const { isMetaTF } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

const dtds = new URL("../../../../dtds/", import.meta.url).pathname;
const names = fs.readdirSync(dtds).filter((name) => name.endsWith(".dtd"));
assert.ok(names.length > 10);
for (const name of names) assert.equal(isMetaTF(fs.readFileSync(path.join(dtds, name), "utf8")), true, name);
assert.equal(isMetaTF("\uFEFF\n  section s 1 { }"), true);
assert.equal(isMetaTF("/* a format */"), true);
for (const xml of ["<!ELEMENT note (to)>", '<?xml version="1.0"?>', "\n<!-- c -->", "%common;", "", " \n"]) {
  assert.equal(isMetaTF(xml), false, xml);
}

// Every snippet has balanced brackets after its placeholders are removed.
const snippets = JSON.parse(fs.readFileSync(new URL("../snippets/metatf.json", import.meta.url), "utf8"));
for (const [name, { prefix, body }] of Object.entries(snippets)) {
  assert.ok(prefix && body.length > 0, name);
  const open = body.join("\n").replaceAll(/\$\{[^}]*\}|\$\w+/g, "").match(/[{(]/g)?.length ?? 0;
  const close = body.join("\n").replaceAll(/\$\{[^}]*\}|\$\w+/g, "").match(/[})]/g)?.length ?? 0;
  assert.equal(open, close, name);
}
