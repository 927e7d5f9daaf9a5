-- What a node of the messaging service keeps over a restart. Times in milliseconds since 1970,
-- messages and receipts in their CBOR form.
CREATE TABLE node (
    name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
CREATE TABLE inbox (
    number INTEGER PRIMARY KEY,
    message BLOB NOT NULL,
    at_ms INTEGER NOT NULL,
    read_ms INTEGER
) STRICT;
CREATE TABLE outgoing (
    number INTEGER PRIMARY KEY,
    accepted_ms INTEGER NOT NULL,
    -- With the nodes that it has passed.
    message BLOB NOT NULL
) STRICT;
CREATE TABLE recipient (
    number INTEGER NOT NULL,
    node TEXT NOT NULL,
    stage TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    reason TEXT,
    PRIMARY KEY (number, node)
) STRICT, WITHOUT ROWID;
CREATE TABLE receipt (
    number INTEGER PRIMARY KEY,
    receipt BLOB NOT NULL
) STRICT;
CREATE TABLE seen (
    id TEXT PRIMARY KEY,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
