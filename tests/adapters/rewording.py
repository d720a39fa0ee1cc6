"""Make a framework's errors say something else: what an error is must not depend on its words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from oracles.protocol import Unsupported

Call = Callable[..., Any]
WORDS = "other words"


@dataclass(frozen=True)
class Refusal:
    """A call that a framework refuses, one that it answers, and the place where it refuses.

    ``place`` returns the owner and the name of the framework's callable. If ``is_maker``, that
    callable returns the one that refuses. ``failures`` returns errors that tell of no missing
    dtype or operator when they are raised there, though they are of the classes of refusals, or
    have their usual words.
    """

    make: Callable[[], Any]
    refused: Callable[[Any], Any]
    answered: Callable[[Any], Any]
    place: Callable[[Any], tuple[Any, str]]
    failures: Callable[[Any], Sequence[Exception]]
    is_maker: bool = False

    def check(self) -> None:
        """Assert that class and place tell a refusal from another error, and words do not."""
        with self._changed(_reworded) as oracle, pytest.raises(Unsupported):
            self.refused(oracle)
        usual = self._usual_words()
        for call in (self.refused, self.answered):
            with self._changed(_failing(Unrelated(usual))) as oracle, pytest.raises(Unrelated):
                call(oracle)
        for number, failure in enumerate(self.failures(self.make())):
            for times in (1, None):
                # Errors of an earlier oracle have a traceback, so each attempt makes its own.
                own = self.failures(self.make())[number]
                with self._changed(_failing(own, times)) as oracle, pytest.raises(type(failure)):
                    self.answered(oracle)

    def _usual_words(self) -> str:
        with pytest.raises(Unsupported) as caught:
            self.refused(self.make())
        return str(caught.value.__context__ or caught.value)

    @contextmanager
    def _changed(self, change: Callable[[Call], Call]) -> Iterator[Any]:
        oracle = self.make()
        owner, name = self.place(oracle)
        real = getattr(owner, name)

        def maker(*given: Any, **named: Any) -> Any:
            return change(real(*given, **named))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, maker if self.is_maker else change(real))
            yield oracle


class Unrelated(Exception):
    """An error of a class with which no framework refuses anything."""


def _reworded(call: Call) -> Call:
    def changed(*given: Any, **named: Any) -> Any:
        try:
            return call(*given, **named)
        except Exception as error:
            other = type(error).__new__(type(error))
            other.args = (WORDS,)
            vars(other).update(
                {name: WORDS for name, value in vars(error).items() if isinstance(value, str)}
            )
            raise other from None

    return changed


def _failing(error: Exception, times: int | None = None) -> Callable[[Call], Call]:
    """Return what makes a callable raise an error, the first few times or each time."""
    left = [times]

    def change(call: Call) -> Call:
        def changed(*given: Any, **named: Any) -> Any:
            if left[0] == 0:
                return call(*given, **named)
            left[0] = None if left[0] is None else left[0] - 1
            raise error

        return changed

    return change
