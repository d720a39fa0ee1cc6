"""Reports crashes that no judgement shows: a process died, then answered the same request.

Otherwise a backend that dies now and then would go unnoticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reports.judgement import Judgement
from reports.problems import Died
from specs.plain_text import plain_line


def with_repeated_crashes(
    judgements: Sequence[Judgement], deaths: Sequence[str]
) -> list[Judgement]:
    """Add the deaths during a task to its first check, or without one to its first case.

    Nothing is added if a judgement says already that the process died. Requests of all cases of a
    pair travel together, so that it is not known which of them the process died of.
    """
    found = list(judgements)
    is_said = any(isinstance(each, Died) for one in found for each in one.problems)
    if deaths and found and not is_said:
        at = next((at for at, each in enumerate(found) if each.check), 0)
        times = "once" if len(deaths) == 1 else f"{len(deaths):,} times"
        how = f"died {times}, and answered when asked again: {plain_line(deaths[0])}"
        found[at] = replace(found[at], problems=(*found[at].problems, Died(how)))
    return found
