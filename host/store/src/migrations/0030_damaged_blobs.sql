-- Time at which a read found a blob's bytes missing or damaged. The next server that receives the
-- same bytes replaces them. Until then, the blob does not exist for publishes.
ALTER TABLE blobs ADD COLUMN damaged_at BIGINT;
CREATE INDEX blobs_by_damage ON blobs (damaged_at) WHERE damaged_at IS NOT NULL;
