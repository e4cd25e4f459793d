// Refusals in the format's own words: what is thrown of them becomes the answer. What the host could not do becomes one too, and whatever
// else is thrown is a mistake in the plugin, of which the log is told where it is.

/** Status 400 to 599, headers, and what is wrong. `internal` goes to the log and never to the client. */
export class Failure {
  constructor(status, code, message, { headers = [], internal = null } = {}) {
    this.status = status;
    this.headers = headers;
    this.problems = [{ code, message, detail: "" }];
    this.internal = internal;
  }

  static invalid(message) {
    return new Failure(400, "invalid_request", message);
  }

  static notFound(message) {
    return new Failure(404, "not_found", message);
  }

  static methodNotAllowed(allow) {
    const headers = [{ name: "allow", value: allow }];
    return new Failure(405, "method_not_allowed", `Not possible here; allowed: ${allow}`, { headers });
  }

  static alreadyExists(message) {
    return new Failure(409, "version_already_exists", message);
  }

  static tooLarge(message, internal = null) {
    return new Failure(413, "file_too_large", message, { internal });
  }

  /** Others were faster each time: `what` is what they change, as in `the same package`. */
  static busy(what) {
    const headers = [{ name: "retry-after", value: "1" }];
    return new Failure(503, "busy", `Others are changing ${what} right now; try again`, { headers });
  }

  /** The upstream, or what it sent, is not what was expected. */
  static unavailable(internal) {
    return new Failure(502, "upstream_unavailable", "The upstream repository cannot be reached", {
      internal: `unavailable: ${internal}`,
    });
  }

  static internal(text) {
    return new Failure(500, "internal_error", "Internal server error", { internal: text });
  }

  /** Of whatever was thrown. */
  static of(thrown) {
    if (thrown instanceof Failure) return thrown;
    const error = hostError(thrown);
    switch (error?.tag) {
      case "unavailable":
        return Failure.unavailable(error.val);
      case "too-large":
        return Failure.tooLarge("Larger than what is allowed here", `too large: ${error.val} bytes`);
      case undefined:
        return Failure.internal(described(thrown));
      default:
        return Failure.internal(`${error.tag}: ${error.val ?? ""}\n${thrown.stack ?? ""}`);
    }
  }

  /** As the contract has it. */
  toContract() {
    const { status, headers, problems } = this;
    return { status, headers, problems };
  }
}

/** The host's error, as `{tag, val}`, where an import threw it. */
export function hostError(thrown) {
  const payload = thrown?.payload;
  return typeof payload?.tag === "string" ? payload : null;
}

/** What a mistake says, and where it was made. */
export function described(thrown) {
  return thrown instanceof Error ? `${thrown}\n${thrown.stack}` : `thrown: ${String(thrown)}`;
}
