-- Plugin components by digest (`sha256:` and hex). `told` is the description that a component
-- declares, as a JSON object, and `source` is its origin. Its bytes are in pieces, in the order of
-- `number`.
CREATE TABLE plugin_components (
    digest {text_collate_c} NOT NULL PRIMARY KEY, format TEXT NOT NULL, told TEXT NOT NULL, source TEXT NOT NULL, signed_by TEXT,
    size BIGINT NOT NULL, installed_at BIGINT NOT NULL
){without_rowid};
CREATE INDEX plugin_components_by_format ON plugin_components (format, installed_at);
CREATE TABLE plugin_pieces (
    digest {text_collate_c} NOT NULL REFERENCES plugin_components ON DELETE CASCADE, number BIGINT NOT NULL, bytes {blob} NOT NULL,
    PRIMARY KEY (digest, number)
);

-- Active components. A format without a row, or without `active`, runs the component beside the
-- program. `history` is a JSON list of formerly active ones, the latest last.
CREATE TABLE plugin_formats (
    format {text_collate_c} NOT NULL PRIMARY KEY, active TEXT, history TEXT NOT NULL
){without_rowid};

-- Incremented by each change of the tables above and of pins. Servers read it to follow the
-- changes.
CREATE TABLE plugin_changes (id BIGINT NOT NULL PRIMARY KEY, number BIGINT NOT NULL);

-- The component that serves a repository, instead of that of its format.
ALTER TABLE repositories ADD COLUMN plugin TEXT;
CREATE INDEX repositories_pinned ON repositories (plugin) WHERE plugin IS NOT NULL;
