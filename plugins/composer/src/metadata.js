// `p2/VENDOR/PACKAGE.json` and `p2/VENDOR/PACKAGE~dev.json`: the versions of a package.

import { FORM, asJson, difference } from "./minify.js";
import { about, isName } from "./name.js";
import { proxiedVersions } from "./proxy.js";
import { filePath, isDeprecated, versionsOf } from "./records.js";
import { percentEncode } from "./sdk/address.js";
import { Failure } from "./sdk/failure.js";
import { Intent } from "./sdk/intent.js";
import { Output } from "./sdk/output.js";
import { Response } from "./sdk/response.js";
import { toRfc3339 } from "./sdk/timestamp.js";
import { Version } from "./version.js";

export function planMetadata(_request, params) {
  return about(Intent.read(), asked(params).name);
}

/** The package that is asked for, and whether its development versions are. */
function asked({ vendor, file }) {
  const stem = file.endsWith(".json") ? file.slice(0, -".json".length) : "";
  const dev = stem.endsWith("~dev");
  return { name: `${vendor}/${dev ? stem.slice(0, -"~dev".length) : stem}`, dev };
}

export function getMetadata(cx, request, params) {
  const { name, dev } = asked(params);
  const versions = isName(name) ? allVersions(cx, name, dev) : null;
  if (versions === null) throw Failure.notFound(`There is no package ${name} in this repository`);
  const out = new Output();
  out.push(`{"minified":"${FORM}","packages":{${JSON.stringify(name)}:[`);
  let before = new Map();
  for (const [at, found] of versions.entries()) {
    const now = addressed(request, name, found);
    const written = difference(before, now);
    // Two versions of one moment are written as any two.
    if (now.has("time")) written.set("time", now.get("time"));
    const members = [...written.keys()].sort().map((member) => `${JSON.stringify(member)}:${written.get(member)}`);
    out.push(`${at > 0 ? "," : ""}{${members.join(",")}}`);
    before = now;
  }
  out.push("]}}");
  return Response.of(out.finish(), "application/json").revalidate();
}

/** A version's members, with the address of its file here. */
function addressed(request, name, { text, members }) {
  if (members.has("dist")) {
    const dist = JSON.parse(members.get("dist"));
    const kind = typeof dist.type === "string" ? dist.type : "zip";
    dist.url = request.link(filePath(name, percentEncode(text), kind));
    members.set("dist", JSON.stringify(dist));
  }
  return members;
}

/** The versions of a package, the newest first, as `{version, text, members}`; of one version in two repositories the first stands. Null
 * where there is no package. */
function allVersions(cx, name, dev) {
  const [found, known] = [[], new Set()];
  let there = false;
  for (const repository of cx.sources()) {
    const more = repository.isProxy ? proxiedVersions(repository, name, dev) : hostedVersions(repository, name);
    if (more === null) continue;
    there = true;
    for (const one of more) {
      const key = one.version.key();
      if (one.version.isDev() !== dev || known.has(key)) continue;
      known.add(key);
      found.push(one);
    }
  }
  found.sort((one, other) => Version.compare(other.version, one.version));
  return there ? found : null;
}

function hostedVersions(repository, name) {
  const found = [];
  for (const { value: record } of repository.scan(versionsOf(name))) {
    const version = Version.parse(record.version);
    if (version !== null) found.push({ version, text: record.version, members: described(record) });
  }
  return found.length > 0 ? found : null;
}

/** What Composer is told of a version: its members, each as JSON. */
function described(record) {
  const { name, version, sha1 } = record;
  const members = asJson(record.members);
  const own = { name, version, dist: { reference: sha1, shasum: sha1, type: "zip" }, time: toRfc3339(record.time) };
  asJson(own).forEach((json, member) => members.set(member, json));
  if (isDeprecated(record) && !members.has("abandoned")) members.set("abandoned", "true");
  return members;
}
