"""The tables of the SQLite record store: resources as JSON, and just enough index to find them."""

APPLICATION_ID = 0x44474552  # "DGER": tells this file from any other SQLite database
VERSION = 1

# made from the Patient resources; a file of an older program gets them when it is opened
LOOKUPS = """
-- id and identifiers without case and hyphens, see identifiers.py
CREATE TABLE identifier (
    value_folded TEXT NOT NULL, patient_id TEXT NOT NULL, PRIMARY KEY (value_folded, patient_id)
) WITHOUT ROWID;
CREATE INDEX identifier_of_patient ON identifier (patient_id);

CREATE TABLE family_token (
    token TEXT NOT NULL, patient_id TEXT NOT NULL, PRIMARY KEY (token, patient_id)
) WITHOUT ROWID;
CREATE INDEX family_of_patient ON family_token (patient_id);
"""

TABLES = """
CREATE TABLE resource (
    type TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, last_updated TEXT NOT NULL,
    patient_id TEXT NOT NULL, section TEXT NOT NULL, body TEXT NOT NULL
);
CREATE UNIQUE INDEX resource_id ON resource (type, id);
CREATE INDEX resource_patient ON resource (patient_id, section);

-- every version ever stored, the current one included
CREATE TABLE history (
    type TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, last_updated TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (type, id, version)
);

-- the key of a write and what it made: the same key cannot make a second resource
CREATE TABLE write_key (key TEXT PRIMARY KEY, type TEXT NOT NULL, id TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE person (patient_id TEXT PRIMARY KEY, name TEXT NOT NULL, birth_date TEXT NOT NULL, sex TEXT NOT NULL);
CREATE TABLE name_token (
    token TEXT NOT NULL, patient_id TEXT NOT NULL, PRIMARY KEY (token, patient_id)
) WITHOUT ROWID;
CREATE INDEX name_of_patient ON name_token (patient_id, token);
CREATE TABLE vocabulary (id INTEGER PRIMARY KEY, token TEXT NOT NULL UNIQUE);  -- only grows, see search.py
"""
