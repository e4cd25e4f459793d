-- Certificates that are ordered by ACME: shared by all servers of the database.

-- The account, the certificate with its key, and what failed last; each sealed, under a name of its own.
CREATE TABLE acme_values (
    name {text_collate_c} NOT NULL PRIMARY KEY,
    sealed TEXT NOT NULL,
    updated_at BIGINT NOT NULL
){without_rowid};

-- What an authority is answered that wants a name proven, on whichever server it asks. No secret.
CREATE TABLE acme_proofs (
    token {text_collate_c} NOT NULL PRIMARY KEY,
    domain {text_collate_c} NOT NULL,
    key_authorization TEXT NOT NULL,
    expires_at BIGINT NOT NULL
){without_rowid};

-- Who orders at the moment.
CREATE TABLE acme_leases (
    name {text_collate_c} NOT NULL PRIMARY KEY,
    holder {text_collate_c} NOT NULL,
    until_ms BIGINT NOT NULL
){without_rowid};
