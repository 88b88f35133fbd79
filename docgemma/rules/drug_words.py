"""Word lists around drug names: what the dictionary lacks, and what it calls a drug that a clinician does not.

The supplement's pairs can be checked in RxNorm (brand to ingredient) and, for British names, in the BNF.
"""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# generic: further names for it, as US and UK clinicians write them
SUPPLEMENT: dict[str, str] = {
    "acetaminophen": "apap, paracetamol, panadol, tylenol",
    "acetaminophen and hydrocodone": "vicodin, norco, hydrocodone acetaminophen",
    "acetaminophen and oxycodone": "percocet, oxycodone acetaminophen",
    "acetylcysteine": "n-acetylcysteine",
    "adenosine": "adenocard, adenocor",
    "amlodipine and benazepril": "lotrel",
    "amoxicillin and clavulanate": "augmentin, co-amoxiclav, coamoxiclav, amoxicillin clavulanate, "
    "amoxicillin clavulanic acid, amox-clav",
    "acetaminophen and codeine": "zapain, solpadol",
    "acetaminophen and tramadol": "tramacet, ultracet",
    "amphotericin b": "ambisome",
    "aspirin": "asa, acetylsalicylic acid",
    "azithromycin": "z-pak, zpak",
    "beclometasone": "clenil, clenil modulite",
    "betamethasone": "betnovate",
    "bisoprolol": "emcor",
    "caffeine": "",
    "calcium": "",
    "cephalexin": "keflex, cefalexin",
    "ciprofloxacin": "ciproxin",
    "citalopram": "cipramil",
    "clobetasone": "eumovate",
    "cyanocobalamin": "vitamin b12",
    "desogestrel": "cerelle",
    "digoxin": "lanoxin",
    "dimenhydrinate": "dramamine",
    "divalproex": "depakote",
    "empagliflozin and linagliptin": "glyxambi",
    "epinephrine": "adrenaline, epipen",
    "estradiol": "oestradiol, estrace",
    "ethinyl estradiol": "ethinylestradiol, ethinyloestradiol",
    "ethinyl estradiol and drospirenone": "yasmin, yaz",
    "ethinyl estradiol and levonorgestrel": "microgynon, rigevidon",
    "etonogestrel": "nexplanon",
    "ezetimibe and simvastatin": "vytorin",
    "ferrous sulfate": "ferrous sulphate",
    "ferrous fumarate": "",
    "ferrous gluconate": "",
    "flupenthixol": "depixol, flupentixol",
    "fluticasone and salmeterol": "advair, seretide",
    "fluticasone and vilanterol": "breo ellipta, relvar",
    "furosemide": "frusemide, lasix",
    "hydrochlorothiazide": "hctz",
    "hydrochlorothiazide and lisinopril": "zestoretic",
    "hydrochlorothiazide and losartan": "hyzaar",
    "imatinib": "glivec",
    "iron": "",
    "isosorbide dinitrate": "isosorbide",
    "isosorbide mononitrate": "imdur",
    "levodopa and carbidopa": "sinemet, co-careldopa, carbidopa levodopa",
    "leuprolide": "prostap",
    "levothyroxine": "synthroid, eltroxin, levothyroxine sodium, thyroxine, l-thyroxine",
    "lisdexamfetamine": "elvanse",
    "lithium": "lithium carbonate, priadel, camcolit",
    "magnesium": "",
    "mebeverine": "colofac",
    "metformin and sitagliptin": "janumet",
    "methadone": "physeptone",
    "mycophenolate": "mycophenolate mofetil, cellcept",
    "mycophenolic acid": "myfortic",
    "nalmefene": "selincro",
    "nicotine": "nicorette",
    "nitroglycerin": "glyceryl trinitrate, gtn, nitroglycerine",
    "norepinephrine": "noradrenaline, levophed",
    "oxycodone": "longtec, oxynorm",
    "oxycodone and naloxone": "targinact",
    "oxytocin": "pitocin",
    "penicillin": "penicillins",
    "phenytoin": "dilantin",
    "piperacillin and tazobactam": "tazocin, zosyn, piperacillin tazobactam, pip-tazo",
    "polyethylene glycol 3350": "miralax, movicol, laxido",
    "potassium chloride": "k-dur, klor-con",
    "prasugrel": "efient",
    "prochlorperazine": "stemetil, buccastem",
    "progesterone": "prometrium, utrogestan",
    "sacubitril and valsartan": "entresto, sacubitril valsartan",
    "senna": "senokot",
    "st john's wort": "st. john's wort, saint john's wort, hypericum perforatum",
    "sulfamethoxazole and trimethoprim": "bactrim, septra, septrin, co-trimoxazole, cotrimoxazole, tmp-smx, "
    "trimethoprim sulfamethoxazole, sulfamethoxazole trimethoprim",
    "testosterone": "androgel, testogel",
    "theophylline": "uniphyllin",
    "thiamine": "vitamin b1",
    "thyroid": "armour thyroid, np thyroid",
    "tolterodine": "detrusitol",
    "trastuzumab": "herceptin",
    "valproic acid": "epilim",
    "vitamin c": "ascorbic acid",
    "vitamin d": "",
    "vitamin e": "",
    "vitamin k": "",
    "warfarin": "coumadin, jantoven",
    "zinc": "",
    "zoledronic acid": "zometa, reclast, aclasta",
}

# names this short are mostly abbreviations of laboratory chemicals; these are not
SHORT = _words("apap asa atra bcg edex emla gtn hctz ifex ofev orap qvar tobi urso xepi yaz zmax zpak")

# Ordinary English words, first and family names, foods, analytes and laboratory chemicals that the dictionary lists
# (as a brand, an allergen extract or a biochemical). Found by sorting its one-word names by their frequency in
# English and reading every one above 1 in 2 million words.
NOT_DRUGS = _words(
    """
    advance alert align almora aman amber anti arima armour arvin ascorbate atrazine camila cancer capex caps carwin
    cashew cashews cera ches chickpea chickpeas chromium chrom cinna citrate clear clinical cloves cobre cocoa colgate
    complete copal copper corwin coumarin creatinine dagan dala disease diskin dolin dona dose drug edta eisen ensure
    eugenol evra fibronectin flour flours fluorine gaba gana gelatin gelatine generic generics glucose glutamate
    glyphosate gold hana hemel hepes hierro histamine homocysteine hops horseradish imidacloprid indio iodine
    isopropanol ivor kalma kaon kobalt kupfer leptin licorice liquorice luminol malathion mannose mappin medication
    medicine modus
    montmorillonite mops morphia myrrh naca nadh nadph nitrates note oats order oregano oxygen palin patient
    pecans peppermint phospholipids piperazine plan planum plasma plasminogen polyethylene potassium prescribe primrose
    quick record relief renova rhein saba saha serc sevin serena serotonin silver silverado sodium sone soy soya
    strychnine sugarcane sulfur sulphur summer sunkist tablet teta tetris tham thein theon thomasin thymidine today tris
    triclosan tyramine vaccine vaccines vals vicks vitae vitamin vitamins water watercress wheat white wormwood yeast
    yeasts yellow bicol calcio cortisol dioxygen aldosterone tryptamine dnase kynurenine bradykinin
    safra maci nflx safran
    """
) | {"bee pollen", "fresh frozen plasma", "packed red blood cells", "hormone replacement therapy", "medical abortion"}

# made by the body or measured in blood: a mention only where the words beside it do not say so
ENDOGENOUS = _words(
    """
    adenosine calcium dopamine epinephrine estradiol estrogen glucagon heparin insulin iron magnesium melatonin
    norepinephrine oxytocin potassium progesterone testosterone thiamine thyroid vasopressin zinc
    """
) | {"vitamin b12", "vitamin c", "vitamin d", "vitamin e", "vitamin k", "vitamin b1", "folic acid", "growth hormone"}
MEASURED = _words(
    """
    level levels deficiency deficient resistance resistant receptor receptors test tests testing production secretion
    overload concentration concentrations status count value values panel function disease dysfunction nodule nodules
    cancer gland scan ultrasound surgery surgeon storm peroxidase stimulating
    """
)
# these count only beside a dose, a form or another drug: alone they are a laboratory value
ONLY_AS_SUPPLEMENT = frozenset({"calcium", "iron", "magnesium", "zinc", "thyroid"})
FORMS = _words(
    """
    aerosol capsule capsules cream depot drip drops extract gel infusion infusions inhalation inhaler inhalers
    injection injections iv lotion nebules nebuliser nebulizer ointment oral patch patches pen pill pills po
    powder replacement solution spray sulfate sulphate supplement supplementation supplements suppositories
    suppository susp suspension syrup tablet tablets therapy
    """
)

# endings of international nonproprietary names, for drugs that the dictionary lacks (WHO INN stem book)
DRUG_STEM = re.compile(
    r"^[a-z]{3,}(?:pril|sartan|vastatin|umab|ximab|zumab|tinib|olol|conazole|prazole|"
    r"cillin|mycin|floxacin|gliptin|gliflozin|"
    r"vudine|navir|tegravir|glutide|xaban|parin|oxetine|azepam|zolam|triptan|setron|dipine|ciclib|thiazide|grel|lukast)$"
)
