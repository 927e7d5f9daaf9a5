CREATE TABLE entity (
    key TEXT PRIMARY KEY,
    kind INTEGER NOT NULL,
    owner TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    modified_ms INTEGER NOT NULL,
    modified_below_ms INTEGER NOT NULL,
    lease_ms INTEGER,
    until_ms INTEGER,
    document BLOB NOT NULL
) WITHOUT ROWID;
