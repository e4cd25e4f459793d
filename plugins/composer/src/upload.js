// Publishing: a zip as a body or in a form, with its version in the address or in its composer.json.

import { bad, composerJson } from "./archive.js";
import { FILE_LIMIT, FORM_LIMIT } from "./limits.js";
import { readPackage } from "./package.js";
import { shown, usedKey, versionKey } from "./records.js";
import { readAll } from "./sdk/blob.js";
import { Failure } from "./sdk/failure.js";
import { Intent } from "./sdk/intent.js";
import { stringify } from "./sdk/json.js";
import { ABSENT, unchanged } from "./sdk/repository.js";
import { Response } from "./sdk/response.js";
import { fileLimit, settingsOf } from "./sdk/settings.js";
import { decode, quoted } from "./sdk/text.js";
import { Version } from "./version.js";

/** Bytes of a form's field that says the version. */
const FIELD = 200;

export function planUpload(request) {
  const kind = (request.header("content-type") ?? "").trimStart().toLowerCase();
  const intent = Intent.publish();
  if (kind.startsWith("multipart/form-data")) intent.parts(FORM_LIMIT);
  else intent.body(FILE_LIMIT);
  return intent.digests(["sha1"]);
}

/** `PUT /NAME.zip`: curl puts the file's name behind an address that ends with a slash. What it is called tells nothing. */
export function planFile(request, { file }) {
  if (file.endsWith(".json")) throw Failure.methodNotAllowed("GET, HEAD");
  if (!file.endsWith(".zip")) throw Failure.notFound("A package is put as a file called .zip");
  return planUpload(request).subject(file);
}

export function planNamed(request, params) {
  return planUpload(request).subject(named(params));
}

/** The package that the address names; null where it names none. */
function named(params) {
  return params.vendor === undefined ? null : `${params.vendor}/${params.package}`;
}

export function upload(cx, request, params) {
  const { zip, said } = sent(request);
  const repository = cx.target;
  const settings = settingsOf(repository);
  const [size, limit] = [zip.size(), fileLimit(settings, FILE_LIMIT)];
  if (size > limit) throw Failure.tooLarge(`The zip has ${size} bytes, and at most ${limit} are allowed`);
  const { name, version: own, members } = readPackage(composerJson(zip));
  const address = named(params);
  if (address !== null && address !== name) {
    throw bad(`The address says ${address}, but its composer.json says ${name}`);
  }
  const asked = [params.version, request.query("version"), said].find((text) => text) ?? null;
  const { text, version } = agreed(asked, own);
  const [sha256, sha1] = [repository.keep(zip), zip.digest("sha1").slice("sha1:".length)];
  const record = { name, version: text, members, sha256, sha1, size, time: cx.now() };
  publish(repository, settings, record, version.key());
  return Response.json(stringify({ name, version: text })).withStatus(201);
}

/** The zip, and the version that a form says. */
function sent(request) {
  const body = request.takeBody();
  if (body !== null) return { zip: body, said: null };
  let [zip, said] = [null, null];
  for (const part of request.takeParts()) {
    const isFile = part.filename !== null;
    if (isFile && zip !== null) throw Failure.invalid("The form has more than one file");
    if (isFile) zip = part.body;
    else if (part.name === "version") said = fieldText(part.body);
  }
  if (zip === null) throw Failure.invalid("The form has no file: the package's zip goes in one");
  return { zip, said };
}

function fieldText(body) {
  const bytes = readAll(body, FIELD);
  const text = bytes === null ? null : decode(bytes);
  if (text === null) throw Failure.invalid("The field `version` is no version");
  return text;
}

/** The version that is published, where all who say one say the same: its text, and as it is read. */
function agreed(asked, own) {
  const text = asked ?? own;
  if (text === null) throw bad("Neither the request says a version (?version=1.0.0) nor its composer.json");
  const version = readVersion(text);
  if (asked !== null && own !== null && readVersion(own).key() !== version.key()) {
    throw bad(`The request says version ${asked}, but its composer.json says ${own}`);
  }
  return { text, version };
}

function readVersion(text) {
  const version = Version.parse(text);
  if (version === null) throw bad(`${quoted(text)} is no version that a package is published under`);
  return version;
}

function publish(repository, settings, record, version) {
  const [key, used] = [versionKey(record.name, version), usedKey(record.name, version)];
  repository.update("the same package", (change) => {
    const [there, before] = [repository.get(key), repository.get(used)];
    if (there !== null) {
      if (settings.redeploy === "identical" && there.value.sha256 === record.sha256) return false;
      throw Failure.alreadyExists(
        `Version ${there.value.version} of ${record.name} is there already; publish a new version`,
      );
    }
    if (before !== null && !settings.republish_deleted) {
      throw Failure.alreadyExists(
        `Version ${record.version} of ${record.name} was deleted here, and its number is not used again; publish a new version`,
      );
    }
    change.put(key, record, ABSENT, [record.sha256]);
    change.put(used, true, unchanged(before));
    change.show(shown(record));
    return true;
  });
}
