// A proxy: its upstream's metadata with addresses of its own, and the files, checked against what the metadata say of them.
//
// Records stand for the versions whose file was fetched: they tell later what the upstream has no longer, and serve a file without the
// metadata.

import { FILE_LIMIT } from "./limits.js";
import { asJson } from "./minify.js";
import { allFetched, fetchedKey, filePath } from "./records.js";
import { below } from "./sdk/address.js";
import { readAll } from "./sdk/blob.js";
import { fetchFrom } from "./sdk/context.js";
import { Failure } from "./sdk/failure.js";
import { parseStored, stringify } from "./sdk/json.js";
import { unchanged } from "./sdk/repository.js";
import { Response } from "./sdk/response.js";
import { settingsOf } from "./sdk/settings.js";
import { decode } from "./sdk/text.js";
import { readListed, readRoot } from "./upstream_metadata.js";
import { Version } from "./version.js";

/** Bytes of `packages.json`, and of a package's metadata. */
const DOCUMENT = 8 << 20;

/** The upstream's versions of a package, as far as they may be offered; null where it has no such package. */
export function proxiedVersions(proxy, name, dev) {
  const listed = fromUpstream(proxy, name, dev);
  const gone = withdraw(proxy, name, listed ?? [], dev);
  const offered = [
    ...proxy.offered(name, listed ?? [], (one) => release(one, false)),
    ...proxy.offered(name, gone, (one) => release(one, true)),
  ];
  return listed === null && offered.length === 0 ? null : offered;
}

/** What the upstream lists, development versions or the others. */
function fromUpstream(proxy, name, dev) {
  const reply = fetchFrom(proxy, "packages.json", { limit: DOCUMENT });
  const base = reply.address();
  const body = bodyOf(reply, "packages.json");
  if (body === null) throw Failure.unavailable("packages.json: not there");
  const text = documentOf(body);
  const root = readRoot(text, base);
  if (root === null) throw Failure.unavailable("packages.json: neither a metadata-url nor packages");
  const document = root.template === null ? { text, base, target: "packages.json" } : ofPackage(proxy, root.template, name, dev);
  if (document === null) return null;
  const { listed, fault } = readListed(document.text, document.base, name);
  if (fault !== undefined) throw Failure.unavailable(`${document.target}: ${fault}`);
  return listed === null ? null : listed.filter((one) => one.version.isDev() === dev);
}

/** The document of a package, `{text, base, target}`; null where there is none. */
function ofPackage(proxy, template, name, dev) {
  const target = template.replaceAll("%package%", dev ? `${name}~dev` : name);
  const reply = fetchFrom(proxy, below(settingsOf(proxy).upstream, target), { limit: DOCUMENT });
  const base = reply.address();
  const body = bodyOf(reply, target);
  return body === null ? null : { text: documentOf(body), base, target };
}

/** An upstream's answer to a question for something that it may not have; null where it has not. */
function bodyOf(reply, target) {
  const status = reply.status();
  if (status === 404 || status === 410) return null;
  if (status !== 200) throw Failure.unavailable(`${target}: status ${status}`);
  return reply.body();
}

/** A document's text; null for what is not UTF-8. */
function documentOf(body) {
  const bytes = readAll(body, DOCUMENT);
  if (bytes === null) throw Failure.tooLarge("Larger than what is allowed here", `too large: ${body.size()} bytes`);
  return decode(bytes);
}

/** What the host judges by. */
function release({ text: version, published }, withdrawn) {
  return { version, published, withdrawn, license: null };
}

/** Notes which fetched versions the upstream lists no longer, or lists again; answers those that are gone. */
function withdraw(proxy, name, listed, dev) {
  const there = new Set(listed.map((one) => one.version.key()));
  const gone = [];
  for (const entry of proxy.scan(allFetched(name))) {
    const fetched = entry.value;
    const version = Version.parse(fetched.version);
    if (version === null || version.isDev() !== dev) continue;
    const withdrawn = !there.has(version.key());
    if (withdrawn !== (fetched.withdrawn ?? false)) {
      const change = proxy.begin();
      change.put(entry.key, { ...fetched, withdrawn }, unchanged(entry));
      change.show({ ...shown(name, fetched.version, fetched.published), state: withdrawn ? "withdrawn" : "" });
      // Whoever else notes it at the same time has noted the same.
      change.commit();
    }
    if (withdrawn) gone.push(listedAgain(version, fetched));
  }
  return gone;
}

/** As it was listed when its file was fetched. */
function listedAgain(version, { version: text, url, kind, sha1, published, metadata }) {
  return { version, text, dist: { url, kind, sha1 }, published, members: asJson(metadata) };
}

function shown(name, version, published) {
  return { name, version, published };
}

/** A version's file. Null where the upstream has none, or it may not be offered. */
export function proxiedFile(proxy, name, version, kind) {
  const known = proxy.get(fetchedKey(name, version.key()))?.value ?? null;
  if (known !== null) {
    const response = serve(proxy, name, listedAgain(version, known), known.withdrawn ?? false, kind);
    if (response !== null) return response;
  }
  const listed = fromUpstream(proxy, name, version.isDev()) ?? [];
  const one = listed.find((one) => one.version.key() === version.key());
  return one === undefined ? null : serve(proxy, name, one, false, kind);
}

function serve(proxy, name, one, withdrawn, kind) {
  const { dist, text } = one;
  if (dist?.kind !== kind || !proxy.mayOffer(name, release(one, withdrawn))) return null;
  remember(proxy, name, one, withdrawn);
  const reply = fetchFrom(proxy, below(settingsOf(proxy).upstream, dist.url), {
    limit: FILE_LIMIT,
    immutable: true,
    expect: dist.sha1 === null ? null : `sha1:${dist.sha1}`,
    showAs: [name, text, filePath(name, text, kind)],
  });
  const body = bodyOf(reply, dist.url);
  return body === null ? null : Response.blob(body, kind === "zip" ? "application/zip" : "application/x-tar").immutable();
}

/** What is known of a version whose file is fetched. Whoever is faster has remembered the same. */
function remember(proxy, name, { version, text, dist, published, members }, withdrawn) {
  const key = fetchedKey(name, version.key());
  const before = proxy.get(key);
  const fetched = { version: text, ...dist, published, metadata: asObject(members), withdrawn };
  if (before !== null && stringify({ withdrawn: false, ...before.value }) === stringify(fetched)) return;
  const change = proxy.begin();
  change.put(key, fetched, unchanged(before));
  change.show(shown(name, text, published));
  change.commit();
}

/** An object of these members again. */
function asObject(members) {
  return Object.fromEntries([...members].map(([member, json]) => [member, parseStored(json)]));
}
