import { fits } from "../../src/documents.js";
import { apply, asJson, difference } from "../../src/minify.js";
import { isName } from "../../src/name.js";
import { readPackage } from "../../src/package.js";
import { encode } from "../../src/sdk/text.js";
import { assert, assertSame, forAll, thrown } from "./testing.js";

export function whatIsWrittenGivesBackEachVersion() {
  forAll(500, (random) => {
    const value = () => random.pick([0, 1, "x", ["a"], { a: 1 }, null, true]);
    let [before, read] = [new Map(), new Map()];
    for (const now of random.list(6, () => asJson(Object.fromEntries(random.list(4, () => [random.pick("abcd"), value()]))))) {
      apply(read, difference(before, now));
      assertSame([...read].sort(), [...now].sort());
      before = now;
    }
  });
}

export function aFilterIsAPattern() {
  for (const [pattern, name] of [["acme/*", "acme/demo"], ["*/demo", "acme/demo"], ["*", "a/b"], ["a*/b*c", "ax/bxc"]]) {
    assert(fits(pattern, name), `${pattern} ${name}`);
  }
  for (const [pattern, name] of [["acme/*", "other/demo"], ["acme", "acme/demo"], ["a*b*b", "ab"]]) {
    assert(!fits(pattern, name), `${pattern} ${name}`);
  }
}

export function namesHaveTwoHalvesInLowerCase() {
  for (const name of ["acme/demo", "a/b", "my-org/lib_two.x", "a/b--c"]) assert(isName(name), name);
  const none = ["", "demo", "Acme/demo", "a/b/c", "../b", "a/..", "-a/b", "a/b-", "a/", "\u00e4/b", "a/b c", "a/b\n", `a/${"b".repeat(101)}`];
  for (const name of none) assert(!isName(name), name);
}

export function aComposerJsonIsRead() {
  const text = `{"name": "acme/demo", "version": "1.0", "require": {"php": ">=8"}, "require-dev": [], "scripts": {"x": "y"}, "extra": {"a": 1.0}}`;
  const { name, version, members } = readPackage(encode(text));
  assertSame([name, version], ["acme/demo", "1.0"]);
  assert(JSON.stringify(members) === '{"require":{"php":">=8"},"extra":{"a":1.0}}', "numbers stay as they are written");
  for (const bad of ["", "[]", "{}", '{"name": "demo"}', '{"name": "Acme/x"}', '{"name": "a/b", "require": {"c": 1}}', '{"name": "a/b", "require": ["c"]}']) {
    assertSame(thrown(() => readPackage(encode(bad))).status, 400, bad);
  }
  assertSame(thrown(() => readPackage(Uint8Array.of(0xff, 0xfe))).status, 400);
}

export function anyTextIsReadAsAPackage() {
  forAll(1000, (random) => {
    const text = random.text(60, [...'{}[]":,az/09 \\u', '"name":"a/b"']);
    try {
      readPackage(encode(text));
    } catch (refused) {
      assertSame(refused.status, 400, `${text} ${refused}`);
    }
  });
}
