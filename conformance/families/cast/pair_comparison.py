"""Compares documents on one input of a pair: what each allows, and which backends obey."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from textwrap import TextWrapper, shorten
from typing import Any, NamedTuple

from conformance.families.cast.recorded import grade_answer
from conformance.families.value_spelling import datum
from oracles.reference import expect_by_exact
from oracles.reference.expectations import Allowed
from oracles.reference.kernel_text import shortest_text
from oracles.registry import Backend
from reports.behaviors.known_answers import known_answers
from reports.counterexample.drawing import complex_text, value_text
from reports.findings.finding_text import OUTCOME_WORDS, datum_words
from reports.grading.allowed_answers import ALLOWED, NOT_RECOMMENDED, describe_allowed
from specs.branches import Ruling
from specs.cases import FORM, MEMBER, Case
from specs.formats import Format, format_named
from specs.operations import operation_of
from specs.outcomes import Anything, Rejected
from specs.questions import documents_called
from specs.ruling import ruling
from specs.selection import cases_of_pair

WIDTH = 100
"""Columns of a terminal."""
HEADING, LINE, NOTE = (
    TextWrapper(
        width=WIDTH,
        initial_indent=first,
        subsequent_indent=" " * 4,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for first in ("", "  ", "note: ")
)
USUAL = ("onnx-cast:", "torch-tensor-to", "numpy-astype", "stablehlo-convert")
"""Documents that people ask about most, which stand first."""
ANY_VALUE = "any value"
"""Stands for an outcome of which a document leaves the value open, but requires an answer."""
LEVELS = ("required", "recommended", "open")
"""How firmly a document decides one input, from the strictest."""


class Recorded(NamedTuple):
    """A framework's answer from the table of known answers, and which version gave it when."""

    name: str
    version: str
    date: str
    code: int


class Line(NamedTuple):
    """A line of a comparison: the allowed answers, and the backends that give them, in words."""

    allowed: str
    backends: str = ""


class Named(NamedTuple):
    """Frameworks and documents that a question names; the first line answers about these first.

    ``documents`` says that it names documents: they count if no framework of that name answers.
    ``words`` are the frameworks as the question spells them.
    """

    frameworks: Sequence[str] = ()
    documents: bool = False
    words: Sequence[str] = ()


DIFFERING = "no document decides it: nobody is wrong, and the result is not portable"
AGREED = "no document decides it: these agree, but others need not"
ANYTHING = "anything"
LEFT_OPEN = Line(ANYTHING)
NAMELESS = Named()


def pair_lines(
    cases: Sequence[Case],
    explained: Sequence[Mapping[str, Any]],
    backends: Sequence[Backend],
    recorded: Sequence[Recorded] = (),
    named: Named = NAMELESS,
    is_graded: bool = True,
) -> Iterator[str]:
    """Yield a headline with every framework's answer, what documents allow, and errors of backends.

    Where no document decides, and the question names none, the second line says what follows.
    ``explained`` has ``Explained.told`` of each case, for one and the same input, with ``answers``
    by names of backends. ``recorded`` are the answers of frameworks that are not asked. Unless
    ``is_graded``, the lines of documents do not say which backends obey.
    """
    lines: dict[Line, dict[str, list[str]]] = {}
    for case, each in zip(cases, explained, strict=True):
        line = _line(case, each, backends if is_graded else ())
        levels = lines.setdefault(line, {})
        levels.setdefault(_level(_allowed(case, each)), []).append(_edition(case))
    answers = dict(answers_by_framework(cases, explained, backends, recorded))
    yield from _headline(cases, explained, answers, named)
    is_decided = any(level != "open" for levels in lines.values() for level in levels)
    if answers and not is_decided and not named.documents:
        yield f"  {AGREED if len({*answers.values()}) == 1 else DIFFERING}"
    if not is_graded:
        yield from _unanswered(cases, answers, named)
    for line in sorted(lines, key=lambda each: (strictest(lines[each]), each == LEFT_OPEN)):
        yield from document_lines(line, lines[line])
    for message, names in _errors(cases, explained, backends).items():
        said = shorten(f"error of {', '.join(names)}: {message}", WIDTH - 2, placeholder=" …")
        yield f"  {said}"
    if recorded:
        versions = ", ".join(f"{each.name} {each.version}" for each in recorded)
        said = f"recorded {recorded[0].date} (--backend NAME asks anew): {versions}"
        # Versions matter most where answers differ.
        is_whole = len({*answers.values()}) > 1
        yield from LINE.wrap(said if is_whole else shorten(said, WIDTH - 2, placeholder=" …"))


def _unanswered(cases: Sequence[Case], answers: Collection[str], named: Named) -> Iterator[str]:
    """Yield a line for each framework that the question names and that has no recorded answer."""
    documents = {each.document for each in cases}
    for name, word in zip(named.frameworks, named.words, strict=True):
        called = documents_called(word)
        if name in answers or not documents.isdisjoint(called):
            continue
        pair = f"{cases[0].source} to {cases[0].target}"
        lists = f"no document of it lists {pair}, " if called else ""
        yield from LINE.wrap(f"{word}: {lists}no answer is recorded; --backend {name} asks it")


def _edition(case: Case) -> str:
    # All forms of a call give the same values, so the form is not shown.
    modes = [f"{name}:{value}" for name, value in case.modes if name not in (FORM, MEMBER)]
    return " ".join([f"{case.document}:{case.version}", *modes])


def strictest(levels: Collection[str]) -> int:
    """Return the index in ``LEVELS`` of the strictest of some levels."""
    return min(map(LEVELS.index, levels))


def document_lines(line: Line, levels: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield what documents allow, and their names by level; of many only as many as fit a line.

    Lines with answers of backends have all names.
    """
    names = {each: sorted(levels[each], key=is_foreign) for each in LEVELS if each in levels}
    if line == LEFT_OPEN:
        short = dict.fromkeys(each.partition(":")[0] for each in names["open"])
        names_of = partial(_first, list(short))
        yield _fitting(lambda most: f"  left open by {names_of(max(most, 1))}", len(short))
        return

    def told(most: int) -> str:
        (level, first), *others = names.items()
        more = "".join(
            f"; {other}: {_first(found, most)}" if most else f"; {other} by {len(found)} more"
            for other, found in others
        )
        return f"{level}, {line.allowed}: {_first(first, max(most, 1))}{more}"

    if line.backends:
        yield from LINE.wrap(f"{told(sum(map(len, names.values())))}; {line.backends}")
    else:
        yield from LINE.wrap(_fitting(told, max(map(len, names.values())), WIDTH - 2))


def _fitting(written: Callable[[int], str], most: int, width: int = WIDTH) -> str:
    """Return a text of as many names as fit the width; ``written`` takes their number."""
    fitting = (text for each in range(most, 0, -1) if len(text := written(each)) <= width)
    return next(fitting, written(0))


def _first(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _headline(
    cases: Sequence[Case],
    explained: Sequence[Mapping[str, Any]],
    answers: Mapping[str, str],
    named: Named,
) -> list[str]:
    """Return the input with what frameworks answer; without answers, with what documents say.

    What the question names comes first. Otherwise the most frequent answer does; but the rarest, if
    the first line of the heading would lack an answer.
    """
    pair = cases[0]
    asked = f"{pair.source} to {pair.target} of {given_words(pair.source, explained[0]['input'])}"
    found: dict[str, list[str]] = {}
    for name, word in answers.items():
        found.setdefault(word, []).append(name)
    words = sorted(found, key=lambda word: -len(found[word]))
    words.sort(key=lambda word: not any(name in named.frameworks for name in found[word]))
    for names in found.values():
        names.sort(key=lambda name: name not in named.frameworks)
    is_named = any({*names} & {*named.frameworks} for names in found.values())
    is_told = not found or _none_obeys(cases, explained, found)
    is_told |= named.documents and not is_named
    said = [_document_said(cases, explained)] if is_told else []
    texts = [f"{word} from {', '.join(found[word])}" for word in words]
    heading = HEADING.wrap(f"{asked}: {'; '.join([*said, *texts])}")
    if is_named or all(f" {word} from" in heading[0] for word in words):
        return heading
    return HEADING.wrap(f"{asked}: {'; '.join([*said, *reversed(texts)])}")


def _none_obeys(
    cases: Sequence[Case], explained: Sequence[Mapping[str, Any]], found: Collection[str]
) -> bool:
    """Return whether a document decides the input, for a value that none of ``found`` is."""
    case = most_telling(cases, explained)
    allowed = _allowed(case, explained[[*cases].index(case)])
    if isinstance(allowed.branch.outcome, Anything | Rejected):
        return False
    rules, given = ruling(case), read_datum(explained[0]["input"])
    words = describe_allowed(rules, allowed, given, "required")
    values = {"NaN" if "nan" in each else brief_words(rules.target, each) for each in words}
    return not values & {*found}


def _document_said(cases: Sequence[Case], explained: Sequence[Mapping[str, Any]]) -> str:
    """Say what the document requires or recommends that decides the input most strictly."""
    case = most_telling(cases, explained)
    allowed = _allowed(case, explained[[*cases].index(case)])
    if _level(allowed) == "open":
        names = dict.fromkeys(each.document for each in cases)
        return f"left open by {case.document}" if len(names) == 1 else "no document decides it"
    said = brief_said(ruling(case), allowed, read_datum(explained[0]["input"]))
    return f"{said} by {_edition(case)}"


def brief_said(rules: Ruling, allowed: Allowed, given: int | str) -> str:
    """Say which answer is required or recommended, as values, or that any is allowed."""
    if isinstance(allowed.branch.outcome, Anything):
        return "left open"
    every, best = (
        either_words(rules.target, describe_allowed(rules, allowed, given, level))
        for level in ("required", "recommended")
    )
    if rules.target.kind == "text" and not isinstance(given, str):
        best = f"{best}, such as {shortest_text(rules.source, given)!r},"
    return f"{best} is {allowed.branch.level if every == best else 'recommended'}"


def either_words(target: Format, allowed: Iterable[str]) -> str:
    """Return allowed answers, as ``describe_allowed`` names them, as values joined by `or`."""
    return " or ".join(dict.fromkeys(brief_words(target, each) for each in allowed))


def brief_words(target: Format, word: str) -> str:
    """Return the value of an allowed answer, which is named as ``describe_allowed`` does."""
    is_value = target.kind == "text" or word.startswith("0x")
    code = word if target.kind == "text" else int(word, 16) if is_value else 0
    return OUTCOME_WORDS.get(word) or (value_words(target, code) if is_value else word)


def given_words(source: str, given: Any) -> str:
    """Return an input of an explanation as its value; of a NaN with payload also the pattern."""
    form, code = format_named(source), read_datum(given)
    if isinstance(code, str) or form.kind == "complex":
        return _in_words(source, _shown(given))
    value = value_words(form, code)
    is_usual = value != "NaN" or code == datum(form, "nan", "input")
    return value if is_usual else _in_words(source, given)


def answers_by_framework(
    cases: Sequence[Case],
    explained: Sequence[Mapping[str, Any]],
    backends: Sequence[Backend],
    recorded: Sequence[Recorded],
) -> Iterator[tuple[str, str]]:
    """Yield each framework that answers with its answer in words, as ``value_words`` writes it.

    Of a backend this is the answer to the case that decides most strictly among those it answers;
    if it gives errors only, it is ``an error``.
    """
    target = format_named(cases[0].target)
    asked = sorted(
        zip(cases, explained, strict=True), key=lambda each: LEVELS.index(_level(_allowed(*each)))
    )
    for backend in backends:
        given = [answer for case, each in asked for _, answer in _answers(case, each, [backend])]
        values = [each for each in given if not _is_missing(each)]
        if values:
            yield backend.name, value_words(target, read_datum(values[0]))
        elif any("error" in each for each in given):
            yield backend.name, "an error"
    for known in recorded:
        yield known.name, value_words(target, known.code)


def _is_missing(answer: Any) -> bool:
    """Return whether JSON tells of an error, a crash or an unsupported cast, and of no answer."""
    return isinstance(answer, dict) and "text" not in answer


def value_words(target: Format, datum: int | str) -> str:
    """Return an answer in as few characters as a person needs: its value, or NaN without payload.

    A pattern without a value, of a complex number, stays a pattern.
    """
    if isinstance(datum, str):
        return repr(datum)
    if target.kind == "boolean" and datum in (0, 1):
        return "true" if datum else "false"
    value = value_text(target, datum).replace("INF", "infinity")
    return "NaN" if "NaN" in value else value or _in_words(target.name, target.hexadecimal(datum))


def is_foreign(name: str) -> bool:
    """Return a sort key: documents of ONNX, torch and numpy first, which people ask most."""
    return not name.startswith(USUAL)


def recorded_answers(
    case: Case, explained: Mapping[str, Any], asked: Collection[str]
) -> list[Recorded]:
    """Return the known answers of frameworks to the input of ``explained``, in default modes.

    Those in ``asked`` are left out. Complex numbers and texts have none, nor have other modes than
    a pair's default.
    """
    form, target = format_named(case.source), format_named(case.target)
    is_default = case == cases_of_pair(case.document, case.version, form.name, target.name)[0]
    if not (is_default and form.is_numeric and target.is_numeric):
        return []
    given = int(read_datum(explained["input"]))
    return [
        Recorded(name, each.public_version, each.date, code)
        for name, each in known_answers().frameworks.items()
        if name not in asked and (code := each.answer(form, target, given)) is not None
    ]


def recorded_json(target: str, recorded: Sequence[Recorded]) -> dict[str, dict[str, str]]:
    """Return recorded answers as data for JSON, by framework: pattern, version, and date."""
    form = format_named(target)
    return {
        each.name: {
            "answer": form.hexadecimal(each.code),
            "version": each.version,
            "date": each.date,
        }
        for each in recorded
    }


def _place(case: Case) -> int:
    """Return the index of a case's document in ``USUAL``; its length for other documents."""
    places = (at for at, name in enumerate(USUAL) if case.id.startswith(name))
    return next(places, len(USUAL))


def most_telling(cases: Sequence[Case], explained: Sequence[Mapping[str, Any]]) -> Case:
    """Return the case whose document decides its input most strictly; of several a usual one.

    An error tells less than a value. ``explained`` has ``Explained.told`` of each case.
    """
    ranked = []
    for case, each in zip(cases, explained, strict=True):
        allowed = _allowed(case, each)
        is_error = isinstance(allowed.branch.outcome, Rejected)
        ranked.append(((LEVELS.index(_level(allowed)), is_error, _place(case)), case))
    return min(ranked, key=lambda each: each[0])[1]


def _line(case: Case, explained: Mapping[str, Any], backends: Sequence[Backend]) -> Line:
    """Return the line of one document; of one that leaves the value open, without backends."""
    rules = ruling(case)
    given = read_datum(explained["input"])
    allowed = _allowed(case, explained)
    doing: dict[str, list[str]] = {}
    for backend, answer in _answers(case, explained, backends):
        if words := _deed(rules, allowed, given, answer):
            doing.setdefault(words, []).append(backend)
    done = [words.format(", ".join(names)) for words, names in doing.items()]
    if backends and not done:
        done = ["no backend offers it"]
    # Where anything is allowed, the headline has said what backends answer.
    is_told = _level(allowed) != "open" or (rules.is_open and rules.answer_due is not None)
    return Line(_said(rules, allowed, given), "; ".join(done) if is_told else "")


def _answers(
    case: Case, explained: Mapping[str, Any], backends: Sequence[Backend]
) -> Iterator[tuple[str, Any]]:
    """Yield each backend's name and answer, except errors to calls that it does not claim."""
    for backend in backends:
        answer = explained["answers"][backend.name]
        is_error = isinstance(answer, dict) and "error" in answer
        is_foreign_case = not backend.claims(case.document, case.version)
        if not (is_error and is_foreign_case and FORM in dict(case.modes)):
            yield backend.name, answer


def _allowed(case: Case, explained: Mapping[str, Any]) -> Allowed:
    return expect_by_exact.allow(ruling(case), read_datum(explained["input"]))


def _level(allowed: Allowed) -> str:
    return "open" if isinstance(allowed.branch.outcome, Anything) else allowed.branch.level


def _said(rules: Ruling, allowed: Allowed, given: int | str) -> str:
    """Return the allowed answers in words, and which of them are recommended."""
    match allowed.branch.outcome:
        case Anything():
            return ANY_VALUE if rules.is_open and rules.answer_due else ANYTHING
        case Rejected():
            return "an error"
    every, best = (
        " or ".join(
            OUTCOME_WORDS.get(each) or _in_words(rules.target.name, each)
            # In one order, so that documents which allow the same share a line.
            for each in sorted(describe_allowed(rules, allowed, given, level))
        )
        for level in ("required", "recommended")
    )
    return every if every == best else f"{every}; recommended {best}"


def _deed(rules: Ruling, allowed: Allowed, given: int | str, answer: Any) -> str:
    """Say that a backend obeys, or what it answers instead, with ``{}`` for its name.

    The text is empty if the backend does not offer the cast.
    """
    match answer:
        case {"unsupported": _}:
            return ""
        case {"crashed": _}:
            return "crash of {}"
        case {"departed": _}:
            return "broken promise of {}"
        case {"error": _}:
            read, words = None, "an error"
        case _:
            read, words = read_datum(answer), _in_words(rules.target.name, _shown(answer))
    words = words.replace("{", "{{").replace("}", "}}")
    if read is None and rules.is_open and rules.answer_due is not None:
        return f"not by {{}}: {words}"
    if _level(allowed) == "open":
        return f"{words} from {{}}"
    grade = grade_answer(rules, allowed, given, read)
    if grade == ALLOWED:
        return "obeyed by {}"
    return f"not {'as recommended ' if grade == NOT_RECOMMENDED else ''}by {{}}: {words}"


def _errors(
    cases: Sequence[Case], explained: Sequence[Mapping[str, Any]], backends: Sequence[Backend]
) -> dict[str, list[str]]:
    """Return each error message with the names of the backends that gave it.

    An error to a call, such as that of a module's ``to``, is left out if the backend answers to
    other cases: it is not about the value.
    """
    asked = [*zip(cases, explained, strict=True)]
    answering = {
        name
        for case, each in asked
        for name, answer in _answers(case, each, backends)
        if not _is_missing(answer)
    }
    found: dict[str, list[str]] = {}
    for case, each in asked:
        for backend, answer in _answers(case, each, backends):
            match answer:
                case {"error": _} if backend in answering and operation_of(case) == "call":
                    pass
                case {"error": message}:
                    found.setdefault(message, []).append(backend)
    return {message: list(dict.fromkeys(names)) for message, names in found.items()}


def _in_words(dtype: str, text: str) -> str:
    """Return a pattern with its value, also a complex one; a text or an outcome in words."""
    form = format_named(dtype)
    value = complex_text(form, int(text, 16)) if form.kind == "complex" else ""
    return f"{text} ({value})" if value else datum_words(dtype, text)


def read_datum(value: Any) -> int | str:
    """Convert a datum of an explanation in JSON: hex becomes a code, an object its text."""
    return str(value["text"]) if isinstance(value, dict) else int(value, 16)


def _shown(value: Any) -> str:
    return str(value["text"] if isinstance(value, dict) else value)
