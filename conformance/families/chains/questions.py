"""Questions about chains of casts: how people spell them, and the lines that answer them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from conformance.families.chains.explanation import (
    ask_roads,
    chain_table_lines,
    explain_chain,
    explain_chain_lines,
    strictest_chain,
)
from conformance.families.family import WITH_SCALES, Drive
from oracles.protocol import chain_roads_of
from oracles.registry import Backend
from specs.chains import MOST_DTYPES, Chain, chain_if_any, chain_named, has_chains, is_chain
from specs.errors import CastigateError
from specs.formats import dtype_spelled
from specs.loader import yardsticks
from specs.questions import documents_always_asked, documents_called, is_document, parts_of


class ChainQuestion(NamedTuple):
    """The chains that a question is about, one for each document, and its inputs as texts.

    ``is_open`` says that the question names no document, or that several documents have the chain.
    """

    chains: list[Chain]
    inputs: list[str]
    is_open: bool = False


def read_chains(words: Sequence[str]) -> ChainQuestion | None:
    """Read a question about a chain of casts; None if ``is_chain`` is false of its path.

    Raise CastigateError as ``parts_of`` does, or if a dtype is unknown, the chain is too long, or
    no document that the question may mean has it.
    """
    document, path, inputs = parts_of(words)
    if not is_chain(path):
        return None
    asked = "/".join(path)
    if is_document(document) or document.partition(":")[0] in yardsticks():
        return ChainQuestion([chain_named(f"{document}/{asked}")], inputs)
    dtypes = [dtype_spelled(part) for part in path if ":" not in part]
    if len(dtypes) > MOST_DTYPES:
        raise CastigateError(
            f"the chain `{asked[:200]}` has {len(dtypes)} dtypes; a chain has {MOST_DTYPES} at most"
        )
    called = documents_called(document) if document else documents_always_asked()
    names = [*filter(has_chains, called)] or called
    versions = "".join(document.partition(":")[1:])
    tried = [chain_if_any(f"{name}{versions}/{asked}") for name in names if has_chains(name)]
    chains = [found for found in tried if isinstance(found, Chain)]
    if not chains:
        none = f"none of {', '.join(names)}" if document else "no document"
        raise CastigateError(
            f"{none} has all casts of the chain {asked}; castigate specs lists the documents"
        )
    return ChainQuestion(chains, inputs, is_open=len(chains) > 1 or not document)


def asks(words: Sequence[str], scale: str | None, zero: str | None) -> partial[Iterator[str]]:
    """Read a question about chains; return the function that yields the lines that answer it.

    The function takes a ``Drive``, backends, and whether to write JSON. Raise CastigateError for a
    scale, a zero point, a question without inputs, or what ``read_chains`` refuses.
    """
    asked = read_chains(words)
    assert asked is not None
    if scale is not None or zero is not None:
        raise CastigateError(f"{WITH_SCALES}, not chains")
    if not asked.inputs:
        name, source = shlex.join(words), asked.chains[0].source
        raise CastigateError(
            f"`{name}` needs inputs of {source}; write castigate explain {name} INPUT…"
        )
    return partial(_lines, asked)


def _lines(
    asked: ChainQuestion, drive: Drive, backends: Sequence[Backend], as_json: bool
) -> Iterator[str]:
    """Yield lines with what chains allow for inputs, and what backends answer on each road."""
    chains, inputs, is_open = asked
    found = [[_explained(each, text, drive, backends) for each in chains] for text in inputs]
    for of_input in found:
        if as_json:
            yield from (json.dumps(each, ensure_ascii=False) for each in of_input)
        elif is_open:
            yield from chain_table_lines(chains, of_input)
        else:
            for chain, explained in zip(chains, of_input, strict=True):
                yield from explain_chain_lines(chain, explained)
    if is_open and not as_json:
        strictest = strictest_chain(chains, found[0])
        named = [f"--backend={each.name}" for each in backends]
        command = shlex.join(["castigate", "explain", strictest.id, inputs[0], *named])
        yield f"the steps: {command}"


def _explained(
    chain: Chain, word: str, drive: Drive, backends: Sequence[Backend]
) -> dict[str, Any]:
    """Return the explanation of an input, with each backend's answers by road or why none came."""
    told = explain_chain(chain, word)
    answers = {}
    for each in backends:
        roads = chain_roads_of(each.oracle)
        if roads:
            answers[each.name] = drive(ask_roads(chain, told, roads), each)
        else:
            answers[each.name] = {"unsupported": f"{each.name} makes no chains of casts"}
    return told | {"answers": answers}
