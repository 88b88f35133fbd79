"""How labels write a drug class in running text, beside the class's own established name. Data only.

Class names are FDA's established pharmacologic classes (EPC) and mechanisms (MoA); the wordings are those of
section 7 of prescription labels and of over-the-counter warnings, as DailyMed shows them.
"""

import re

# "anticoagulant response" is not a mention of a drug
ANTICOAGULANTS = (
    r"(?:oral )?anticoagulants",
    r"anticoagulant (?:agents?|drugs?|therapy)",
    r"(?:an|another|or) (?:oral )?anticoagulant",
    r"\(anticoagulant\)",
)

# part of a class name (lower case): the words that mean it in a label, as regular expressions
WORDS: dict[str, tuple[str, ...]] = {
    "nonsteroidal anti-inflammatory": (r"NSAIDs?", r"non-?\s?steroidal anti-?\s?inflammatory (?:drugs?|agents?)"),
    "cyclooxygenase inhibitor": (r"NSAIDs?", r"non-?\s?steroidal anti-?\s?inflammatory (?:drugs?|agents?)"),
    "vitamin k antagonist": (*ANTICOAGULANTS, r"blood thinn\w+", r"coumarins?"),
    "factor xa inhibitor": (*ANTICOAGULANTS, r"blood thinn\w+"),
    "thrombin inhibitor": (*ANTICOAGULANTS, r"blood thinn\w+"),
    "heparin": (*ANTICOAGULANTS, r"blood thinn\w+", r"heparins?"),
    "platelet aggregation inhibitor": (r"anti-?platelet (?:agents?|drugs?)", r"platelet inhibitors?"),
    "p2y12": (r"anti-?platelet (?:agents?|drugs?)", r"P2Y12 inhibitors?"),
    "salicylate": (r"salicylates?",),
    "angiotensin converting enzyme": (r"ACE[- ]inhibitors?", r"angiotensin[- ]converting[- ]enzyme inhibitors?"),
    "angiotensin 2": (r"angiotensin (?:II |2 )?receptor (?:blockers?|antagonists?)", r"ARBs?"),
    "hydroxymethylglutaryl": (r"statins?", r"HMG-?CoA reductase inhibitors?"),
    "hmg-coa": (r"statins?", r"HMG-?CoA reductase inhibitors?"),
    "serotonin reuptake": (r"SSRIs?", r"serotonin reuptake inhibitors?", r"serotonergic drugs?"),
    "serotonin and norepinephrine reuptake": (r"SNRIs?", r"serotonergic drugs?"),
    "monoamine oxidase": (r"MAOIs?", r"MAO inhibitors?", r"monoamine oxidase inhibitors?"),
    "tricyclic": (r"tricyclic antidepressants?", r"TCAs?"),
    "opioid": (r"opioids?(?: analgesics?)?", r"CNS depressants?"),
    "benzodiazepine": (r"benzodiazepines?", r"CNS depressants?"),
    "barbiturate": (r"barbiturates?", r"CNS depressants?"),
    "antiarrhythmic": (r"anti-?arrhythmics?(?: (?:agents?|drugs?))?",),
    "beta-adrenergic blocker": (r"beta-?\s?(?:adrenergic )?blockers?", r"beta-?blocking agents?"),
    "calcium channel": (r"calcium channel (?:blockers?|antagonists?)",),
    "cardiac glycoside": (r"cardiac glycosides?", r"digitalis(?: glycosides?)?"),
    "thiazide": (r"thiazides?(?: diuretics?)?", r"diuretics?"),
    "loop diuretic": (r"loop diuretics?", r"diuretics?"),
    "potassium-sparing": (r"potassium-?sparing diuretics?", r"diuretics?"),
    "aldosterone antagonist": (r"aldosterone antagonists?", r"potassium-?sparing diuretics?"),
    "azole antifungal": (r"azole antifungals?", r"antifungals?"),
    "macrolide": (r"macrolides?(?: antibiotics?)?",),
    "quinolone": (r"(?:fluoro)?quinolones?(?: antibiotics?)?",),
    "penicillin-class": (r"penicillins?",),
    "cephalosporin": (r"cephalosporins?",),
    "tetracycline": (r"tetracyclines?",),
    "aminoglycoside": (r"aminoglycosides?(?: antibiotics?)?",),
    "nitrate vasodilator": (r"(?:organic )?nitrates?", r"nitric oxide donors?"),
    "phosphodiesterase 5": (r"PDE-?5 inhibitors?", r"phosphodiesterase(?: type)? 5 inhibitors?"),
    "biguanide": (r"biguanides?",),
    "sulfonylurea": (r"sulfonylureas?", r"insulin secretagogues?"),
    "corticosteroid": (r"corticosteroids?", r"steroid drugs?"),
    "phenothiazine": (r"phenothiazines?",),
    "antipsychotic": (r"antipsychotics?",),
}
ENZYME = re.compile(
    r"(?:cytochrome p450 (?P<cyp>\d[a-z]\d*)|(?P<pgp>p-glycoprotein)) (?P<kind>inhibitor|inducer)", re.I
)


def wordings(class_name: str) -> list[str]:
    """Regular expressions (to be used without regard to case) for a class in a label's text.

    Inhibitors and inducers of an enzyme match without regard to strength, since the class does not state one.
    """
    name = re.sub(r"\s*\[\w+\]\s*$", "", class_name).strip().lower()
    enzyme = ENZYME.search(name)
    if enzyme:
        target = r"P-?(?:gp|glycoprotein)" if enzyme["pgp"] else rf"CYP\s?{enzyme['cyp']}(?:4|5)?"
        kind = enzyme["kind"].lower()
        return [rf"{target}(?: enzyme)? {kind}s?", rf"{kind}s of (?:[\w,/ ]{{0,30}})?{target}"]
    found = [word for part, words in WORDS.items() if part in name for word in words]
    own = re.escape(re.sub(r"s$", "", name)).replace(r"\-", r"[-\s]?").replace(r"\ ", r"\s")
    return list(dict.fromkeys([*found, rf"{own}s?"])) if name else []
