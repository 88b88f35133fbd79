"""What a clinician types, as a full-text query: stop words out, synonyms in, any input safe. Pure."""

import re
from itertools import combinations

from docgemma.errors import ErrorType, ToolError

MAX_CONCEPTS = 8
WORD = re.compile(r"[^\W_]+")

_STOP = """
    a about after all am an and any are article articles as at available be been being between by can clinical compare
    compared comparing could current data did do does during effect effectiveness effects efficacy enroll enrolling
    evidence experimental find finding findings for from give guideline guidelines has have how i in into is it its
    latest level literature look looking may me medical my new of on ongoing or outcome outcomes paper papers patient
    patients people please published pubmed recent recruiting research result results review reviews safety say says
    search searching show should some studied studies study summary support supports systematic tell than that the their
    there these this to treat treated treating treatment treatments trial trials up us use used using value versus vs
    was we what when whether which who why will with you
"""
STOP_WORDS = frozenset(_STOP.split())

# each line: ways to say one thing; after ">" what is a kind of it, found by it but not the other way round
_SYNONYMS = """
cancer, carcinoma, neoplasm, tumor, tumour, malignancy, malignant
heart failure, cardiac failure, hf, chf > hfref, hfpef, cardiomyopathy
heart failure with preserved ejection fraction, hfpef
heart failure with reduced ejection fraction, hfref
myocardial infarction, heart attack, mi > stemi, nstemi
acute coronary syndrome, acs > myocardial infarction, stemi, nstemi
hypertension, high blood pressure, htn, elevated blood pressure
atrial fibrillation, afib, af
stroke, cva, cerebrovascular accident, cerebral infarction
venous thromboembolism, vte > deep vein thrombosis, dvt, pulmonary embolism
deep vein thrombosis, dvt
pulmonary embolism, pe
coronary artery disease, cad, coronary heart disease, ischemic heart disease, ischaemic heart disease
chronic kidney disease, ckd, kidney disease, renal disease, renal failure, kidney failure, renal impairment
diabetes, diabetes mellitus > type 2 diabetes, t2dm, type 1 diabetes, t1dm, diabetic
type 2 diabetes, t2dm, t2d, type ii diabetes, type 2 diabetes mellitus
type 1 diabetes, t1dm, t1d, type 1 diabetes mellitus
obesity, overweight, weight loss, weight management
copd, chronic obstructive pulmonary disease, emphysema
triple negative breast cancer, tnbc, triple negative breast carcinoma
non small cell lung cancer, nsclc, nonsmall cell lung cancer, non small cell lung carcinoma
small cell lung cancer, sclc
lung cancer, lung carcinoma > nsclc, non small cell lung cancer, small cell lung cancer
colorectal cancer, crc, bowel cancer, colorectal carcinoma > colon cancer, rectal cancer
leukemia, leukaemia > aml, cll
acute myeloid leukemia, acute myeloid leukaemia, aml
chronic lymphocytic leukemia, chronic lymphocytic leukaemia, cll
multiple myeloma, myeloma
pancreatic cancer, pancreatic carcinoma, pancreatic adenocarcinoma, pdac
glioblastoma, gbm
hepatocellular carcinoma, hcc, liver cancer
alzheimer, alzheimers, alzheimer disease
dementia > alzheimer, alzheimers
parkinson, parkinsons, parkinson disease
depression, major depressive disorder, mdd, depressive
rheumatoid arthritis, ra
lupus, sle, systemic lupus erythematosus
crohn, crohns
inflammatory bowel disease, ibd > crohn, crohns, ulcerative colitis
gerd, gastroesophageal reflux, acid reflux, reflux disease
high cholesterol, hypercholesterolemia, hypercholesterolaemia, hyperlipidemia, hyperlipidaemia, dyslipidemia
covid, covid 19, sars cov 2, coronavirus
hiv, human immunodeficiency virus
hepatitis c, hcv
migraine, migraines
sickle cell, sickle cell disease, scd
cystic fibrosis, cf
pediatric, paediatric, children, child
elderly, older adults, older people, geriatric, aged
pregnancy, pregnant, gestational
sglt2, sglt 2, sodium glucose cotransporter 2 > empagliflozin, dapagliflozin, canagliflozin
glp 1, glp1 > semaglutide, liraglutide, dulaglutide, tirzepatide
doac, doacs, noac, noacs, direct oral anticoagulant, direct oral anticoagulants > apixaban, rivaroxaban, dabigatran
statin, statins > atorvastatin, rosuvastatin, simvastatin, pravastatin
ace inhibitor, ace inhibitors, acei > lisinopril, enalapril, ramipril
immunotherapy, checkpoint inhibitor, checkpoint inhibitors > pembrolizumab, nivolumab
beta blocker, beta blockers > metoprolol, carvedilol, bisoprolol
acetaminophen, paracetamol
"""


def _phrases() -> dict[tuple[str, ...], list[str]]:
    """Words of a phrase -> every way to say it, itself first."""
    found: dict[tuple[str, ...], list[str]] = {}
    for line in _SYNONYMS.strip().splitlines():
        same, _, kinds = ([item.strip() for item in part.split(",") if item.strip()] for part in line.partition(">"))
        for phrase in same:
            ways = found.setdefault(tuple(phrase.split()), [phrase])
            ways += [way for way in (*same, *kinds) if way not in ways]
    return found


PHRASES = _phrases()
_LONGEST = max(map(len, PHRASES))

STATUSES = {
    "recruiting": ("RECRUITING",),
    "open": ("RECRUITING", "NOT_YET_RECRUITING"),
    "enrolling": ("RECRUITING", "ENROLLING_BY_INVITATION"),
    "enrolling by invitation": ("ENROLLING_BY_INVITATION",),
    "active": ("RECRUITING", "ACTIVE_NOT_RECRUITING", "ENROLLING_BY_INVITATION"),
    "ongoing": ("RECRUITING", "ACTIVE_NOT_RECRUITING", "ENROLLING_BY_INVITATION"),
    "active not recruiting": ("ACTIVE_NOT_RECRUITING",),
    "not recruiting": ("ACTIVE_NOT_RECRUITING",),
    "not yet recruiting": ("NOT_YET_RECRUITING",),
    "planned": ("NOT_YET_RECRUITING",),
    "completed": ("COMPLETED",),
    "finished": ("COMPLETED",),
    "terminated": ("TERMINATED",),
    "stopped": ("TERMINATED", "SUSPENDED", "WITHDRAWN"),
    "suspended": ("SUSPENDED",),
    "withdrawn": ("WITHDRAWN",),
}
ANY_STATUS = frozenset({"", "any", "all", "none", "unknown"})


def statuses(text: str | None) -> tuple[str, ...]:
    """A recruitment status as said, as the registry's own codes; () for no filter.

    Raises:
        ToolError: `invalid_args` for a word that is no status.
    """
    words = " ".join(WORD.findall((text or "").lower().replace("_", " ")))
    if words in ANY_STATUS:
        return ()
    for key in (words, words.removesuffix(" trials"), words.removeprefix("currently ")):
        if key in STATUSES:
            return STATUSES[key]
    raise ToolError(ErrorType.INVALID_ARGS, "not a recruitment status", missing_fields=["status"])


def concepts(text: str) -> list[list[str]]:
    """The things asked about, each as the ways to say it, in order; at most eight."""
    words = [word.lower() for word in WORD.findall(text[:2000])]
    found: list[list[str]] = []
    at = 0
    while at < len(words) and len(found) < MAX_CONCEPTS:
        size, ways = _phrase_at(words, at)
        if ways and ways not in found:
            found.append(ways)
        at += size
    return found


def match_expression(text: str) -> str:
    """An FTS5 expression: two thirds of what was asked about must be there. "" if nothing was asked about."""
    terms = [f"({' OR '.join(_quoted(way) for way in ways)})" for ways in concepts(text)]
    if not terms:
        return ""
    needed = len(terms) - len(terms) // 3
    return " OR ".join(f"({' AND '.join(group)})" for group in combinations(terms, needed))


def _phrase_at(words: list[str], at: int) -> tuple[int, list[str]]:
    for size in range(min(_LONGEST, len(words) - at), 0, -1):
        if ways := PHRASES.get(tuple(words[at : at + size])):
            return size, ways
    word = words[at]
    return 1, [] if word in STOP_WORDS or (len(word) == 1 and not word.isdigit()) else [word]


def _quoted(phrase: str) -> str:
    return '"' + phrase.replace('"', "") + '"'
