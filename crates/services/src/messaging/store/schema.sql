-- What a node of the messaging service keeps over a restart. Times in milliseconds since 1970,
-- messages and receipts in their CBOR form.
CREATE TABLE node (
    name TEXT PRIMARY KEY,
    -- The greatest number that was given away, and what the last id was made of.
    last_number INTEGER NOT NULL,
    last_name INTEGER NOT NULL
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
    originator TEXT NOT NULL,
    id TEXT NOT NULL,
    digest BLOB NOT NULL,
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (originator, id)
) STRICT, WITHOUT ROWID;
