// The format and its records in the page's address: compressed, behind the `#`, which no server sees.
"use strict";
/// The longest that an address is made, and the longest text that is taken from one.
const LONGEST = 60000, MOST_TEXT = 4 << 20;

/// The part of an address behind `#`; null where it would be too long.
async function toFragment(shared) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(shared)), new CompressionStream("deflate-raw"), MOST_TEXT);
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  const text = btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return text.length > LONGEST ? null : `#v1:${text}`;
}

/// What is shared by such a part; null where there is none. Fails where it is damaged.
async function fromFragment(fragment) {
  if (!fragment.startsWith("#v1:")) return null;
  const bytes = fromBase64(fragment.slice(4).replaceAll("-", "+").replaceAll("_", "/"));
  const { dtd, lines, options } = JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"), MOST_TEXT)));
  if (typeof dtd !== "string" || typeof lines !== "string") throw new Error("it has no format");
  const { big, version_0, lz4 } = options ?? {};
  return { dtd, lines, options: { big: big === true, version_0: version_0 === true, lz4: lz4 === true } };
}
