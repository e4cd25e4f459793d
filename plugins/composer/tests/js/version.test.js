import { Version } from "../../src/version.js";
import { places } from "../../src/sdk/places.js";
import { assert, assertSame, forAll } from "./testing.js";

export function versionsAreNormalisedAsComposerDoesIt() {
  for (const [text, key] of [
    ["1.0", "1.0.0.0"],
    ["v1.2.3", "1.2.3.0"],
    ["1.0.0-beta2", "1.0.0.0-beta2"],
    ["1.0.0-RC.1", "1.0.0.0-RC1"],
    ["1.0.0RC1", "1.0.0.0-RC1"],
    ["1.0a1", "1.0.0.0-alpha1"],
    ["1.0-stable", "1.0.0.0"],
    ["1.0-p1", "1.0.0.0-patch1"],
    ["1.0.0+build", "1.0.0.0"],
    ["1.0.0-dev", "1.0.0.0-dev"],
    ["1.0.0-beta1-dev", "1.0.0.0-beta1-dev"],
    ["dev-main", "dev-main"],
    ["18446744073709551615.01", "18446744073709551615.1.0.0"],
    ["9007199254740993", "9007199254740993.0.0.0"],
  ]) {
    assertSame(Version.parse(text)?.key(), key, text);
  }
  const none = ["", "latest", "1.x-dev", "dev-", "dev-../x", "1.0/2", "1.0-foo", "1..0", "1.0.0.0.0", "dev-a b", "v", "1.0-beta-x"];
  for (const text of [...none, "18446744073709551616", "1".repeat(81)]) assertSame(Version.parse(text), null, text);
}

export function versionsHaveAnOrder() {
  const order = ["dev-main", "1.0.0-dev", "1.0.0-alpha7", "1.0.0-alpha8-dev", "1.0.0-alpha8", "1.0.0-beta2",
    "1.0.0-beta10", "1.0.0-RC1", "1.0.0", "1.0.0-p1", "1.0.0-p8-dev", "1.0.0-p8", "1.9", "1.10"];
  for (const [at, text] of [...order, "9007199254740993", "18446744073709551615"].entries()) {
    if (at > 0) assert(Version.compare(Version.parse(order[at - 1] ?? "2"), Version.parse(text)) < 0, text);
  }
}

export function placesAreTheOrdersOwn() {
  const found = places(["1.0.0", "x", "dev-main", "v1.0.0.0", "1.0.0-rc.1", "1.0.0-RC1"], Version.parseNumbered, Version.compare);
  assertSame(found, [1, null, null, 1, 0, 0]);
}

export function aKeyIsAVersionOfTheSameKey() {
  forAll(2000, (random) => {
    const numbers = Array.from({ length: random.below(4) + 1 }, () => random.below(1000)).join(".");
    const word = random.pick(["", "-alpha", "beta", "-RC.", "b", "-a", "p"]);
    const text = `${random.pick(["", "v"])}${numbers}${word}${random.pick(["", "1", "12"])}${random.pick(["", "-dev"])}`;
    const version = Version.parse(text);
    if (version !== null) assertSame(Version.parse(version.key())?.key(), version.key(), text);
  });
}

export function anyTextIsRead() {
  forAll(2000, (random) => Version.parse(random.text(40, [..."0123456789.+-abdeprvcx_\u00e4\ud83d\u{1f600} "])));
}

export function theOrderIsOne() {
  forAll(500, (random) => {
    const some = Array.from({ length: 3 }, () => Version.parse(`${random.below(3)}.${random.below(3)}${random.pick(["", "-a1", "-a2", "-dev", "-p"])}`));
    const [one, two, three] = some;
    assert(Math.sign(Version.compare(one, two)) === -Math.sign(Version.compare(two, one)));
    if (Version.compare(one, two) <= 0 && Version.compare(two, three) <= 0) assert(Version.compare(one, three) <= 0);
  });
}
