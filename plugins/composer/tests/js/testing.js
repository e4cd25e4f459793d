// What the tests need: claims, made-up values by a seed, and a runner that tells every failure at once.

/** Runs each function of these modules whose name begins with a small letter; an Error with all that failed. */
export function run(suites) {
  const failed = [];
  for (const [file, suite] of Object.entries(suites)) {
    for (const [name, test] of Object.entries(suite)) {
      try {
        test();
      } catch (error) {
        failed.push(`${file}: ${name}: ${error}\n${error.stack}`);
      }
    }
  }
  if (failed.length > 0) throw new Error(`tests failed:\n${failed.join("\n")}`);
}

export function assert(holds, said = "") {
  if (!holds) throw new Error(`does not hold: ${said}`);
}

/** Both as JSON are the same text. */
export function assertSame(one, other, said = "") {
  const [first, second] = [JSON.stringify(one), JSON.stringify(other)];
  if (first !== second) throw new Error(`${said} ${first} is not ${second}`);
}

/** What a call throws; an Error where it throws nothing. */
export function thrown(work) {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

/** Asks `property` of many random sources, which are the same each time. */
export function forAll(count, property) {
  for (let seed = 1; seed <= count; seed++) {
    try {
      property(new Random(seed));
    } catch (error) {
      throw new Error(`of seed ${seed}: ${error}\n${error.stack}`);
    }
  }
}

/** Values by a seed: Marsaglia's xorshift of 32 bits. */
export class Random {
  constructor(seed) {
    this.state = (seed * 0x9e3779b1) | 0 || 1;
  }

  /** Of 0 to `most`, that not included. */
  below(most) {
    let x = this.state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.state = x;
    return (x >>> 0) % most;
  }

  pick(all) {
    return all[this.below(all.length)];
  }

  /** Up to so many of what `make` makes. */
  list(most, make) {
    return Array.from({ length: this.below(most + 1) }, () => make(this));
  }

  /** Up to so many of these symbols. */
  text(most, symbols) {
    return this.list(most, () => this.pick(symbols)).join("");
  }

  /** Bytes with some of them changed, or cut off. */
  damaged(bytes) {
    const changed = bytes.slice(0, this.below(4) === 0 ? this.below(bytes.length + 1) : bytes.length);
    for (let times = this.below(4) + 1; times > 0 && changed.length > 0; times--) {
      changed[this.below(changed.length)] = this.below(256);
    }
    return changed;
  }
}
