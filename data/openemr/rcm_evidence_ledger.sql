-- The evidence ledger in OpenEMR's database: MariaDB 10.4 or later, MySQL 8.0.29 or later. How to apply: README.md.
CREATE TABLE IF NOT EXISTS rcm_evidence_ledger (
    id               BIGINT       NOT NULL PRIMARY KEY,            -- from 1, without a gap
    patient_id       VARCHAR(64)  NOT NULL,
    session_id       VARCHAR(128) NOT NULL,
    verbatim_quote   TEXT         NOT NULL,
    source_document  VARCHAR(255) NOT NULL,
    page_number      INTEGER,
    policy_id        VARCHAR(128),
    confidence_score DECIMAL(5,2) CHECK (confidence_score BETWEEN 0 AND 100),
    auditor_result   VARCHAR(16)  CHECK (auditor_result IN ('PASS', 'FAIL', 'ESCALATED')),
    created_at       DATETIME(6)  NOT NULL,                        -- UTC, set by the writer
    write_key        VARCHAR(255) UNIQUE,                          -- NULL: the writer gave none
    previous_hash    CHAR(64)     NOT NULL UNIQUE,                 -- so that the chain cannot fork
    row_hash         CHAR(64)     NOT NULL UNIQUE,
    INDEX rcm_evidence_ledger_session (session_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- its foreign key makes TRUNCATE of the ledger fail, which asks no trigger
CREATE TABLE IF NOT EXISTS rcm_evidence_ledger_seal (
    id       BIGINT   NOT NULL PRIMARY KEY,
    row_hash CHAR(64) NOT NULL,
    CONSTRAINT rcm_evidence_ledger_sealed FOREIGN KEY (id) REFERENCES rcm_evidence_ledger (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TRIGGER IF NOT EXISTS rcm_evidence_ledger_no_update BEFORE UPDATE ON rcm_evidence_ledger
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rcm_evidence_ledger is append-only';

CREATE TRIGGER IF NOT EXISTS rcm_evidence_ledger_no_delete BEFORE DELETE ON rcm_evidence_ledger
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rcm_evidence_ledger is append-only';

CREATE TRIGGER IF NOT EXISTS rcm_evidence_ledger_seal_no_update BEFORE UPDATE ON rcm_evidence_ledger_seal
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rcm_evidence_ledger_seal is append-only';

CREATE TRIGGER IF NOT EXISTS rcm_evidence_ledger_seal_no_delete BEFORE DELETE ON rcm_evidence_ledger_seal
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rcm_evidence_ledger_seal is append-only';
