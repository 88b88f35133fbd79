-- The evidence ledger on SQLite. One statement a paragraph; applied by docgemma/rcm/ledger.py in one transaction.
CREATE TABLE IF NOT EXISTS rcm_evidence_ledger (
    id               INTEGER PRIMARY KEY,              -- from 1, without a gap
    patient_id       VARCHAR(64)  NOT NULL,
    session_id       VARCHAR(128) NOT NULL,
    verbatim_quote   TEXT         NOT NULL,
    source_document  VARCHAR(255) NOT NULL,
    page_number      INTEGER,
    policy_id        VARCHAR(128),
    confidence_score DECIMAL(5,2) CHECK (confidence_score BETWEEN 0 AND 100),
    auditor_result   VARCHAR(16)  CHECK (auditor_result IN ('PASS', 'FAIL', 'ESCALATED')),
    created_at       TIMESTAMP    NOT NULL,            -- UTC, set by the writer
    write_key        VARCHAR(255) UNIQUE,              -- NULL: the writer gave none
    previous_hash    CHAR(64)     NOT NULL UNIQUE,     -- so that the chain cannot fork
    row_hash         CHAR(64)     NOT NULL UNIQUE
);

CREATE INDEX IF NOT EXISTS rcm_evidence_ledger_session ON rcm_evidence_ledger (session_id);

CREATE TABLE IF NOT EXISTS rcm_evidence_ledger_seal (
    id       INTEGER PRIMARY KEY,
    row_hash CHAR(64) NOT NULL
);

CREATE TRIGGER IF NOT EXISTS rcm_evidence_ledger_no_update BEFORE UPDATE ON rcm_evidence_ledger
BEGIN SELECT RAISE(ABORT, 'rcm_evidence_ledger is append-only'); END;

CREATE TRIGGER IF NOT EXISTS rcm_evidence_ledger_no_delete BEFORE DELETE ON rcm_evidence_ledger
BEGIN SELECT RAISE(ABORT, 'rcm_evidence_ledger is append-only'); END;

-- INSERT OR REPLACE removes rows without asking the trigger above
CREATE TRIGGER IF NOT EXISTS rcm_evidence_ledger_no_replace BEFORE INSERT ON rcm_evidence_ledger
WHEN EXISTS (
    SELECT 1 FROM rcm_evidence_ledger
    WHERE id = NEW.id OR write_key = NEW.write_key OR previous_hash = NEW.previous_hash OR row_hash = NEW.row_hash
)
BEGIN SELECT RAISE(ABORT, 'rcm_evidence_ledger is append-only'); END;

CREATE TRIGGER IF NOT EXISTS rcm_evidence_ledger_seal_no_update BEFORE UPDATE ON rcm_evidence_ledger_seal
BEGIN SELECT RAISE(ABORT, 'rcm_evidence_ledger_seal is append-only'); END;

CREATE TRIGGER IF NOT EXISTS rcm_evidence_ledger_seal_no_delete BEFORE DELETE ON rcm_evidence_ledger_seal
BEGIN SELECT RAISE(ABORT, 'rcm_evidence_ledger_seal is append-only'); END;

CREATE TRIGGER IF NOT EXISTS rcm_evidence_ledger_seal_no_replace BEFORE INSERT ON rcm_evidence_ledger_seal
WHEN EXISTS (SELECT 1 FROM rcm_evidence_ledger_seal WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'rcm_evidence_ledger_seal is append-only'); END;
