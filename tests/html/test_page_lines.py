"""The pages of rules: each rule with its lines, each line with its rules, and all links."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest

from reports.html.document_page import cited_lines, document_page_file, rule_row_file
from reports.html.site import write_site
from reports.judgement import Judgement
from specs.cases import Case
from specs.coverage import coverage, encoders
from specs.editions import edition
from specs.loader import document_named, documents
from specs.model.page_lines import cite_lines
from tests.html.planted import Elements, data, planted_run, violated

DOCUMENTS = ("onnx-cast", "pypto-cast")
DRAWN_BY_SCRIPT = ("case.html", "cases.html", "pair.html", "document-")
"""Pages whose script interprets the fragment, so that it is not an element id."""


def plant(backend: str, case: Case) -> Judgement | None:
    """Plant broken rules that the documents really have."""
    if case.source != "float32" or case.target != "int32" or backend == "ort":
        return None
    rule = "clamp" if case.document == "pypto-cast" else "float-to-integer"
    return violated(backend, case.id, rule=rule)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return planted_run(tmp_path_factory.mktemp("runs") / "run", plant)


@pytest.fixture(scope="module")
def site(run: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sites") / "site"
    write_site([run], folder)
    return folder


def ids_of(page: Path) -> set[str | None]:
    return {attributes.get("id") for _, attributes in Elements(page.read_text()).found}


def test_every_link_has_a_target(site: Path) -> None:
    known = {page.name: ids_of(page) for page in site.glob("*.html")}
    for page in site.glob("*.html"):
        for tag, attributes in Elements(page.read_text()).found:
            if tag == "a":
                name, _, part = unquote(attributes["href"] or "").partition("#")
                assert not name or name in known, (page.name, attributes)
                if part and not name.startswith(DRAWN_BY_SCRIPT):
                    assert part in known[name or page.name], (page.name, attributes)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_page_has_every_rule_and_every_line(site: Path, name: str) -> None:
    found = coverage(document_named(name))
    assert found is not None
    page = site / document_page_file(name)
    ids = ids_of(page)
    assert {each.rule for each in encoders(document_named(name)) if each.clause} <= ids
    shown = [part for part in ids if part and part.startswith("L") and part[1:].isdigit()]
    texts = set(found.page.texts(found.page.whole))
    assert {int(part[1:]) for part in shown} <= texts
    text = Elements(page.read_text()).text
    assert "not covered" not in text
    for reason in found.reasons.values():
        assert f"not encoded: {reason}" in text


def test_rules_link_to_the_cases_that_break_them_with_their_count(run: str, site: Path) -> None:
    rows = pq.read_table(f"{run}/cases.parquet").to_pylist()
    counts = Counter(
        (row["document"], row["backend"], each["rule"]) for row in rows for each in row["broken"]
    )
    for name, rule in (("pypto-cast", "clamp"), ("onnx-cast", "float-to-integer")):
        page = (site / document_page_file(name)).read_text()
        assert counts[name, "torch", rule] == counts[name, "vendor:fast", rule] > 0
        for backend in ("torch", "vendor%3Afast"):
            href = f"cases.html#backend={backend}&amp;rule={name}%20{rule}"
            count = counts[name, unquote(backend), rule]
            assert f'<a href="{href}">{count:,}</a>' in page
            assert f'<a href="{href}">{count}</a>' in (site / "index.html").read_text()
        breaking = {row["case"] for row in rows if rule in [each["rule"] for each in row["broken"]]}
        assert any(f'<a href="case.html#{case}">' in page for case in breaking)
        assert f'rule={name}%20{rule}">0' not in page
        assert "backend=ort" not in page


def test_index_has_every_broken_rule_of_every_case(run: str, site: Path) -> None:
    index = data(site, "index")
    names = list(index["dtypes"])
    found = set()
    for version in index["versions"]:
        triples = list(zip(*[iter(version["cases"])] * 3, strict=True))
        for backend, broken in zip(index["backends"], version["broken"], strict=True):
            for rule, numbers in broken.items():
                for number in numbers:
                    source, target, mode = triples[number]
                    pair = f"{names[source]}/{names[target]}/{version['modes'][mode]}".rstrip("/")
                    case = f"{version['document']}:{version['version']}/{pair}"
                    found.add((backend["name"], case, rule))
    rows = pq.read_table(f"{run}/cases.parquet").to_pylist()
    assert found == {
        (row["backend"], row["case"], each["rule"]) for row in rows for each in row["broken"]
    }


@pytest.mark.parametrize("name", DOCUMENTS)
def test_case_details_have_the_lines_of_each_clause(site: Path, name: str) -> None:
    found = data(site, f"{name}.float32")
    assert found["page"] == document_page_file(name) == f"document-{name}.html"
    cited_by_clause = {
        (rule, clause): lines
        for rule, clauses in found["lines"].items()
        for clause, lines in clauses.items()
    }
    assert cited_by_clause == {
        (each.rule, each.clause): cite_lines(each.spans or ())
        for each in encoders(document_named(name))
        if each.clause is not None
    }
    assert cited_by_clause


def test_open_points_cite_the_lines_of_conflicting_rules(site: Path) -> None:
    page = (site / "open.html").read_text()
    for name in DOCUMENTS:
        for rule, entry in documents()[name].entry.rules.items():
            for _ in entry.conflict:
                lines = cited_lines(name, rule, entry.clause)
                assert f"{lines}</span>" in page
                assert (
                    f'<a href="{document_page_file(name)}#{rule}"><code>{rule}</code></a>' in page
                )


def test_a_rule_that_cites_no_lines_is_listed(tmp_path: Path) -> None:
    assert rule_row_file("onnx-cast", "number-to-float4") == "document-onnx-cast.html"
    assert rule_row_file("onnx-cast", "no-such-rule") == rule_row_file("no-document", "a") == ""
    assert cited_lines("onnx-cast", "number-to-float4", "ONNX's technical page on float4") == ""
    cases = list(edition(documents()["onnx-cast"], "25").cases())[:5]
    write_site([planted_run(tmp_path / "run", of=cases)], tmp_path / "site")
    page = tmp_path / "site" / document_page_file("onnx-cast")
    assert {"number-to-float4", "verdicts", "rules"} <= ids_of(page)
