"""Execution providers of onnxruntime by name: built in, or in the library of a plug-in."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from oracles.adapters.refusals import first_line, require_variant
from oracles.adapters.road_words import RoadWords, parse_road
from oracles.protocol import Unsupported
from specs.errors import did_you_mean

CPU = "CPUExecutionProvider"
NO_FALLBACK = "session.disable_cpu_ep_fallback"
RECORD = "session.record_ep_graph_assignment_info"
"""The option by which a session records nodes' providers; onnxruntime before 1.24 ignores it."""
PLUGIN_KEYS = ("ep", "name", "device")
"""The options of a road that choose a plug-in's library, provider and device."""

OPTIONS = """\
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.{level}
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
"""
BUILT_IN = """\
provider = ("{name}", {options})
session = ort.InferenceSession(model.SerializeToString(), options, providers=[provider])
"""
PLUGIN = """\
ort.register_execution_provider_library({registered}, {library})
devices = [each for each in ort.get_ep_devices() if each.ep_name == "{name}"]
options.add_provider_for_devices([devices[{place}]], {options})
session = ort.InferenceSession(model.SerializeToString(), options)
"""


class LeftToCpu(Unsupported):
    """The provider does not take a model's nodes, so that the CPU would answer for it."""


@dataclass(frozen=True)
class Provider:
    """An execution provider, its options and, of a plug-in, its library and device."""

    ort: Any
    name: str
    options: Mapping[str, str]
    library: str = ""
    registered: str = ""
    """The name under which the library is registered."""
    device: Any = None
    place: int = 0
    """The place of the device among those of the provider."""

    @property
    def version(self) -> str:
        """The version of onnxruntime, and of a plug-in if it names one."""
        own = self.device.ep_metadata.get("version", "") if self.device else ""
        if not self.library:
            return str(self.ort.__version__)
        return f"{self.ort.__version__} with {self.name} {own}".rstrip()

    def heading(self, asked: str, operator: str | None) -> str:
        """Return a script's heading: version, what is ``asked``, the provider, and its neighbor.

        ``operator`` is that of the node that it does not take alone.
        """
        package = distribution(self.ort.__name__)
        build = "" if package == self.ort.__name__ else f" ({package})"
        own = self.version.partition(" with ")[2] or self.name
        told = f", which takes no lone {operator}: an Identity precedes it" if operator else ""
        return f"{self.ort.__version__}{build}: {asked}\n# on {own}{told}"

    def prepare(self, options: Any, forbids: bool = True) -> None:
        """Have sessions with these options run on the provider, and record which nodes do.

        If it ``forbids`` that, the CPU takes none.
        """
        options.add_session_config_entry(NO_FALLBACK, str(int(forbids)))
        options.add_session_config_entry(RECORD, "1")
        if self.device is not None:
            options.add_provider_for_devices([self.device], dict(self.options))

    def open(self, content: bytes, options: Any) -> Any:
        """Return the session of a model, all of whose nodes run on this provider.

        Raises LeftToCpu if they do not, Unsupported if the provider has no device here, and
        onnxruntime's error if it refuses the model even where the CPU may take nodes.
        """
        try:
            session, is_left = self._session(content, options), False
        except Exception:
            session, is_left = self._session(content, self._allowing(options)), True
        if self.name not in session.get_providers():
            raise Unsupported(no_device(self.ort, f"cannot use its {self.name}"))
        elsewhere = _elsewhere(session, self.name)
        if is_left or elsewhere:
            nodes = " and ".join(dict.fromkeys(elsewhere)) or "the model"
            raise LeftToCpu(f"{self.name} leaves {nodes} to the CPU")
        return session

    @staticmethod
    def is_left(opened: Any) -> bool:
        """Return whether a provider refused a session because it would leave nodes to the CPU."""
        return isinstance(opened, LeftToCpu)

    def _session(self, content: bytes, options: Any) -> Any:
        if self.device is not None:
            return self.ort.InferenceSession(content, options)
        provider = (self.name, dict(self.options))
        # By default onnxruntime prints why it cannot use the provider, and opens the CPU's.
        return self.ort.InferenceSession(content, options, providers=[provider], enable_fallback=0)

    def _allowing(self, options: Any) -> Any:
        """Return a copy of session options that allows nodes on the CPU."""
        allowing = self.ort.SessionOptions()
        for name in ("graph_optimization_level", "log_severity_level"):
            setattr(allowing, name, getattr(options, name))
        self.prepare(allowing, forbids=False)
        return allowing

    def statements(self, level: str) -> str:
        """Return a script's statements that open its session on this provider alone."""
        options = json.dumps(dict(self.options))
        if self.device is None:
            opened = BUILT_IN.format(name=self.name, options=options)
        else:
            opened = PLUGIN.format(
                registered=json.dumps(self.registered),
                library=json.dumps(self.library),
                name=self.name,
                place=self.place,
                options=options,
            )
        return OPTIONS.format(level=level) + opened


def provider_of(ort: Any, variant: str, variants: Collection[str]) -> Provider | None:
    """Return the provider that a road of `ort` names; None if it is one of ``variants``.

    Raises Unsupported if onnxruntime has no such provider, or a library cannot be registered.
    """
    names = {_short(name): name for name in ort.get_available_providers()}
    road = parse_road("ort", variant)
    if "ep" in road.options:
        return _of_plugin(ort, road)
    word, *others = road.words or ("",)
    require_variant("ort", _short(word), tuple(dict.fromkeys((*variants, *names))))
    if others:
        raise Unsupported(f"`{others[0]}` of ort:{variant} is not KEY=VALUE")
    if _short(word) in names and names[_short(word)] != CPU:
        return Provider(ort, names[_short(word)], road.options)
    if road.options:
        raise Unsupported(f"ort:{word} has no options; leave out `{next(iter(road.options))}`")
    if word == "cuda":
        raise Unsupported(no_device(ort, "has no CUDA execution provider"))
    return None


def _short(name: str) -> str:
    return name.removesuffix("ExecutionProvider").lower()


def _of_plugin(ort: Any, road: RoadWords) -> Provider:
    """Return the provider in a plug-in's library; raise Unsupported if there is none."""
    given = dict(road.options)
    path, name, kind = (given.pop(key, "") for key in PLUGIN_KEYS)
    if road.words:
        raise Unsupported(f"`{road.words[0]}` of a plug-in is not KEY=VALUE")
    if not Path(path).is_file():
        raise Unsupported(f"there is no library `{path}`; give its path as ep=PATH")
    library = str(Path(path).resolve())
    registered = name or Path(path).stem
    devices = _registered_devices(ort, registered, library)
    names = dict.fromkeys(each.ep_name for each in devices)
    if not names:
        raise Unsupported(f"`{path}` is registered, but takes none of {_machine(ort)}")
    if name and name not in names:
        hint = did_you_mean(name, names).strip() or f"it has {', '.join(names)}"
        raise Unsupported(f"`{path}` has no execution provider `{name}`; {hint}")
    if not name and len(names) > 1:
        raise Unsupported(f"`{path}` has {', '.join(names)}; add name={next(iter(names))}")
    chosen = name or next(iter(names))
    own = [each for each in devices if each.ep_name == chosen]
    kinds = [each.device.type.name.lower() for each in own]
    if kind and kind not in kinds:
        raise Unsupported(f"{chosen} has no device `{kind}`; it has {', '.join(kinds)}")
    if not kind and len({*kinds}) > 1:
        raise Unsupported(f"{chosen} has {', '.join(kinds)}; add device={kinds[0]}")
    place = kinds.index(kind) if kind else 0
    return Provider(ort, chosen, given, library, registered, own[place], place)


def _machine(ort: Any) -> str:
    """Return the devices that onnxruntime sees, in words."""
    seen = {
        f"{each.device.type.name} of {each.device.vendor or 'an unknown vendor'}"
        for each in ort.get_ep_devices()
    }
    return f"this machine's devices: {', '.join(sorted(seen))}"


@lru_cache
def _registered_devices(ort: Any, registered: str, library: str) -> tuple[Any, ...]:
    """Return the devices that a library adds; a process can register it once under one name."""
    before = len(ort.get_ep_devices())
    try:
        ort.register_execution_provider_library(registered, library)
    except Exception as error:
        reason = first_line(error)
        raise Unsupported(f"onnxruntime cannot register `{library}`: {reason}") from None
    return tuple(ort.get_ep_devices()[before:])


@lru_cache
def distribution(module: str) -> str:
    """Return the name under which pip installed a module: onnxruntime has one for each device."""
    return next(iter(packages_distributions().get(module, ())), module)


def _elsewhere(session: Any, name: str) -> list[str]:
    """Return the operators of a session's nodes that other providers got.

    onnxruntime before 1.24 does not tell; there only its own check forbids the CPU.
    """
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return []
    return [
        node.op_type
        for part in session.get_provider_graph_assignment_info()
        if part.ep_name != name
        for node in part.get_nodes()
    ]


def no_device(ort: Any, problem: str) -> str:
    """Return an error's text: onnxruntime's ``problem`` with a device, and what to install."""
    return (
        f"onnxruntime {ort.__version__} {problem}; ask `ort`, or install an onnxruntime that is "
        "built for the device, and its libraries (https://onnxruntime.ai/docs/install)"
    )
