// Stores the format and its records in the page's address: compressed, after the `#`, which browsers do not send to
// servers.
"use strict";
/// Maximum length of a created address fragment, and maximum size of a text read from one.
const LONGEST = 60000, MOST_TEXT = 4 << 20;

/// Returns the fragment of an address, or null if it would be too long.
async function toFragment(shared) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(shared)), new CompressionStream("deflate-raw"), MOST_TEXT);
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  const text = btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return text.length > LONGEST ? null : `#v1:${text}`;
}

/// Returns the contents of a fragment, or null if there is none. Fails if the fragment is damaged.
async function fromFragment(fragment) {
  if (!fragment.startsWith("#v1:")) return null;
  const bytes = fromBase64(fragment.slice(4).replaceAll("-", "+").replaceAll("_", "/"));
  const { dtd, lines, options } = JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"), MOST_TEXT)));
  if (typeof dtd !== "string" || typeof lines !== "string") throw new Error("it does not contain a format");
  const { big, version_0, lz4 } = options ?? {};
  return { dtd, lines, options: { big: big === true, version_0: version_0 === true, lz4: lz4 === true } };
}
