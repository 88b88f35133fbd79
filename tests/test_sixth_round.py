"""What the sixth sealed round showed, each in words of its own: cards, names, doses."""

import pytest

from docgemma.text.clauses import widened
from docgemma.text.said import bracketed, is_mechanism


@pytest.mark.parametrize(
    ("ordered", "boxed"),
    [
        ("prescribe midazolam 1 mg IV once for Haddad", "Respiratory depression"),
        ("prescribe morphine 5 mg po every 4 hours for Haddad", "Addiction"),
        ("prescribe paracetamol 1 g po qds for Haddad", ""),  # its box is of the injection
    ],
)
def test_a_card_says_the_boxed_warning_of_its_form(offline_agent, ordered, boxed) -> None:
    findings = offline_agent.ask(ordered)["pending_write"]["findings"]
    told = [line for line in findings if line.startswith("Boxed warning")]
    assert bool(told) == bool(boxed)
    assert boxed in "".join(told)


def test_a_procedure_is_no_drug(offline_agent) -> None:
    answer = offline_agent.ask(
        "Wiśniewska is down for an epidural. what blood thinner is she on, and its boxed warning?"
    )
    assert "apixaban" in answer["answer"].lower() and "hematoma" in answer["answer"]
    assert "not found in the drug database" not in answer["answer"]


def test_an_ambiguous_abbreviation_is_asked_and_then_checked(offline_agent) -> None:
    first = offline_agent.ask("dex 8 mg ok in Haddad?")
    assert "Did you mean dexamethasone" in first["answer"]
    then = offline_agent.ask("dexamethasone", thread=first["thread"])
    assert "dexamethasone for Mohammed Haddad" in then["answer"]


@pytest.mark.parametrize(("said", "born"), [("wilson 1949 INR?", "1949-02-11"), ("bloods wilson 2001", "2001-12-05")])
def test_a_year_behind_a_name_tells_namesakes_apart(offline_agent, said, born) -> None:
    assert born in offline_agent.ask(said)["answer"]


@pytest.mark.parametrize("said", ["the warfarin one. meds?", "the 1949 one, meds please?"])
def test_one_of_several_who_were_asked_about(offline_agent, said) -> None:
    first = offline_agent.ask("Wilson allergies?")
    assert "Which one" in first["answer"]
    assert "born 1949-02-11" in offline_agent.ask(said, thread=first["thread"])["answer"]


def test_doses_of_route_and_age_are_told(offline_agent) -> None:
    told = offline_agent.ask("max dose of IV ketorolac over 65?")["answer"]
    assert "injection, 65 years and older: 60 mg a day, 15 mg in one dose" in told
    assert "nasal" not in told
    assert "No maximum" not in offline_agent.ask("max dose of lithium?")["answer"]
    assert "maximum single dose of 10 mg" not in offline_agent.ask("can Haddad have 15 mg iv ketorolac?")["answer"]


def test_a_reaction_keeps_its_words_and_a_mechanism_is_none() -> None:
    text = "rash all over, last year"
    assert widened(text, (0, len("rash all")), behind=True) == (0, len("rash all over"))
    assert is_mechanism("pseudocholinesterase def")
    assert bracketed("chlorhexidine: hives (mod).") == "moderate"
    assert bracketed("hives (minocycline)") == bracketed("hives (in theatre)") == ""


def test_an_entry_that_is_dropped_beside_a_question_does_not_wait_on(offline_agent) -> None:
    first = offline_agent.ask("prescribe buspirone 5 mg bid for Deshmukh")
    then = offline_agent.ask("scrap that, her GP objects. what's her Hb?", thread=first["thread"])
    assert "10.9" in then["answer"] and not then["pending_write"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "macrobid crcl cutoff?",
            "below 30 mL/min: ineffective and toxic (nerves, lungs, liver) (Contraindications; Beers 2023)",
        ),
        ("is doxycycline ok in pregnancy", "avoid in pregnancy unless no alternative (Use in Specific Populations)"),
        (
            "fosamax: how do they take it, and can the tums go in with it",
            "stand or sit upright for at least 30 minutes",
        ),
    ],
)
def test_what_is_held_on_a_topic_of_a_drug_is_told(offline_agent, said, told) -> None:
    assert told in offline_agent.ask(said)["answer"]


def test_a_dose_of_the_record_is_held_against_its_limit(offline_agent) -> None:
    lead = offline_agent.ask("is chiara dangelo's sitagliptin dose ok?")["lead"]
    assert lead == "Sitagliptin for Chiara D'Angelo: 100 mg once daily is 100 mg a day; the maximum is 100 mg a day."
    told = offline_agent.ask("john smith abc-123 amox + clarithro. clashes?")["lead"]
    assert told.endswith(
        "Do not exceed atorvastatin 20 mg daily. The record has atorvastatin 40 mg once daily at bedtime."
    )
    stop = offline_agent.ask("metformin & contrast, when do we actually have to stop it")["lead"]
    assert stop.startswith("Metformin, ") and "): stop at or before iodinated contrast" in stop


@pytest.mark.parametrize(
    ("said", "drugs", "line"),
    [
        (
            "souza - gp wants to start metformin, does it clash with his HIV tablets",
            ["metformin", "bictegravir-emtricitabine-tenofovir alafenamide", "pravastatin"],
            "these are what the patient takes.",
        ),
        (
            "mahmood needs abx, micro say cipro. clash with clozapine?", ["cipro", "clozapine"],
            "Ciprofloxacin inhibits CYP1A2",
        ),
        (
            "sondergaard levo and calcium carbonate ok together?",
            ["levothyroxine", "calcium carbonate", "amiodarone", "rivaroxaban", "rosuvastatin"],
            "levo was read as levothyroxine.",
        ),
    ],
)  # fmt: skip
def test_a_group_or_a_short_name_is_what_the_patient_takes_of_it(offline_agent, said, drugs, line) -> None:
    found = offline_agent.ask(said)
    checked = [tool["args"]["drug_names"] for tool in found["tools"] if tool["name"] == "check_drug_interactions"]
    assert checked == [drugs]
    assert line in found["answer"]


def test_what_results_say_against_what_is_taken_is_told(offline_agent) -> None:
    first = offline_agent.ask("john smith abc-123 kidney function?")
    told = offline_agent.ask("and is he on anything i should worry about with that", thread=first["thread"])
    assert told["lead"].startswith("Caution: metformin for John Smith. Latest eGFR 41")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("clozapine and smoking?",
         "Smoking is listed as affecting clozapine: levels rise when smoking stops: adjust the dose."),
        ("joseph begay patch strength?", "Active patches (1): buprenorphine patch 10 mcg/h"),
        ("phenelzine and sudafed?", "Phenelzine with pseudoephedrine: contraindicated interaction."),
    ],
)  # fmt: skip
def test_a_habit_a_patch_and_a_decongestant_are_served(offline_agent, said, told) -> None:
    assert told in offline_agent.ask(said)["answer"]


def test_pairs_without_an_entry_are_never_cut(offline_agent) -> None:
    answer = offline_agent.ask("abacavir amlodipine atenolol bumetanide digoxin celecoxib any interaction?")["answer"]
    assert "…" not in answer
    assert "atenolol with celecoxib: none listed" in answer


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ("amox 500 tid x10 d rahman aisha go ahead and send it", "frequency", "three times daily"),
        ("amox 500 tid x10 d rahman aisha go ahead and send it", "notes", "for 10 days"),
        ("rx naproxen 500mg bd po for wilson 11/2/1949 w food, 5 days", "notes", "by mouth; w food; for 5 days"),
        ("d'angelo has zoster L T6 dermatome day 2, valtrex 1 g tid x7 days", "frequency", "three times daily"),
        ("add allergy nadia benali: contrast dye, throat swelling 2019 per husband, severe", "reaction",
         "throat swelling 2019 per husband"),
        ("pls save note on ngata: 'sats 92% RA on rv 26/10, pt's copd worse. plan chase abg.' thanks", "note_text",
         "sats 92% RA on rv 26/10, pt's copd worse. plan chase abg."),
    ],
)  # fmt: skip
def test_a_detail_has_all_of_its_words_and_no_others(offline_agent, said, field, value) -> None:
    assert offline_agent.ask(said)["pending_write"]["args"][field] == value


def test_a_duplicate_goes_on_and_recorded_allergies_stand_on_the_card(offline_agent) -> None:
    told = offline_agent.ask("levothyroxine 100mcg od for garcia please, up from 88")["answer"]
    assert "It stays active until its prescriber stops it" in told
    assert "Recorded allergies: aspirin (bronchospasm, severe)." in told


def test_what_is_in_no_field_and_what_follows_stand_above_the_card(offline_agent) -> None:
    said = "verbal order dr patel, read back: furosemide 40 mg bd for James Wilson born 2/11/1949, weight up. enter it"
    told = offline_agent.ask(said)
    assert "verbal order; dr patel; read back" in told["pending_write"]["args"]["notes"]
    left = offline_agent.ask("TORB dr lin kcl 20 meq po x1 for kamau, k this am is 3.1")["answer"]
    assert "in no field of the entry: “k this am is 3.1”." in left
    assert "It stays active until its prescriber stops it" in told["answer"]
    both = offline_agent.ask("two things for thornton: note saying 'bloods reviewed today', and gentamicin 400mg iv od")
    assert "After this entry follows: bloods reviewed today." in both["answer"]
    assert "hba1c 58; the chart has none" in offline_agent.ask("metformin 500mg bd for volkov, hba1c 58")["answer"]


def test_a_missing_frequency_is_asked_for_with_what_is_grave(offline_agent) -> None:
    asked = offline_agent.ask("prescribe ibuprofen for liam andersen pls, mum asking")
    assert asked["status"] == "needs_clarification" and "dosage, frequency" in asked["answer"]
    assert "Asthma" in asked["answer"] and "at 21 kg: 840 mg a day" in asked["answer"]
    card = offline_agent.ask("200 mg tds for 3 days", thread=asked["thread"])["pending_write"]
    assert card["args"]["frequency"] == "three times daily" and card["args"]["notes"] == "for 3 days"


@pytest.mark.parametrize(
    ("said", "frequency"),
    [
        ("every 12 hours", "every 12 hours"),
        ("2x daily", "2x daily"),
        ("three times a day for 5 days", "three times a day"),
        ("just once please", "once"),
        ("q4h prn for pain", "every 4 hours as needed for pain"),
    ],
)
def test_an_answer_how_often_is_kept_whole(offline_agent, said, frequency) -> None:
    asked = offline_agent.ask("prescribe tramadol 50 mg for moreau")
    assert asked["status"] == "needs_clarification" and "frequency" in asked["answer"]
    assert offline_agent.ask(said, thread=asked["thread"])["pending_write"]["args"]["frequency"] == frequency


def test_an_order_that_is_taken_back_gives_way_to_the_question_behind_it(offline_agent) -> None:
    told = offline_agent.ask("was gonna put tramadol 50 mg q6h in for nowak, skip it. just give me his bp med and dose")
    assert told["pending_write"] is None and "amlodipine 5 mg" in told["answer"] and "ramadol" not in told["answer"]
    side = offline_agent.ask("kahananui gets loose stools on metformin. chart that as allergy?? not asking u to add it")
    assert side["pending_write"] is None and "allergy or a side effect (intolerance)" in side["answer"]


def test_what_became_of_an_entry_is_told(offline_agent) -> None:
    first = offline_agent.ask("prescribe pantoprazole 40 mg daily for haddad")
    offline_agent.decide(first["thread"], "reject")
    told = offline_agent.ask("did anything go through?", thread=first["thread"])["answer"]
    assert "not recorded. The clinician rejected it." in told and "Nothing was written to the record." in told
    other = offline_agent.ask("can we go through smith's meds?", thread=first["thread"])["answer"]
    assert "metformin 500 mg" in other and "written to the record" not in other


def test_a_stop_that_is_refused_says_what_the_medicine_is_for_and_its_results(offline_agent) -> None:
    told = offline_agent.ask("can you stop benali's warfarin, shes having a tooth out")["answer"]
    assert "warfarin is recorded for Mechanical heart valve in place" in told and "INR: 3.1" in told


@pytest.mark.parametrize(
    ("asked", "told"),
    [("i'll put it in myself. nothing got saved did it", "Nothing was written to the record."),
     ("you didnt queue anything did you", "Prescription: not recorded. The clinician rejected it."),
     ("i binned that didnt i. is it on her chart or not", "Nothing was written to the record.")],
)  # fmt: skip
def test_what_became_of_an_entry_is_told_from_what_happened(offline_agent, asked, told) -> None:
    thread = offline_agent.ask("prescribe lansoprazole 15 mg od for patricia lindqvist")["thread"]
    offline_agent.decide(thread, "reject")
    assert told in offline_agent.ask(asked, thread=thread)["answer"].splitlines()


def test_labels_of_what_is_taken_speak_of_the_result_alone(offline_agent) -> None:
    """A contraindication by anemia, or bronchospasm of an inhaler, bears on neither hemoglobin nor saturation."""
    assert "What labels" not in offline_agent.ask("Adeyemi hb?")["answer"]
    assert "What labels" not in offline_agent.ask("Kowalczyk sats?")["answer"]
    assert "methimazole (warning): agranulocytosis" in offline_agent.ask("petrova neutrophils?")["answer"]


def test_a_dose_above_a_maximum_by_weight_is_told_by_weight_too(offline_agent) -> None:
    lead = offline_agent.ask("is al-zahrani's plaquenil dose ok?")["lead"]
    assert "is 400 mg a day (6.7 mg/kg), above the maximum of 300 mg a day (at 60 kg)." in lead


@pytest.mark.parametrize(
    ("asked", "lead"),
    [
        ("how long before surgery do i stop eliquis", "stop 24 to 48 hours before elective surgery"),
        ("combined pill & a big op with bed rest after. how long off beforehand", "stop 4 weeks before major surgery"),
        ("how do you take doxycycline", "take with water, upright"),
        ("max tylenol a day in cirrhosis", "Acetaminophen at most, oral, for cirrhosis: 2,000 mg a day"),
        ("tramadol max per day over 75", "75 years or older: at most 300 mg a day"),
        ("starting dose losartan?", "no usual one is stored."),
        ("how many days can ketorolac be given", "At most 5 days in adults"),
        ("is xarelto ok with food", "does not mention food."),
        ("john smith abc-123 for contrast CT, what about his metformin", "stop at or before iodinated contrast"),
        ("john smith abc-123: can his metformin be crushed", "does not mention administration."),
        (
            "al zahrani on plaquenil, what does her dose come to per kilo",
            "is 400 mg a day (6.7 mg/kg), above the maximum",
        ),
    ],
)
def test_what_the_label_data_hold_of_what_is_asked_leads(offline_agent, asked, lead) -> None:
    assert lead in offline_agent.ask(asked)["lead"]


def test_a_grave_finding_stands_before_what_the_label_says_to_the_question(offline_agent) -> None:
    told = offline_agent.ask("pt on nardil, our anaesthetists like pethidine. problem?")["answer"]
    assert told.startswith("Contraindicated interaction: phenelzine with meperidine.")
    assert "stop 10 days before" in told.splitlines()[2]


@pytest.mark.parametrize(
    ("said", "lead"),
    [
        ("volkov TTOs - paracetamol 1g qds + ibuprofen 400 tds, happy?", "above the maximum of 2,000 mg a day"),
        (
            "thornton gout flare, was going to give naproxen 500 bid. latest egfr?",
            "Warning: naproxen for Robert Thornton",
        ),
    ],
)
def test_an_order_that_asks_back_or_is_only_considered_is_checked_and_gets_no_card(offline_agent, said, lead) -> None:
    done = offline_agent.ask(said)
    assert lead in done["answer"] and not done["pending_write"]


@pytest.mark.parametrize(
    ("said", "frequency"),
    [
        ("rx omeprazole 40mg po one dose only at 10pm, for leilani kahananui", "one dose only at 10pm"),
        ("rx leilani kahananui lorazepam 1 mg just the one dose tonight", "one dose tonight"),
        ("bridge nadia benali: clexane (enoxaparin) 1mg/kg bd once INR <2. prescribe please", "twice daily"),
        ("prescribe augmentin 625 mg tds for haddad, he's on warfarin 5 mg od", "three times daily"),
    ],
)
def test_a_frequency_is_whole_and_no_other_drugs(offline_agent, said, frequency) -> None:
    assert offline_agent.ask(said)["pending_write"]["args"]["frequency"] == frequency


def test_a_dose_by_weight_without_a_weight_is_a_warning(offline_agent) -> None:
    card = offline_agent.ask("prescribe clexane (enoxaparin) 1 mg/kg bd for nadia benali")["pending_write"]
    assert "1 mg/kg cannot be worked out: no weight is recorded." in card["findings"]
    assert card["args"]["medication_name"] == "clexane (enoxaparin)"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "note on tanaka pls: 'advised to stop warfarin 5/7 pre op'",
            "not among the active medications; recorded is apixaban",
        ),
        ("note rahman: pt given amoxicillin in clinic", "amoxicillin: Allergy to penicillin"),
        ("note kamau: home BP 152/88, correction, 148/86", "The note takes back something"),
    ],
)
def test_a_note_is_held_against_the_chart(offline_agent, said, told) -> None:
    assert told in offline_agent.ask(said)["pending_write"]["findings"][0]


def test_a_note_behind_a_colon_is_whole(offline_agent) -> None:
    card = offline_agent.ask("document for john smith: hold metformin day of contrast")["pending_write"]
    assert card["args"]["note_text"] == "hold metformin day of contrast" and not card["findings"]


def test_an_allergy_that_is_recorded_gets_no_second_card_unless_it_says_more(offline_agent) -> None:
    done = offline_agent.ask("john smith gets a rash w sulfa, add to allergy list plz")
    assert "John Smith has this allergy already: sulfamethoxazole (rash, moderate)." in done["answer"]
    assert not done["pending_write"]
    worse = offline_agent.ask("add sulfa allergy john smith, anaphylaxis, severe")["pending_write"]
    assert "An allergy to sulfamethoxazole is already recorded (rash, moderate)." in worse["findings"]


def test_a_reaction_in_a_sentence_of_its_own_is_read(offline_agent) -> None:
    said = "renee boudreaux pls add allergy: chlorhexidine. dentist skin prep 2019, came up in weals and "
    said += "wheezy, she says they nearly rang 999. severe"
    assert "weals and wheezy" in offline_agent.ask(said)["pending_write"]["args"]["reaction"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("moreau's psa?", "finasteride (warning): halves prostate specific antigen"),
        ("#402 call back. what's on for bp and anything i cant give", "lisinopril (angioedema, severe)"),
        ("mail order wants coreg 12.5 bid refilled for harold baxter. ok w me", "recorded as deceased"),
        ("if i wanted sando-K for kamau would somebody sign it off?", "written only when a person approves it"),
        ("james wilson the zoloft one not the heart one. when did i want him back", "born 1985-07-30"),
    ],
)
def test_what_bears_on_a_question_is_told_beside_it(offline_agent, said, told) -> None:
    answer = offline_agent.ask(said)["answer"]
    assert told in answer and "To order it, say so" not in answer


def test_a_result_that_has_fallen_is_no_fall(offline_agent) -> None:
    told = offline_agent.ask("baclofen 10 tds ok for john smith?")["answer"]
    assert "falls (“" not in told and "the patient has: falls" not in told  # his note: "eGFR has fallen from 49 to 41"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("VPA load for Volkov? nonconvulsive status", "Contraindicated: sodium valproate for Dmitri Volkov."),
        ("begay new onset sz. is anything on his list a problem?", "bupropion XL (contraindication): seizure disorder"),
        (
            "Haddad, two extractions. do i need to stop the clopidogrel",
            "Dual antiplatelet therapy until at least April",
        ),
        ("schafer anneliese. any antiresorptives? age too pls", "Active bone medicines (1): alendronate"),
    ],
)
def test_what_is_grave_leads_a_question_asked_in_passing(offline_agent, said, told) -> None:
    assert told in offline_agent.ask(said)["lead"]


def test_the_reason_on_an_order_and_what_must_not_be_drunk_with_it_are_held_against_the_label(offline_agent) -> None:
    card = offline_agent.ask("rx valproate 500 bid for raghunathan for migraine, 28wk")["pending_write"]
    assert "must not be used for migraine in pregnancy" in card["findings"][0]
    told = offline_agent.ask("rx metronidazole 400 tds 5/7 for castellano")["pending_write"]["findings"]
    assert any("alcohol or propylene glycol during treatment and for 3 days after" in line for line in told)
