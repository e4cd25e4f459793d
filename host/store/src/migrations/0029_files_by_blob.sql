-- In an index ordered by digest, each new file has a random position. With a million files, each
-- publish read one page of that index and wrote another. Now a file has the row id of its blob,
-- which is found by its digest, and files of new blobs are at the end. It is null if the bytes were
-- not stored when the file was listed.
ALTER TABLE files ADD COLUMN blob BIGINT;
DROP INDEX files_by_digest;
