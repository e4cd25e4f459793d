-- See 0029_files_by_blob.sql.
UPDATE files SET blob = b.id FROM blobs b WHERE files.digest LIKE 'sha256:%' AND b.sha256 = decode(substr(files.digest, 8), 'hex');
CREATE INDEX files_by_blob ON files (repository, blob) WHERE blob IS NOT NULL;
