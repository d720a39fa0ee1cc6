"""An oracle whose backend lives in another process, and may do there whatever it likes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from oracles.isolation.backend_supervisor import Served
from oracles.isolation.crash_bisect import Survival
from oracles.isolation.launch_config import Home
from oracles.isolation.message_codec import call_words, case_words
from oracles.isolation.python_client import PythonTongue
from oracles.isolation.remote_errors import Crashed, error_named
from oracles.protocol import Bits, Bound, Returned
from specs.calls import Call
from specs.cases import Case


class Isolated:
    """Asks a backend in a process of its own, and a fresh one where that has died.

    Beside ``cast`` it has those of an oracle's optional methods that the backend has. ``beat`` is
    called after every answer, so that whoever waits for many can show that they come.
    """

    claims: tuple[str, ...]
    bitcast: Callable[[Case, Bits], Bits]
    bitcast_shares_memory: Callable[[Case, Bits], bool]
    call: Callable[[Case, Call, Mapping[str, Bits]], Returned]
    road: Callable[[Case], str]
    bind: Callable[[Case, Bits], Bound]
    identity: Callable[[str, Bits], Bits]
    reproduce: Callable[[Case, Bits], str]

    def __init__(self, backend: str, home: Home, beat: Callable[[], None] = lambda: None) -> None:
        self._served = Served(backend, PythonTongue(backend, home), beat)
        self._seconds = home.seconds
        self._survived = Survival(self.close, home.seconds).of
        hello = self._served.hello
        self.name, self.version = hello.name, hello.version
        if hello.claims is not None:
            self.claims = hello.claims
        self.compiles_shapes = hello.compiles_shapes
        self.row_limits = hello.row_limits
        for method in hello.offers:
            setattr(self, method, getattr(self, f"_{method}"))

    def close(self) -> None:
        """End the process; asked again, there is another."""
        self._served.close()

    def cast(self, case: Case, bits: Bits) -> Bits:
        """The backend's answer, its error, or ``Crashed`` with the inputs that end its process."""
        answer: Bits = self._survived(partial(self._ask, "cast", case), bits)
        return answer

    def cast_each(self, case: Case, many: Sequence[Bits]) -> list[Bits]:
        """The answers to many tensors in one message, up to the first that is none."""
        question = {"ask": "casts", "case": case_words(case)}
        arrays = {str(place): bits for place, bits in enumerate(many)}
        try:
            answers: dict[str, Bits] = self._served.ask(question, arrays, self._seconds)
        except Crashed:
            return []  # whoever goes on one by one meets it again
        return list(answers.values())

    def _bind(self, case: Case, bits: Bits) -> Bound:
        self._survived(partial(self._ask, "bind", case), bits)
        return partial(self._survived, partial(self._ask, "bound", case), bits)

    def _bitcast(self, case: Case, bits: Bits) -> Bits:
        answer: Bits = self._ask("bitcast", case, bits, self._seconds)
        return answer

    def _bitcast_shares_memory(self, case: Case, bits: Bits) -> bool:
        return bool(self._ask("bitcast_shares_memory", case, bits, self._seconds))

    def _call(self, case: Case, call: Call, bits: Mapping[str, Bits]) -> Returned:
        question = {"ask": "call", "case": case_words(case), "call": call_words(call)}

        def ask(part: Bits, seconds: float) -> Any:
            return self._served.ask(question, {name: part}, seconds)

        # The members of a layer are of one length: none of them can be asked about in parts.
        if len(bits) == 1:
            [(name, given)] = bits.items()
            returned: Returned = self._survived(ask, given)
        else:
            returned = self._served.ask(question, bits, self._seconds)
        return returned

    def _road(self, case: Case) -> str:
        question = {"ask": "road", "case": case_words(case)}
        with _end_is_an_error():
            return str(self._served.ask(question, {}, self._seconds))

    def _reproduce(self, case: Case, bits: Bits) -> str:
        with _end_is_an_error():
            return str(self._ask("reproduce", case, bits, self._seconds))

    def _identity(self, dtype: str, bits: Bits) -> Bits:
        question = {"ask": "identity", "dtype": dtype}
        with _end_is_an_error():
            same: Bits = self._served.ask(question, {"": bits}, self._seconds)
        return same

    def _ask(self, ask: str, case: Case, bits: Bits, seconds: float) -> Any:
        question = {"ask": ask, "case": case_words(case)}
        return self._served.ask(question, {"": bits}, seconds)


@contextmanager
def _end_is_an_error() -> Iterator[None]:
    """A death where nothing is judged by it: an error like others."""
    try:
        yield
    except Crashed as death:
        raise error_named(("Crashed", "Exception"), str(death)) from None
