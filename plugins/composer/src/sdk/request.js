// A request, as the host hands it over: every credential is out of it. What is not asked for is not read.

export class Request {
  #host;
  #path = null;
  #query = null;
  #headers = null;
  #address = null;

  constructor(host) {
    this.#host = host;
    /** In upper case. `HEAD` goes to the rows of `GET`. */
    this.method = host.method();
  }

  /** Below the address, each segment percent-decoded. A trailing slash is a last empty segment; the address itself is an empty list. */
  get path() {
    return (this.#path ??= this.#host.path());
  }

  /** The first value of this name in the query, percent-decoded; null where there is none. */
  query(name) {
    this.#query ??= this.#host.query();
    return this.#query.find(([known]) => known === name)?.[1] ?? null;
  }

  /** The header field of this name, which is in lower case; null where there is none. */
  header(name) {
    this.#headers ??= this.#host.headers();
    return this.#headers.find((header) => header.name === name)?.value ?? null;
  }

  /** The public address that `path` is below, without a slash at its end. */
  get address() {
    return (this.#address ??= this.#host.address());
  }

  /** The public address of what lies at this path below the repository's address; `path` is percent-encoded already. */
  link(path) {
    return `${this.address}/${path}`;
  }

  /** The body as it was sent. Once; null in a plan, and where the intent did not ask for it. */
  takeBody() {
    return this.#host.takeBody() ?? null;
  }

  /** The parts of a form in the order they came, `{name, filename, headers, body}`. Once. */
  takeParts() {
    return this.#host.takeParts();
  }
}
