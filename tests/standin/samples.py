# ruff: noqa: E501
"""Small samples of our own in the shape of the four APIs. Facts are those of the labels on DailyMed; ids are invented."""

# name: (kind, ingredients); kinds as RxNorm's term types
NAMES = {
    "dofetilide": ("IN", ["dofetilide"]),
    "Tikosyn": ("BN", ["dofetilide"]),
    "amiodarone": ("IN", ["amiodarone"]),
    "Pacerone": ("BN", ["amiodarone"]),
    "metformin": ("IN", ["metformin"]),
    "metformin hydrochloride": ("PIN", ["metformin"]),
    "Glucophage": ("BN", ["metformin"]),
    "sitagliptin": ("IN", ["sitagliptin"]),
    "Janumet": ("BN", ["metformin", "sitagliptin"]),
    "warfarin": ("IN", ["warfarin"]),
    "Coumadin": ("BN", ["warfarin"]),
    "aspirin": ("IN", ["aspirin"]),
    "ibuprofen": ("IN", ["ibuprofen"]),
    "Advil": ("BN", ["ibuprofen"]),
    "acetaminophen": ("IN", ["acetaminophen"]),
    "lisinopril": ("IN", ["lisinopril"]),
    "amlodipine": ("IN", ["amlodipine"]),
    "amoxicillin": ("IN", ["amoxicillin"]),
    "hydroxyzine": ("IN", ["hydroxyzine"]),
    "hydralazine": ("IN", ["hydralazine"]),
    "merbromin": ("IN", ["merbromin"]),
}
# names with two meanings
HOMONYMS = {"demo homonym": ["lisinopril", "amlodipine"]}
CLASSES = {
    "warfarin": [("Vitamin K Antagonist", "EPC")],
    "amiodarone": [("Antiarrhythmic", "EPC"), ("Cytochrome P450 2C9 Inhibitors", "MOA")],
    "hydralazine": [("Arteriolar Vasodilator", "EPC")],
}


def label(set_id, day, generic, brand, substances=None, classes=(), **sections):
    """One label: a section is a list of one string, and absent where there is none."""
    openfda = {
        "generic_name": [generic.upper()],
        "brand_name": [brand],
        "substance_name": [name.upper() for name in (substances or [generic])],
        "spl_set_id": [f"stand-in-{set_id}"],
        "is_original_packager": [True],
    }
    if classes:
        openfda["pharm_class_epc"] = [f"{name} [EPC]" for name in classes]
    texts = {field: [text] for field, text in sections.items()}
    return {"set_id": f"stand-in-{set_id}", "id": set_id, "effective_time": day, "openfda": openfda, **texts}


LABELS = [
    label(
        "dofetilide", "20240115", "dofetilide", "Tikosyn", classes=["Antiarrhythmic"],
        boxed_warning="WARNING: LIFE THREATENING PROARRHYTHMIA To minimize the risk of induced arrhythmia, start or restart "
        "dofetilide where creatinine clearance can be calculated, with continuous ECG monitoring and cardiac "
        "resuscitation at hand, for at least 3 days [see Dosage and Administration (2.1)].",
        contraindications="4 CONTRAINDICATIONS Dofetilide is contraindicated in patients with congenital or acquired long QT "
        "syndromes. Dofetilide is contraindicated in patients with a creatinine clearance below 20 mL/min. Concomitant "
        "use of verapamil, cimetidine, trimethoprim, ketoconazole, prochlorperazine, dolutegravir, megestrol or "
        "hydrochlorothiazide is contraindicated ( 7 ).",
        warnings="5 WARNINGS Dofetilide can cause serious ventricular arrhythmias, primarily torsade de pointes.",
        drug_interactions="7 DRUG INTERACTIONS 7.1 Drugs that prolong the QT interval Dofetilide is not recommended together "
        "with drugs that prolong the QT interval. Withhold amiodarone before dofetilide: do not start dofetilide until "
        "amiodarone levels are below 0.3 mcg/mL or amiodarone has been stopped for at least three months.",
    ),
    label(
        "amiodarone", "20230901", "amiodarone hydrochloride", "Pacerone",
        boxed_warning="WARNING: PULMONARY, HEPATIC and CARDIAC TOXICITY Reserve amiodarone for life-threatening arrhythmias. "
        "It can cause pulmonary toxicity that may be fatal, liver injury, and worsened arrhythmias. WARNING: PULMONARY, "
        "HEPATIC and CARDIAC TOXICITY See full prescribing information for complete boxed warning. Reserve amiodarone.",
        contraindications="4 CONTRAINDICATIONS Cardiogenic shock. Sick sinus syndrome or second- or third-degree AV block "
        "without a functioning pacemaker. Hypersensitivity to amiodarone or iodine.",
        warnings_and_cautions="5 WARNINGS AND PRECAUTIONS 5.1 Pulmonary Toxicity Obtain a baseline chest X-ray. 5.2 Hepatic "
        "Injury Monitor liver enzymes. 5.3 Thyroid Abnormalities Monitor thyroid function.",
        drug_interactions="7 DRUG INTERACTIONS Warfarin Potentiates the anticoagulant response and can result in serious or "
        "fatal bleeding. Reduce warfarin dose by one-third to one-half and monitor prothrombin times. Digoxin Increased "
        "digoxin concentration. Reduce digoxin by half or discontinue.",
    ),
    label(
        "metformin", "20240501", "metformin hydrochloride", "Glucophage", classes=["Biguanide"],
        boxed_warning="WARNING: LACTIC ACIDOSIS Postmarketing cases of metformin-associated lactic acidosis have resulted in "
        "death. Risk factors include renal impairment, age 65 years or more, and excessive alcohol intake.",
        contraindications="4 CONTRAINDICATIONS Severe renal impairment (eGFR below 30 mL/min/1.73 m2) ( 5.1 ). "
        "Hypersensitivity to metformin. Acute or chronic metabolic acidosis, including diabetic ketoacidosis.",
        warnings_and_cautions="5 WARNINGS AND PRECAUTIONS 5.1 Lactic Acidosis Assess renal function before starting. 5.2 "
        "Vitamin B12 Deficiency Measure vitamin B12 every 2 to 3 years.",
        drug_interactions="7 DRUG INTERACTIONS Carbonic anhydrase inhibitors may increase the risk of lactic acidosis.",
        dosage_and_administration="2 DOSAGE AND ADMINISTRATION Give in divided doses with meals. The maximum daily dose is "
        "2550 mg. In pediatric patients the maximum daily dose is 2000 mg.",
    ),
    label(
        "metformin-old", "20150301", "metformin hydrochloride", "Metformin Hydrochloride", classes=["Biguanide"],
        contraindications="CONTRAINDICATIONS Renal disease or renal dysfunction.",
        warnings="WARNINGS Lactic acidosis is a rare but serious complication.",
    ),
    label(
        "janumet", "20250201", "sitagliptin and metformin hydrochloride", "Janumet",
        ["sitagliptin phosphate", "metformin hydrochloride"], ["Biguanide", "Dipeptidyl Peptidase 4 Inhibitor"],
        boxed_warning="WARNING: LACTIC ACIDOSIS Metformin, a component of this product, can cause lactic acidosis.",
        contraindications="4 CONTRAINDICATIONS Severe renal impairment. Hypersensitivity to sitagliptin or metformin.",
        drug_interactions="7 DRUG INTERACTIONS Avoid metformin, a component of this product, with excessive alcohol.",
    ),
    label(
        "warfarin", "20230620", "warfarin sodium", "Coumadin",
        boxed_warning="WARNING: BLEEDING RISK Warfarin sodium can cause major or fatal bleeding [see Warnings and Precautions "
        "( 5.1 )]. Perform regular monitoring of INR in all treated patients.",
        contraindications="4 CONTRAINDICATIONS Pregnancy, except in women with mechanical heart valves. Hemorrhagic "
        "tendencies. Hypersensitivity to warfarin.",
        drug_interactions="7 DRUG INTERACTIONS 7.1 CYP450 Interactions Closely monitor INR if a concomitant drug is an "
        "inhibitor of CYP2C9. Table 1: Examples of inhibitors of CYP2C9: amiodarone, fluconazole, metronidazole, "
        "voriconazole. 7.2 Drugs that Increase Bleeding Risk Because bleeding risk is increased when these drugs are used "
        "with warfarin, closely monitor patients receiving any such drug with warfarin. Table 2: Antiplatelet Agents "
        "aspirin, clopidogrel, prasugrel Non-steroidal Anti-Inflammatory Agents celecoxib, diclofenac, ibuprofen, naproxen",
    ),
    label(
        "aspirin", "20240210", "aspirin", "Bayer Aspirin",
        classes=["Nonsteroidal Anti-inflammatory Drug", "Platelet Aggregation Inhibitor"],
        do_not_use="Do not use if you have ever had an allergic reaction to aspirin or any other pain reliever.",
        ask_doctor_or_pharmacist="Ask a doctor or pharmacist before use if you are taking a prescription drug for blood "
        "thinning (anticoagulant), diabetes, gout, or arthritis.",
        warnings="Warnings Reye's syndrome: Children and teenagers who have or are recovering from chicken pox or flu-like "
        "symptoms should not use this product. Stomach bleeding warning: This product contains an NSAID, which may cause "
        "severe stomach bleeding.",
    ),
    label(
        "aspirin-free", "20250601", "acetaminophen", "Aspirin Free Pain Relief",
        warnings="Warnings Liver warning: This product contains acetaminophen. Severe liver damage may occur.",
    ),
    label(
        "ibuprofen-otc", "20250301", "ibuprofen", "Advil", classes=["Nonsteroidal Anti-inflammatory Drug"],
        warnings="Warnings Allergy alert: Ibuprofen may cause a severe allergic reaction, especially in people allergic to "
        "aspirin. Stomach bleeding warning: This product contains an NSAID, which may cause severe stomach bleeding. Ask a "
        "doctor or pharmacist before use if you are taking aspirin for heart attack or stroke, because ibuprofen may "
        "decrease this benefit of aspirin",
    ),
    label(
        "ibuprofen-rx", "20210401", "ibuprofen", "Ibuprofen Tablets", classes=["Nonsteroidal Anti-inflammatory Drug"],
        boxed_warning="WARNING: RISK OF SERIOUS CARDIOVASCULAR AND GASTROINTESTINAL EVENTS NSAIDs increase the risk of serious "
        "cardiovascular thrombotic events and of serious gastrointestinal bleeding, ulceration and perforation.",
        contraindications="CONTRAINDICATIONS Ibuprofen tablets are contraindicated in patients with known hypersensitivity to "
        "ibuprofen, and in those who have had asthma, urticaria or allergic-type reactions after taking aspirin or other "
        "NSAIDs. Ibuprofen tablets are contraindicated in the setting of coronary artery bypass graft surgery.",
        drug_interactions="Drug Interactions ACE-inhibitors: NSAIDs may diminish the antihypertensive effect of ACE-inhibitors. "
        "Monitor blood pressure. Aspirin: Concomitant administration of ibuprofen and aspirin is not generally recommended "
        "because of increased adverse effects. Coumarin-type anticoagulants: Use caution when ibuprofen is given to "
        "patients on anticoagulants.",
    ),
    label(
        "lisinopril", "20240105", "lisinopril", "Zestril", classes=["Angiotensin Converting Enzyme Inhibitor"],
        boxed_warning="WARNING: FETAL TOXICITY When pregnancy is detected, discontinue lisinopril as soon as possible.",
        contraindications="4 CONTRAINDICATIONS A history of angioedema. Do not co-administer with a neprilysin inhibitor.",
        drug_interactions="7 DRUG INTERACTIONS 7.1 Diuretics Hypotension may follow. 7.2 Non-steroidal anti-inflammatory "
        "agents (NSAIDs) Renal function may deteriorate. Monitor renal function periodically.",
    ),
    label(
        "amlodipine", "20240107", "amlodipine besylate", "Norvasc", classes=["Dihydropyridine Calcium Channel Blocker"],
        contraindications="4 CONTRAINDICATIONS Known sensitivity to amlodipine.",
        drug_interactions="7 DRUG INTERACTIONS Do not exceed simvastatin 20 mg daily in patients on amlodipine.",
    ),
    label(
        "amoxicillin", "20240303", "amoxicillin", "Amoxil", classes=["Penicillin-class Antibacterial"],
        contraindications="4 CONTRAINDICATIONS History of a serious hypersensitivity reaction to amoxicillin or to other "
        "beta-lactams.",
        drug_interactions="7 DRUG INTERACTIONS Oral anticoagulants: Abnormal prolongation of prothrombin time has been "
        "reported. Appropriate monitoring should be undertaken when anticoagulants are prescribed concomitantly.",
    ),
    label(
        "hydralazine", "20220101", "hydralazine hydrochloride", "Apresoline",
        contraindications="CONTRAINDICATIONS Coronary artery disease. Mitral valvular rheumatic heart disease.",
    ),
]  # fmt: skip


def article(number, title, journal, year, abstract, open_access=False):
    urls = [{"availability": "Subscription required", "availabilityCode": "S", "documentStyle": "doi",
             "site": "DOI", "url": f"https://doi.org/10.0000/demo.{number}"}]  # fmt: skip
    if open_access:
        urls.append({"availability": "Open access", "availabilityCode": "OA", "documentStyle": "html",
                     "site": "Europe_PMC", "url": f"https://europepmc.org/articles/DEMO{number}"})  # fmt: skip
    return {
        "id": f"DEMO-LIT-{number}", "source": "MED", "pmid": f"DEMO-LIT-{number}", "title": title,
        "authorString": "Example A, Sample B.", "pubYear": year, "isOpenAccess": "Y" if open_access else "N",
        "journalInfo": {"journal": {"title": journal}}, "abstractText": abstract,
        "fullTextUrlList": {"fullTextUrl": urls},
    }  # fmt: skip


ARTICLES = [
    article(901, "Demonstration: SGLT2 inhibitors in <i>heart failure</i>.", "Demonstration Journal", "2024",
            "<h4>Background</h4>An invented trial.<h4>Results</h4>Hospital stays fell (p &lt; 0.05).", True),
    article(902, "Demonstration: metformin and kidney function.", "Demonstration Journal", "2023",
            "An invented cohort of metformin users."),
    article(903, "Demonstration: dofetilide in atrial fibrillation.", "Demonstration Journal", "2022",
            "An invented registry of dofetilide and QT prolongation."),
    article(904, "Demonstration: heart failure with preserved ejection fraction.", "Demonstration Journal", "2021",
            "An invented review of heart failure."),
]  # fmt: skip


def study(number, title, status, conditions, phases, interventions, places):
    protocol = {
        "identificationModule": {"nctId": f"DEMO-TRIAL-{number}", "briefTitle": title},
        "statusModule": {"overallStatus": status},
        "descriptionModule": {"briefSummary": f"An invented trial: {title}."},
        "conditionsModule": {"conditions": conditions},
        "designModule": {"studyType": "INTERVENTIONAL" if phases else "OBSERVATIONAL", "phases": phases},
        "armsInterventionsModule": {"interventions": [{"name": name} for name in interventions]},
        "contactsLocationsModule": {"locations": [dict(zip(("facility", "city", "country"), place, strict=True))
                                                  for place in places]},
    }  # fmt: skip
    return {"protocolSection": {key: value for key, value in protocol.items() if any(value.values())}}


HOSPITAL = ("Demonstration Hospital", "Springfield", "United States")
STUDIES = [
    study(
        901, "SGLT2 inhibition in heart failure", "RECRUITING", ["Heart Failure"], ["PHASE3"], ["Drug D"], [HOSPITAL]
    ),
    study(902, "Exercise in heart failure", "RECRUITING", ["Heart Failure"], ["NA"], ["Exercise"], [HOSPITAL]),
    study(903, "A heart failure registry", "ACTIVE_NOT_RECRUITING", ["Heart Failure"], [], [], []),
    study(
        904, "A device in heart failure", "COMPLETED", ["Heart Failure"], ["PHASE1", "PHASE2"], ["Device"], [HOSPITAL]
    ),
    study(905, "Immunotherapy in melanoma", "RECRUITING", ["Melanoma"], ["PHASE2"], ["Antibody"], [HOSPITAL, HOSPITAL]),
    study(906, "Tele-monitoring in heart failure", "NOT_YET_RECRUITING", ["Heart Failure"], ["NA"], ["Phone"], []),
    study(
        907, "Once-weekly insulin in type 2 diabetes", "RECRUITING", ["Type 2 Diabetes"], ["PHASE3"], ["Insulin"], []
    ),
]
