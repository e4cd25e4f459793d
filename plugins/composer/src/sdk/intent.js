// What a request would do, told before any storage can be reached. The contract's own resource is made at the end, so that a plan can be put
// together, and tested, anywhere.

export class Intent {
  #steps = [];

  constructor(action) {
    this.action = action;
    this.about = null;
  }

  static read() {
    return new Intent("read");
  }

  static publish() {
    return new Intent("publish");
  }

  static delete() {
    return new Intent("delete");
  }

  /** The package, image or file that it is about: for the audit log, for messages. */
  subject(text) {
    this.about = text;
    return this;
  }

  /** The body is wanted, of at most so many bytes. */
  body(limit) {
    return this.#step((host) => host.body(limit));
  }

  /** The body is a form and is wanted in parts, of at most so many bytes together. */
  parts(limit) {
    return this.#step((host) => host.parts(limit));
  }

  /** Wanted of the body besides SHA-256. */
  digests(algorithms) {
    return this.#step((host) => host.digests(algorithms));
  }

  /** A package that the request is about, spelt as in `version.name`. */
  aboutPackage(name) {
    return this.#step((host) => host.aboutPackage(name));
  }

  /** It is about packages that only the handler learns of, or about none. */
  manyPackages() {
    return this.#step((host) => host.manyPackages());
  }

  #step(step) {
    this.#steps.push(step);
    return this;
  }

  /** As the contract has it, of whose interface `http` the class is. */
  toContract(HostIntent) {
    const host = new HostIntent(this.action, this.about);
    for (const step of this.#steps) step(host);
    return host;
  }
}
