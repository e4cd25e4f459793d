-- Certificates ordered by ACME, shared by all servers of the database.

-- The account, the certificate with its key, and the last failure, each sealed under its own name.
CREATE TABLE acme_values (
    name {text_collate_c} NOT NULL PRIMARY KEY,
    sealed TEXT NOT NULL,
    updated_at BIGINT NOT NULL
){without_rowid};

-- Responses to challenges of the authority, which may ask any server. They are not secret.
CREATE TABLE acme_proofs (
    token {text_collate_c} NOT NULL PRIMARY KEY,
    domain {text_collate_c} NOT NULL,
    key_authorization TEXT NOT NULL,
    expires_at BIGINT NOT NULL
){without_rowid};

-- The server that orders at the moment.
CREATE TABLE acme_leases (
    name {text_collate_c} NOT NULL PRIMARY KEY,
    holder {text_collate_c} NOT NULL,
    until_ms BIGINT NOT NULL
){without_rowid};
