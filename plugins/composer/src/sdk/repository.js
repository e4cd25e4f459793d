// A repository as a plugin reaches it: an ordered map of small documents, blobs, and which of an upstream's releases may be offered.

import { Transaction } from "packhouse:format/records@0.1.0";
import { judgeAsked, judgeVersions } from "packhouse:format/releases@0.1.0";
import { Failure } from "./failure.js";
import { parseStored, stringify } from "./json.js";
import { byteLength, decode, encode } from "./text.js";

/** Records and keys of a page. */
const RECORDS = 1_000;
const KEYS = 10_000;
/** Releases that the host judges at once; names that it is asked for at once, and their bytes. */
const RELEASES = 100_000;
const NAMES = 10_000;
const NAMES_BYTES = 1 << 20;
/** How often a change is tried before it is given up. */
const TRIES = 100;

/** Nothing has to hold of a key. */
export const ANYTHING = { tag: "anything" };
/** There is no record. */
export const ABSENT = { tag: "absent" };

/** That a key is still as it was read: `entry` is what was read, or null. */
export function unchanged(entry) {
  return entry === null ? ABSENT : { tag: "revision", val: entry.revision };
}

export class Repository {
  #kind = null;
  #settings = null;

  /** Over the host's handle. */
  constructor(host) {
    this.host = host;
  }

  get kind() {
    return (this.#kind ??= this.host.kind());
  }

  get isProxy() {
    return this.kind === "proxy";
  }

  settings() {
    return (this.#settings ??= JSON.parse(this.host.settings()));
  }

  /** The record, read as JSON, as `{key, value, revision}`; null where there is none. */
  get(key) {
    const entry = this.host.get(key);
    return entry === null ? null : read(entry);
  }

  /** Records whose key begins with `prefix`, in the order of the keys' bytes, a page at a time. */
  *scan(prefix) {
    let after = null;
    for (;;) {
      const page = this.host.scan(prefix, after, RECORDS);
      if (page.length === 0) return;
      for (const entry of page) yield read(entry);
      after = page.at(-1).key;
    }
  }

  /** Keys that begin with `prefix`, cut off behind the first `delimiter` beyond it, each once. */
  *keys(prefix, delimiter) {
    let after = null;
    for (;;) {
      const page = this.host.keys(prefix, delimiter, after, KEYS);
      yield* page;
      if (page.length < KEYS) return;
      after = page.at(-1);
    }
  }

  /** Packages among what is shown whose name, summary or keywords hold every word of `text`, as `{names, total}`. */
  search(text, offset, limit) {
    return this.host.search(text, offset, limit);
  }

  /** Of these packages those that no upstream may be asked for, and none of an upstream's is shown as. */
  withheld(names) {
    const found = new Set();
    let [page, bytes] = [[], 0];
    const ask = () => {
      if (page.length > 0) this.host.withheld(page).forEach((name) => found.add(name));
      [page, bytes] = [[], 0];
    };
    for (const name of names) {
      const size = byteLength(name);
      if (page.length === NAMES || bytes + size > NAMES_BYTES) ask();
      page.push(name);
      bytes += size;
    }
    ask();
    return found;
  }

  /** Those of these that this proxy may offer of a package, in their order; `release` says what is known of each. */
  offered(name, all, release) {
    const offered = [];
    for (let at = 0; at < all.length; at += RELEASES) {
      const page = all.slice(at, at + RELEASES);
      const verdicts = judgeVersions(this.host, name, page.map(release));
      offered.push(...page.filter((_, index) => verdicts[index] === "offered"));
    }
    return offered;
  }

  /** Whether this proxy may offer the one release that a request is about. */
  mayOffer(name, release) {
    return judgeAsked(this.host, name, release) === "offered";
  }

  /** The blob that a record of this repository names, and so holds. */
  recordedBlob(digest) {
    const blob = this.host.blob(digest);
    if (blob === null) throw Failure.internal(`a record names ${digest}, which is not held`);
    return blob;
  }

  /** Holds this blob for the time of grace, so that a commit may name it. Answers its SHA-256. */
  keep(blob) {
    return this.host.keep(blob);
  }

  /** A change that is put together and committed by its user. */
  begin() {
    return new Change(this.host.begin());
  }

  /** Changes the repository: `attempt` reads what it has to know and puts the change together, which then is committed, unless it answers
   * `false`: then there is nothing to commit. Where others were faster it is asked again, and must read anew. */
  update(what, attempt) {
    for (let tried = 0; tried < TRIES; tried++) {
      const change = this.begin();
      if (attempt(change) === false || change.commit()) return;
    }
    throw Failure.busy(what);
  }
}

/** A change that is being put together. Dropped, nothing happens. */
class Change {
  #host;

  constructor(host) {
    this.#host = host;
  }

  /** Puts a record that is a JSON document. `blobs` are those that it keeps alive. */
  put(key, value, expect, blobs = []) {
    this.#host.put(key, encode(stringify(value)), expect, blobs);
  }

  remove(key, expect) {
    this.#host.remove(key, expect);
  }

  require(key, expect) {
    this.#host.require(key, expect);
  }

  /** Shows a version, or changes what is shown of it. What is not said is empty. */
  show(version) {
    this.#host.show({ files: [], published: null, summary: "", properties: [], state: "", ...version });
  }

  hide(name, version) {
    this.#host.hide({ name, version });
  }

  /** Applies it, durably; false where it was not, because others were faster. */
  commit() {
    return Transaction.commit(this.#host).tag === "applied";
  }
}

function read({ key, value, revision }) {
  try {
    return { key, value: parseStored(decode(value)), revision };
  } catch (error) {
    throw Failure.internal(`record ${key}: ${error}`);
  }
}
