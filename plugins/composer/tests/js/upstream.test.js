import { readListed, readRoot } from "../../src/upstream_metadata.js";
import { decode } from "../../src/sdk/text.js";
import { assert, assertSame, forAll } from "./testing.js";

const BASE = "https://repo.test/x/packages.json";

export function whatAnUpstreamListsIsRead() {
  assertSame(readRoot('{"metadata-url": "/p2/%package%.json"}', BASE), { template: "https://repo.test/p2/%package%.json" });
  assertSame(readRoot('{"packages": {"a/b": {}}}', BASE), { template: null });
  for (const none of ["<html>", '{"packages": []}', "[]", "", '{"metadata-url": "javascript:%package%"}']) assertSame(readRoot(none, BASE), null, none);
  const document = `{"minified": "composer/2.0", "packages": {"a/b": [
    {"name": "a/b", "version": "2.0", "require": {"c/d": "^1"}, "dist": {"type": "zip", "url": "f/2.zip", "shasum": "", "reference": "r", "mirrors": []}, "time": "2026-01-02T03:04:05+00:00"},
    {"version": "1.0", "require": "__unset", "dist": {"type": "zip", "url": "https://files.test/1.zip", "shasum": "${"AB".repeat(20)}"}},
    {"version": "1.x-dev"}, 7, {"version": "0.9", "dist": "__unset", "type": "metapackage"}]}}`;
  const { listed } = readListed(document, BASE, "a/b");
  assertSame(listed.map((one) => one.text), ["2.0", "1.0", "0.9"]);
  assertSame([listed[0].published, listed[0].dist.url], [1_767_323_045_000, "https://repo.test/x/f/2.zip"]);
  assertSame(listed[1].dist.sha1, "ab".repeat(20));
  assert(!listed[1].members.has("require") && listed[2].dist === null && !listed[2].members.has("dist"));
  assertSame(JSON.parse(listed[0].members.get("dist")), { reference: "r", shasum: "", type: "zip" });
  assertSame(readListed(document, BASE, "c/d"), { listed: null });
  for (const bad of ["[]", "", "{}", '{"packages": {"a/b": 7}}']) assert(readListed(bad, BASE, "a/b").fault, bad);
}

export function whatIsExpandedIsBounded() {
  const versions = Array.from({ length: 300 }, (_, at) => ({ name: "a/b", version: `1.${at}` }));
  versions[0].description = "x".repeat(100_000);
  const document = JSON.stringify({ minified: "composer/2.0", packages: { "a/b": versions } });
  assertSame(readListed(document, BASE, "a/b").fault, "more than 24 MiB of one package's versions");
}

export function anyTextIsRead() {
  forAll(1000, (random) => {
    const text = random.text(60, [...'{}[]":,az/09 \\u', '"version":"1.0"', '"name":"a/b"', '"dist":']);
    readListed(`{"packages": {"a/b": [${text}]}}`, BASE, "a/b");
    readRoot(text, BASE);
  });
}

export function seedsAndWhatIsNearThemAreRead() {
  for (const [, [, ...bytes]] of seeds.upstream) {
    const read = (some) => {
      const text = decode(Uint8Array.from(some));
      readRoot(text, BASE);
      readListed(text, BASE, "acme/demo");
    };
    read(bytes);
    forAll(300, (random) => read(random.damaged(bytes)));
  }
}
