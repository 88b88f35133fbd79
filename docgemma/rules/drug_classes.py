"""Drug classes as far as allergies and duplicate therapy need them. Data only; generic names, as RxNorm writes them.

Not covered: foods, latex, excipients; classes in which neither cross-reactivity nor duplication matters. Members can be
checked in RxClass (ATC, EPC); what a class says about allergy stands in the source named beside it.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class DrugClass:
    """One class.

    Attributes:
        name: as in "belongs to the same class (penicillins)".
        members: generic names, lower case.
        said: how a chart or a clinician writes the class itself, as a pattern.
        allergy: an allergy to one member matters for all others.
        duplicate: two members at once are duplicate therapy.
    """

    name: str
    members: frozenset[str]
    said: re.Pattern
    allergy: bool = True
    duplicate: bool = True


def _class(name: str, members: str, said: str, *, allergy: bool = True, duplicate: bool = True) -> DrugClass:
    names = frozenset(item.strip() for item in members.split(","))
    return DrugClass(name, names, re.compile(rf"\b(?:{said})\b", re.IGNORECASE), allergy, duplicate)


CLASSES: tuple[DrugClass, ...] = (
    # Amoxicillin label, section 4: serious hypersensitivity to any beta-lactam
    _class(
        "penicillins",
        "amoxicillin, ampicillin, penicillin, penicillin g, penicillin v, phenoxymethylpenicillin, benzylpenicillin, "
        "penicillin g benzathine, penicillin v potassium, piperacillin, dicloxacillin, flucloxacillin, nafcillin, "
        "oxacillin, cloxacillin, ticarcillin, pivmecillinam, augmentin, co-amoxiclav",
        r"penicillins?|pcn",
    ),
    # Cephalexin label, section 5.1
    _class(
        "cephalosporins",
        "cephalexin, cefalexin, cefazolin, cefadroxil, cefuroxime, cefaclor, cefprozil, cefoxitin, cefotetan, "
        "cefdinir, "
        "cefixime, cefpodoxime, ceftriaxone, cefotaxime, ceftazidime, cefepime, ceftaroline, ceftolozane, cefiderocol",
        r"cephalosporins?|cefalosporins?|ceph?s",
    ),
    # Meropenem label, section 5.1
    _class("carbapenems", "meropenem, imipenem, ertapenem, doripenem", r"carbapenems?"),
    # Bactrim label, section 4
    _class(
        "sulfonamide antibiotics",
        "sulfamethoxazole, sulfadiazine, sulfisoxazole, sulfacetamide, sulfadoxine, silver sulfadiazine, "
        "sulfasalazine, "
        "bactrim, septra, co-trimoxazole",
        r"sulfa|sulpha|sulfa (?:drugs?|antibiotics?)|sulfonamides?|sulphonamides?",
    ),
    # Erythromycin, azithromycin labels, section 4
    _class("macrolides", "azithromycin, clarithromycin, erythromycin, fidaxomicin, telithromycin", r"macrolides?"),
    # Ciprofloxacin label, section 4.1
    _class(
        "fluoroquinolones",
        "ciprofloxacin, levofloxacin, moxifloxacin, ofloxacin, gemifloxacin, delafloxacin, norfloxacin",
        r"(?:fluoro)?quinolones?",
    ),
    # Doxycycline label, section 4
    _class(
        "tetracyclines",
        "doxycycline, minocycline, tetracycline, tigecycline, demeclocycline, eravacycline, omadacycline",
        r"tetracyclines?",
    ),
    # Gentamicin label, contraindications
    _class(
        "aminoglycosides", "gentamicin, tobramycin, amikacin, neomycin, streptomycin, plazomicin",
        r"aminoglycosides?",
    ),
    # Ibuprofen label, section 4: asthma, urticaria or allergic-type reactions after aspirin or other NSAIDs
    _class(
        "NSAIDs",
        "aspirin, ibuprofen, naproxen, diclofenac, celecoxib, meloxicam, indomethacin, ketorolac, etodolac, "
        "nabumetone, "
        "piroxicam, oxaprozin, sulindac, ketoprofen, flurbiprofen, diflunisal, mefenamic acid, etoricoxib, salsalate",
        r"nsaids?|non-?\s?steroidal anti-?\s?inflammator(?:y|ies)(?: drugs?)?",
    ),
    # Morphine label, section 4; cross-reactivity is a matter of structure, so the wording is that of a caution
    _class(
        "opioids",
        "morphine, codeine, hydromorphone, oxycodone, hydrocodone, oxymorphone, fentanyl, meperidine, "
        "pethidine, methadone, "
        "tramadol, tapentadol, buprenorphine, levorphanol, dihydrocodeine, diamorphine",
        r"opioids?|opiates?|narcotics?",
    ),
    # Lisinopril label, section 4: angioedema with any ACE inhibitor
    _class(
        "ACE inhibitors",
        "lisinopril, enalapril, ramipril, captopril, benazepril, perindopril, quinapril, fosinopril, "
        "trandolapril, moexipril",
        r"ace[- ]?inhibitors?|acei",
    ),
    _class(
        "angiotensin receptor blockers",
        "losartan, valsartan, candesartan, irbesartan, olmesartan, telmisartan, azilsartan, eprosartan",
        r"arbs?|angiotensin (?:ii )?receptor blockers?",
    ),
    # Atorvastatin label, section 4
    _class(
        "statins",
        "atorvastatin, simvastatin, rosuvastatin, pravastatin, lovastatin, fluvastatin, pitavastatin",
        r"statins?",
    ),
    # ACR Manual on Contrast Media, hypersensitivity reactions
    _class(
        "iodinated contrast media",
        "iohexol, iodixanol, iopamidol, iopromide, ioversol, diatrizoate, iothalamate, ioxaglate, omnipaque, visipaque",
        r"(?:iodinated |iodine |iv |radio|ct )?contrast(?: media| medium| dye| agents?)?|contrast dye",
        duplicate=False,
    ),
    # Carbamazepine, phenytoin labels, section 5: cross-hypersensitivity among aromatic antiepileptics
    _class(
        "aromatic antiepileptics",
        "carbamazepine, oxcarbazepine, eslicarbazepine, phenytoin, fosphenytoin, phenobarbital, primidone",
        r"aromatic anti(?:epileptics?|convulsants?)",
        duplicate=False,
    ),
    # Lidocaine label: hypersensitivity to local anesthetics of the amide type
    _class(
        "amide local anesthetics",
        "lidocaine, lignocaine, bupivacaine, ropivacaine, mepivacaine, prilocaine, articaine, levobupivacaine",
        r"amide (?:local )?an(?:a)?esthetics?|caines?",
        duplicate=False,
    ),
    # Heparin, enoxaparin labels, section 4: heparin-induced thrombocytopenia
    _class("heparins", "heparin, enoxaparin, dalteparin, tinzaparin", r"heparins?|lmwh"),
    # Vancomycin, telavancin labels, section 5
    _class("glycopeptides", "vancomycin, telavancin, dalbavancin, oritavancin, teicoplanin", r"glycopeptides?"),
    # Omeprazole label, section 4: substituted benzimidazoles
    _class(
        "proton pump inhibitors",
        "omeprazole, esomeprazole, lansoprazole, dexlansoprazole, pantoprazole, rabeprazole",
        r"ppis?|proton[- ]pump inhibitors?",
    ),
    # duplicate therapy only, below: Beers Criteria (AGS 2023), "avoid two of the class", or the labels' section 7
    _class(
        "oral anticoagulants", "warfarin, apixaban, rivaroxaban, edoxaban, dabigatran, dabigatran etexilate",
        r"anticoagulants?|blood thinners?|doacs?", allergy=False,
    ),
    _class(
        "SSRIs and SNRIs",
        "sertraline, fluoxetine, citalopram, escitalopram, paroxetine, fluvoxamine, venlafaxine, "
        "desvenlafaxine, duloxetine, "
        "levomilnacipran, milnacipran, vilazodone",
        r"ssris?|snris?", allergy=False,
    ),
    _class(
        "benzodiazepines",
        "alprazolam, lorazepam, diazepam, clonazepam, temazepam, midazolam, chlordiazepoxide, oxazepam, "
        "triazolam, clobazam",
        r"benzodiazepines?|benzos?",
    ),
    _class(
        "beta blockers",
        "metoprolol, atenolol, bisoprolol, carvedilol, propranolol, nebivolol, labetalol, nadolol, sotalol, timolol",
        r"beta[- ]?blockers?", allergy=False,
    ),
    _class(
        "dihydropyridine calcium channel blockers",
        "amlodipine, nifedipine, felodipine, nicardipine, isradipine, nisoldipine", r"dihydropyridines?", allergy=False,
    ),
    # Hydrochlorothiazide, chlorthalidone labels, section 4
    _class(
        "thiazide diuretics", "hydrochlorothiazide, chlorthalidone, chlortalidone, indapamide, metolazone, "
        "chlorothiazide",
        r"thiazides?",
    ),
    _class("loop diuretics", "furosemide, bumetanide, torsemide, ethacrynic acid", r"loop diuretics?", allergy=False),
    _class(
        "sulfonylureas", "glipizide, glyburide, glimepiride, gliclazide, glibenclamide, tolbutamide",
        r"sulfonylureas?",
    ),
    _class(
        "SGLT2 inhibitors", "empagliflozin, dapagliflozin, canagliflozin, ertugliflozin, sotagliflozin, bexagliflozin",
        r"sglt-?2 inhibitors?", allergy=False,
    ),
    _class(
        "DPP-4 inhibitors", "sitagliptin, linagliptin, saxagliptin, alogliptin",
        r"dpp-?4 inhibitors?", allergy=False,
    ),
    _class(
        "GLP-1 receptor agonists", "semaglutide, liraglutide, dulaglutide, exenatide, lixisenatide, tirzepatide",
        r"glp-?1(?: receptor)? agonists?", allergy=False,
    ),
    _class(
        "H2 blockers", "famotidine, ranitidine, cimetidine, nizatidine",
        r"h2[- ]?(?:blockers?|antagonists?)", allergy=False,
    ),
    _class(
        "PDE5 inhibitors", "sildenafil, tadalafil, vardenafil, avanafil", r"pde-?5 inhibitors?", allergy=False,
    ),
    _class(
        "triptans", "sumatriptan, rizatriptan, zolmitriptan, eletriptan, naratriptan, almotriptan, frovatriptan",
        r"triptans?", allergy=False,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Cross:
    """An allergy to one class that matters for another. `says` follows "Allergy to X (class): "."""

    allergy: str
    order: str
    says: str
    members: frozenset[str] = frozenset()  # where it concerns only some of the ordered class


CROSS: tuple[Cross, ...] = (
    # Cephalexin label, section 5.1: cross-hypersensitivity may occur in up to 10 % of patients with penicillin allergy
    Cross("penicillins", "cephalosporins", "caution, cross-reactivity with cephalosporins is possible"),
    Cross("cephalosporins", "penicillins", "caution, cross-reactivity with penicillins is possible"),
    # Meropenem label, section 5.1
    Cross("penicillins", "carbapenems", "caution, cross-reactivity with carbapenems is possible"),
    Cross("cephalosporins", "carbapenems", "caution, cross-reactivity with carbapenems is possible"),
    Cross("carbapenems", "penicillins", "caution, cross-reactivity with penicillins is possible"),
    # Celebrex label, section 4: allergic-type reactions to sulfonamides
    Cross(
        "sulfonamide antibiotics", "NSAIDs", "celecoxib is contraindicated after allergic reactions to sulfonamides",
        frozenset({"celecoxib"}),
    ),
    # Hydrochlorothiazide label, section 4: hypersensitivity to other sulfonamide-derived drugs
    Cross(
        "sulfonamide antibiotics", "thiazide diuretics",
        "caution, the label of thiazides warns of hypersensitivity to sulfonamide-derived drugs",
    ),
    # Lasix label, precautions: patients allergic to sulfonamides may also be allergic to furosemide
    Cross(
        "sulfonamide antibiotics", "loop diuretics",
        "caution, patients allergic to sulfonamides may also be allergic to this loop diuretic",
        frozenset({"furosemide", "bumetanide", "torsemide"}),
    ),
    # Losartan label, section 6: angioedema, some with a history of angioedema with ACE inhibitors
    Cross(
        "ACE inhibitors", "angiotensin receptor blockers",
        "caution, angioedema with an ACE inhibitor has recurred with angiotensin receptor blockers",
    ),
)  # fmt: skip

# Entresto label, section 4: history of angioedema related to an ACE inhibitor or ARB
SACUBITRIL = "sacubitril is contraindicated after angioedema with an ACE inhibitor or angiotensin receptor blocker"


def classes_of(name: str) -> list[DrugClass]:
    """The classes that a generic name belongs to."""
    return [item for item in CLASSES if name.casefold() in item.members]


def classes_said(text: str) -> list[DrugClass]:
    """The classes that a text names as such: "sulfa", "NSAIDs"."""
    return [item for item in CLASSES if item.said.search(text)]
