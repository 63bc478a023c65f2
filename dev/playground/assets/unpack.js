// Unpacks the module. LZMA finds repetitions across megabytes of code, unlike the compression streams of browsers. The
// packed bytes are a stream in the format of Python's lzma.FORMAT_ALONE with lc 3, lp 0, pb 0 and a known length.
"use strict";
const unpack = packed => {
  const out = new Uint8Array(new DataView(packed.buffer, packed.byteOffset).getUint32(5, true));
  let at = 18, range = 0xffffffff, code = new DataView(packed.buffer, packed.byteOffset).getUint32(14);

  // The range decoder: a bit with an adaptive probability, the bits of a tree, and bits without probabilities.
  const refill = () => {
    if (range < 0x1000000) [range, code] = [(range << 8) >>> 0, ((code << 8) | packed[at++]) >>> 0];
  };
  const bit = (odds, of) => {
    const bound = (range >>> 11) * odds[of];
    if (code < bound) {
      range = bound;
      odds[of] += (2048 - odds[of]) >> 5;
      refill();
      return 0;
    }
    [range, code] = [range - bound, code - bound];
    odds[of] -= odds[of] >> 5;
    refill();
    return 1;
  };
  const odds = length => new Uint16Array(length).fill(1024);
  const tree = (odds, bits, base = 0) => {
    let node = 1;
    for (let n = 0; n < bits; n++) node = 2 * node + bit(odds, base + node);
    return node - (1 << bits);
  };
  const reversed = (odds, bits, base) => {
    let node = 1, value = 0;
    for (let n = 0; n < bits; n++) {
      const of = bit(odds, base + node);
      node = 2 * node + of;
      value |= of << n;
    }
    return value;
  };
  const direct = bits => {
    let value = 0;
    for (let n = 0; n < bits; n++) {
      range >>>= 1;
      const of = code >= range ? 1 : 0;
      if (of) code -= range;
      value = 2 * value + of;
      refill();
    }
    return value;
  };

  const lengths = () => ({ choice: odds(2), low: odds(8), middle: odds(8), high: odds(256) });
  const length = of => (!bit(of.choice, 0) ? tree(of.low, 3) : !bit(of.choice, 1) ? 8 + tree(of.middle, 3) : 16 + tree(of.high, 8)) + 2;
  const literals = odds(8 * 0x300), isMatch = odds(12), isOld = odds(12), isSecond = odds(12), isThird = odds(12), isFourth = odds(12), isLong = odds(12);
  const slots = [0, 1, 2, 3].map(() => odds(64)), near = odds(128), align = odds(16), fresh = lengths(), old = lengths();
  const distance = size => {
    const slot = tree(slots[Math.min(size - 2, 3)], 6), bits = (slot >> 1) - 1;
    if (slot < 4) return slot;
    const high = (2 | (slot & 1)) << bits;
    return slot < 14 ? high + reversed(near, bits, high - slot) : high + direct(bits - 4) * 16 + reversed(align, 4, 0);
  };

  // The decoder state, and the last four distances, each reduced by one.
  let state = 0, far = [0, 0, 0, 0];
  for (let to = 0; to < out.length; ) {
    if (!bit(isMatch, state)) {
      const base = 0x300 * ((out[to - 1] ?? 0) >> 5);
      let node = 1;
      if (state >= 7) {
        for (let other = out[to - far[0] - 1] << 1; node < 256; other <<= 1) {
          const wanted = other & 256, of = bit(literals, base + 256 + wanted + node);
          node = 2 * node + of;
          if ((wanted !== 0) !== (of !== 0)) break;
        }
      }
      while (node < 256) node = 2 * node + bit(literals, base + node);
      out[to++] = node;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let size;
    if (!bit(isOld, state)) {
      size = length(fresh);
      far = [distance(size), ...far.slice(0, 3)];
      state = state < 7 ? 7 : 10;
    } else {
      let short = false;
      if (!bit(isSecond, state)) short = !bit(isLong, state);
      else {
        const which = !bit(isThird, state) ? 1 : !bit(isFourth, state) ? 2 : 3;
        far = [far[which], ...far.filter((_, n) => n !== which)];
      }
      size = short ? 1 : length(old);
      state = short ? (state < 7 ? 9 : 11) : state < 7 ? 8 : 11;
    }
    for (const end = Math.min(to + size, out.length); to < end; to++) out[to] = out[to - far[0] - 1];
  }
  return out;
};
