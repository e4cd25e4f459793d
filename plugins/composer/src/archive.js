// A package's zip: its `composer.json`, at the top or in the one folder that all is in. The host unpacks it, to a limit.

import { Failure } from "./sdk/failure.js";
import { Archive } from "./sdk/zip/archive.js";
import { Refused } from "./sdk/zip/refused.js";

/** Bytes of a composer.json. */
const COMPOSER_JSON = 512 << 10;

/** The bytes of a package's own composer.json; 400 `invalid_package` for what programs could unpack differently, or far beyond its size. */
export function composerJson(zip) {
  try {
    const archive = new Archive(zip);
    archive.checkRatio(zip.size());
    return archive.content(find(archive), COMPOSER_JSON);
  } catch (thrown) {
    throw thrown instanceof Refused ? bad(`Of the file: ${thrown.message}`) : thrown;
  }
}

/** 400 with a sentence for who sent the zip. */
export function bad(text) {
  return new Failure(400, "invalid_package", `This is no zip of a Composer package. ${text}`);
}

function find(archive) {
  const outside = (name) => name.startsWith("/") || name.includes("\\") || name.split("/").includes("..");
  if (archive.names().some(outside)) throw bad("A name in it leads out of its folder");
  const own = archive.files().filter((name) => name.split("/").at(-1) === "composer.json");
  const at = (depth) => own.filter((name) => name.split("/").length === depth + 1);
  const [top, below] = [at(0), at(1)];
  if (top.length === 1) return top[0];
  if (top.length === 0 && below.length === 1) return below[0];
  if (top.length === 0 && below.length === 0) {
    throw bad("It holds no composer.json, neither at its top nor in a folder right below");
  }
  throw bad("It holds more than one composer.json that could be the package's own");
}
