import { composerJson } from "../../src/archive.js";
import { readPackage } from "../../src/package.js";
import { Failure } from "../../src/sdk/failure.js";
import { encode } from "../../src/sdk/text.js";
import { Archive } from "../../src/sdk/zip/archive.js";
import { crc32 } from "../../src/sdk/zip/crc32.js";
import { Refused } from "../../src/sdk/zip/refused.js";
import { FakeBlob } from "./fake_blob.js";
import { assert, assertSame, forAll, thrown } from "./testing.js";

const u16 = (number) => [number & 255, (number >>> 8) & 255];
const u32 = (number) => [...u16(number & 0xffff), ...u16(number >>> 16)];

/** A zip of these files, stored; `change` may spoil what is said of each, `{flags, method, crc, size, name}`. */
function zip(files, change = () => {}) {
  const [out, directory] = [[], []];
  for (const [name, content] of files) {
    const bytes = typeof content === "string" ? encode(content) : content;
    const said = { flags: 0, method: 0, crc: crc32(bytes), size: bytes.length, name: [...encode(name)], extra: [], local: null };
    change(said);
    const common = (its) => [20, 0, ...u16(its.flags), ...u16(its.method), 0, 0, 0x21, 0, ...u32(its.crc), ...u32(its.size), ...u32(its.size), ...u16(its.name.length), ...u16(its.extra.length)];
    directory.push(...encode("PK\x01\x02"), 20, 0, ...common(said), ...Array(10).fill(0), ...u32(out.length), ...said.name, ...said.extra);
    const local = { ...said, ...said.local };
    out.push(...encode("PK\x03\x04"), ...common(local), ...local.name, ...local.extra, ...bytes);
  }
  const start = out.length;
  const end = [...encode("PK\x05\x06"), 0, 0, 0, 0, ...u16(files.length), ...u16(files.length), ...u32(directory.length), ...u32(start), 0, 0];
  return [...out, ...directory, ...end];
}

function refusal(bytes) {
  const error = thrown(() => new Archive(new FakeBlob(bytes)));
  assert(error instanceof Refused, `${error}\n${error.stack}`);
  return error.message;
}

export function whatWasPackedIsFound() {
  forAll(200, (random) => {
    const files = new Map(random.list(8, () => [`${random.text(6, "abc")}x`, random.text(200, "xyz")]));
    if (files.size === 0) return;
    const archive = new Archive(new FakeBlob(zip([...files])));
    assertSame(archive.names(), [...files.keys()]);
    for (const [name, content] of files) assertSame([...archive.content(name, 1000)], [...encode(content)]);
  });
}

export function whatProgramsReadInTwoWaysIsRefused() {
  const one = [["a", "x"]];
  for (const [bytes, said] of [
    [[], "no end record"],
    [zip([["a", "x"], ["a", "y"]]), "two files a"],
    [zip([["a", "x"], ["a/", ""]]), "two files a/"],
    [zip([["../a", "x"]]), "no name for a file"],
    [zip([["a\\b", "x"]]), "no name for a file"],
    [zip([["a\nb", "x"]]), "no name for a file"],
    [zip([["/a", "x"]]), "no name for a file"],
    [zip([["\u00e4", "x"]]), "not UTF-8"],
    [zip(one, (said) => (said.name = [0xff])), "not UTF-8"],
    [zip(one, (said) => (said.flags = 1)), "encrypted"],
    [zip(one, (said) => (said.method = 12)), "neither stored nor deflated"],
    [zip(one, (said) => (said.local = { crc: 7 })), "two headers that differ"],
    [zip(one, (said) => (said.local = { name: [0x62] })), "two headers that differ"],
    [zip(one, (said) => (said.flags = 8)), "ends cannot be told"],
    [zip(one, (said) => (said.extra = [0x75, 0x70, 0, 0])), "two names"],
    [zip(one, (said) => (said.extra = [1, 0, 9, 0])), "extra field"],
    [[0, ...zip(one)], "do not agree"],
    [[...zip(one), 0], "behind its end record"],
    [zip(one).map((byte, at, all) => (at === all.length - 18 ? 1 : byte)), "part of a larger archive"],
  ]) {
    const message = refusal(bytes);
    assert(message.includes(said), `${message} lacks ${said}`);
  }
  assertSame(new Archive(new FakeBlob(zip([["\u00e4", "x"]], (said) => (said.flags = 1 << 11)))).names(), ["\u00e4"]);
}

export function contentIsWhatItsChecksumSays() {
  const spoilt = zip([["a", "x"]], (said) => (said.crc = 7));
  const error = thrown(() => new Archive(new FakeBlob(spoilt)).content("a", 10));
  assert(error instanceof Refused && error.message === "its file a is damaged", error);
  assert(thrown(() => new Archive(new FakeBlob(zip([["a", "xx"]]))).content("a", 1)).message.includes("more than 1 bytes"));
}

export function aBombIsRefused() {
  const said = zip([["a", ""]], (said) => Object.assign(said, { method: 8, size: 0 }));
  const archive = new Archive(new FakeBlob(said));
  archive.checkRatio(said.length);
  // The size in the directory and in the header: 100 MiB.
  const size = u32(100 << 20);
  const directory = said.length - 22 - 47;
  said.splice(22, 4, ...size);
  said.splice(directory + 24, 4, ...size);
  assert(thrown(() => new Archive(new FakeBlob(said)).checkRatio(said.length)).message.includes("more than 100 times"));
}

export function anyBytesAreRead() {
  const right = zip([["demo/composer.json", '{"name": "acme/demo"}'], ["demo/a.php", "<?php"]]);
  assertSame(readPackage(composerJson(new FakeBlob(right))).name, "acme/demo");
  const read = (bytes) => {
    try {
      readPackage(composerJson(new FakeBlob(bytes)));
    } catch (error) {
      assert(error instanceof Failure && error.status === 400, `${error}\n${error.stack}`);
    }
  };
  forAll(1500, (random) => read(random.damaged(right)));
  forAll(300, (random) => read([...random.list(60, () => random.below(256)), ...encode("PK\x05\x06"), ...random.list(60, () => random.below(256))]));
  for (const [, [form, ...bytes]] of seeds.package) {
    const file = (some) => (form % 2 === 0 ? some : zip([["composer.json", Uint8Array.from(some)]]));
    read(file(bytes));
    forAll(500, (random) => read(file(random.damaged(bytes))));
  }
}
