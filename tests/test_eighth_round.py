"""What answers lacked in rounds 14 and 15, and what readers of the new drug records found: asked in other words."""

import pytest

from docgemma.knowledge.drug_names import load_drug_names
from docgemma.reading.reader import _joined
from docgemma.rules.patient_state import patient_state
from docgemma.rules.typed import typed_values
from docgemma.text.words import names
from tests.conversation_help import spoken


@pytest.mark.parametrize(
    ("said", "told"),
    [
        # whether a dose suits: for what it is reduced, how the patient stands, and the maxima
        ("tanaka's apixaban, shouldn't he be on 2.5?", "The patient has: none of them, so far as is recorded"),
        ("is søndergaard on the right dose of xarelto", "is reduced with one of: kidney function below 51 mL/min"),
        ("boudreaux gabapentin 300 tds, does it need adjusting for kidneys", "oral, eGFR below 60: 1,400 mg a day"),
        # what a message tells of the patient chooses the dose, and counts against the drug
        ("new AF for Schäfer, what dose of apixaban", "The patient has: 80 years or older"),
        ("haddad has a new DVT, apixaban 10 mg bd?", "the maximum is 20 mg a day (for deep vein"),
        ("liam andersen query ITP, nurofen ok?", "impairs platelets: more bleeding"),
        # a label question of nobody asks for no patient
        ("cefepime renal dosing? its for someone at crcl 35", "Cefepime at most, injection, eGFR below 61"),
        ("does oral iron affect souza's biktarvy", "Iron binds bictegravir"),
        # drugs that only British, Irish or Australian clinicians meet
        ("flucloxacillin with warfarin?", "changes the INR"),
        ("can rahman have pip-taz", "Allergy to penicillin"),
        ("start petrova on carbimazole too?", "two antithyroid drugs are a duplicate"),
        ("max dose of zopiclone", "7.5 mg"),
        # real articles, with the number by which they are found
        ("evidence for dapagliflozin in hfref", "PMID 31535829"),
        ("paper on doacs in triple positive antiphospholipid syndrome", "PMID 30002145"),
        ("IRONMAN: primary endpoint in one line", "PMID 36347265"),
        ("REVISE: mortality and bleeding", "PMID 38875111"),
        ("7 days or 14 for gram negative bacteraemia, is there a trial", "PMID 30535100"),
        # what round 16 found dangerous
        ("maria garcia has palpitations. trial bisoprolol 2.5?", "Warning: bisoprolol for Maria Garcia. The patient"),
        ("midazolam not working for amara diallo, is she on something?", "Major interaction with rifampin"),
        ("grace kim's box says methotrexate one daily?", "daily is an overdose"),
        ("john smith abc-123: vanc load and what zosyn dose", "Piperacillin and tazobactam with vancomycin: "),
        ("fatima al-zahrani ecg attached, qtc? on hcq, now zofran", "Major interaction with hydroxychloroquine"),
        ("surgery want søndergaard on simva 40 in place of rosuva, ok?", "Do not exceed simvastatin 20 mg daily"),
        ("a chap on isosorbide mononitrate wants sildenafil, can he", "Contraindicated interaction: sildenafil with"),
        ("vanc dosing for aroha ngata", "Vancomycin at most, injection, at 57 kg"),
        # beside a result, what rules warn of in this patient for what is taken
        ("schafer na+ pls and when was it done", "older adults: hyponatremia"),
        ("robert thornton u&es", "digoxin (latest eGFR 50 (2026-11-10)): renally cleared"),
        # a list that is pasted is held against the record
        ("schäfer's list from home: mirtazapine 15 mg on, lorazepam 1 mg on, zopiclone 7.5 prn. differences to ours?",
         "You wrote lorazepam 1 mg on; the record has: lorazepam 0.5 mg once daily at bedtime"),
        ("schäfer's list from the home: mirtazapine 15 mg on, lorazepam 1 mg on. what is missing?",
         "Recorded, and not in your list: alendronate 70 mg once weekly"),
        ("sondergaard letter: amiodarone 200mg od, rivaroxaban 15mg od. whats different to your list",
         "You wrote rivaroxaban 15mg od; the record has: rivaroxaban 20 mg"),
        # a study is searched with the drug beside it
        ("schafer on alendronate how long? thinking drug holiday - evidence?", "FLEX"),
        # what the collection holds is nobody's name, and is found by its number
        ("demo-trial-023: who can join?", "(DEMO-TRIAL-023, recruiting, Phase 3)"),
        ("NCT01035255 results?", "No trials were found for NCT01035255"),
        ("what did 34449189 find", "EMPEROR-Preserved."),
        ("bleeding rate AUGUSTUS apixaban vs warfarin?", "AUGUSTUS."),
        ("acr guideline recommends what for HLA-B*5801 in gout", "PMID 15743917"),
        # a birth date, a first name, a drug beside a name
        ("patient born 1903-07-21 which meds", "No patient named"),
        ("is there any trial for ngozi", "Patient: Ngozi Adeyemi"),
        ("Liam pred: mg/kg please", "Patient: Liam Andersen"),
        ("Thorntan k and creat", "Thorntan was read as Robert Thornton."),
        ("what reverses dabigatran, antidote?", "idarucizumab"),
        ("thornton: which tablets push up dig levels", "Carvedilol can raise digoxin levels"),
        ("why isn't Mr Nowak on an opioid", "No active medication is listed as: opioids."),
        ("aisha rahman temp in fahrenheit", "about 101"),
        ("how heavy is thornton in stone", "about 13.1"),
        ("is there a patient called zebedee quux", "Check the spelling, or give a birth date or an ID."),
    ],
)  # fmt: skip
def test_an_answer_tells_it(offline_agent, said, told):
    assert told in offline_agent.ask(said)["answer"]


@pytest.mark.parametrize(
    ("said", "untold"),
    [
        ("haddad has a new DVT, apixaban 10 mg bd?", "above the maximum"),
        ("tanaka apixaban 5 bd, should he be on 2.5?", "has no unit"),
        ("souza, biktarvy and ibuprofen?", "not alone in HIV"),
        ("mensah's film is attached, nRBCs?", "Not answered: image"),
        ("olena shevchenko, doripenem 500 mg iv tds ok?", "so the Drug Safety Report did not check it"),
        ("leilani k, 104 kg, rocuronium 1.2 mg/kg?", "potassium 104"),
        ("surgery want søndergaard on simva 40 in place of rosuva, ok?", "planned surgery"),
        ("becky goldstein allergies", "was read as"),
        ("walter k allergies", "was read as"),
        ("EMPEROR-Preserved, PMID 34449189?", "No patient named"),
        ("any trials for leilani's condition", "trials were found for leilani"),
        ("Sofia Allegra born 1988-05-02, meds", "No patient named"),
        # told in other words
        ("kavita deshmukh - what did she react to", "Not answered"),
        ("402 last hb and date taken, was it flagged", "Not answered"),
    ],
)
def test_an_answer_does_not_say_it(offline_agent, said, untold):
    assert untold not in offline_agent.ask(said)["answer"]


@pytest.mark.parametrize(
    ("text", "at", "joined"), [("2.5 mg", 1, True), ("2.5 mg", 2, True), ("at 5. 2", 4, False), ("end.5", 3, False)]
)
def test_a_decimal_number_is_read_as_one_word(text, at, joined):
    assert _joined(text, at) == joined


def test_a_lone_letter_at_the_end_of_a_fragment_is_a_whole_word():
    assert names(["child-pugh c"], "cirrhosis, child-pugh c")
    assert not names(["child-pugh c"], "cirrhosis, child-pugh class a")


@pytest.mark.parametrize(
    ("name", "value", "unit", "compared"),
    [("Glucose", "8.5", "mmol/L", (153.15, "mg/dL")), ("Creatinine", "124", "umol/L", (1.4, "mg/dL")),
     ("Hemoglobin", "70", "g/L", (7.0, "g/dL")), ("Potassium", "5.6", "mmol/L", (5.6, "mmol/L"))],
)  # fmt: skip
def test_a_result_in_si_units_is_held_against_limits_in_their_unit(name, value, unit, compared):
    day, nobody = "2026-11-01", {"birth_date": "", "sex": "female"}
    lab = {"name": name, "value": value, "unit": unit, "date": day}
    chart = {"patient": nobody, "labs": [lab], "vitals": [], "conditions": [], "notes": [], "allergies": []}
    (found,) = patient_state(chart, None).results.values()
    assert found == (*compared, day)


@pytest.mark.parametrize(("said", "generic"), [("mgso4", "magnesium sulfate"), ("fentanyl patch", "fentanyl")])
def test_a_salt_with_a_label_of_its_own_keeps_its_name(said, generic):
    assert load_drug_names().generic(said) == generic


@pytest.mark.parametrize(
    ("said", "card"),
    [
        # three letters are nobody's name where another is named
        ("pantoprazole 40 mg iv daily for SUP, mohammed haddad. enter it", {"patient": "Mohammed Haddad"}),
        ("why cant haddad have omeprazole", None),
        # a list of what is taken, and a question with a remark behind it, order nothing
        ("fill history for 402 adeyemi, what is new:\nlosartan 50 qd #90\nibuprofen 800 tid prn #60", None),
        ("med hx lindqvist, she told me:\n- naproxen 500 bid\n- tylenol 1 g tid\nvs what's in the chart?", None),
        ("castellano: toradol 15 q6 prn for his chest wall? next pemetrexed mon", None),
        ("letter says swop john smith's lisinopril to entresto 24/26 bd. put it thru", {"dosage": "24/26"}),
        ("john smith abc-123:\namlodipine 5 mg od\nsenna 15 mg on\nprescribe", {"medication_name": "amlodipine"}),
        ("john smith's list from home:\nmetformin 1 g bd\nlisinopril 10 mg od\nwhich are not on our chart", None),
        ("handover john smith: metformin 500 bd, lisinopril 20 od, atorva 40 nocte. is there any allergy", None),
        ("would you go amlodipine 5 mg od or ramipril 2.5 mg od for dorothy okafor", None),
        ("apixaban 5 mg bd vs 2.5 mg bd in tanaka. weight please", None),
        ('ED note re maria garcia: "given prednisone 50 mg, sent home on 40 mg daily". when was she here?', None),
        ("triage, raghunathan: NPH 12 units nocte, iron 200 od, labetalol 100 mg bd. what were her last bps", None),
        # what is taken already, in that dose, is not what is ordered
        ("boudreaux, gabapentin 300 tid on board. add amitriptyline 10 mg qhs", {"medication_name": "amitriptyline"}),
        ("kamau k 3.4 on chlorthalidone 25. slow-k 600 mg bd", {"medication_name": "slow-k"}),
        # an order at the end of a story
        ("UTI. Raghunathan bp 148/96, 146/94, pcr 18. reg phoned w plan, labetalol 100mg bd po. pls get it ready",
         {"medication_name": "labetalol", "dosage": "100mg"}),
        # what stands beside an order is no part of it
        ("dorothy okafor, 67, still above target?? indapamide 2.5 mg om pls", {"medication_name": "indapamide"}),
        ("thorsson flare, calpro 640. GI say budesonide 9 mg om 8/52, can u chart", {"dosage": "9 mg"}),
        ("vit d 22 schäfer. colecalciferol 800 iu od please", {"medication_name": "colecalciferol"}),
        ("volkov already lactulose 20g tid. add xifaxan 550 mg BID. do it pls", {"medication_name": "xifaxan"}),
        ("maddox: lidocaine 5% patch to the knee once daily, please chart", {"dosage": "5%"}),
        ("warfarin clinic: james wilson 1949-02-11 had a rash w clarithromycin, moderate. please put it on",
         {"substance": "clarithromycin", "reaction": "rash"}),
        ("haldol 5 mg iv now + q4 prn for tariq mahmood, enter pls", {"notes": "intravenously"}),
        # a bare question at the end asks what is recorded
        ("Dorothy Okafor: letter says penicillin hives as a girl, moderate. recorded?", None),
        ("Thornton - letter says never drinker, echo clear 2021. chart?", None),
        ("Kavita Deshmukh - mum says cefalexin gave her hives, mild. record it?", {"substance": "cefalexin"}),
        ("note for James Wilson b 1949: bp 118/70, no oedema", {"birth_date": "1949-02-11"}),
    ],
)  # fmt: skip
def test_an_entry_is_prepared_only_as_it_was_ordered(offline_agent, said, card):
    waiting = offline_agent.ask(said)["pending_write"]
    assert bool(waiting) == bool(card)
    if card:
        who = {"patient": waiting["patient"]["name"], "birth_date": waiting["patient"]["birth_date"]}
        told = waiting["args"] | who
        assert told | card == told


def test_a_reaction_that_is_asked_for_is_found_among_the_allergies(offline_agent):
    thread = offline_agent.ask("402 chart")["thread"]
    answer = offline_agent.ask("when did she have the angioedema", thread=thread)["answer"]
    assert (
        "Allergies: lisinopril (angioedema, severe), recorded 2020-07-29." in answer.partition("Also in the chart")[0]
    )


def test_a_medicine_that_is_told_later_is_checked_with_what_was_asked_about(offline_agent):
    thread = offline_agent.ask("mohammed haddad wants viagra 50, ok?")["thread"]
    answer = offline_agent.ask("his wife says he has a gtn spray at home", thread=thread)["lead"]
    assert answer.startswith("Sildenafil with nitroglycerin: contraindicated interaction.")


@pytest.mark.parametrize(
    ("said", "finding"),
    [
        # pregnancy, its weeks and breastfeeding
        ("Elena Petrova: UPT +ve this am. start ramipril 2.5 mg od po",
         "fetal injury and death. The patient has: present pregnancy (as you wrote)."),
        ("candesartan 4 mg od po for elena petrova who is 9 weeks pregnant", "9 weeks of pregnancy (as you wrote)."),
        ("raghunathan is 34/40 now, naproxen 250 mg bd po", "The patient has: 34 weeks of pregnancy (as you wrote)."),
        ("ewa wisniewska is breastfeeding her 3 month old. tramadol 50 mg tds po",
         "infant respiratory depression. The patient has: present breastfeeding (as you wrote)."),
        # an allergy
        ("cefalexin 500 mg qds po for gregory maddox, had hives from keflex once", "(hives, as you wrote)"),
        ("maddox pen allergic, co-amoxiclav 625 mg tid po",
         "Allergy to penicillins (allergic, as you wrote): co-amoxiclav belongs to the same class (penicillins)."),
        ("bactrim ds 1 tab bd po for gregory maddox, sulfa allergy", "(allergy, as you wrote): bactrim ds belongs"),
        # a medicine
        ("clarithromycin 500 mg bd po for gregory maddox. He's taking simvastatin from abroad",
         "suspend simvastatin during treatment with clarithromycin. (simvastatin: as you wrote.)"),
        # a condition
        ("gregory maddox known cirrhosis, paracetamol 1 g qid po",
         "4,000 mg a day, above the maximum of 2,000 mg a day (for cirrhosis"),
        # a maximum for the state of the body, whatever the order is for
        ("volkov: paracetamol 1 g qds po for headache", "above the maximum of 2,000 mg a day (for cirrhosis"),
        # a route that the drug has not, and a dose far from what is taken
        ("patricia lindqvist: glargine 10 units po nocte", "Every stored dose of glargine is injected"),
        ("james wilson 2001-12-05 glargine 220 units sc at night",
         "220 units is far above the dose that is taken (insulin"),
        # weeks of pregnancy in short forms
        ("candesartan 4 mg od po for elena petrova, 15 wks preg", "15 weeks of pregnancy (as you wrote)."),
        ("elena petrova in week 20 of pregnancy, ramipril 2.5 mg od po", "20 weeks of pregnancy (as you wrote)."),
        # a result with words between, a weight and a creatinine
        ("gregory maddox potassium at the gp's last week 6.1. spironolactone 25 mg od po", "6.1 mmol/L (as you wrote)"),
        ("dabigatran 150 mg bd po for gregory maddox, egfr tuesday 24", "egfr 24 (as you wrote)"),
        ("tanaka apixaban 2.5 mg bd po, below 60 kg, scr 1.7", "The patient has: 60 kg or less; creatinine 1.5"),
        ("tanaka apixaban 2.5 mg bd po, 57 kg this week and creat 150",
         "The patient has: 60 kg or less; creatinine 1.5 mg/dL or more."),
        # a medicine that was begun; the orders of one message
        ("gregory maddox simvastatin 40 mg nocte po, he was given clarithromycin in ED",
         "with clarithromycin. (clarithromycin: as you wrote.)"),
        ("gregory maddox GTN spray 400 mcg sl prn. his wife says he got cialis online", "(cialis: as you wrote.)"),
        ("clarithromycin 500 mg bd po and simvastatin 40 mg nocte po for gregory maddox",
         "(simvastatin: ordered in the same message.)"),
        ("gregory maddox ramipril 2.5 mg od po and losartan 50 mg od po",
         "losartan is ordered too: an ACE inhibitor with an angiotensin receptor blocker"),
        ("gregory maddox had urticaria on cefalexin. cefadroxil 500 mg bd po",
         "Allergy to cefalexin (urticaria, as you wrote)"),
        # a maximum of the order itself
        ("gregory maddox codeine 30-60 mg q4h po max 240 mg in 24 hrs",
         "at most 240 mg a day as written, is 240 mg a day; the maximum is"),
        # names that only orders have
        ("vit k 5 mg po stat for nadia benali", "Major interaction with warfarin: Vitamin K"),
        ("potassium 20 mmol po bd for nadia benali", "Label warnings of potassium chloride"),
        ("carboxymaltose 500 mg iv once nadia benali", "Label warnings of ferric carboxymaltose"),
        # a smaller dose than what is taken
        ("atorvastatin 5 mg od po for john smith", "5 mg is much less than the dose that is taken (atorvastatin 40 mg"),
    ],
)  # fmt: skip
def test_a_card_weighs_what_the_message_tells(offline_agent, said, finding):
    assert finding.casefold() in "\n".join(offline_agent.ask(said)["pending_write"]["findings"]).casefold()


@pytest.mark.parametrize(
    ("said", "lead"),
    [
        ("can I give naproxen to gregory maddox with his peptic ulcer in 2019",
         "(as you wrote): ulcer or bleeding history"),
        ("suparman, ast fine but ALT 340 this morning. does isoniazid go on?",
         "alt 340 U/L (as you wrote): ALT above 5"),
        ("petrova's upt was pos. pregnancy test positive i mean. methimazole ok?", "present pregnancy (as you wrote)"),
        ("maximum dose of eliquis a day for af", "Apixaban at most, oral: 10 mg a day"),
    ],
)  # fmt: skip
def test_an_answer_begins_with_what_the_message_tells(offline_agent, said, lead):
    assert lead in offline_agent.ask(said)["lead"]


@pytest.mark.parametrize(
    ("said", "unsaid"),
    [
        ("gregory maddox had lip angioedema on enalapril in 2012. losartan 50 mg od po", "enalapril is already active"),
        ("gregory maddox, cough on ramipril in 2015, losartan 50 mg od po", "ramipril is already active"),
        ("gregory maddox paroxetine cr 25 od", "creatinine"),
        ("gregory maddox fentanyl patch 12 mcg/hr every 3 days", "below every usual dose"),
        ("gregory maddox fentanyl 25 mcg/h every 72 hours", "below every usual dose"),
        ("gregory maddox tramadol 50-100 mg q4h po max 400 mg/day", "above the maximum"),
        ("atorvastatin 5 mg od po for john smith", "check the amount and the unit"),
    ],
)  # fmt: skip
def test_a_card_does_not_say_it(offline_agent, said, unsaid):
    turn = offline_agent.ask(said)
    told = [turn["answer"], *(turn["pending_write"] or {}).get("findings", [])]
    assert not any(unsaid in line for line in told)


def test_what_was_checked_is_not_said_to_be_unchecked(offline_agent):
    answer = offline_agent.ask("nadia benali has begun st johns wort. is apixaban 5 mg bd ok?")["answer"]
    assert "nothing about it was checked" not in answer and "Drug Safety Report did not check it" in answer


def test_a_dose_behind_a_measure_is_no_result(offline_agent):
    turn = offline_agent.ask("gregory maddox egfr this morning, 500 mg bd metformin")
    assert "egfr 500" not in turn["answer"]


def test_what_a_label_says_of_a_food_is_not_denied(offline_agent):
    answer = offline_agent.ask("carlos souza wants antacids for heartburn, ok with his biktarvy?")["answer"]
    assert "is listed as affecting" in answer and "not listed in this source as affecting" not in answer


@pytest.mark.parametrize(
    "said",
    [
        "lisinopril 10 mg po od for Elena Petrova, she's not pregnant",
        "Elena Petrova thinks she's pregnant, ramipril 2.5 mg od po",
        "John Smith's daughter is pregnant. lisinopril 10 mg od po for him",
        "check whether Elena Petrova is pregnant before lisinopril 10 mg od",
        "amoxicillin 500 mg tid po for Gregory Maddox, is he allergic to penicillin?",
        "amoxicillin 500 mg tid po for Gregory Maddox, no penicillin allergy",
        "naproxen 500 mg bd po Gregory Maddox - has he had a GI bleed?",
        "naproxen 500 mg bd po for Gregory Maddox, his mother had a GI bleed",
        "GTN spray 400 mcg sl prn for Joseph Begay, is he on viagra?",
        "GTN spray 400 mcg sl prn for Joseph Begay, he stopped taking viagra last year",
        "GTN spray 400 mcg sl prn for Joseph Begay, his brother takes viagra",
        "Priya Raghunathan ibuprofen 400 mg tid po, she is seen at 2 weeks review",
        "Ewa Wisniewska codeine 30 mg po qid, is she breastfeeding?",
        "GTN spray 400 mcg sl prn for Joseph Begay, should he have been given viagra?",
        "Elena Petrova ramipril 2.5 mg od po, seen in week 12 of her diet",
        "Elena Petrova ramipril 2.5 mg od po, pregnant 12 weeks ago",
        "Elena Petrova ramipril 2.5 mg od po, send her pregnancy test",
        "Elena Petrova ramipril 2.5 mg od po, hx of gestational diabetes",
        "naproxen 500 mg bd po for Gregory Maddox, worried by his sister's GI bleed",
    ],
)
def test_what_is_asked_denied_or_of_somebody_else_is_not_told(offline_agent, said):
    turn = offline_agent.ask(said)
    told = [turn["answer"], *(turn["pending_write"] or {}).get("findings", [])]
    assert not any("as you wrote" in line for line in told)


SPIRONOLACTONE = ["prescribe spironolactone 25 mg od for Dorothy Okafor"]
TWO = ["prescribe nitrofurantoin 100 mg bd for Elena Petrova", "ibuprofen 400 mg tds prn too"]


@pytest.mark.parametrize(
    ("messages", "card", "behind"),
    [
        # what names a drug is of the entry of that drug, whichever waits
        ([*TWO, "drop the nitrofurantoin"], {"medication_name": "ibuprofen"}, []),
        ([*TWO, "not the nitrofurantoin"], {"medication_name": "ibuprofen"}, []),
        ([*TWO, "forget the ibuprofen, keep the nitrofurantoin"], {"medication_name": "nitrofurantoin"}, []),
        ([*TWO, "skip the warfarin"], {"medication_name": "ibuprofen", "dosage": "400 mg"}, ["nitrofurantoin"]),
        ([*TWO, "not the warfarin"], {"medication_name": "ibuprofen", "dosage": "400 mg"}, ["nitrofurantoin"]),
        ([*TWO, "the nitrofurantoin should be 50"],
         {"medication_name": "nitrofurantoin", "dosage": "50 mg"}, ["ibuprofen"]),
        # nothing is lost by a question
        ([*TWO, "any recent TSH?", "and her potassium?"], {"medication_name": "ibuprofen"}, ["nitrofurantoin"]),
        ([*TWO, "scrap that. any allergies?"], {"medication_name": "nitrofurantoin"}, []),
        # another one takes the place of what is declined
        ([*SPIRONOLACTONE, "nope. eplerenone 25 mg od"], {"medication_name": "eplerenone"}, []),
        ([*SPIRONOLACTONE, "not that. eplerenone 25 mg od"], {"medication_name": "eplerenone"}, []),
        # the dose times a number
        ([*SPIRONOLACTONE, "halve that please"], {"dosage": "12.5 mg"}, []),
        ([*SPIRONOLACTONE, "double the dose"], {"dosage": "50 mg"}, []),
        ([*SPIRONOLACTONE, "reduce the dose by half"], {"dosage": "12.5 mg"}, []),
        # the corrected entry counts
        ([*SPIRONOLACTONE, "50 mg actually", "same for Gregory Maddox"], {"dosage": "50 mg"}, ["spironolactone"]),
        ([*SPIRONOLACTONE, "same for Gregory Maddox but 50 mg"], {"dosage": "50 mg"}, ["spironolactone"]),
        # what is said in part stays otherwise as it was
        (["prescribe metoprolol succinate 50 mg od for Dorothy Okafor", "the metoprolol should be 25"],
         {"medication_name": "metoprolol succinate", "dosage": "25 mg"}, []),
        (["prescribe ibuprofen 400 mg qds prn for Elena Petrova", "make it bd"], {"frequency": "twice daily as needed"},
         []),
        ([*SPIRONOLACTONE, "not od, bd"], {"frequency": "twice daily"}, []),
        ([*SPIRONOLACTONE, "50 instead of 25"], {"dosage": "50 mg"}, []),
        ([*SPIRONOLACTONE, "50 instead of 200"], {"dosage": "25 mg"}, []),
        (["Save a note for Elena Petrova: CRP normal, well.", 'change "CRP normal" to "CRP due"', "add: eating again"],
         {"note_text": "CRP due, well. eating again"}, []),
        # words approve nothing
        ([*TWO, "approve both"], {"medication_name": "ibuprofen"}, ["nitrofurantoin"]),
    ],
)  # fmt: skip
def test_a_message_is_of_the_entry_that_it_names(offline_agent, messages, card, behind):
    turn = spoken(offline_agent, *messages)
    args = turn["pending_write"]["args"]
    assert {name: args[name] for name in card} == card
    held = offline_agent._stored(turn["thread"]).values.get("held") or []
    assert [one["args"]["medication_name"] for one in held] == behind


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([*TWO, "skip the warfarin"], "unchanged: no entry of warfarin waits"),
        ([*SPIRONOLACTONE, "nope. eplerenone 25 mg od"], "not recorded. The clinician rejected it."),
        ([*TWO, "anything waiting?"], "Waits for your approval, and is not recorded: nitrofurantoin 100 mg"),
        ([*TWO, "authorise both"], "words approve nothing"),
        (["digoxin 125 mcg od for 5dff2ce3-8fe9-47ad-b61b-b73febca1765, prescribe", "does it clash with his warfarin"],
         "Digoxin for James Wilson"),
    ],
)  # fmt: skip
def test_what_became_of_an_entry_is_said(offline_agent, messages, said):
    turn = spoken(offline_agent, *messages)
    assert said in turn["answer"]


def test_each_patient_of_several_gets_an_entry_and_the_status_is_of_the_last_decision(offline_agent):
    thread = offline_agent.ask(SPIRONOLACTONE[0])["thread"]
    offline_agent.ask("same for Gregory Maddox and Elena Petrova", thread=thread)
    turns = [offline_agent.decide(thread, decision) for decision in ("reject", "approve", "approve")]
    assert [turn["status"] for turn in turns] == ["needs_approval", "needs_approval", "answered"]
    assert [turn["pending_write"]["patient"]["name"] for turn in turns[:2]] == ["Elena Petrova", "Dorothy Okafor"]


@pytest.mark.parametrize(
    ("said", "card"),
    [
        # a dose per kg: a range, a written maximum, the weight that is told
        ("Liam Andersen cefalexin 10-20mg/kg qds", {"dosage": "210 to 420 mg"}),
        ("Liam Andersen prednisolone 1-2 mg/kg om, max 30 mg", {"dosage": "21 to 30 mg"}),
        ("prescribe ibuprofen 10mg/kg tds for Liam Andersen, max 200mg", {"dosage": "200 mg"}),
        ("Alexander Papadopoulos is 60 kg now. Order atomoxetine 0.5 mg/kg od",
         {"dosage": "30 mg", "notes": "weight 60 kg; 0.5 mg/kg at 60 kg as told (recorded: 54 kg (2026-09-09))"}),
        ("order ferric carboxymaltose 20 mg/kg iv stat for John Smith, max 1 g",
         {"medication_name": "ferric carboxymaltose", "dosage": "1000 mg"}),
        ("Liam Andersen was 20 kg, now 22 kg: ibuprofen 10 mg/kg tds", {"dosage": "10 mg/kg"}),
        # a course of several doses stands whole
        ("John Smith gabapentin 100mg TDS rising to 300mg TDS after 2/52",
         {"dosage": "100mg TDS rising to 300mg TDS after 2/52", "frequency": "as written in the dose"}),
        ("John Smith colecalciferol 50,000 iu weekly for 6 weeks then 1000 iu daily",
         {"dosage": "50,000 iu weekly for 6 weeks then 1000 iu daily"}),
        ("John Smith chlordiazepoxide 20mg qds 2/7, tds 2/7, then bd", {"dosage": "20mg qds 2/7, tds 2/7 then bd"}),
        ("John Smith bumetanide 2mg mane 1mg lunchtime", {"dosage": "2mg mane 1mg lunchtime"}),
        ("John Smith zopiclone 3.75mg nocte x1/52 then stop", {"dosage": "3.75mg", "notes": "for 1 week; then stop"}),
        ("John Smith bisoprolol 1.25mg od, double weekly as tolerated", {"frequency": "as written in the dose"}),
        # what is no second dose
        ("John Smith gabapentin 300 mg tds, max 3600 mg in 24 h",
         {"dosage": "300 mg", "frequency": "three times daily"}),
        ("John Smith ibuprofen 400 mg tds (2 x 200 mg tabs)", {"dosage": "400 mg", "frequency": "three times daily"}),
        # a strength is no dose; an arrow orders the new one
        ("John Smith oxycodone 5mg/5ml oral soln 10 ml q6h prn",
         {"medication_name": "oxycodone", "dosage": "10 ml (5mg/5ml)"}),
        ("John Smith gliclazide 40 mg od → 80 mg bd", {"dosage": "80 mg", "frequency": "twice daily"}),
        # a refused drug leaves the other one ordered
        ("John Smith: don't give naproxen, give codeine 30mg qds", {"medication_name": "codeine", "dosage": "30mg"}),
        ("John Smith: codeine 30 mg qds, not the naproxen", {"medication_name": "codeine", "dosage": "30 mg"}),
        ("John Smith: record he had a metallic taste after zopiclone, as a note",
         {"note_text": "he had a metallic taste after zopiclone, as a note"}),
    ],
)  # fmt: skip
def test_a_schedule_is_kept_whole(offline_agent, said, card):
    args = (offline_agent.ask(said)["pending_write"] or {"args": {}})["args"]
    assert {name: args.get(name) for name in card} == card


def test_what_is_refused_with_its_alternatives_is_not_ordered(offline_agent):
    assert not offline_agent.ask("John Smith: dont give ibuprofen, codeine 30 mg qds or naproxen 250 mg")[
        "pending_write"
    ]


@pytest.mark.parametrize(
    ("first", "then", "card"),
    [
        ("add allergy for John Smith: latex, hives, severity moderate", "moderate; no, mild", {"severity": "mild"}),
        ("John Smith doxycycline 100mg od for 10 days", "make that 7 days not 10", {"notes": "for 7 days"}),
    ],
)
def test_a_correction_of_a_detail_takes_the_last_word(offline_agent, first, then, card):
    turn = offline_agent.ask(then, thread=offline_agent.ask(first)["thread"])
    assert card.items() <= turn["pending_write"]["args"].items()


def test_words_are_no_dose(offline_agent):
    turn = offline_agent.ask("order nicotine patch half the usual dose daily for John Smith")
    assert turn["status"] == "needs_clarification" and "dosage" in turn["answer"]


def test_another_drug_of_an_order_is_none_of_its_instructions(offline_agent):
    turn = offline_agent.ask("aroha ngata chart doxy 100 bd 5/7 and pred 40")
    assert turn["pending_write"]["args"]["notes"] == "for 5 days" and "pred 40" in turn["answer"]


def test_what_can_be_given_is_told_while_an_order_waits(offline_agent):
    thread = offline_agent.ask("prescribe flucloxacillin 500 mg qds for hiroshi tanaka")["thread"]
    assert "antiemetics" in offline_agent.ask("nauseous too - which antiemetic is safest", thread=thread)["answer"]


def test_a_letter_of_a_drug_is_no_measure():
    assert list(typed_values("k 2.9 today, slow k 2 tds, vit k 5 mg")) == [("potassium", "2.9")]


def test_a_warning_that_two_drugs_share_stands_with_both(offline_agent):
    answer = offline_agent.ask("al-zahrani has pneumonia: azithromycin and ondansetron ok?")["answer"]
    assert answer.startswith("Warning: azithromycin") and "Ondansetron for" in answer
    assert "- Major interaction with hydroxychloroquine" in answer.partition("Ondansetron for")[2]


@pytest.mark.parametrize(
    ("messages", "card"),
    [
        # only what is of its kind is replaced
        (["cefuroxime 1.5 g iv tds for 5 days for Hiroshi Tanaka", "change to im"],
         {"notes": "intramuscularly; for 5 days"}),
        (["amoxicillin 500 mg tds po for 5 days for Grace Kim", "actually make it 7 days"],
         {"notes": "by mouth; for 7 days"}),
        (["amoxicillin 500 mg tds po for 5 days for Grace Kim", "1 g bd for 7 days"],
         {"dosage": "1 g", "notes": "by mouth; for 7 days"}),
        (["timolol 1 drop left eye bd for Grace Kim", "right eye"], {"notes": "right eye"}),
        (["bumetanide 1 mg iv stat for Hiroshi Tanaka", "oral"],
         {"frequency": "once, now (stat)", "notes": "by mouth"}),
        # what is denied is taken away, never added
        (["prescribe haloperidol 1 mg prn po for agitation for Hiroshi Tanaka", "not po"], {"notes": "for agitation"}),
        (["prescribe haloperidol 1 mg prn po for Hiroshi Tanaka", "not IM"], {"notes": "by mouth"}),
        # another drug's details, a second dose, a step of a course and a piece of an instruction change nothing
        (["lispro 6 units with meals for Hiroshi Tanaka", "tonight only for the glargine"],
         {"medication_name": "lispro", "dosage": "6 units"}),
        (["methotrexate 15 mg weekly for Grace Kim", "no, daily folic stays, mtx goes up on monday"],
         {"dosage": "15 mg", "frequency": "once weekly"}),
        (["warfarin 5 mg od for Hiroshi Tanaka", "alternate with 4 mg"], {"dosage": "5 mg"}),
        (["prednisolone 30 mg od, reduce by 5 mg every week for Hiroshi Tanaka", "start at 25 instead"],
         {"dosage": "30 mg od, reduce by 5 mg every week", "notes": None}),
        (["lorazepam 2 mg po stat for Hiroshi Tanaka", "and then 1 mg prn up to tds, max 4 mg/24h"],
         {"dosage": "2 mg", "notes": "by mouth"}),
        (["doxycycline 100 mg bd for Hiroshi Tanaka", "for a week with food"], {"notes": "for 1 week; with food"}),
        # a dose that is given whole is no longer reckoned by weight
        (["amikacin 15 mg/kg iv od for Hiroshi Tanaka", "500 mg"], {"dosage": "500 mg", "notes": "intravenously"}),
        # a told result and what is of another drug are no instructions
        (["give Hiroshi Tanaka ondansetron 4 mg iv prn, QTc today 490"], {"notes": "intravenously"}),
        (["order amlodipine 5 mg at 8am for Grace Kim, ramipril 2.5 mg at 10pm and stop her hctz"],
         {"frequency": "at 8am", "notes": None}),
    ],
)  # fmt: skip
def test_a_change_of_an_order_keeps_the_rest_of_it(offline_agent, messages, card):
    turn = spoken(offline_agent, *messages)
    args = turn["pending_write"]["args"]
    assert {name: args.get(name) for name in card} == card


@pytest.mark.parametrize(
    ("messages", "card"),
    [
        # what an answer takes back itself is in no field; each of its words is of a field
        (["Grace Kim bumetanide 1 mg", "1 bd not 2"], {"dosage": "1 mg", "frequency": "twice daily"}),
        (["Grace Kim cefalexin 500 mg", "three times a day no twice a day"], {"frequency": "twice a day"}),
        (["Grace Kim cefalexin 500 mg", "bd for 5 days"], {"frequency": "twice daily", "notes": "for 5 days"}),
        (["add allergy to ibuprofen for Grace Kim", "swollen lips, not hives"], {"reaction": "swollen lips"}),
        # the patient and the field at once; the fields one by one
        (["add allergy to codeine for Walter", "Kowalczyk, hives"], {"substance": "codeine", "reaction": "hives"}),
        (["prescribe doxycycline", "Grace Kim", "100", "twice", "5 days"],
         {"medication_name": "doxycycline", "dosage": "100 mg", "frequency": "twice daily", "notes": "for 5 days"}),
        # another question in between is answered, and the order goes on
        (["prescribe doxycycline for Grace Kim", "her potassium?", "100 mg", "thrice"],
         {"medication_name": "doxycycline", "dosage": "100 mg", "frequency": "thrice daily"}),
        # of two orders each has its own words
        (["Grace Kim needs ramipril 2.5 mg od and bisoprolol up to 5"], {"medication_name": "ramipril", "notes": None}),
        (["John Smith start ramipril 2.5 mg od and bisoprolol increase to 5"], {"notes": None}),
        # a note grows
        (["note for Grace Kim: chest clear", 'append "walked to the bay" to the note'],
         {"note_text": "chest clear. walked to the bay"}),
        (["note for Grace Kim: chest clear", "add: cannula out, to that note"],
         {"note_text": "chest clear. cannula out"}),
        (["note for Grace Kim: chest clear", "and add to this note: bloods tomorrow"],
         {"note_text": "chest clear. bloods tomorrow"}),
        # details of the order that waits
        (["paracetamol 1 g qds for Grace Kim", "prn for headache"],
         {"frequency": "four times daily as needed", "notes": "for headache"}),
        (["ibuprofen 200 mg tds for Grace Kim", "take after meals"], {"notes": "after meals"}),
        (["ibuprofen 200 mg tds for headache for Grace Kim", "begin on tuesday", "starting friday"],
         {"notes": "for headache; starting friday"}),
        (["prednisolone 20 mg od for Grace Kim", "the pred - nocte, with food"],
         {"frequency": "at night", "notes": "with food"}),
        (["tramadol 50 mg tds prn for Grace Kim", "ibuprofen instead, 200 mg bd"],
         {"medication_name": "ibuprofen", "frequency": "twice daily"}),
    ],
)  # fmt: skip
def test_answers_and_additions_fill_the_entry_that_waits(offline_agent, messages, card):
    turn = spoken(offline_agent, *messages)
    args = (turn["pending_write"] or {"args": {}})["args"]
    assert {name: args.get(name) for name in card} == card


@pytest.mark.parametrize(
    ("order", "answer"),
    [
        ("prescribe doxycycline for Grace Kim", "200 sorry 100 mg od"),
        ("prescribe doxycycline 100 mg for Grace Kim", "bd - she asked about that twice and left"),
        ("add allergy to ibuprofen for Grace Kim", "she said it was in 2004, put that"),
        ("add allergy to ibuprofen for Grace Kim", "not certain"),
        ("add allergy to ibuprofen for Grace Kim", "hives, sorry wheeze"),
        ("prescribe doxycycline 100 mg for Grace Kim", "bd not with milk"),
    ],
)
def test_an_answer_that_is_not_understood_is_asked_again(offline_agent, order, answer):
    asked = offline_agent.ask(order)
    again = offline_agent.ask(answer, thread=asked["thread"])
    assert again["status"] == "needs_clarification" and answer in again["answer"]
    assert asked["answer"].split("\n")[0] in again["answer"]


def test_an_open_question_stands_below_another_answer(offline_agent):
    asked = offline_agent.ask("add allergy to ibuprofen for Grace Kim")
    turn = offline_agent.ask("any meds?", thread=asked["thread"])
    assert turn["status"] == "needs_clarification" and turn["answer"].endswith(asked["answer"])
    assert "Grace Kim" in turn["answer"]


@pytest.mark.parametrize(
    ("message", "line"),
    [
        # an order that hangs on something, behind a question, or that comes to no entry
        ("souza egfr? start glipizide 5 mg od if a1c above 7", "It depends on something"),
        ("john smith uti - nitrofurantoin 100 bd 5d chart it, any allergy trouble?", "No entry was prepared"),
        ("d'angelo alright for doxycycline 100 bd? order it if so", "It depends on something"),
        ("add ramipril for john smith, his k?", "No entry was prepared"),
        # a stop beside something else
        ("rahman hb? if hb under 10 hold the propranolol", "I cannot remove, stop or change"),
        ("hiroshi tanaka qtc, then pause dofetilide please", "I cannot remove, stop or change"),
        # vaccines, each by its name, and that nobody works out whether they suit
        ("Hiroshi Tanaka wants a zoster jab, alright?", "No shingles immunization is recorded"),
        ("nguyen covid and pneumococcal jabs ok?", "No pneumococcal immunization is recorded"),
        ("Aisha Rahman yellow fever jab ok?", "whether the vaccine suits"),
        # what a person judges, and what no entry has
        ("what's DAPA-HF show, and would thornton be suitable?", "Not answered: whether it applies"),
        ("Leilani creatinine? stop metformin?", "Not answered: “stop metformin”"),
        ("john smith potassium, stop what", "Not answered: “stop what”"),
        ("Okafor pap smear?", "No cervical screening is recorded"),
        ("Olena Shevchenko birth control?", "No contraception is recorded"),
        ("john smith paracentesis result?", "No result of a fluid that was drawn"),
        ("any fhx for John Smith?", "No family history is recorded"),
    ],
)
def test_nothing_of_a_message_is_dropped_without_a_word(offline_agent, message, line):
    turn = offline_agent.ask(message)
    assert line in turn["answer"] and not turn.get("pending_write")


def test_a_note_behind_a_question_waits(offline_agent):
    asked = "Okafor - lisinopril 5 od vs valsartan, which second agent? bp trend. then note: rang the patient"
    assert offline_agent.ask(asked)["pending_write"]["args"]["note_text"] == "rang the patient"


@pytest.mark.parametrize(
    ("message", "drug"),
    [
        ("Ingrid Søndergaard - pravastatin 40 mg nocte in lieu of rosuvastatin", "pravastatin"),
        ("suparman levofloxacin 500 mg od instead of isoniazid", "levofloxacin"),
        ("shevchenko start lamotrigine 25 mg od & stop valproate", "lamotrigine"),
    ],
)
def test_a_drug_in_the_place_of_another_is_an_order(offline_agent, message, drug):
    turn = offline_agent.ask(message)
    assert turn["pending_write"]["args"]["medication_name"] == drug and "I cannot remove, stop" in turn["answer"]


@pytest.mark.parametrize(
    "message",
    [
        "john smith: had amlodipine 5 mg od instead of nifedipine last year, oedema",
        "john smith metoprolol 50 mg bd rather than lisinopril?",
        "john smith gliclazide 40 mg od in place of metformin if a1c above 8",
    ],
)
def test_a_drug_that_is_told_or_asked_of_in_the_place_of_another_is_no_order(offline_agent, message):
    assert not offline_agent.ask(message).get("pending_write")


def test_what_is_asked_beside_an_order_that_lacks_something_stands_above_the_question(offline_agent):
    first = offline_agent.ask("john smith potassium? add amlodipine 5 mg")
    assert first["answer"].startswith("Potassium 5.0") and "frequency for the order of amlodipine" in first["answer"]
    assert "I need more" not in offline_agent.ask("once daily", thread=first["thread"])["answer"]


def test_everything_on_the_list_is_the_whole_list(offline_agent):
    thread = offline_agent.ask("john smith metformin dose ok?")["thread"]
    answer = offline_agent.ask("does everything on his list go together?", thread=thread)["answer"]
    assert "atorvastatin with lisinopril" in answer and "Not answered as such" not in answer


def test_a_bare_question_of_stopping_tells_nothing_of_contrast(offline_agent):
    answer = offline_agent.ask("john smith egfr 27 today, metformin hold or give?")["answer"]
    assert (
        "withdrawal and stopping (label and criteria, written from label knowledge, not verified): stop" not in answer
    )
    answer = offline_agent.ask("Hiroshi Tanaka hold the apixaban, is bisoprolol ok?")["answer"]
    assert "label of bisoprolol does not mention withdrawal" not in answer


def test_nobody_is_told_how_to_order_what_is_to_be_held(offline_agent):
    answer = offline_agent.ask("benali inr? order apixaban hold if possible")["answer"]
    assert "I cannot remove, stop or change" in answer and "prescribe apixaban" not in answer


@pytest.mark.parametrize(
    ("said", "told"),
    [
        # of a change the last value counts, however it is written
        ("ast 30 => 410 this morning", [("ast", "410")]),
        ("Na 128 -> 119, drowsy", [("sodium", "119")]),
        ("hb from 112 down to 74", [("haemoglobin", "74")]),
        ("inr up from 2.2 to 6.8", [("inr", "6.8")]),
        ("k 4.4 now 6.1, cr 90 to 210", [("potassium", "6.1"), ("creatinine", "210")]),
        ("calcium 2.4 mmol/L → 3.1 mmol/L", [("calcium", "3.1")]),
        ("bp 150/90 > 88/40", [("blood pressure", "88/40")]),
        # a drug's level by its size
        ("lithium 2.1 in ED", [("lithium level", "2.1")]),
        ("lithium level yesterday 1.9", [("lithium level", "1.9")]),
        ("lithium 600 nocte", []),
        # weeks of pregnancy, a vaccine and the dose of a drug are no results
        ("at 31/40: vit D?", []),
        ("PCV13 given, PCV15 next", []),
    ],
)  # fmt: skip
def test_the_last_of_several_values_is_told(said, told):
    assert list(typed_values(said)) == told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Benali INR 2.8 -> 7.2, warfarin tonight?", "Latest inr 7.2 (as you wrote)"),
        ("wilson 2001 bm 3.1, give his lispro?", "glucose below 70"),
        ("goldstein lithium 1.9 today, give it?", "toxic, hold"),
        ("moreau quetiapine 12.5 nocte any trial", "Quetiapine for Jean-Luc Moreau"),
        ("lefevre-dubois lymphocytes 0.3, stop dmf?", "lymphocytes below 0.5: risk of PML"),
        ("raghunathan bp 168/96 at clinic", "severe hypertension in pregnancy"),
        ("diallo on ocp and rifampicin, ok?", "interaction with ethinyl estradiol and levonorgestrel"),
        # what may worsen what is told leads; without a route the higher limit of another is told
        ("volkov muddled and flapping, lorazepam 0.5 mg ok?", "lorazepam for Dmitri Volkov. The patient has Cirrhosis"),
        ("diallo ketorolac 30 mg ok?", "of others the maximum is: injection 30 mg"),
        ("benali enoxaparin 1.5 mg/kg od, she is 64 kg", "96 mg"),
    ],
)  # fmt: skip
def test_told_values_are_weighed(offline_agent, said, told):
    assert told in offline_agent.ask(said)["answer"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("goldstein vomiting all night, lithium?", "under a steroid"),
        ("tanaka crcl? diltiazem 60 tds ok?", "You wrote creatinine clearance"),
        ("abernathy melaena, stop which?", "was read as"),
        ("diallo on ocp and rifampicin, ok?", "Ethinyl estradiol and drospirenone for"),
        ("haddad was it the flucloxacillin, add penicillin allergy", "Penicillin for Mohammed Haddad"),
    ],
)  # fmt: skip
def test_what_is_not_meant_is_not_told(offline_agent, said, told):
    assert told not in offline_agent.ask(said)["answer"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        # what is told of another medicine stands on the card of an order
        ("volkov k 6.2 today. prescribe cefalexin 500 mg tds", "Spironolactone is taken. Contraindicated"),
        ("volkov k 6.2 today. prescribe cefalexin 500 mg tds", "Potassium 6.2 mmol/L (as you wrote)"),
        ("Nadia Benali has started amiodarone from cardiology. add ramipril 2.5 mg od", "of warfarin with amiodarone"),
        ("James Wilson 30/07/1985 phenelzine started in clinic. prescribe zolmitriptan 2.5mg prn",
         "Contraindicated interaction with phenelzine"),
        ("Leonard Abernathy was put on apixaban by the stroke team. prescribe ibuprofen 400 mg tds",
         "Major interaction with apixaban"),
        ("Elena Petrova: propylthiouracil 100 mg tds", "of the same class (antithyroid drugs)"),
    ],
)  # fmt: skip
def test_what_is_told_stands_on_the_card(offline_agent, said, told):
    assert told in " ".join(offline_agent.ask(said)["pending_write"]["findings"])


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Tomasz Nowak was given tramadol abroad. prescribe codeine 30 mg qds", "is already active"),
        ("Carlos Eduardo Souza is on dolutegravir elsewhere. prescribe metformin 500 mg bd", "The record has dolute"),
        ("Grace Kim: methotrexate 2.5mg x 6 tabs Mondays", "much less"),
    ],
)  # fmt: skip
def test_the_card_says_nothing_false_of_the_record(offline_agent, said, told):
    assert told not in " ".join(offline_agent.ask(said)["pending_write"]["findings"])


@pytest.mark.parametrize(
    ("said", "card"),
    [
        # whose it is: who is named before it, and not who is named behind it with the next one
        ("John Smith abc-123 amlodipine 5 mg od for HTN; Elena Petrova cefalexin 500 mg bd for UTI",
         {"patient": "John Smith", "notes": "for HTN"}),
        ("Gregory Maddox start bisoprolol 2.5 mg daily, and for Elena Petrova senna 15 mg nocte",
         {"patient": "Gregory Maddox", "medication_name": "bisoprolol"}),
        ("For Elena Petrova codeine 30 mg qds; for Gregory Maddox amoxicillin 500 mg tds 5 days",
         {"patient": "Elena Petrova", "notes": None}),
        ("Gregory Maddox fultium D3 1 od; Elena Petrova prednisolone 30 mg od 5 days",
         {"patient": "Gregory Maddox", "notes": None}),
        ("John Smith abc-123 and Elena Petrova both paracetamol 1 g qds", {"patient": "John Smith"}),
        # an ordered drug is no substance of an allergy
        ("Gregory Maddox: EpiPen 0.3 mg IM prn. Allergy: hornet venom, collapse 2019, severe",
         {"substance": "hornet venom", "reaction": "collapse 2019"}),
        ("elena petrova: naproxen 250 mg bd is her mum's; she is allergic to trimethoprim (rash, mild). add allergy",
         {"substance": "trimethoprim", "reaction": "rash"}),
        ("Elena Petrova cetirizine 10 mg nocte, Gregory Maddox allergy: ramipril cough mild",
         {"patient": "Gregory Maddox", "substance": "ramipril"}),
        ("Elena Petrova allergy to rubber (latex), hives on hands, mild",
         {"substance": "rubber (latex)", "reaction": "hives on hands"}),
        # a suspicion stays one, and what is plainly noted is noted
        ("note Gregory Maddox: ?lithium toxicity, level sent", {"note_text": "?lithium toxicity, level sent"}),
        ("Elena Petrova - hives after codeine suspected, not proven. Don't add an allergy, just note it",
         {"note_text": "hives after codeine suspected, not proven."}),
        ("Gregory Maddox. Dr Khan says he started digoxin 125 mcg od. Record that as a note, dont prescribe anything",
         {"note_text": "Dr Khan says he started digoxin 125 mcg od."}),
        # what is stopped beside an order is no part of it
        ("Robert Thornton amiodarone 200 mg od, hold digoxin today", {"medication_name": "amiodarone", "notes": None}),
        ("okafor stop amlodipine, losartan 50 mg od", {"medication_name": "losartan"}),
        ("Gregory Maddox buprenorphine patch 10 mcg/h, change every 7 days, rx please",
         {"medication_name": "buprenorphine patch", "dosage": "10 mcg/h"}),
        # what is looked at again is no length
        ("okafor start lisinopril 5 mg od, repeat u&e in 2/52", {"notes": "repeat u&e in 2 weeks"}),
        ("add citalopram 20 mg od for maddox, review 4/52", {"notes": "review in 4 weeks"}),
        ("maddox: add ramipril 2.5 mg od and recheck k in 7 days", {"notes": "recheck k in 7 days"}),
        ("okafor amoxicillin 500 mg tds 1/52", {"notes": "for 1 week"}),
        # a schedule is kept whole
        ("Gregory Maddox insulin lispro 6 units with breakfast, 4 with lunch, 8 with dinner",
         {"dosage": "6 units with breakfast, 4 with lunch, 8 with dinner"}),
        ("Gregory Maddox insulin Humulin M3 14 units am 10 units pm", {"frequency": "as written in the dose"}),
    ],
)  # fmt: skip
def test_an_entry_holds_what_is_its_own(offline_agent, said, card):
    waiting = offline_agent.ask(said)["pending_write"] or {"args": {}, "patient": {"name": ""}}
    told = {"patient": waiting["patient"]["name"], **waiting["args"]}
    assert {name: told.get(name) for name in card} == card


def test_two_orders_of_one_drug_are_of_two_patients(offline_agent):
    turn = offline_agent.ask("For Gregory Maddox codeine 30 mg qds, and for Elena Petrova codeine 15 mg bd")
    then = offline_agent.decide(turn["thread"], "reject")["pending_write"]
    assert (turn["pending_write"]["patient"]["name"], turn["pending_write"]["args"]["dosage"]) == (
        "Gregory Maddox",
        "30 mg",
    )
    assert (then["patient"]["name"], then["args"]["dosage"]) == ("Elena Petrova", "15 mg")


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        # several drugs that are asked about in general are of nobody
        (["clopi and omep ok? shop only has lansop here"], "Major interaction: clopidogrel with omeprazole"),
        (["inj vit K 5 how fast i can push. old man, rivaroxaban bleed"], "no faster than 1 mg a minute"),
        # an article is found by what happened in it, and a study of another drug is said to be another one
        (["papers on lysing stroke pts who took a noac in the last 48 h"], "PMID 36807495"),
        (["that leaflet study weaning seniors off benzos?"], "PMID 24733354"),
        (["FOCUS study sertraline after stroke, result?"], "the article of this name says nothing of sertraline"),
        (["praxbind will reverse apixaban or only dabi? SDH in resus"],
         "Idarucizumab warnings [1]:\n- reverses dabigatran only."),
        # a strength without its units is that of a spoon
        (["Liam Andersen: ibuprofen susp 100/5, how many ml"], "mL of 20 mg/mL"),
        # who is meant by age and problem; whose name is only like it
        (["james wilson allergies?", "77 year old, the AF one"], "born 1949-02-11"),
        (["walter kowalska, potassium?"], "Of a like name, who may be somebody else: Walter Kowalczyk"),
        # what cannot be sent, and a daily total
        (["wisniewska current meds", "message her via the portal"], "I cannot send or tell others: that was not done"),
        (["D'Angelo uti again, was any cx sent"], "Not among the results: blood culture, urine culture"),
    ],
)  # fmt: skip
def test_short_words_are_understood(offline_agent, messages, told):
    turn = offline_agent.ask(messages[0])
    for message in messages[1:]:
        turn = offline_agent.ask(message, thread=turn["thread"])
    assert told in turn["answer"]


@pytest.mark.parametrize(
    ("said", "untold"),
    [
        ("john smith abc-123 egfr, past 3 please", "You wrote"),
        ("goldstein: does a water pill, e.g. hctz, or amlodipine interact with her meds", "estradiol"),
        ("liam andersen: motrin susp 100/5, ml?", "has no unit"),
    ],
)
def test_a_count_or_a_kind_of_pill_is_no_value_and_no_drug(offline_agent, said, untold):
    assert untold not in offline_agent.ask(said)["answer"]


def test_the_day_of_a_recorded_dose_counts_each_dose(offline_agent):
    turn = offline_agent.ask("Ewa Wiśniewska: prescribe paracetamol 1g qds prn")
    offline_agent.decide(turn["thread"], "approve")
    answer = offline_agent.ask("is paracetamol ok for her?", thread=turn["thread"])["answer"]
    assert "4,000 mg a day" in answer and "is 1,000 mg a day" not in answer


def test_an_agreed_dose_of_what_was_asked_about_is_its_order(offline_agent):
    turn = offline_agent.ask("m haddad wants cialis 20, any reason not to")
    turn = offline_agent.ask("okay 10 prn #4", thread=turn["thread"])
    assert turn["pending_write"]["args"]["dosage"] == "10 mg"


@pytest.mark.parametrize(
    ("said", "told", "not_told"),
    [
        # what is given or added beside another question is checked
        ("sats and weight of søndergaard, about to push TNK", "Contraindicated: tenecteplase", ""),
        ("tnkase dose in stroke, 65 kg", "17.5 mg in one dose", "drug name"),
        ("Volkov FAST negative now. platelets? alteplase next", "platelets below 100: contraindicated", "febuxostat"),
        ("alteplase infusing in john smith abc-123, is he on an acei", "Moderate interaction with lisinopril", ""),
        ("james wilson t1dm read about forxiga. start it?", "Warning: forxiga", ""),
        # what is told is held against what is taken too
        ("maria garcia stroke 3 days ago. clopidogrel 75 mg ok?", "Sumatriptan is taken. Contraindicated", ""),
        ("amara diallo confirmed PE, dalteparin ok?", "levonorgestrel is taken. Contraindicated", ""),
        ("maria garcia had stroke clinic today, clopidogrel 75 mg ok?", "lopidogrel", "Sumatriptan is taken"),
        ("maria garcia DVT scan today. clopidogrel 75 mg ok?", "lopidogrel", "is taken. Contra"),
        ("maria garcia ?TIA today? clopidogrel 75 mg ok", "lopidogrel", "ethinyl"),
        ("olena shevchenko upt pos today, still on valproate, ok?", "neural tube", "pregnancy is not recorded"),
        # what is supposed counts before the chart
        ("supposing tanaka were 83 with creatinine 1.7, apixaban dose?", "80 years or older; creatinine 1.5", ""),
        ("hypothetically tanaka dropped to 58 kg, is his apixaban right?", "The patient has: 60 kg or less", ""),
        ("supposing tanaka lost 58 kg, is his apixaban right?", "none of them", "60 kg or less."),
        # a shortened name is read as a whole; of two uses that are compared each has its maximum
        ("maria garcia wants ca carb 600 mg bd, with her levothyroxine?", "at least 4 hours apart", "carbamazepine"),
        ("ramipril vs nothing: lisinopril max, hypertension vs hf", "Lisinopril at most, oral: 80 mg a day", ""),
        # a note is held against the chart where it changes a drug
        ("john smith abc-123 note: egfr 58, increase metformin to 1 g tds", "above the maximum of 1,000 mg", ""),
        ("john smith abc-123 note: egfr 58, increase metformin to 1 g tds", "You wrote egfr 58; the chart's", ""),
        ("john smith abc-123 note: egfr 58 today, feels well", "egfr 58", "the chart's latest"),
        ("amara diallo apixaban 10 mg bd 7 days then 5 mg bd, give her", "then 5 mg bd\n", ""),
    ],
)  # fmt: skip
def test_what_is_told_or_given_warns(offline_agent, said, told, not_told):
    answer = offline_agent.ask(said)["answer"]
    assert told in answer and (not not_told or not_told not in answer)
