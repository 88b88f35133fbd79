"""The tables of a snapshot file."""

VERSION = 3
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE drug (name TEXT PRIMARY KEY, data TEXT NOT NULL, source TEXT, as_of TEXT);
CREATE TABLE label_text (drug TEXT, number INTEGER, data BLOB NOT NULL, PRIMARY KEY (drug, number)) WITHOUT ROWID;
CREATE TABLE fact_basis (kind TEXT, fact_key TEXT, drug TEXT, set_id TEXT, version TEXT, effective TEXT,
    section TEXT, quote TEXT, PRIMARY KEY (kind, fact_key)) WITHOUT ROWID;
CREATE TABLE drug_name (alias TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE interaction (a TEXT, b TEXT, data TEXT NOT NULL, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE article (rowid INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, data TEXT NOT NULL);
CREATE VIRTUAL TABLE article_text USING fts5(title, abstract, keywords,
    tokenize='porter unicode61 remove_diacritics 2');
CREATE TABLE trial (rowid INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, status TEXT NOT NULL, data TEXT NOT NULL);
CREATE VIRTUAL TABLE trial_text USING fts5(title, conditions, interventions, summary, keywords,
    tokenize='porter unicode61 remove_diacritics 2');
"""
