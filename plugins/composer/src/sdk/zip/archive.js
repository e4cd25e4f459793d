// Zip archives that every program reads alike: one that two programs could unpack differently is refused, and so is one that grows out of
// all proportion. Only the directory and the headers are read here; what is compressed is decoded by the host, to a limit.

import { readAll } from "../blob.js";
import { hostError } from "../failure.js";
import { crc32 } from "./crc32.js";
import { STORED, find, readEntries } from "./directory.js";
import { check } from "./local_headers.js";
import { Refused, bomb } from "./refused.js";
import { ZipWindow } from "./window.js";

/** An archive may unpack to so many times its size … */
const RATIO = 100;
/** … and to so many bytes whatever its size, … */
const ALWAYS = 64 * 2 ** 20;
/** … and never to more. */
const NEVER = 100 * 2 ** 30;

/** An archive whose directory and headers agree. */
export class Archive {
  #blob;
  #entries;

  /** Reads the directory and checks that every program will find the same files in these bytes. */
  constructor(blob) {
    const window = new ZipWindow(blob);
    const place = find(window);
    const entries = readEntries(window, place);
    const names = new Set();
    for (const { name } of entries) {
      const bare = name.replace(/\/+$/, "");
      if (names.has(bare)) throw new Refused(`it has two files ${name}`);
      names.add(bare);
    }
    check(window, entries, place.start);
    this.#blob = blob;
    this.#entries = entries;
  }

  /** Names of files and folders. */
  names() {
    return this.#entries.map((entry) => entry.name);
  }

  /** Names of files. */
  files() {
    return this.names().filter((name) => !name.endsWith("/"));
  }

  /** Refuses what unpacks to far more than it is. */
  checkRatio(size) {
    const unpacked = this.#entries.reduce((sum, entry) => sum + entry.size, 0);
    if (unpacked > Math.min(Math.max(size * RATIO, ALWAYS), NEVER)) throw bomb(RATIO);
  }

  /** A file's content, where it is no more than `limit` bytes. */
  content(name, limit) {
    const entry = this.#entries.find((entry) => entry.name === name);
    if (entry === undefined) throw new Refused(`it has no file ${name}`);
    if (entry.size > limit) throw new Refused(`its file ${name} has more than ${limit} bytes`);
    const damaged = () => new Refused(`its file ${name} is damaged`);
    const part = this.#blob.slice(entry.data, entry.packed);
    const content = readAll(entry.method === STORED ? part : unpacked(part, entry.size, damaged), limit);
    if (content?.length !== entry.size || crc32(content) !== entry.crc) throw damaged();
    return content;
  }
}

function unpacked(part, size, damaged) {
  try {
    return part.decode("deflate", size, []);
  } catch (thrown) {
    const tag = hostError(thrown)?.tag;
    throw tag === "invalid" || tag === "too-large" ? damaged() : thrown;
  }
}
