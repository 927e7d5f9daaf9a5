-- What a broker keeps over a restart. Times in milliseconds since 1970.
CREATE TABLE message (
    id INTEGER PRIMARY KEY,
    topic TEXT NOT NULL,
    payload BLOB NOT NULL,
    form INTEGER NOT NULL,
    grade INTEGER NOT NULL,
    retain INTEGER NOT NULL,
    deadline_ms INTEGER,
    urgency INTEGER NOT NULL,
    protocol TEXT NOT NULL,
    -- What few messages have, in JSON; none where there is nothing.
    details TEXT,
    correlation BLOB,
    original BLOB
) STRICT;
CREATE TABLE session (
    client TEXT PRIMARY KEY,
    user TEXT,
    expiry_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE subscription (
    client TEXT NOT NULL,
    filter TEXT NOT NULL,
    grade INTEGER NOT NULL,
    -- 1: nothing of its own; 2: the retain flag as published.
    flags INTEGER NOT NULL,
    identifier INTEGER NOT NULL,
    PRIMARY KEY (client, filter)
) STRICT, WITHOUT ROWID;
CREATE TABLE queued (
    client TEXT NOT NULL,
    number INTEGER NOT NULL,
    message INTEGER NOT NULL,
    grade INTEGER NOT NULL,
    retain INTEGER NOT NULL,
    identifiers TEXT,
    shared TEXT,
    -- The number under which it is on its way; none while it waits.
    handle INTEGER,
    received INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (client, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX queued_message ON queued (message);
CREATE TABLE inbound (
    client TEXT NOT NULL,
    handle INTEGER NOT NULL,
    PRIMARY KEY (client, handle)
) STRICT, WITHOUT ROWID;
CREATE TABLE retained (
    topic TEXT PRIMARY KEY,
    message INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX retained_message ON retained (message);
-- Records of adapters, in their own form.
CREATE TABLE kept (
    protocol TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (protocol, key)
) STRICT;
