-- Results of a campaign. Times in seconds, sizes in bytes. docs/results.md explains each column.
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
CREATE TABLE cells (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    network TEXT NOT NULL,
    server TEXT NOT NULL,
    service TEXT NOT NULL,
    way TEXT NOT NULL,
    settings TEXT NOT NULL,
    groups TEXT NOT NULL,
    repetitions INTEGER NOT NULL
) STRICT;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    cell INTEGER NOT NULL REFERENCES cells (id),
    repetition INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    started_unix_s REAL NOT NULL,
    elapsed_s REAL NOT NULL,
    parallel INTEGER NOT NULL,
    up TEXT NOT NULL,
    down TEXT NOT NULL,
    lateness TEXT NOT NULL,
    lateness_p99_us INTEGER NOT NULL,
    processor_wait_s REAL NOT NULL,
    congestion_client TEXT NOT NULL,
    congestion_server TEXT NOT NULL,
    version TEXT NOT NULL,
    flagged TEXT,
    failure TEXT,
    UNIQUE (cell, repetition)
) STRICT;
CREATE TABLE exchanges (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    warm_up INTEGER NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    start_s REAL NOT NULL,
    elapsed_s REAL NOT NULL,
    body_bytes INTEGER NOT NULL,
    status INTEGER,
    error TEXT,
    censored INTEGER NOT NULL,
    connections INTEGER NOT NULL,
    up_packets INTEGER NOT NULL,
    up_bytes INTEGER NOT NULL,
    up_retransmitted INTEGER NOT NULL,
    down_packets INTEGER NOT NULL,
    down_bytes INTEGER NOT NULL,
    down_retransmitted INTEGER NOT NULL,
    flights INTEGER NOT NULL,
    PRIMARY KEY (run, warm_up, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE packets (
    run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    flight TEXT NOT NULL
) STRICT;
