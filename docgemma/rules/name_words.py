"""Word lists that tell a patient's name from other capitalised words."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TITLES = _words("mr mrs ms miss mx mister señor señora sr sra herr frau monsieur madame mme sir lady")
CLINICIANS = _words("dr doctor prof professor nurse")
PARTICLES = _words(
    "de del della di da das dos du la le las los van von der den ter ten bin bint ibn al el abu wa y e o"
)
SUFFIXES = _words("jr sr ii iii iv")
EPONYMS = _words(
    """
    addison alzheimer barrett behcet behçet bell brugada burkitt chagas creutzfeldt crohn cushing down ebola ehlers
    epstein ewing fabry gaucher gilbert goodpasture graves guillain hashimoto hodgkin hodgkins huntington kaposi
    kawasaki klinefelter lewy lou lyme lynch marfan ménière meniere paget parkinson parkinsons peyronie pompe prader
    raynaud reye sjogren sjögren stevens still takayasu tourette turner wegener wernicke whipple wilms zollinger
    glasgow
    """
)
EPONYM_HEADS = _words(
    """
    agenitalism angina arthritis barre body cell chorea criteria danlos disease diseases fever gehrig grading
    johnson leukemia lymphoma lymphomas maneuver neuropathy oesophagus esophagus palsy phenomenon reaction sarcoma
    scale score sign stage staging syndrome syndromes test thyroiditis tumor tumour virus willi
    """
)
PLACES_FOLLOW = _words("in at near from around")
# a possessive before one of these is a person: "Garcia's meds"
RECORD_WORDS = _words(
    """
    allergies allergy bloods chart charts conditions diagnoses diagnosis file history lab labs medication
    medications medicines meds notes prescriptions problems profile record records results summary vitals drugs age
    dob creatinine egfr a1c hba1c potassium sodium inr
    weight bmi ecg bp blood treatment note
    """
)
# a capitalised word before one of these is a topic: "Find Keytruda trials"
TOPIC_WORDS = _words(
    """
    contraindications dosage dose dosing evidence guideline guidelines indications interaction interactions label
    literature monograph papers prevalence publications research review reviews safety side study studies tablets
    therapy treatment trial trials warning warnings articles
    """
)
NOT_NAMES = (
    _words(
        """
    a about above across active acute add added address adult adverse advise after again against age agent all
    allergic allergies allergy already also am among an analyse analyze and another any anyone anything are as ask
    assess at attach attached available back be because been before begin being below best between bid blood body
    both boxed brief but by call can care case cases cause cell change chart charts check checked child children
    chronic clinical clinician compare complete condition conditions consider could create current currently daily
    data database date day days dear death describe details develop develops did discuss do document documented does
    doing done dose dosing drug drugs due during each early effect effects efficacy ehr either emergency emr enter
    evaluate every evidence explain fda female file fill find finding findings first five follow following for found
    four from full further general get give given go good greetings had has have he health hello help her here hers
    hi high him his history hospital how human i id if image immediately important in include including info
    information inpatient instead into is issue it its keep kindly know known lab label labs last late later latest
    let like list literature local locate log long look looking low major make male man management many may me mean
    medical medication medications medicine medicines medline meds might mild moderate month monitor more morning
    most mother much must my name named need needs new next night no none normal not note notes now nurse of off ok
    okay called old on once one only onto open option options or oral order ordered other our out outpatient over own
    page pain past patient patients pediatric per person plan please positive possible prescribe prescribed prescribing
    prescription previous prior problem procedure progress prescriptions profile provide pubmed pull put quick rate
    read recent recheck recommend record records recruiting refill regarding registered remove renal report request
    research result results retrieve review reviewed risk room run safe safety same save say scan search second see send
    series serious severe she should show since sir six so some someone start started status step stop studies study
    such suggest summarise summarize summary support sure switch symptoms system systematic tablet take taken takes
    taking tell ten test than thank thanks that the their them then there these they think third this those three
    through time to today together told tolerate tolerates tomorrow tonight too trial trials treat treatment try two
    type under unit until up update upload urgent us use used using value verify very via view vital vitals wait
    want wants warning warnings was we week weeks well were what when where whether which while who whom whose why
    will with within without woman would write year years yes yesterday yet you your interaction interactions
    combine combining mixing contraindicated contraindications dosage frequency substance reaction allergen
    prescriber document documenting ongoing terminated completed phase randomized randomised controlled placebo
    protocol eligibility monday tuesday wednesday thursday friday saturday sunday january february march april june
    july august september october november december
    """
    )
    - _words("april june august")  # given names too
    | _words(
        """
    abdomen abdominal adrenal anemia ankle anterior anxiety aortic arm arterial arthritis artery asthma atrial
    bacterial bipolar bladder bone bowel brain breast bronchial cancer cardiac cardiology cervical chest cirrhosis
    colon colorectal congestive consult coronary cough covid depression dermatology diabetes diabetic disease
    diseases disorder ear edema elbow endocrine eye failure fever fibrillation foot fracture gastric gout hand head
    headache heart hepatic hepatitis hip hypertension infection infectious influenza injury insufficiency intestinal
    joint kidney knee leg leukemia liver lobe lower lung lupus lymph lymphoma malaria melanoma mental metastatic
    migraine multiple muscle nausea neck neuro neurology obesity oncology ophthalmology ovarian pancreatic pathology
    pediatrics peptic pneumonia posterior pregnancy pressure primary prostate psychiatry pulmonary radiology rash
    rectal refractory relapsed respiratory rheumatoid sclerosis secondary sepsis shoulder sinus skin spinal spine
    stage stroke surgery syndrome systemic thoracic throat thrombosis thyroid tuberculosis tumor tumour ulcer
    ultrasound upper urinary uterine vaccine valve vascular vein venous ventricular viral vision vomiting wrist xray
    x-ray ct mri ecg ekg eeg discharge admission penicillin antibiotic antibiotics
    """
    )
    | _words(
        """
    america american australia boston britain california canada center centre china city clinic clinicaltrials
    cochrane college county embase england europe european france germany google hopkins hospital hospitals india
    institute international italy japan kingdom lancet london mayo medplum medwatch national nejm new nhs openfda
    rxnorm spain state states united university york doc docgemma gemma medgemma assistant street avenue road
    america's
    """
    )
    | _words(
        """
    accounts appears arrives arrived came comes complains complained denies describes died feels got gets lives
    presents presented presenting receives received reports reported responds says shows suffers suffering develops
    developed admitted discharged aged born weighs weighing living visiting diagnosed experiencing undergoing
    scheduled seen age dob mrn ssn aka his/her regimen intake compliance adherence counseling counselling handout
    leaflet leaflets education portal population populations safety-check outcome outcomes survival perspective
    experience cohort father brother sister son daughter wife husband mom dad parent parents family friend doctor dr
    prof professor hey howdy dear regards sincerely interesting great nice sorry ever never always sometimes
    something nothing everything thing things pls plz thx ta cheers asap re rx
    really just even still only maybe perhaps rather quite almost enough
    """
    )
)
