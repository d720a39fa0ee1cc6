"""The extras: what is not part of asking, judging and reporting a backend.

Each lies in a folder of its own here, and nothing else names it: commands and pages are found by
the records below, and a module of an extra is imported only when one of them is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Literal, NamedTuple

from specs.errors import CastigateError, did_you_mean

if TYPE_CHECKING:
    from reports.html.site import Page
    from reports.run_store.store import RunStore


Group = Literal["Ask", "Judge", "Releases", "Read", "Extend"]
"""The headings under which ``castigate --help`` lists commands."""


class NamedCommand(NamedTuple):
    """A command: its function as ``module:function``, its line and heading in the help.

    ``example`` has arguments that it may be called with, for whoever leaves out a required one.
    The function is named, so that commands can be listed without importing them.
    """

    function: str
    summary: str
    group: Group
    example: str = ""


@dataclass(frozen=True)
class Addon:
    """An extra, by the name of its folder under ``conformance/extras``.

    Its functions are named as ``module:function``, so that none is imported before it is used.
    ``page`` takes a run's store, and returns a page of its report or None; it is called if a user
    names the extra or ``shows`` returns true for the run. ``survey`` adds data to a night's run if
    a user names the extra; its arguments are the run's folder and the time limit of an answer.
    ``executor`` opens the pools of a run whose tasks are done on other machines; its first argument
    is the address of their scheduler. ``exports`` are commands of ``castigate export``, and
    ``specs_words`` what ``castigate specs`` does at a word. ``functions`` are those of
    ``castigate.py``, by name.
    """

    name: str
    commands: Mapping[str, NamedCommand] = field(default_factory=dict)
    page: str = ""
    shows: Callable[[RunStore], bool] = lambda _: False
    survey: str = ""
    executor: str = ""
    exports: Mapping[str, str] = field(default_factory=dict)
    specs_words: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)


ADDONS = (
    Addon(
        "removable_casts",
        commands={
            "chains": NamedCommand(
                "conformance.extras.removable_casts.command:chains_command",
                "Say which casts may be left out of a chain.",
                "Ask",
                "onnx-cast/float32/int32/bool",
            ),
        },
    ),
    Addon(
        "portable",
        commands={
            "portable": NamedCommand(
                "conformance.extras.portable.command:portable_command",
                "Show on which inputs backends agree, as ranges of values.",
                "Ask",
                "ort numpy --pair fp32/int8",
            )
        },
        page="conformance.extras.portable.report_page:portability_page",
        shows=lambda run: len(run.record.backends) > 1,
        functions={"portable": "conformance.extras.portable.agreement:agreement"},
    ),
    Addon(
        "containers",
        commands={
            "containers": NamedCommand(
                "conformance.extras.containers.command:containers_command",
                "Write tensors with one library, and read them with another.",
                "Ask",
            )
        },
        page="conformance.extras.containers.pages:containers_page",
        shows=lambda run: "containers.json" in run.folder.names(),
        survey="conformance.extras.containers.results:survey_of_run",
    ),
    Addon(
        "issues",
        commands={
            "docket": NamedCommand(
                "conformance.extras.issues.command:docket_command",
                "Decide public threads about conversions.",
                "Ask",
            )
        },
        page="conformance.extras.issues.report_page:issues_page",
    ),
    Addon("onnx_tests", exports={"onnx": "conformance.extras.onnx_tests.command:export_onnx"}),
    Addon("repros", exports={"findings": "conformance.extras.repros.command:export_findings"}),
    Addon("editions", specs_words={"diff": "conformance.extras.editions.command:diff_editions"}),
    Addon("vectors", exports={"vectors": "conformance.extras.vectors.command:export_vectors"}),
    Addon(
        "releases",
        commands={
            "history": NamedCommand(
                "conformance.extras.releases.history:history_command",
                "Run past releases of a framework, and report them in order.",
                "Releases",
                "--backend ort --versions 1.27.0,1.31.1 --out DIR",
            ),
            "upgrade": NamedCommand(
                "conformance.extras.releases.upgrade:upgrade_command",
                "Say what an upgrade made worse, better, or otherwise.",
                "Releases",
                "--backend ort --from 1.31.1",
            ),
            "bisect": NamedCommand(
                "conformance.extras.releases.bisect:bisect_command",
                "Find the first release that answers otherwise.",
                "Releases",
                "onnx-cast:19/float8e5m2/bool 0x80 --backend ort --versions 1.20..1.31",
            ),
        },
    ),
    Addon(
        "certificate",
        commands={
            "verify": NamedCommand(
                "conformance.extras.certificate.verify:verify_command",
                "Check a certificate, its run, and some answers.",
                "Judge",
                "GATE/certificate.json",
            )
        },
    ),
    Addon(
        "codec",
        commands={
            "codec": NamedCommand(
                "conformance.extras.codec.command:codec_command",
                "Judge a function that encodes or decodes a small float.",
                "Ask",
                "c:e4m3.h:to_e4m3 --format e4m3fn",
            )
        },
    ),
    Addon(
        "checkpoints",
        commands={
            "check": NamedCommand(
                "conformance.extras.checkpoints.command:check_command",
                "Count the numbers of a checkpoint that a cast changes.",
                "Ask",
                "model.safetensors --to e4m3fn",
            )
        },
        functions={"check_checkpoint": "conformance.extras.checkpoints.check:check_checkpoint"},
    ),
    Addon(
        "board",
        commands={
            "board": NamedCommand(
                "conformance.extras.board.command:board_command",
                "Write a site with the answers of many backends.",
                "Read",
            )
        },
    ),
    Addon(
        "house_rules",
        commands={
            "rules": NamedCommand(
                "conformance.extras.house_rules.command:rules_command",
                "List the shipped house rules, or prove some.",
                "Extend",
            ),
        },
    ),
    Addon(
        "selftest",
        commands={
            "selftest": NamedCommand(
                "conformance.extras.selftest.command:selftest_command",
                "Check that a program speaks the protocol, and time it.",
                "Extend",
                "exec:./vendor",
            ),
        },
    ),
    Addon("cluster", executor="conformance.extras.cluster.pool:cluster_pools"),
)
"""All extras, in the order of ``--help`` and of the pages of a report."""
[EXECUTOR] = [each.executor for each in ADDONS if each.executor]
EXPORTS = {name: function for each in ADDONS for name, function in each.exports.items()}
SPECS_WORDS = {word: function for each in ADDONS for word, function in each.specs_words.items()}
FUNCTIONS = {name: function for each in ADDONS for name, function in each.functions.items()}
WITH_PAGE = {each.name: each for each in ADDONS if each.page}


def addon_with_page(name: str) -> Addon:
    """Return the extra called ``name``; raise CastigateError if no extra with a page is."""
    if name not in WITH_PAGE:
        raise CastigateError(
            f"--with `{name}` is no page; {did_you_mean(name, WITH_PAGE)}"
            f"the pages are {', '.join(WITH_PAGE)}"
        )
    return WITH_PAGE[name]


def pages_of(run: RunStore, asked: Collection[Addon]) -> list[Page]:
    """Return the pages of the extras in ``asked``, and of those whose ``shows`` is true for a run.

    An extra that has nothing to show for the run gives no page.
    """
    wanted = [each for each in WITH_PAGE.values() if each in asked or each.shows(run)]
    pages = (resolve_name(each.page)(run) for each in wanted)
    return [page for page in pages if page is not None]
