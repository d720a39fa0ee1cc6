"""``castigate.portable``: where backends agree, as a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.api.results import Printable
from conformance.commands.options import pair_named
from conformance.extras.portable.pairs import PortablePair, pair_lines
from conformance.extras.portable.questions import PairQuestion, of_backends
from conformance.pair_answers import LostBackendError
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.backend.loading import launch_configs, load_all
from specs.errors import CastigateError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class PortableAgreement(Printable):
    """Holds where backends agree on a pair; it is true if they agree on every input asked."""

    pair: PortablePair

    def __bool__(self) -> bool:
        return self.pair.asked > 0 and self.pair.agreeing == self.pair.asked

    def lines(self) -> Iterator[str]:
        """Yield the lines that ``castigate portable`` prints."""
        yield from pair_lines(self.pair)

    def to_arrow(self) -> pa.Table:
        """Return a table of the ranges of values on which all agree."""
        import pyarrow as pa

        names = ("low", "high", "words")
        rows = [{name: getattr(each, name) for name in names} for each in self.pair.ranges]
        return pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in names]))


def agreement(
    backends: Sequence[str], pair: str, selected: Sequence[str], every: bool
) -> PortableAgreement:
    """Ask backends about a pair, such as ``bf16/e4m3fn``, and return where they agree.

    ``selected`` are documents that must allow the answers. Raise CastigateError if a backend cannot
    be loaded or fails, for an unknown document or pair, and if there is nothing to compare.
    """
    if len(backends) < 2 and not selected:
        raise CastigateError(
            "portable compares answers; name two backends, or one and documents=[…]"
        )
    question = PairQuestion(*pair_named(pair), tuple(selected), whole=every)
    with ExitStack() as stack:
        loaded = load_all(stack, launch_configs(backends, (), DEFAULT_TIMEOUT))
        try:
            return PortableAgreement(of_backends(loaded, question, lambda _: None).pair)
        except LostBackendError as lost:
            raise CastigateError(f"{question.name}: {lost}; leave it out") from None
