"""The contract of adapters that are folders: nothing of them stands anywhere else.

What such an adapter casts is asked of itself; what comes out is compared with answers by hand.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracles.claims import parse_claim
from oracles.protocol import NotInstalled, Unsupported, WithBind
from oracles.registry import (
    BUILTINS,
    Backend,
    Builtin,
    installed,
    installed_version,
    requirements_in,
)
from oracles.smoke_check import smoke
from reports.ledger import folder_of
from reports.ledger.ledger_file import read_ledger
from specs.formats import formats
from tests.adapters.common import (
    assert_prints_the_answers,
    assert_same,
    bits_of,
    kept_environment,
    layouts,
    onnx_case,
    patterns_of,
    quietly,
)
from tests.adapters.contract_values import KNOWN, MORE_KNOWN, KnownValues

FOLDERS = {name: builtin for name, builtin in BUILTINS.items() if builtin.has_folder}
MOST_LINES = 120
SHAPES = [(), (1,), (2, 3), (2, 1, 5), (0,), (2, 0, 3)]


@cache
def adapter_of(name: str) -> Any:
    builtin = FOLDERS[name]
    return getattr(importlib.import_module(builtin.module), builtin.attribute)


@pytest.fixture(scope="module")
def environment() -> Iterator[None]:
    with kept_environment():
        yield


@pytest.fixture(params=FOLDERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def oracle(name: str, environment: None) -> Any:
    try:
        return quietly(adapter_of(name))
    except NotInstalled as missing:
        pytest.skip(str(missing))


def folder(builtin: Builtin) -> Path:
    path = importlib.import_module(builtin.module).__file__
    assert path is not None
    return Path(path).parent


def castable(oracle: Any) -> Iterator[KnownValues]:
    """Yield the answers by hand of casts that the adapter does not decline."""
    for row in (*KNOWN, *MORE_KNOWN):
        with contextlib.suppress(Unsupported):
            oracle.road(onnx_case(row.source, row.target))
            yield row


def test_an_adapter_is_short_and_says_how_to_install_its_package(name: str) -> None:
    builtin = FOLDERS[name]
    for file in folder(builtin).glob("*.py"):
        assert len(file.read_text().splitlines()) <= MOST_LINES, file
    assert requirements_in(folder(builtin)) == builtin.requirements
    assert all(re.match(r"[A-Za-z0-9]", each) for each in builtin.requirements)


def test_a_missing_package_names_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = FOLDERS[name].package
    if package is None:
        pytest.skip(f"{name} drives a program")
    with kept_environment(), monkeypatch.context() as patch:
        patch.setitem(sys.modules, package, None)
        wanted = re.escape(" ".join(f"'{each}'" for each in FOLDERS[name].requirements))
        with pytest.raises(NotInstalled, match=f"pip install {wanted}$"):
            adapter_of(name)()


@pytest.mark.parametrize("name", [name for name, each in FOLDERS.items() if each.npm])
def test_a_package_of_npm_is_found_where_node_finds_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(FOLDERS[name].package or "")
    npm = FOLDERS[name].npm or ""
    below = tmp_path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    monkeypatch.delenv("NODE_PATH", raising=False)
    with pytest.raises(NotInstalled, match=f"^{npm} is missing: npm install {npm}$"):
        adapter_of(name)()
    assert name not in installed()
    package = tmp_path / "node_modules" / npm
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"version": "1.2.3"}')
    assert name in installed()
    assert installed_version(name) == "1.2.3"
    monkeypatch.chdir("/")
    assert installed_version(name) == ""
    monkeypatch.setenv("NODE_PATH", str(package.parent))
    assert installed_version(name) == "1.2.3"


def test_ledgers_lie_in_the_folder_and_can_be_read(name: str) -> None:
    assert folder_of(name) == folder(FOLDERS[name])
    for path in folder_of(name).glob("*.yaml"):
        assert read_ledger(path).backend.partition(":")[0] == name


def test_claims_and_variants_are_known(name: str, oracle: Any) -> None:
    assert all(parse_claim(claim) for claim in oracle.claims)
    with pytest.raises(Unsupported, match="no variant `nonsense`"):
        type(oracle)("nonsense")


def test_bits_go_in_and_out_unchanged(name: str, oracle: Any) -> None:
    assert [fault for _, fault in smoke(Backend(name, oracle)) if fault] == []


def test_known_answers_come_out_in_any_shape_and_layout(name: str, oracle: Any) -> None:
    rows = [*castable(oracle)]
    assert rows
    for row in rows:
        case, bits = onnx_case(row.source, row.target), bits_of(row.source, [*row.answers])
        answers = oracle.cast(case, bits)
        assert patterns_of(answers) == [*row.answers.values()], row
        flat = np.resize(bits, 12)
        for view in (*(np.resize(flat, shape) for shape in SHAPES), *layouts(flat).values()):
            expected = [row.answers[pattern] for pattern in patterns_of(view.ravel())]
            assert_same(oracle.cast(case, view), bits_of(row.target, expected).reshape(view.shape))


def test_answers_have_memory_of_their_own(name: str, oracle: Any) -> None:
    row = next(castable(oracle))
    case, bits = onnx_case(row.source, row.target), bits_of(row.source, [*row.answers])
    before = bits.copy()
    answer, copy = oracle.cast(case, bits), oracle.identity(row.source, bits)
    bits[:] = bits[::-1].copy()
    assert patterns_of(answer) == [*row.answers.values()]
    assert_same(copy, before)


def test_what_is_declined_is_declined_everywhere(name: str, oracle: Any) -> None:
    declined = [dtype for dtype in formats() if not _casts(oracle, dtype)]
    cases = [onnx_case(dtype, "float32") for dtype in declined]
    cases.append(onnx_case("float32", "float32", unheard_of="1"))
    for case in cases:
        bits = bits_of(case.source, ["1"] if case.source == "string" else [0])
        with pytest.raises(Unsupported):
            oracle.cast(case, bits)
        with pytest.raises(Unsupported):
            oracle.reproduce(case, bits)


def _casts(oracle: Any, dtype: str) -> bool:
    try:
        oracle.road(onnx_case(dtype, "float32"))
    except Unsupported:
        return False
    return True


def test_a_script_runs_alone_and_prints_the_answers(name: str, oracle: Any) -> None:
    row = next(row for row in castable(oracle) if row.source == "float32")
    assert_prints_the_answers(oracle, onnx_case(row.source, row.target), [*row.answers])


def test_a_bound_call_follows_its_buffer(name: str, oracle: Any) -> None:
    if not isinstance(oracle, WithBind):
        pytest.skip(f"{name} offers no bound calls")
    row = next(castable(oracle))
    inputs = bits_of(row.source, [*row.answers])
    bits = inputs.copy()
    call = oracle.bind(onnx_case(row.source, row.target), bits)
    assert patterns_of(call()) == [*row.answers.values()]
    bits[:] = inputs[::-1]
    assert patterns_of(call()) == [*row.answers.values()][::-1]
