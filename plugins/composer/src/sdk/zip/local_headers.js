// The headers before each file of a zip: they must say what the directory says, and with their data lie side by side from the archive's
// beginning to its directory. So a program that reads from the front finds what one finds that reads from the end.

import { STORED, longSizes } from "./directory.js";
import { startsWith, u16, u32, u64 } from "./numbers.js";
import { Refused } from "./refused.js";

/** The sizes stand behind the data. */
const SIZES_BEHIND = 1 << 3;
/** Encryption, sizes behind the data, UTF-8: what changes how the bytes are read. */
const TELLING = 0b1000_0000_1001;

/** Checks every header, and says in each entry where its data begin. `end` is where the directory begins. */
export function check(window, entries, end) {
  const order = [...entries].sort((one, other) => one.header - other.header);
  const starts = [...order.map((entry) => entry.header), end];
  if (starts[0] !== 0) throw new Refused("something stands before its first file");
  for (const [at, entry] of order.entries()) {
    checkHeader(window, entry);
    const next = starts[at + 1];
    const dataEnd = entry.data + entry.packed;
    if (dataEnd > next) throw new Refused(`its file ${entry.name} overlaps another`);
    checkBehind(window, entry, dataEnd, next - dataEnd);
  }
}

function checkHeader(window, entry) {
  const differs = () => new Refused(`its file ${entry.name} has two headers that differ`);
  const head = window.get(entry.header, 30).slice();
  const [flags, method, crc] = [u16(head, 6), u16(head, 8), u32(head, 14)];
  const [nameLength, extraLength] = [u16(head, 26), u16(head, 28)];
  if (!startsWith(head, "PK\x03\x04") || method !== entry.method || (flags & TELLING) !== (entry.flags & TELLING)) {
    throw differs();
  }
  const rest = window.get(entry.header + 30, nameLength + extraLength);
  const name = rest.subarray(0, nameLength);
  const [size, packed] = longSizes(rest.subarray(nameLength), [u32(head, 22), u32(head, 18)]);
  const behind = (flags & SIZES_BEHIND) !== 0;
  const same = crc === entry.crc && packed === entry.packed && size === entry.size;
  const saidLater = behind && crc === 0 && packed === 0 && size === 0;
  const sameName = name.length === entry.bytes.length && name.every((byte, at) => byte === entry.bytes[at]);
  if (!sameName || !(same || saidLater)) throw differs();
  if (behind && entry.method === STORED) throw new Refused(`where its file ${entry.name} ends cannot be told`);
  entry.data = entry.header + 30 + nameLength + extraLength;
}

/** What stands between a file's data and what comes next: nothing, or its sizes where the header left them out. */
function checkBehind(window, entry, at, length) {
  const expected = (entry.flags & SIZES_BEHIND) !== 0;
  if (!expected && length === 0) return;
  const unclear = () => new Refused(`something else stands behind its file ${entry.name}`);
  if (!expected || ![12, 16, 20, 24].includes(length)) throw unclear();
  const wide = length >= 20;
  const skip = length % 8 === 0 ? 4 : 0;
  const bytes = window.get(at, length);
  const signed = skip === 0 || startsWith(bytes, "PK\x07\x08");
  const [packed, size] = wide
    ? [u64(bytes, skip + 4), u64(bytes, skip + 12)]
    : [u32(bytes, skip + 4), u32(bytes, skip + 8)];
  const same = u32(bytes, skip) === entry.crc && packed === entry.packed && size === entry.size;
  if (!signed || !same) throw unclear();
}
