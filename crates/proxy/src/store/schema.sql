-- What one side of the pair keeps on disk. Times in seconds, sizes in bytes.
CREATE TABLE state (
    name TEXT PRIMARY KEY,
    saved_unix_s REAL NOT NULL,
    -- SHA-256 of `bytes`: SQLite does not notice a bit that a disk lost.
    digest BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE history (
    -- Ascending with time: the oldest go first.
    id INTEGER PRIMARY KEY,
    unix_s REAL NOT NULL,
    exchange TEXT NOT NULL,
    direction TEXT NOT NULL,
    service TEXT NOT NULL,
    class TEXT NOT NULL,
    encoding TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- Of record::decision, in JSON; none where no model was asked.
    decision TEXT,
    -- None until the peer has told.
    outcome TEXT,
    -- The outcome came after what was learned was last saved.
    unsaved INTEGER NOT NULL DEFAULT 0,
    -- Of record::decision, in JSON; none until the exchange has ended. Later than version 1, and
    -- put into files that lack it.
    request TEXT,
    UNIQUE (exchange, direction)
) STRICT;
CREATE INDEX history_of_service ON history (service, id);
CREATE INDEX history_unsaved ON history (id) WHERE unsaved;
