import { below, join, percentEncode } from "../../src/sdk/address.js";
import { Failure } from "../../src/sdk/failure.js";
import { parse, parseObject, parseStored, stringify } from "../../src/sdk/json.js";
import { matches } from "../../src/sdk/pattern.js";
import { Router } from "../../src/sdk/router.js";
import { byteLength, compare, decode, encode } from "../../src/sdk/text.js";
import { parseRfc3339, toRfc3339 } from "../../src/sdk/timestamp.js";
import { assert, assertSame, forAll, thrown } from "./testing.js";

const SYMBOLS = [..."ab \x00\x7f\x80\u00e4\u07ff\u0800\uffff\u{10000}\u{1f600}\u{10ffff}"];

export function textIsUtf8BothWays() {
  forAll(500, (random) => {
    const text = random.text(30, SYMBOLS);
    const bytes = encode(text);
    assertSame(decode(bytes), text);
    assertSame(byteLength(text), bytes.length);
  });
  for (const bytes of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82], [0x61, 0x80]]) {
    assertSame(decode(Uint8Array.from(bytes)), null, bytes);
  }
  assertSame([...encode("\ud800")], [0xef, 0xbf, 0xbd]);
}

export function textsStandInTheOrderOfTheirBytes() {
  forAll(1000, (random) => {
    const [one, other] = [random.text(4, SYMBOLS), random.text(4, SYMBOLS)];
    const [a, b] = [[...encode(one)], [...encode(other)]];
    const at = a.findIndex((byte, at) => byte !== b[at]);
    const expected = at < 0 ? a.length - b.length : (a[at] ?? -1) - (b[at] ?? -1);
    assertSame(Math.sign(compare(one, other)), Math.sign(expected), `${one} ${other}`);
  });
}

export function jsonStaysAsItIsWritten() {
  for (const text of ['{"a":1.0,"b":12345678901234567890}', "[1e3,-0,0.10]", '{"__proto__":{"x":1},"a":"\u00e4"}', "true", '"x"']) {
    assertSame(stringify(parse(text)), text, text);
    assertSame(stringify(parseStored(text)), text, text);
  }
  assertSame(stringify(parse(' { "b" : 1 , "a" : [ 1 , 2.50 ] } ')), '{"a":[1,2.50],"b":1}');
  assertSame(stringify({ b: undefined, a: null }), '{"a":null}');
  const deep = (depth) => "[".repeat(depth) + "]".repeat(depth);
  assert(stringify(parse(deep(127))) === deep(127));
  const none = ["", "{", "[1,]", "01", deep(128), deep(100_000), '"\\ud800"', '{"\\udfff":1}', '{"a":1e999}', `[${'{"a":'.repeat(200)}`];
  for (const text of none) assert(thrown(() => parse(text)) instanceof SyntaxError, text.slice(0, 20));
  for (const text of ["[]", "1", "null", null]) assertSame(parseObject(text), null);
  assertSame(parse('"\\ud83d\\ude00"'), "\u{1f600}");
}

export function bracketsWithinTextsCountForNothing() {
  const text = JSON.stringify({ a: "[".repeat(1000), b: '\\"{'.repeat(200), c: ["]", '"'] });
  assertSame(stringify(parse(text)), text);
}

export function addressesAreMadeAbsolute() {
  const base = "https://a.test/x/simple/demo/";
  for (const [reference, expected] of [
    ["../../packages/f.whl#sha256=1", "https://a.test/x/packages/f.whl"],
    ["f.whl", "https://a.test/x/simple/demo/f.whl"],
    ["./f.whl?a=/b", "https://a.test/x/simple/demo/f.whl?a=/b"],
    ["/f.whl", "https://a.test/f.whl"],
    ["../../../../../f.whl", "https://a.test/f.whl"],
    ["//b.test/f.whl", "https://b.test/f.whl"],
    ["http://b.test/f%20g.whl", "http://b.test/f%20g.whl"],
    ["javascript:alert(1)", null],
    ["file:///etc/passwd", null],
    ["a b", null],
    ["a\nb", null],
  ]) {
    assertSame(join(base, reference), expected, reference);
  }
  assertSame(join("https://a.test", "f"), "https://a.test/f");
  assertSame(join("nothing", "f"), null);
  forAll(500, (random) => join(random.text(20, [..."https://a.test/?#"]), random.text(30, [..."a:/?#. \u00a0\u00e4.."])));
}

export function whatLiesBelowTheUpstreamIsATarget() {
  for (const [upstream, address, target] of [
    ["https://a.test/x", "https://a.test/x/f.tgz", "f.tgz"],
    ["https://a.test/x/", "https://a.test/x/y/f.tgz?z=1", "y/f.tgz?z=1"],
    ["https://a.test/x", "https://a.test/xy/f.tgz", "https://a.test/xy/f.tgz"],
    ["https://a.test/x", "https://b.test/x/f.tgz", "https://b.test/x/f.tgz"],
    ["https://a.test", "https://a.test//f", "https://a.test//f"],
    ["https://a.test", "https://a.test/https://b.test/f", "https://a.test/https://b.test/f"],
  ]) {
    assertSame(below(upstream, address), target, address);
  }
  assertSame(percentEncode("a b/\u00fc(1)!~"), "a%20b%2F%C3%BC%281%29%21~");
}

export function timesAreReadAndWritten() {
  for (const [text, ms] of [
    ["1970-01-01T00:00:00Z", 0],
    ["2026-11-21T05:01:40Z", 1_795_237_300_000],
    ["2026-11-21T05:01:40.5+00:00", 1_795_237_300_500],
    ["2026-11-21T07:01:40+02:00", 1_795_237_300_000],
    ["2026-11-20T23:31:40-05:30", 1_795_237_300_000],
    ["2026-11-21T05:01:40.123456789Z", 1_795_237_300_123],
    ["2000-02-29T23:59:59.999Z", 951_868_799_999],
  ]) {
    assertSame(parseRfc3339(text), ms, text);
  }
  const none = ["", "2026-11-21", "2026-11-21T05:01:40", "2026-11-21 05:01:40Z", "2026-11-21T05:01:40+0200", "2026-11-21T05:01:40+24:00", "2026-11-21T05:01:40+01:60", "1970-01-01T00:00:00+00:01", "2026-11-21T05:01:40.Z", "2026-11-21T05:01:40.1x1Z", "2026-13-21T05:01:40Z", "2026-02-29T05:01:40Z", "2026-11-00T05:01:40Z", "2026-11-21T24:00:00Z", "1969-12-31T23:59:59Z"];
  for (const text of none) assertSame(parseRfc3339(text), null, text);
  assertSame(toRfc3339(1_795_237_300_023), "2026-11-21T05:01:40.023Z");
  forAll(300, (random) => {
    const ms = random.below(2 ** 31) * 97;
    assertSame(parseRfc3339(toRfc3339(ms)), ms);
  });
}

export function patternsTakeWhatTheyName() {
  for (const [pattern, path, expected] of [
    ["/", [], {}],
    ["/", ["a"], null],
    ["/a/b", ["a", "b"], {}],
    ["/a", ["a", ""], null],
    ["/{x}", [""], null],
    ["/{x}/b", ["a", "b"], { x: "a" }],
    ["/{x}/b", ["a", "c"], null],
  ]) {
    assertSame(matches(pattern, path), expected, pattern);
  }
}

export function whatIsNotServedIsTold() {
  const router = new Router();
  router.get("/a", null, null);
  router.put("/a", null, null);
  assertSame(router.find({ method: "HEAD", path: ["a"] }).row.method, "GET");
  assertSame(thrown(() => router.find({ method: "GET", path: ["b"] })).status, 404);
  const refused = thrown(() => router.find({ method: "DELETE", path: ["a"] }));
  assertSame([refused.status, refused.headers], [405, [{ name: "allow", value: "GET, HEAD, PUT" }]]);
}

export function mistakesTellWhereTheyAre() {
  const mistake = Failure.of(thrown(() => null.x));
  assert(mistake.status === 500 && mistake.internal.includes("TypeError") && mistake.internal.includes("sdk.test.js"), mistake.internal);
  const host = (tag, val) => Failure.of(Object.assign(new Error(tag), { payload: { tag, val } }));
  assertSame([host("unavailable", "x").status, host("too-large", 7).status, host("denied").status], [502, 413, 500]);
}
