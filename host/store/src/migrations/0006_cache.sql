-- Cached upstream responses of proxies. `name` is SHA-256 of method, target and headers. A response
-- without a blob had no body. `headers` is a JSON list of pairs of name and value, `address` is the
-- URL after redirects.
CREATE TABLE cached_answers (
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name {blob} NOT NULL, method TEXT NOT NULL,
    target {text_collate_c} NOT NULL, status BIGINT NOT NULL, headers TEXT NOT NULL, address TEXT NOT NULL,
    blob BIGINT REFERENCES blobs, size BIGINT NOT NULL, fetched_at BIGINT NOT NULL, validated_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL, PRIMARY KEY (repository, name)
){without_rowid};
CREATE INDEX cached_answers_by_target ON cached_answers (repository, target);
CREATE INDEX cached_answers_by_use ON cached_answers (repository, last_used_at);
CREATE INDEX cached_answers_by_blob ON cached_answers (blob);

-- Credentials for a proxy's upstream, sealed by the server.
CREATE TABLE upstream_credentials (
    repository BIGINT PRIMARY KEY REFERENCES repositories ON DELETE CASCADE, sealed TEXT NOT NULL, set_at BIGINT NOT NULL
);
