// A zip's end and its central directory, read so strictly that no other reading of the same bytes is possible.

import { decode, quoted } from "../text.js";
import { startsWith, u16, u32, u64 } from "./numbers.js";
import { Refused } from "./refused.js";

/** The end record and the longest comment behind it. */
const TAIL = 22 + 65_535;
/** Files of an archive. */
const ENTRIES = 100_000;
/** Bytes of a directory. */
const DIRECTORY = 16 << 20;
/** Bits that say nothing of how the bytes are to be read but what is handled here: compression levels, sizes behind the data, UTF-8. */
const FLAGS = 0b1000_0000_1110;
/** Names are UTF-8. */
const UTF8 = 1 << 11;
/** An extra field with sizes of 64 bits. */
const ZIP64 = 1;
/** An extra field with another name for the same file. */
const OTHER_NAME = 0x7075;
/** Stands for a number that does not fit 32 bits. */
const ELSEWHERE = 0xffffffff;

export const STORED = 0;
export const DEFLATED = 8;

/** Where the directory lies, `{start, end, entries}`, found from the archive's end. */
export function find(window) {
  const tailStart = Math.max(window.size - TAIL, 0);
  const tail = window.get(tailStart, window.size - tailStart);
  const at = lastEndRecord(tail);
  if (at < 0) throw new Refused("it is no zip archive: it has no end record");
  const record = tail.slice(at);
  if (record.length < 22 || record.length !== 22 + u16(record, 20)) {
    throw new Refused("something stands behind its end record");
  }
  const onOtherDisks = u16(record, 4) !== 0 || u16(record, 6) !== 0;
  if (onOtherDisks || u16(record, 8) !== u16(record, 10)) throw new Refused("it is a part of a larger archive");
  const short = [u16(record, 10), u32(record, 12), u32(record, 16)];
  const long = longEnd(window, tailStart + at);
  const end = long?.end ?? tailStart + at;
  const [entries, length, start] = long?.numbers ?? short;
  const standsFor = (one, other, most) => one === other || (one === most && other >= most);
  const agree =
    standsFor(short[0], entries, 0xffff) &&
    standsFor(short[1], length, ELSEWHERE) &&
    standsFor(short[2], start, ELSEWHERE);
  if (!agree || start + length !== end) throw new Refused("its end record and its directory do not agree");
  if (entries > ENTRIES || length > DIRECTORY) throw new Refused(`it has more than ${ENTRIES} files`);
  return { start, end, entries };
}

/** Where the last end record begins in these bytes. */
function lastEndRecord(tail) {
  for (let at = tail.length - 4; at >= 0; at--) {
    if (tail[at] === 0x50 && tail[at + 1] === 0x4b && tail[at + 2] === 5 && tail[at + 3] === 6) return at;
  }
  return -1;
}

/** The end record of 64 bits with its place: where there is one, it must lie right before its locator, and that right before the end. */
function longEnd(window, end) {
  const locatorAt = end - 20;
  if (locatorAt < 0) return null;
  const locator = window.get(locatorAt, 20).slice();
  if (!startsWith(locator, "PK\x06\x07")) return null;
  const wrong = () => new Refused("its end record of 64 bits is not where it must be");
  const at = u64(locator, 8);
  if (u32(locator, 4) !== 0 || u32(locator, 16) !== 1 || at + 56 !== locatorAt) throw wrong();
  const record = window.get(at, 56);
  const whole =
    startsWith(record, "PK\x06\x06") &&
    u64(record, 4) === 44 &&
    u64(record, 16) === 0 &&
    u64(record, 24) === u64(record, 32);
  if (!whole) throw wrong();
  return { numbers: [u64(record, 32), u64(record, 40), u64(record, 48)], end: at };
}

/** The directory's entries, in their order. */
export function readEntries(window, place) {
  const entries = [];
  let at = place.start;
  while (at < place.end) {
    const { entry, length } = readEntry(window, at);
    at += length;
    entries.push(entry);
  }
  if (at !== place.end || entries.length !== place.entries) {
    throw new Refused("its directory has not as many entries as it says");
  }
  return entries;
}

function readEntry(window, at) {
  const head = window.get(at, 46).slice();
  if (!startsWith(head, "PK\x01\x02")) throw new Refused("its directory is damaged");
  const [flags, method, crc] = [u16(head, 8), u16(head, 10), u32(head, 16)];
  const [nameLength, extraLength, comment] = [u16(head, 28), u16(head, 30), u16(head, 32)];
  const rest = window.get(at + 46, nameLength + extraLength);
  const bytes = rest.slice(0, nameLength);
  const name = fileName(bytes, flags);
  if ((flags & ~FLAGS) !== 0 || u16(head, 34) !== 0) {
    throw new Refused(`its file ${name} is encrypted or needs another feature of zip`);
  }
  if (method !== STORED && method !== DEFLATED) throw new Refused(`its file ${name} is neither stored nor deflated`);
  const extra = rest.subarray(nameLength);
  const [size, packed, header] = longSizes(extra, [u32(head, 24), u32(head, 20), u32(head, 42)]);
  if (method === STORED && size !== packed) {
    throw new Refused(`its file ${name} is stored in another size than its own`);
  }
  const entry = { name, bytes, method, flags, crc, packed, size, header, data: 0 };
  return { entry, length: 46 + nameLength + extraLength + comment };
}

/** A name that every program unpacks to the same place, within the folder that it unpacks to. */
function fileName(bytes, flags) {
  const text = decode(bytes);
  if (text === null || (text.length !== bytes.length && (flags & UTF8) === 0)) {
    throw new Refused("a file of it has a name that is not UTF-8");
  }
  const segments = (text.endsWith("/") ? text.slice(0, -1) : text).split("/");
  const harmless = segments.every((segment) => !["", ".", ".."].includes(segment)) && !/[\\\x00-\x1f\x7f-\x9f]/.test(text);
  if (!harmless || bytes.length > 1024) throw new Refused(`${quoted(text)} is no name for a file in an archive`);
  return text;
}

/** The true values of those that do not fit 32 bits: an extra field has them, in this order. */
export function longSizes(extra, values) {
  const damaged = () => new Refused("an extra field of one of its files is damaged");
  const long = [...values];
  let seen = false;
  for (let rest = extra; rest.length > 0; ) {
    if (rest.length < 4 || rest.length < 4 + u16(rest, 2)) throw damaged();
    const field = rest.subarray(0, 4 + u16(rest, 2));
    rest = rest.subarray(field.length);
    const kind = u16(field, 0);
    if (kind === OTHER_NAME) throw new Refused("one of its files has two names");
    if (kind !== ZIP64) continue;
    if (seen) throw damaged();
    seen = true;
    let at = 4;
    for (const [index, value] of long.entries()) {
      if (value !== ELSEWHERE) continue;
      if (at + 8 > field.length) throw damaged();
      long[index] = u64(field, at);
      at += 8;
    }
  }
  return long;
}
