"""Small files in the shapes of the public bulk downloads. Every record is invented."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

from docgemma.knowledge.sources import open_snapshot
from docgemma.paths import data_file
from docgemma.settings import Settings

KINDS = ("drugs", "interactions", "literature", "trials")
SHIPPED = {"warfarin", "ibuprofen", "metformin", "dofetilide", "acetaminophen", "sulfamethoxazole and trimethoprim"}


def info(home: Path) -> dict[str, Any]:
    """What the snapshot of a data home says of itself."""
    return open_snapshot(Settings(home=home)).info()


def small_data(folder: Path) -> Path:
    """A data folder with a few of the shipped records, so that a build is quick."""
    (folder / "knowledge").mkdir(parents=True)
    for part in ("clinical", "edge"):
        (folder / part).symlink_to(data_file(part).absolute())
    (folder / "knowledge" / "kit").symlink_to(data_file("knowledge", "kit").absolute())
    for kind in KINDS:
        head, *lines = Path(data_file("knowledge", f"{kind}.jsonl")).read_text(encoding="utf-8").splitlines()
        lines = [line for line in lines if json.loads(line)["name"] in SHIPPED] if kind == "drugs" else lines[:6]
        if kind == "interactions":
            lines = [json.dumps({"drugs": ["ibuprofen", "warfarin"], "severity": "major", "mechanism": "bleeding",
                                 "management": "avoid", "reference": "the labels"})]  # fmt: skip
        (folder / "knowledge" / f"{kind}.jsonl").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    for kind in ("conditions", "doses"):
        lines = Path(data_file("knowledge", f"{kind}.jsonl")).read_text(encoding="utf-8").splitlines()
        lines = [line for line in lines if json.loads(line)["drug"] in SHIPPED]
        (folder / "knowledge" / f"{kind}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for path in (*data_file("knowledge").glob("*.yaml"), data_file("knowledge", "drug_names.tsv")):
        (folder / "knowledge" / path.name).write_bytes(path.read_bytes())
    return folder


def label(drug: str = "zorvatine", date: str = "20250301", key: str = "", **sections: Any) -> dict[str, Any]:
    """One label. `drug` may be several, "a, b"; brand, classes and route as `brand=`, `classes=` and `route=`."""
    route = sections.pop("route", "ORAL")
    brand, classes = sections.pop("brand", f"{drug.split(', ')[0]} brand".title()), sections.pop("classes", [])
    parts = [part.upper() for part in drug.split(", ")]
    return {
        "id": f"id-{key or drug}-{date}",
        "set_id": f"set-{key or f'{drug}-{date}'}",
        "effective_time": date,
        "version": "1",
        "openfda": {"generic_name": [drug.upper()], "brand_name": [brand], "substance_name": parts,
                    "pharm_class_epc": classes, "route": [route]},
        **{name: [text] for name, text in sections.items()},
    }  # fmt: skip


def page(labels: list[Any], updated: str | None = "2026-02-03") -> bytes:
    meta = {"last_updated": updated, "license": "CC0"} if updated else {}
    return json.dumps({"meta": meta, "results": labels}, indent=1).encode()


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def label_zip(folder: Path, labels: list[Any], updated: str | None = "2026-02-03", part: int = 1) -> Path:
    name = f"drug-label-{part:04}-of-0013.json"
    return zipped(folder / f"{name}.zip", {name: page(labels, updated)})


def study(
    number: int = 1, condition: str = "Gout", version: str | None = "2026-01-05", **status: str
) -> dict[str, Any]:
    protocol = {
        "identificationModule": {"nctId": f"NCT-INVENTED-{number}", "briefTitle": f"A study of {condition}"},
        "statusModule": {"overallStatus": "RECRUITING", "lastUpdatePostDateStruct": {"date": "2025-12-01"}} | status,
        "conditionsModule": {"conditions": [condition], "keywords": ["tophus"]},
        "designModule": {"studyType": "INTERVENTIONAL", "phases": ["PHASE3"]},
    }
    derived = {"miscInfoModule": {"versionHolder": version}} if version else {}
    return {"protocolSection": protocol, "derivedSection": derived, "hasResults": False}


def pubmed(
    number: int = 1, title: str = "Gout in <i>adults</i>", kind: str = "Journal Article", year: str = "2024"
) -> str:
    return f"""<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="1">INVENTED{number}</PMID>
<DateRevised><Year>2025</Year><Month>7</Month><Day>9</Day></DateRevised>
<Article><Journal><JournalIssue><PubDate><MedlineDate>{year} Nov-Dec</MedlineDate></PubDate></JournalIssue>
<Title>Invented Journal</Title></Journal><ArticleTitle>{title}</ArticleTitle>
<Abstract><AbstractText Label="METHODS">We asked CO<sub>2</sub> &amp; more.</AbstractText>
<AbstractText>Colchicine helped.</AbstractText></Abstract>
<AuthorList><Author><LastName>Testa</LastName><Initials>AB</Initials></Author>
<Author><CollectiveName>The Invented Group</CollectiveName></Author></AuthorList>
<PublicationTypeList><PublicationType>{kind}</PublicationType></PublicationTypeList></Article>
<MeshHeadingList><MeshHeading><DescriptorName>Podagra</DescriptorName></MeshHeading></MeshHeadingList>
</MedlineCitation></PubmedArticle>"""


def pubmed_file(path: Path, articles: list[str], more: str = "") -> Path:
    text = f'<?xml version="1.0"?>\n<PubmedArticleSet>{"".join(articles)}{more}</PubmedArticleSet>'
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def europepmc(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"id": f"INVENTED{number}", "source": "MED", "title": "Asthma at altitude", "pubYear": "2023",
            "journalInfo": {"journal": {"title": "Invented Journal"}}, "abstractText": "<h4>Aim</h4>To breathe.",
            "dateOfRevision": "2025-02-02"} | fields  # fmt: skip
