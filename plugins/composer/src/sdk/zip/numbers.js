// Little-endian numbers in headers. Those of eight bytes are exact up to 2^53; what is larger lies past the end of any archive, and stays so.

export function u16(bytes, at) {
  return bytes[at] | (bytes[at + 1] << 8);
}

export function u32(bytes, at) {
  return u16(bytes, at) + u16(bytes, at + 2) * 0x10000;
}

export function u64(bytes, at) {
  return u32(bytes, at) + u32(bytes, at + 4) * 0x100000000;
}

/** Whether bytes begin with this signature, of ASCII. */
export function startsWith(bytes, signature) {
  return [...signature].every((symbol, at) => bytes[at] === symbol.charCodeAt(0));
}
