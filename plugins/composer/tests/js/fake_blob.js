// Bytes as the host hands them over, for tests: a blob of the contract's over an array. What is packed it cannot unpack.

export class FakeBlob {
  constructor(bytes) {
    this.bytes = Uint8Array.from(bytes);
  }

  size() {
    return this.bytes.length;
  }

  read(offset, length) {
    return this.bytes.slice(offset, offset + Math.min(length, 1 << 20));
  }

  slice(offset, length) {
    if (offset + length > this.bytes.length) throw hostError("invalid");
    return new FakeBlob(this.bytes.slice(offset, offset + length));
  }

  decode() {
    throw hostError("invalid");
  }
}

function hostError(tag) {
  return Object.assign(new Error(tag), { payload: { tag, val: "" } });
}
