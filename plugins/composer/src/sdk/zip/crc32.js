// CRC-32, as zip archives have it.

const TABLE = new Uint32Array(256).map((_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  return rest;
});

export function crc32(bytes) {
  let rest = 0xffffffff;
  for (let at = 0; at < bytes.length; at++) rest = TABLE[(rest ^ bytes[at]) & 0xff] ^ (rest >>> 8);
  return (rest ^ 0xffffffff) >>> 0;
}
