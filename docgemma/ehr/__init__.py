"""The record store: FHIR R4 resources in SQLite or on any FHIR server, behind one interface."""
