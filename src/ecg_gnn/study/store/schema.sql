CREATE TABLE datasets (
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    metric TEXT NOT NULL,
    note TEXT NOT NULL,
    num_nodes INTEGER NOT NULL,
    num_edges INTEGER NOT NULL,
    num_features INTEGER NOT NULL,
    num_classes INTEGER NOT NULL,
    statistics TEXT NOT NULL,
    PRIMARY KEY (name, sha256)
);
CREATE TABLE configurations (
    id TEXT PRIMARY KEY,
    task TEXT NOT NULL,
    dataset TEXT NOT NULL,
    dataset_sha256 TEXT NOT NULL,
    variant TEXT NOT NULL,
    embedding TEXT,
    numerics INTEGER NOT NULL,
    config TEXT NOT NULL
);
CREATE TABLE units (
    id TEXT PRIMARY KEY,
    configuration TEXT NOT NULL REFERENCES configurations (id),
    split INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('missing', 'running', 'done', 'failed')),
    owner TEXT,
    heartbeat REAL
);
CREATE INDEX units_by_configuration ON units (configuration);
CREATE TABLE records (
    unit TEXT PRIMARY KEY REFERENCES units (id),
    val REAL,
    test REAL,
    best_step INTEGER,
    seconds REAL NOT NULL,
    peak_memory_mb REAL,
    evolved_statistics TEXT NOT NULL,
    curves BLOB,
    provenance TEXT NOT NULL,
    finished TEXT NOT NULL
);
CREATE TABLE failures (
    unit TEXT PRIMARY KEY REFERENCES units (id),
    kind TEXT NOT NULL,
    error TEXT NOT NULL,
    provenance TEXT NOT NULL,
    finished TEXT NOT NULL
);
CREATE TABLE members (
    recipe TEXT NOT NULL,
    unit TEXT NOT NULL REFERENCES units (id),
    PRIMARY KEY (recipe, unit)
) WITHOUT ROWID;
