// Versions as Composer normalises and compares them.

import { compare as compareTexts } from "./sdk/text.js";

/** Bytes of a version. */
const LONGEST = 80;
/** What numbers hold: as many as an unsigned number of 64 bits does. */
const LARGEST = 2n ** 64n - 1n;

/** Stabilities in the order in which they are released, and what stands for each in a key. */
const ALPHA = 0;
const BETA = 1;
const CANDIDATE = 2;
const STABLE = 3;
const PATCH = 4;
const BEFORE_ALL = -1;
const IN_KEY = ["-alpha", "-beta", "-RC", "", "-patch"];

/** Spellings, the longest of those that begin alike first. */
const WORDS = [
  ["stable", STABLE],
  ["alpha", ALPHA],
  ["beta", BETA],
  ["patch", PATCH],
  ["rc", CANDIDATE],
  ["pl", PATCH],
  ["a", ALPHA],
  ["b", BETA],
  ["p", PATCH],
];

/** Most versions: numbers that are exact as they are. */
const PLAIN = /^(\d{1,15})(?:\.(\d{1,15}))?(?:\.(\d{1,15}))?(?:\.(\d{1,15}))?$/;

/** A version, read: a branch (`dev-main`), or up to four numbers, what it is short of, and whether it is a development of that. */
export class Version {
  constructor({ branch = null, numbers = [], stability = STABLE, more = [], dev = false }) {
    Object.assign(this, { branch, numbers, stability, more, dev });
  }

  /** Reads one. Null for what is none, and for one that is a branch of many numbers (`1.x-dev`), which nobody publishes as a file. */
  static parse(text) {
    const plain = PLAIN.exec(text);
    if (plain !== null) return new Version({ numbers: plain.slice(1).map((digits) => Number(digits ?? 0)) });
    if (text.length > LONGEST || !/^[A-Za-z0-9_.+-]+$/.test(text)) return null;
    if (text.startsWith("dev-")) {
      const branch = text.slice("dev-".length);
      return /^[A-Za-z0-9]/.test(branch) && !branch.includes("..") ? new Version({ branch }) : null;
    }
    // Build metadata counts for nothing.
    const lower = text.split("+")[0].toLowerCase();
    const [, digits, rest] = /^v?((?:\d+(?:\.(?=\d)\d+){0,3})?)(.*)$/.exec(lower);
    const numbers = digits.split(".").map(numberOf);
    if (numbers.includes(null)) return null;
    while (numbers.length < 4) numbers.push(0);
    const read = readStability(rest);
    if (read === null) return null;
    const dev = read.rest.replace(/^[-.]+/, "") === "dev";
    if (!dev && read.rest !== "") return null;
    return new Version({ numbers, stability: read.stability, more: read.more, dev });
  }

  /** Reads one that has numbers. Null for a branch, which has no place among versions, and for what is none. */
  static parseNumbered(text) {
    const version = Version.parse(text);
    return version === null || version.branch !== null ? null : version;
  }

  /** The same text for all spellings of a version. */
  key() {
    if (this.branch !== null) return `dev-${this.branch}`;
    const { numbers, stability, more, dev } = this;
    return `${numbers.join(".")}${IN_KEY[stability]}${more.join(".")}${dev ? "-dev" : ""}`;
  }

  /** Whether it stands in a package's `~dev.json`. */
  isDev() {
    return this.branch !== null || this.dev;
  }

  isPrerelease() {
    return this.isDev() || this.stability < STABLE;
  }

  /** Its stability; a development of nothing but the numbers comes before all that is released of them, another right before that. */
  rank() {
    return this.dev && this.stability === STABLE ? BEFORE_ALL : this.stability;
  }

  /** Below zero where `one` is the lower. Branches, of which Composer knows no order, come first, by their names. */
  static compare(one, other) {
    if (one.branch !== null || other.branch !== null) {
      if (one.branch !== null && other.branch !== null) return compareTexts(one.branch, other.branch);
      return one.branch !== null ? -1 : 1;
    }
    return (
      compareLists(one.numbers, other.numbers) ||
      one.rank() - other.rank() ||
      compareLists(one.more, other.more) ||
      Number(other.dev) - Number(one.dev)
    );
  }
}

/** The number of these digits, a BigInt only where it has to be one; null for none, and for one that is too large. */
function numberOf(digits) {
  if (digits === "") return null;
  const number = Number(digits);
  if (Number.isSafeInteger(number)) return number;
  const large = BigInt(digits);
  return large > LARGEST ? null : large;
}

/** The stability that is said, with its numbers, and what stands behind it. */
function readStability(rest) {
  const bare = rest.replace(/^[-._]+/, "");
  const word = WORDS.find(([spelling]) => bare.startsWith(spelling));
  if (word === undefined) return { stability: STABLE, more: [], rest };
  const after = bare.slice(word[0].length);
  // A mark before `dev` is not of the numbers.
  const digits = /^[\d.-]*/.exec(after)[0].replace(/[-.]+$/, "");
  const left = after.slice(digits.length);
  const more = digits.split(/[.-]/).filter((part) => part !== "").map(numberOf);
  if (more.includes(null) || (digits === "" && /^[a-z]/.test(left))) return null;
  return { stability: word[1], more, rest: left };
}

/** A list that another begins with is the lower. */
function compareLists(one, other) {
  for (let at = 0; at < Math.min(one.length, other.length); at++) {
    if (one[at] !== other[at]) return one[at] < other[at] ? -1 : 1;
  }
  return one.length - other.length;
}
