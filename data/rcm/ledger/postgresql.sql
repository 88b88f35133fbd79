-- The evidence ledger on PostgreSQL 14 or later. One statement a paragraph; applied by docgemma/rcm/ledger.py in one transaction.
CREATE TABLE IF NOT EXISTS rcm_evidence_ledger (
    id               BIGINT PRIMARY KEY,               -- from 1, without a gap
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
    id       BIGINT PRIMARY KEY,
    row_hash CHAR(64) NOT NULL
);

CREATE OR REPLACE FUNCTION rcm_evidence_ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$;

CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON rcm_evidence_ledger
FOR EACH STATEMENT EXECUTE FUNCTION rcm_evidence_ledger_refuse();

CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON rcm_evidence_ledger_seal
FOR EACH STATEMENT EXECUTE FUNCTION rcm_evidence_ledger_refuse();

-- also where session_replication_role turns ordinary triggers off
ALTER TABLE rcm_evidence_ledger ENABLE ALWAYS TRIGGER append_only;

ALTER TABLE rcm_evidence_ledger_seal ENABLE ALWAYS TRIGGER append_only;

REVOKE ALL ON rcm_evidence_ledger, rcm_evidence_ledger_seal FROM PUBLIC;

-- what the agent's own role may do, once it was made with CREATE ROLE: read and append
CREATE OR REPLACE FUNCTION rcm_evidence_ledger_writer(role_name text) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN
    EXECUTE format('REVOKE ALL ON rcm_evidence_ledger, rcm_evidence_ledger_seal FROM %I', role_name);
    EXECUTE format('GRANT SELECT, INSERT ON rcm_evidence_ledger, rcm_evidence_ledger_seal TO %I', role_name);
END $$;
