"""The patterns by which `rules.asked` reads orders and record requests. Words only; no logic."""

import re

from docgemma.rules.ids import PATIENT_ID

_GAP = r"(?:\W+\w+)"
CLAUSE = re.compile(r"[.;!?\n]+(?:\s|$)|,?\s+\bbut\b")
# before a verb, within its clause: what makes it a question, a condition or a refusal instead of an order
NOT_ORDERED = re.compile(
    r"(?:\b(?:should|shall|may|might|would it|"
    r"is it (?:safe|ok|okay|fine|wise|reasonable)|safe to|ok(?:ay)? to|able to|whether|if|"
    r"when|before|after|until|unless|since|how|why|thinking|considering|planning|plan|want(?:ed)? to know|"
    r"not|never|without|avoid|instead of|rather than|hold off(?: on)?|no need|nothing|do(?:es)? (?:i|we)|can i|can we|"
    r"could i|could we|did|am i|are we|who|which|what)\b|n['’]t\b|\bdont\b)"
    r"(?:\W+\w+){0,5}\W*$",
    re.IGNORECASE,
)
# a clause that opens so asks, up to its verb: "has anyone started X", "is he to resume X"
ASKING = re.compile(
    r"^\W*(?:(?:and|so|ok|also|hi)\W+)?(?:has|have|had|is|are|was|were|does|do|did|will)\b", re.IGNORECASE
)
REFUSED = re.compile(
    r"(?:n['’]t|\b(?:dont|not|never|without|avoid|instead of|rather than|hold off(?: on)?|no need to))\b"
    r"(?:(?!,|\bthen\b|\bbut\b).){0,60}$",
    re.IGNORECASE,
)
ADVICE = re.compile(r"\b(?:should|can|could|may|might|shall) (?:i|we)\b|\bis it\b|\bsafe to\b", re.IGNORECASE)
CONDITION = re.compile(r"\b(?:before|after|if|when|unless|until)\b", re.IGNORECASE)
REQUEST = re.compile(
    r"\b(?:can|could|would|will) you\b|\b(?:can|could) (?:that|this|it) (?:be|go)\b|\bplease\b|\bgo ahead\b|"
    r"\b(?:can|could) (?:i|we) get\b|\bi(?: want| need| would like|['’]d like)",
    re.I,
)
RESTART = re.compile(
    r"(?:,|\band\b|\bthen\b|\balso\b|\bso\b|—|–|:)\s*(?:please\s+|then\s+|also\s+|just\s+)*$", re.IGNORECASE
)

PRESCRIBE = re.compile(
    rf"\b(?:prescribe|re-?prescribe|write{_GAP}{{0,3}}\W+(?:prescription|script|rx)|e-?prescribe)\b", re.IGNORECASE
)
# "I want empagliflozin prescribed for abc-123: 10 mg"
WANTED = re.compile(
    r"\b(?:i\s+(?:want|need)|i['’]d like|we need|please (?:have|get)|needs?)\s+(?:[^\s.;?!]+\s+){1,6}?pr?er?scribed\b",
    re.IGNORECASE,
)
# "to be commenced", "needs prescribing", "on the drug chart": orders where a dose is said
PASSIVE = re.compile(
    r"\b(?:to\s+be|needs?(?:\s+it)?|get(?:ting)?|(?:can|could)\s+(?:that|this|it)\s+be)\s+(?:re-?)?"
    r"(?:prescribed|prescribing|commenced|started|initiated|written\s+up|charted)\b|"
    r"\bwrite\s+up\b|\bget\s+(?:him|her|them|[a-z]{3}-[0-9]{3})\s+(?:started\s+)?on\b|\bget\s+(?:\S+\s+){1,3}?(?:prescribed|started|written\s+up|charted)\b|\bi['’]d\s+like\s+is\b|"
    r"\b(?:on|onto|to)\s+the\s+drug\s+chart\b|\bthat['’]s\s+the\s+(?:script|prescription|order)\b|"
    r"\bnew\s+(?:prescription|script|rx)\b|\b(?:put|send)\s+(?:(?:it|that|this)\s+)?through\b|\bget\s+(?:\S+\s+){1,6}?on\s+board\b|"
    r"\bwrite\s+(?:it|that|this)\s+up\b|\b(?:script|prescription)\s+(?:please|pls|to\s+the|for\s+the)\b",
    re.IGNORECASE,
)
# what is said of a drug that somebody has already, or had: then a dose is no order
HAS_HAD = re.compile(
    r"\b(?:on|takes?|taking|took|started|stopped|had|has|have|having|been|was|were|gave|given|currently|since|already|"
    r"usual|usually|allerg\w*|react\w*|interact\w*|dose\s+of|maximum|max|notes?|document|record)\b",
    re.IGNORECASE,
)
# these are orders only where a medication is their object
START = re.compile(
    r"\b(?:start|order|initiate|commence|begin|restart|resume|refill|renew|give|put|add|rx)\b", re.IGNORECASE
)
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
REACTION_WORD = r"(?:rash|hives|urticaria|welts|angioedema|swell\w*|swollen|wheez\w+|reaction|itch\w*|throat\s+clos\w+)"
REACTED_THEN = re.compile(
    rf"\b{REACTION_WORD}\b.{{0,60}}?[.;,!]\s*(?:please\s+)?(?P<verb>add|document|record|log|enter|register|note)\s+(?:this|it|that)\b",
    re.IGNORECASE | re.DOTALL,
)
ALLERGY_LIST = re.compile(
    rf"\b{_ALLERGY}.{{0,60}}?(?P<verb>\b(?:goes|should\s+go|needs?\s+to\s+go)\s+(?:on|in)(?:to)?\b|\bneeds?\s+(?:adding|recording|entering)\b|"
    r"\b(?:needs?\s+)?to\s+be\s+(?:added|recorded|entered|documented)\b|\blist\s+(?:update|addition)\b)|"
    r"(?P<verb3>\bgo(?:es)?\s+on(?:to)?\s+(?:his|her|their|the)\s+allerg)|(?P<verb2>\bnew\s+(?:\w+\s+)?allergy\b[^.;:,!?\n]{0,60}:)",
    re.IGNORECASE,
)
PUT_ORDER_IN = re.compile(r"\b(?:put|place|enter)\s+(?:the|an|that|this)\s+order\b", re.IGNORECASE)
REACTED = re.compile(
    r"(?<!\ba\s)(?<!\bthe\s)\b(?P<verb>add|document|record|log|enter|register|note)\b(?:(?![.;!?\n]).){0,80}?\b"
    + REACTION_WORD
    + r"\b(?:(?![.;!?\n]).){0,20}?"
    r"\b(?:to|with|from|after|on)\b",
    re.IGNORECASE,
)
NOTE = re.compile(
    rf"\b(?:write|save|document|add|create|draft|enter|record|make|file|put|log|dictate|leave){_GAP}{{0,6}}?\W+"
    rf"(?:notes?|soap|discharge\s+summary|h&p)\b|^\W{{0,20}}(?:please\s+)?(?:note|document|chart|record)\s+that\b|"
    rf"\bdocument{_GAP}{{0,3}}?\W+(?:visit|encounter|consultation|discussion|conversation|exam\w*|"
    rf"assessment|findings|plan)\b|"
    rf"\b(?:write|put|enter|add|document|note|record|log|chart)\s+(?:it\s+)?"
    rf"(?:down|(?:to|on|in(?:to)?)\s+(?:the|his|her|their|[\w-]+['’]s)\s+(?:records?|chart|file|notes))\b"
    rf".{{0,60}}?(?:\bthat\b|:|\s[-–—]\s)|"
    rf"\b(?:save|file|log|enter|record|put)\b[^.;?!\n]{{0,200}}?\bas\s+(?:an?\s+|the\s+)?(?:[\w-]+\s+){{0,2}}note\b|"
    rf"^\W{{0,20}}(?:progress|consult|procedure|clinical|nursing|discharge)\s+note\s*[:,]|"
    rf"\b(?:progress|consult|procedure|clinical|nursing|discharge)\s+note\s*:|\bnote\s+[\"“]|"
    rf"^\W{{0,20}}(?:please\s+)?(?:chart|record|document)\s+(?:this|the\s+following)\b|\bkeep\s+on\s+file\b.{{0,40}}?\bthat\b|"
    rf"(?:^|[:,]\s*|\bleave\s+a\s+)(?:\w+[ -])?note\s*:|"
    rf"^\W{{0,20}}(?:[\w-]+\s+){{0,2}}(?:note|discharge\s+summary)\s+(?:(?:for|on|re)\s+)?"
    rf"(?:patient\s+|pt\s+)?{PATIENT_ID.pattern}\s*(?:[:,.]|\s[-–—])\s|"
    # "dietetic note, exactly so: …", "physio note, please - …", "Medication review note → abc-123 → …"
    r"^\W{0,20}(?![^:]{0,80}\b(?:show|find|read|get|open|see|view|pull|what|which|any|allerg\w*)\b)(?:[\w-]+\s+){0,3}"
    r"(?:note|addendum)\b[^.;:?!\n]{0,60}?(?::\s|\s[-–—]\s|\s(?:→|[-=]>)\s)|"
    r"^\W{0,20}(?:[\w-]+\s+){0,3}note\s+(?:needed|required|wanted)\b|^\W{0,20}late\s+entry\b|\baddendum\s+(?:for|to|on)\b|"
    r"^\W{0,20}(?:telephone|phone|video|clinic|office|home)\s+(?:encounter|consult\w*|call|review|visit)\s*:|"
    r"\b(?:whack|stick|pop|chuck|put|get|enter|file|log|save)\s+(?:this|the\s+following)\s+(?:up\s+)?(?:on|in|to|under)\w*\b"
    r"[^.;:?!\n]{0,40}\b(?:file|charts?|records?)\b|\b(?:want|like)\s+it\s+(?:stated|noted|recorded|documented)\s+that\b|"
    r"\bnote\s+(?:it|this)\s*(?::|[-–—]\s)|\bgo(?:es)?\s+(?:to|in|into|on)\b[^.;:?!\n]{0,40}?\bas\s+an?\s+(?:[\w-]+\s+){0,2}note\b|"
    r"\binto\s+the\s+(?:chart|file|record|notes)\s+as\b|\bthat['’]s\s+(?:the|my|a|his|her)\s+(?:[\w-]+\s+){0,2}note\b|"
    r"\b(?:an?|new)\s+(?:[\w-]+\s+){0,2}(?:note|entry)\s+(?:which|that)\s+(?:says|reads)\b|\b(?:plus|and)\s+an\s+entry\s*:|"
    r"\b(?:file|write|save|do)\s+one\s+(?:that|which|saying|stating)\b|\bdictation\s+for\b|\bjot\s+(?:this\s+|it\s+)?down\b|\bwrit(?:e|ing)\s+up\s+as\b|"
    r"^\W{0,20}(?:(?:right|ok|okay|so)\W{1,3})?(?:discharge\s+summary|(?!the\b|an?\b|his\b|her\b)[\w-]+\s+note)\s*[.,]\s+\S|"
    r"\bend\s+of\s+dictation\b|"
    r"\b(?:can|could)\s+this\s+(?:go\s+(?:in|on|to)|be\s+(?:filed|saved|entered|added))\b|"
    r"\b(?:stick|put|pop|add|file|save|enter|log)\s+(?:that|this|it)\s+(?:on|in|into|to|under)\s+"
    rf"{PATIENT_ID.pattern}|\bgoes\s+in(?:to)?\s+[\w-]+['’]s\s+(?:chart|file|record|notes)\b|"
    rf"^\W{{0,20}}(?:please\s+)?(?:chart|document|record|note)\s+(?:on|for|in|under)\s+(?:patient\s+|pt\s+)?{PATIENT_ID.pattern}\s+that\b",
    re.IGNORECASE,
)

READ_VERB = re.compile(
    r"\b(?:check|review|show|find|get|pull|look|verify|see|what|what's|whats|which|does|is|are|any|open|list|"
    r"summari[sz]e|retrieve|read|display|view|tell|compare|how|when|has|have|bring|fetch|give)\b",
    re.IGNORECASE,
)
RECORD_NOUN = re.compile(r"(?<!drug )(?<!allergy )\b(?:charts?|records?|summary|ehr|emr|overview)\b", re.IGNORECASE)
RECORD_VERB_BEFORE = re.compile(
    r"(?:^|[.;:!?,]|"
    r"\b(?:please|pls|plz|kindly|to|and|but|then|you|must|should|also|just|not|world|track|broke|for the|on)\b)\s*$",
    re.IGNORECASE,
)
OBJECT_AFTER = re.compile(
    r"^\s+(?:a|an|that|this|the|her|his|their|my|[a-z]+\s+(?:allergy|intolerance))\b", re.IGNORECASE
)
TARGET_BEFORE = re.compile(
    r"\b(?:to|in|into|on|update|annotate|amend)\s+(?:(?:the|his|her|their|patient['’]?s|my|this)\s+|[\w-]+['’]s\s+){0,3}[\w-]*$",
    re.I,
)
# "open abc-123", "the whole file", "everything we have on her"
OPENS = re.compile(
    rf"\b(?:open|show(?:\s+me)?|pull\s+up|bring\s+up|call\s+up|load|review|view|display|see)\s+(?:up\s+)?(?:patient\s+|pt\s+)?"
    rf"{PATIENT_ID.pattern}(?!['’])|"
    r"\b(?:in|on|see|show(?:\s+me)?|open|pull|bring|get|read)\s+(?:up\s+|me\s+)?(?:the|his|her|their|whole|full|entire|\s)+\s?file\b|"
    r"\beverything\s+(?:that\s+)?(?:we|you|they|i)(?:['’]ve)?\s+(?:\w+\s+)?(?:have|hold|got|know|keep|stored)\b|"
    r"\beverything\s+(?:on|about|in)\b|\ball\s+(?:that\s+)?(?:we|you)\s+(?:have|hold|know)\b|\bin\s+(?:the\s+)?"
    rf"{PATIENT_ID.pattern}\s+before\b",
    re.IGNORECASE,
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
    r"\bwhat(?:['’]s|\s+(?:is|are|does|do|else))?\s+(?:(?!warning|interaction|evidence|paper|stud|trial|data|label|info)[\w.]+\s+){0,7}?(?:taking|take|takes|on|allergic)\b|"
    r"\b(?:is|are)\s+(?:he|she|they|(?:the|this|my)\s+patient)\s+(?:\w+\s+){0,2}?(?:taking|on|allergic)\b",
    re.IGNORECASE,
)
PERSON = re.compile(r"\b(?:he|she|they|him|her|his|hers|their|them|patient|pt)\b", re.IGNORECASE)

# what might be an order though no pattern says so: "pt abc-123 needs doxycycline 100 mg bid"
REFUSES = re.compile(
    r"(?:n['’]t|\b(?:dont|do not|never|without|no need to|hold off|instead of)\b)[^,;.]{0,40}?\b"
    r"(?:prescrib\w*|order\w*|start\w*|writ\w*|document\w*|record\w*|chang\w*|add\w*)",
    re.IGNORECASE,
)
MAYBE_ALLERGY = re.compile(rf"\b(?:{_ALLERGY}|{REACTION_WORD}|anaphylaxis)\b", re.IGNORECASE)
KEEPS = re.compile(
    r"\b(?:log|record|document|add|adding|enter|list|lists|chart|note|put|save|updat\w+|mark|register|file|stick|pop|"
    r"belongs?|goes|on\s+there|allergies)\b",
    re.IGNORECASE,
)
MAYBE_NOTE = re.compile(r"\b(?:notes?|put\s+down|jot|write|dictat\w*|document)\b", re.IGNORECASE)
ASKS = re.compile(
    r"\?|^\W*(?:what|which|who|when|where|why|how|is|are|was|were|does|do|did|should|has|have|any|tell|"
    r"show|find|explain|compare)\b",
    re.IGNORECASE,
)
