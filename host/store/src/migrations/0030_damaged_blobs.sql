-- When a read found a blob's bytes missing or damaged. The next server that receives the same bytes replaces them; until then a publish is
-- told that the blob is not here.
ALTER TABLE blobs ADD COLUMN damaged_at BIGINT;
CREATE INDEX blobs_by_damage ON blobs (damaged_at) WHERE damaged_at IS NOT NULL;
