"""What a question asks for, by its words: which writes, and whether a record is to be read. Whole words only.

A write is asked for by an order ("prescribe X", "can you start X"), never by a question about one ("should I start
X?"), by a condition ("before starting X") or by its negation ("don't prescribe yet, just check").
"""

import re

from docgemma.rules.details import doses
from docgemma.rules.entities import PATIENT_ID
from docgemma.state import ExtractedEntities

_GAP = r"(?:\W+\w+)"
CLAUSE = re.compile(r"[.;!?\n]+(?:\s|$)|,?\s+\bbut\b")
# before a verb, within its clause: what makes it a question, a condition or a refusal instead of an order
NOT_ORDERED = re.compile(
    r"(?:\b(?:should|shall|may|might|would it|is it (?:safe|ok|okay|fine|wise|reasonable)|safe|ok|okay|able|whether|if|"
    r"when|before|after|until|unless|since|how|why|thinking|considering|planning|plan|want(?:ed)? to know|"
    r"not|never|without|avoid|instead of|rather than|hold off(?: on)?|no need|nothing|do(?:es)? (?:i|we)|can i|can we|"
    r"could i|could we|did|was|were|been|being|am i|are we|had|has|have|who|which|what)\b|n['’]t\b|\bdont\b)"
    r"(?:\W+\w+){0,5}\W*$",
    re.IGNORECASE,
)
REFUSED = re.compile(
    r"(?:n['’]t|\b(?:dont|not|never|without|avoid|instead of|rather than|hold off(?: on)?|no need to))\b"
    r"(?:(?!,|\bthen\b|\bbut\b).){0,60}$",
    re.IGNORECASE,
)
ADVICE = re.compile(r"\b(?:should|can|could|may|might|shall) (?:i|we)\b|\bis it\b|\bsafe to\b", re.IGNORECASE)
CONDITION = re.compile(r"\b(?:before|after|if|when|unless|until)\b", re.IGNORECASE)
REQUEST = re.compile(
    r"\b(?:can|could|would|will) you\b|\bplease\b|\bgo ahead\b|\bi (?:want|need|would like|'d like)", re.I
)
RESTART = re.compile(
    r"(?:,|\band\b|\bthen\b|\balso\b|\bso\b|—|–|:)\s*(?:please\s+|then\s+|also\s+|just\s+)*$", re.IGNORECASE
)

PRESCRIBE = re.compile(
    rf"\b(?:prescribe|re-?prescribe|write{_GAP}{{0,3}}\W+(?:prescription|script|rx)|e-?prescribe)\b", re.IGNORECASE
)
# these are orders only where a medication is their object
START = re.compile(r"\b(?:start|order|initiate|commence|begin|restart|resume|refill|renew|give|put)\b", re.IGNORECASE)
NOT_MEDICATION = re.compile(
    r"^\W+(?:(?:a|an|the|some|new|another|repeat|stat|chest|routine|of|to|by|from|with)\W+)*"
    r"(?:of|to|from|by|labs?|blood|bloods|cbc|bmp|cmp|tests?|testing|panel|x-?rays?|ct|mri|ecg|ekg|echo\w*|imaging|"
    r"scans?|ultrasound|consult\w*|referrals?|cultures?|urinalysis|biopsy|dialysis|physical|summary|advice|me|us|set)\b",
    re.IGNORECASE,
)
IN_ORDER = re.compile(
    r"\b(?:in|rank|sort\w*|list\w*|which|what|that|this|any|same|reverse|court|of|the|an|last)\s+$", re.IGNORECASE
)
MEDICATION_WORD = re.compile(
    r"\b(?:medications?|meds?|antibiotics?|insulin|prescriptions?|drugs?|therapy|statins?|tablets?|it)\b", re.I
)

_RECORD_VERB = r"(?:add|document|record|log|enter|register|update|put|note|save|chart|report|file|mark|list|flag|make)"
_ALLERGY = (
    r"(?:allerg\w*|intoleran\w*|anaphyla\w*|hypersensitiv\w*|"
    r"adverse\s+(?:drug\s+)?reactions?|(?:can['’]?t|cannot)\s+tolerate)"
)
ALLERGY = re.compile(
    rf"\b{_RECORD_VERB}\b(?:(?![.;!?\n]|\bnote\b|,?\s+and\s+(?:check|show|review)).){{0,120}}?\b{_ALLERGY}", re.I
)
ALLERGY_THEN = re.compile(
    rf"\b{_ALLERGY}.{{0,120}}?\b(?P<verb>{_RECORD_VERB})\s+(?:this|it|that|the\s+(?:reaction|allergy))\b", re.I | re.S
)
REACTED = re.compile(
    r"\b(?P<verb>add|document|record|log|enter|register|note)\b(?:(?![.;!?\n]).){0,80}?"
    r"\b(?:rash|hives|urticaria|angioedema|swelling|wheez\w+|reaction)\b(?:(?![.;!?\n]).){0,20}?"
    r"\b(?:to|with|from|after|on)\b",
    re.IGNORECASE,
)
NOTE = re.compile(
    rf"\b(?:write|save|document|add|create|draft|enter|record|make|file|put|log|dictate|leave){_GAP}{{0,6}}?\W+"
    rf"(?:notes?|soap|discharge\s+summary|h&p)\b|^\W*(?:please\s+)?(?:note|document|chart|record)\s+that\b|"
    rf"\bdocument{_GAP}{{0,3}}?\W+(?:visit|encounter|consultation|discussion|conversation|exam\w*|"
    rf"assessment|findings|plan)\b|"
    rf"\b(?:progress|consult|procedure|clinical|nursing|discharge)\s+note\s*:",
    re.IGNORECASE,
)

READ_VERB = re.compile(
    r"\b(?:check|review|show|find|get|pull|look|verify|see|what|what's|whats|which|does|is|are|any|open|list|"
    r"summari[sz]e|retrieve|read|display|view|tell|compare|how|when|has|have|bring|fetch|give)\b",
    re.IGNORECASE,
)
RECORD_NOUN = re.compile(r"\b(?:charts?|records?|summary|ehr|emr|overview)\b", re.IGNORECASE)
RECORD_VERB_BEFORE = re.compile(
    r"(?:^|[.;:!?,]|\b(?:please|to|and|then|you|must|should|also|just|not|world|track|broke|for the|on)\b)\s*$",
    re.IGNORECASE,
)
OBJECT_AFTER = re.compile(
    r"^\s+(?:a|an|that|this|the|her|his|their|my|[a-z]+\s+(?:allergy|intolerance))\b", re.IGNORECASE
)
TARGET_BEFORE = re.compile(
    r"\b(?:to|in|into|on)\s+(?:(?:the|his|her|their|patient['’]?s|my|this)\s+|[\w-]+['’]s\s+){0,3}$",
    re.I,
)
ITEMS = (
    r"(?:meds?|medications?|medicines?|med(?:ication)?\s+list|labs?|lab\s+(?:results?|values?)|bloods|"
    r"blood\s+(?:tests?|work|pressure|sugar)|allergies|allergy\s+list|vitals?|vital\s+signs|(?:medical\s+)?history|problem\s+list|"
    r"problems|"
    r"diagnos[ei]s|conditions|immuni[sz]ations|vaccinations|prescriptions|a1c|hba1c|egfr|creatinine|"
    r"potassium|sodium|inr|hemoglobin|haemoglobin|weight|bmi|results|kidney\s+function|renal\s+function|"
    r"liver\s+function|drugs|notes)"
)
_OWNER = r"(?:\bhis|\bher|\btheir|\bpatient['’]?s?|\w['’]s|\w['’])"
OWNED_ITEM = re.compile(rf"{_OWNER}\s+(?:\w+\s+){{0,3}}?{ITEMS}\b", re.IGNORECASE)
ITEM_OF = re.compile(
    rf"\b{ITEMS}\s+(?:\w+\s+){{0,2}}?(?:of|for|on|in)\s+(?:him|her|them|(?:this|the|my)\s+)?(?P<who>[^\s,;?.]*)", re.I
)
IS_TAKING = re.compile(
    r"\bwhat(?:['’]s|\s+(?:is|are|does|do|else))?\s+(?:\w+\s+){0,4}?(?:taking|take|takes|on|allergic)\b|"
    r"\b(?:is|are)\s+(?:he|she|they|(?:the|this|my)\s+patient)\s+(?:\w+\s+){0,2}?(?:taking|on|allergic)\b",
    re.IGNORECASE,
)
PERSON = re.compile(r"\b(?:he|she|they|him|her|his|hers|their|them|patient|pt)\b", re.IGNORECASE)


def writes_asked(question: str, entities: ExtractedEntities) -> list[str]:
    """The write tools that a question orders, in the order prescription, allergy, note."""
    asked = []
    if _prescribes(question, entities):
        asked.append("prescribe_medication")
    if _allergy(question):
        asked.append("add_allergy")
    if _note(question, "add_allergy" in asked):
        asked.append("save_clinical_note")
    return asked


def reads_record(question: str, entities: ExtractedEntities, has_patient: bool) -> bool:
    """Whether the chart of a particular patient is to be read."""
    person = bool(entities["patient_ids"] or entities["patient_names"] or has_patient or PERSON.search(question))
    if not person:
        return False
    writing = bool(writes_asked(question, entities))
    if writing and not READ_VERB.search(question):
        return False
    if any(_is_record(question, match, writing) for match in RECORD_NOUN.finditer(question)):
        return True
    if any(not (writing and _is_target(question, match)) for match in OWNED_ITEM.finditer(question)):
        return True
    return bool(IS_TAKING.search(question)) or _item_of_patient(question, entities)


def anonymous(question: str) -> bool:
    """Whether "the patient" is meant without saying who: nobody can be searched for."""
    return bool(
        re.search(r"\b(?:this|the|my|that|our|a)\s+(?:\w+\s+)?patient\b|\bpatient['’]s\b", question, re.IGNORECASE)
    )


def _prescribes(question: str, entities: ExtractedEntities) -> bool:
    if any(_ordered(question, match.start()) for match in PRESCRIBE.finditer(question)):
        return True
    drug = bool(entities["drug_mentions"] or doses(question))
    for match in START.finditer(question):
        rest = question[match.end() : match.end() + 120]
        if NOT_MEDICATION.match(rest) or (
            match.group().lower() == "order" and IN_ORDER.search(question[: match.start()])
        ):
            continue
        verb = match.group().lower()
        meant = drug if verb in ("give", "put", "resume", "begin") else drug or MEDICATION_WORD.search(rest)
        if verb == "put" and not re.search(r"\bon\b", rest):
            continue
        if verb in ("give", "begin") and not doses(rest):
            continue
        if meant and _ordered(question, match.start()):
            return True
    return False


def _allergy(question: str) -> bool:
    if any(_ordered(question, match.start()) for match in ALLERGY.finditer(question)):
        return True
    return any(
        _ordered(question, match.start("verb"))
        for pattern in (ALLERGY_THEN, REACTED)
        for match in pattern.finditer(question)
    )


def _note(question: str, allergy: bool) -> bool:
    for match in NOTE.finditer(question):
        that = re.search(r"\bthat$", match.group(), re.IGNORECASE)
        if not (allergy and that) and _ordered(question, match.start()):
            return True
    return False


def _ordered(question: str, at: int) -> bool:
    """Whether the verb at this place is an order: nothing before it in its clause asks, conditions or refuses."""
    before = _clause_before(question, at)
    if REFUSED.search(before):
        return False
    if joint := RESTART.search(before):  # "check his chart and prescribe"; but "should I stop A and start B"
        return not ADVICE.search(before[: joint.start()])
    return not NOT_ORDERED.search(before) or bool(REQUEST.search(before) and not CONDITION.search(before))


def _clause_before(question: str, at: int) -> str:
    head = question[max(0, at - 200) : at]
    cuts = [match.end() for match in CLAUSE.finditer(head)]
    return head[cuts[-1] :] if cuts else head


def _is_record(question: str, match: re.Match, writing: bool) -> bool:
    word = match.group().lower()
    before, after = question[: match.start()][-60:], question[match.end() : match.end() + 40]
    if (
        word in ("record", "chart", "records", "charts")
        and RECORD_VERB_BEFORE.search(before)
        and OBJECT_AFTER.match(after)
    ):
        return False  # "record an allergy"
    return not (writing and _is_target(question, match))


def _is_target(question: str, match: re.Match) -> bool:
    """Where a write goes: "to his chart", "in the patient's record"."""
    return bool(TARGET_BEFORE.search(question[: match.start()][-60:]))


def _item_of_patient(question: str, entities: ExtractedEntities) -> bool:
    """ "labs for abc-123", "the medications of John Smith"."""
    names = {word.casefold() for name in entities["patient_names"] for word in name.split()}
    for match in ITEM_OF.finditer(question):
        if re.search(
            r"\b(?:order|send|draw|repeat)\s+(?:\w+\s+){0,2}$", question[: match.start()][-40:], re.IGNORECASE
        ):
            continue
        who = match["who"].casefold().rstrip("'’s")
        following = question[match.end("who") : match.end("who") + 40]
        if (
            PATIENT_ID.match(match["who"])
            or who in names
            or (not who and match.group().endswith(("him", "her", "them")))
        ):
            return True
        if who == "patient" and not following.startswith("s"):
            return True
    return False
