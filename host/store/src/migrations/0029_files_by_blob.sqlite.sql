-- See 0029_files_by_blob.sql.
UPDATE files SET blob = (SELECT b.id FROM blobs b WHERE b.sha256 = unhex(substr(files.digest, 8))) WHERE digest LIKE 'sha256:%';
CREATE INDEX files_by_blob ON files (repository, blob) WHERE blob IS NOT NULL;
