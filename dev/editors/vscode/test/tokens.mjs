// Reads texts (a JSON array of strings) and prints the tokens of the TextMate grammar for each, as in VS Code: [[start,
// end, innermost scope], ..], with offsets in UTF-8 bytes.
import fs from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const textmate = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");

const wasm = fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
const path = new URL("../syntaxes/metatf.tmLanguage.json", import.meta.url);
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (sources) => new oniguruma.OnigScanner(sources),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(path, "utf8"), "metatf.tmLanguage.json"),
});
const grammar = await registry.loadGrammar("source.metatf");

function tokens(text) {
  const found = [];
  let stack = textmate.INITIAL;
  let offset = 0;
  for (const line of text.split("\n")) {
    const result = grammar.tokenizeLine(line, stack);
    stack = result.ruleStack;
    const bytes = (index) => offset + Buffer.byteLength(line.slice(0, index));
    for (const { startIndex, endIndex, scopes } of result.tokens) {
      // Tokens that only have the scope of the grammar are omitted.
      if (scopes.length > 1) found.push([bytes(startIndex), bytes(Math.min(endIndex, line.length)), scopes.at(-1)]);
    }
    offset += Buffer.byteLength(line) + 1;
  }
  return found;
}

const texts = JSON.parse(fs.readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(texts.map(tokens)));
