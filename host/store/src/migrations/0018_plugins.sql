-- Components of formats, by digest (`sha256:` and hex). `told` is a JSON object of what a component says of itself, `source` where it
-- came from. Its bytes lie in pieces, in order of `number`.
CREATE TABLE plugin_components (
    digest {text_collate_c} NOT NULL PRIMARY KEY, format TEXT NOT NULL, told TEXT NOT NULL, source TEXT NOT NULL, signed_by TEXT,
    size BIGINT NOT NULL, installed_at BIGINT NOT NULL
){without_rowid};
CREATE INDEX plugin_components_by_format ON plugin_components (format, installed_at);
CREATE TABLE plugin_pieces (
    digest {text_collate_c} NOT NULL REFERENCES plugin_components ON DELETE CASCADE, number BIGINT NOT NULL, bytes {blob} NOT NULL,
    PRIMARY KEY (digest, number)
);

-- What runs. A format without a row, or without an `active` one, runs the component beside the program. `history` is a JSON list of
-- what ran before, the latest last.
CREATE TABLE plugin_formats (
    format {text_collate_c} NOT NULL PRIMARY KEY, active TEXT, history TEXT NOT NULL
){without_rowid};

-- Grows with each change of the above and of pins: what servers look at to follow.
CREATE TABLE plugin_changes (id BIGINT NOT NULL PRIMARY KEY, number BIGINT NOT NULL);

-- The component that serves a repository, whatever its format runs.
ALTER TABLE repositories ADD COLUMN plugin TEXT;
CREATE INDEX repositories_pinned ON repositories (plugin) WHERE plugin IS NOT NULL;
