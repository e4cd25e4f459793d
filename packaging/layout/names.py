"""What stands for a function's name in the list of those that run: names are long, and hold numbers which another compiler or version of a crate
changes."""
import hashlib
import re

# What a name of Rust's is made of (RFC 2603), as far as it has to be told apart: a crate with its number, what came before by its place in the name,
# another number, a constant, an identifier with its length, and single letters.
PARTS = re.compile(r"(?P<crate>Cs[0-9A-Za-z]*_)|(?P<before>B[0-9A-Za-z]*_)|[sGL][0-9A-Za-z]*_|K[a-z]n?[0-9a-f]*_|(?P<length>[1-9][0-9]*)_?|.")
# What a pass of the compiler has added.
SUFFIX = re.compile(r"\.(llvm\.\d+|constprop\.\d+|part\.\d+|isra\.\d+|cold)")


def without_numbers(name):
    """A name of Rust's with neither the numbers of crates nor places in the name, which those numbers move."""
    kept, at = [], 0
    while at < len(name):
        part = PARTS.match(name, at)
        at = part.end()
        if part["crate"]:
            kept.append("C")
        elif part["before"]:
            kept.append("B_")
        elif part["length"]:
            end = at + int(part["length"])
            kept += [part[0], name[at:end]]
            at = end
        else:
            kept.append(part[0])
    return "".join(kept)


def key(name):
    """Eight hexadecimal digits."""
    name = SUFFIX.sub("", name)
    if name.startswith("_R"):
        name = without_numbers(name)
    return hashlib.sha256(name.encode()).hexdigest()[:8]
