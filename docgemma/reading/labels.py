"""What the reader says of a request: asks, polarity, and the channels of its spans. Order is the model's."""

# parts of a chart
TOPICS = ("labs", "meds", "alg", "prob", "vit", "notes", "imm", "soc", "demo", "seen", "chart")
WRITES = ("rx", "allergy", "note")
ASKS = (
    *TOPICS,
    "find", "safe", "ddi", "may", "lit", "trial", "img", *WRITES,
    "change",  # an existing entry is to be removed, stopped or altered: no tool can
    "fix",  # corrects or completes the message before
    "ok", "cancel",  # of an entry that waits
    "gk", "chat", "oos",
    "cohort",  # which patients have or take something: no tool can
)  # fmt: skip
POLARITY = ("ordered", "asked", "refused")
CHANNELS = (
    "name", "id", "drug", "rx.drug", "rx.dose", "rx.route", "rx.freq", "rx.notes", "alg.subst", "alg.react", "severity",
    "condition", "status", "query", "note.text", "note.kind", "measure",
)  # fmt: skip
