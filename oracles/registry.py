"""Resolves a ``--backend`` value to an oracle and loads it."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.abc import SourceLoader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from oracles.protocol import (
    MAX_ROW_LIMIT,
    MAX_ROW_LIMITS,
    NotInstalled,
    Oracle,
    Unsupported,
    WithRowLimits,
    are_row_limits,
    claims_of,
)
from specs import VERSION
from specs.errors import CastigateError, closest, did_you_mean
from specs.plain_text import plain_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from oracles.claims import Claim

EXEC = "exec:"
IN_FILE = re.compile(r"(.*\.py):([^:]+)")
"""Matches a class in a file."""
LONGEST_VERSION = 200
SHOWN = 100
"""The most characters of a wrong value that an error shows."""
MOST_CLASSES = 5
"""The most classes of a file that an error names."""
GROUP = "castigate.oracles"
"""The entry-point group under which other packages register their backends."""


def is_program(name: str) -> bool:
    """Return whether a backend's name is ``exec:COMMAND``, a program with the wire protocol."""
    return name.startswith(EXEC)


def file_of(name: str) -> str:
    """Return the file of a backend ``FILE.py:CLASS``, from the working directory if it is below."""
    found = IN_FILE.fullmatch(name)
    if found is None or is_program(name):
        return ""
    path, here = Path(found[1]).resolve(), Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else found[1]


def framework_of(name: str) -> str:
    """Return a backend's name up to its colon, without variant or class; a program's whole name."""
    return name if is_program(name) else _parts(name)[0]


def is_builtin(name: str) -> bool:
    """Return whether a backend, with or without a variant, is one of ``BUILTINS``."""
    return framework_of(name) in BUILTINS


def forkable_package(name: str) -> str:
    """Return the backend's package if processes that have imported it may be forked, else ""."""
    builtin = BUILTINS.get(framework_of(name))
    return builtin.package or "" if builtin is not None and builtin.forks_after_import else ""


def first_variant(names: Iterable[str], name: str) -> str:
    """Return the first of ``names`` that has the same framework as ``name``.

    Empty if that is ``name`` itself. ``names`` must include ``name``.
    """
    first = next(each for each in names if framework_of(each) == framework_of(name))
    return "" if first == name else first


@dataclass(frozen=True)
class Builtin:
    """A backend that ships with the suite: its module and class, and the package that it drives.

    ``extra`` is Castigate's extra that installs the package. A package without one is not on a
    package index: its adapter says how to get it.
    """

    module: str
    attribute: str
    package: str | None = None
    extra: str | None = None
    forks_after_import: bool = False
    """Whether a process that has imported the package, but not used it, may be forked."""
    executable: str | None = None
    """The program that it starts, which must be on the PATH."""
    in_nights: bool = True
    """Whether a night runs it unasked; any other backend must be named."""
    has_folder: bool = False
    """Whether its module is a folder, in which its requirements and its ledger lie, too."""
    npm: str | None = None
    """The npm package that it drives in Node.js."""

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that its adapter offers, as in ``--backend NAME:VARIANT``."""
        return tuple(getattr(importlib.import_module(self.module), "VARIANTS", ()))

    @property
    def open_roads(self) -> Mapping[str, str]:
        """The variants with a part that the user fills in: what each is, by its form."""
        return dict(getattr(importlib.import_module(self.module), "OPEN_ROADS", {}))

    @property
    def requirements(self) -> tuple[str, ...]:
        """The requirements by which pip installs its package; none if no package index has it."""
        if self.extra:
            return (f"castigate[{self.extra}]",)
        if not self.has_folder:
            return ()
        return requirements_in(Path(__file__).parent / "adapters" / self.module.split(".")[-1])


def requirements_in(folder: Path) -> tuple[str, ...]:
    """Return the requirements of pip in the ``requirements.txt`` of an adapter's folder."""
    lines = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


ADAPTERS = "oracles.adapters"


def _optimizer(attribute: str, package: str, extra: str = "optimizers") -> Builtin:
    return Builtin(f"{ADAPTERS}.onnx_optimizers", attribute, package, extra, in_nights=False)


def _block_library(name: str, attribute: str) -> Builtin:
    extra = name.replace("_", "-")
    return Builtin(f"{ADAPTERS}.{name}", attribute, name, extra, in_nights=False)


def _in_folder(
    name: str,
    attribute: str,
    package: str | None = None,
    *,
    npm: str | None = None,
    executable: str | None = None,
) -> Builtin:
    """Return a backend whose adapter, requirements and ledger are the folder ``adapters/NAME``.

    One that starts an executable needs no package.
    """
    module = f"{ADAPTERS}.{name}"
    made = Builtin(module, attribute, in_nights=False, has_folder=True, npm=npm)
    if executable is not None:
        return replace(made, executable=executable)
    return replace(made, package=package or name)


BUILTINS: dict[str, Builtin] = {
    "reference": Builtin("conformance.families.reference", "Reference"),
    "ort": Builtin(f"{ADAPTERS}.ort", "Ort", "onnxruntime", "ort"),
    "torch": Builtin(f"{ADAPTERS}.torch", "Torch", "torch", "torch", True),
    "onnx": Builtin(f"{ADAPTERS}.onnx", "Onnx", "onnx", "onnx"),
    "ml_dtypes": Builtin(f"{ADAPTERS}.ml_dtypes", "MlDtypes", "ml_dtypes", "ml-dtypes"),
    "numpy": Builtin(f"{ADAPTERS}.numpy", "Numpy", "numpy", "numpy"),
    "array_api_strict": Builtin(
        f"{ADAPTERS}.array_api_strict", "ArrayApiStrict", "array_api_strict", "array-api-strict"
    ),
    "jax": Builtin(f"{ADAPTERS}.jax", "Jax", "jax", "jax"),
    "stablehlo": Builtin(f"{ADAPTERS}.stablehlo_interpreter", "StableHlo", "jax", "jax"),
    "tensorflow": Builtin(f"{ADAPTERS}.tensorflow", "TensorFlow", "tensorflow", "tensorflow"),
    "paddle": Builtin(f"{ADAPTERS}.paddle", "Paddle", "paddle", "paddle"),
    "tvm": Builtin(f"{ADAPTERS}.tvm", "Tvm", "tvm", "tvm"),
    "openvino": Builtin(f"{ADAPTERS}.openvino", "OpenVino", "openvino", "openvino"),
    "wasmtime": Builtin(f"{ADAPTERS}.wasmtime", "Wasmtime", "wasmtime", "wasmtime"),
    "node": Builtin(f"{ADAPTERS}.node", "Node", executable="node"),
    "gcc": Builtin(f"{ADAPTERS}.c_compilers", "Gcc", executable="gcc"),
    "clang": Builtin(f"{ADAPTERS}.c_compilers", "Clang", executable="clang"),
    "torch_xla": Builtin(f"{ADAPTERS}.torch_xla", "TorchXla", "torch_xla", "torch-xla"),
    "onnxoptimizer": _optimizer("Onnxoptimizer", "onnxoptimizer"),
    "onnxslim": _optimizer("Onnxslim", "onnxslim"),
    "onnxsim": _optimizer("Onnxsim", "onnxsim"),
    "onnxscript": _optimizer("Onnxscript", "onnxscript"),
    "ort_offline": _optimizer("OrtOffline", "onnxruntime", "ort"),
    "torchao": _block_library("torchao", "Torchao"),
    "gguf": _block_library("gguf", "Gguf"),
    "compressed_tensors": _block_library("compressed_tensors", "CompressedTensors"),
    "modelopt": _block_library("modelopt", "Modelopt"),
    "quark": _block_library("quark", "Quark"),
    "auto_round": _block_library("auto_round", "AutoRound"),
    "mlx": _in_folder("mlx", "Mlx"),
    "numba": _in_folder("numba", "Numba"),
    "ncnn": _in_folder("ncnn", "Ncnn"),
    "mnn": _in_folder("mnn", "Mnn", "MNN"),
    "dpnp": _in_folder("dpnp", "Dpnp"),
    "ort_node": _in_folder("ort_node", "OrtNode", "onnx", npm="onnxruntime-node"),
    "ort_web": _in_folder("ort_web", "OrtWeb", "onnx", npm="onnxruntime-web"),
    "arrow": _in_folder("arrow", "Arrow", "pyarrow"),
    "polars": _in_folder("polars", "Polars"),
    "duckdb": _in_folder("duckdb", "DuckDB"),
    "cuda_headers": _in_folder("cuda_headers", "CudaHeaders", "nvidia.cu13"),
    "hip_headers": _in_folder("hip_headers", "HipHeaders", executable="clang++"),
    "tinygrad": _in_folder("tinygrad", "Tinygrad"),
    "iree": _in_folder("iree", "Iree"),
    "litert": _in_folder("litert", "Litert", "ai_edge_litert"),
    "executorch": _in_folder("executorch", "Executorch"),
    "triton": _in_folder("triton", "Triton"),
    "pallas": _in_folder("pallas", "Pallas", "jax"),
    "llvmlite": _in_folder("llvmlite", "Llvmlite"),
    "cinn": Builtin(f"{ADAPTERS}.cinn", "Cinn", "paddle"),
    "pypto": Builtin(f"{ADAPTERS}.pypto", "Pypto", "pypto"),
}


@dataclass(frozen=True)
class Backend:
    """A loaded oracle under the name that the user gave it."""

    name: str
    oracle: Oracle

    @property
    def version(self) -> str:
        """The oracle's version as one line without control characters, shortened if too long."""
        return plain_line(self.oracle.version, LONGEST_VERSION)

    @cached_property
    def claimed(self) -> tuple[Claim, ...]:
        """The oracle's claims in the documents' order; every document if it has no ``claims``."""
        from oracles.claims import claimed_by  # A backend's process needs no claims.

        return claimed_by(self.oracle)

    def claims(self, document: str, version: str) -> bool:
        """Return whether the oracle claims this version of a document."""
        return any(claim.covers(document, version) for claim in self.claimed)


def load_backend(name: str) -> Backend:
    """Load the oracle that a ``--backend`` value names; raise CastigateError if that fails.

    The value names no program: ``oracles.backend.loading`` loads those.
    """
    from oracles.claims import check_claims  # A backend's process needs no documents.

    oracle = load_oracle(name)
    check_claims(name, oracle)
    return Backend(name, oracle)


def load_oracle(name: str) -> Oracle:
    """Load the oracle that a ``--backend`` value names; raise CastigateError if that fails.

    Its claims are not compared with the documents. The types of ``claims`` and ``row_limits`` are
    checked here, because a message to another process would change them.
    """
    try:
        try:
            oracle = _instantiate(name)
        except NotInstalled as error:
            raise CastigateError(f"backend `{name}` is not installed: {error}") from None
        except Unsupported as error:
            raise CastigateError(f"backend `{name}`: {error}") from None
        # Both tests run the adapter's code where its members are properties.
        if not (isinstance(oracle, Oracle) and isinstance(oracle.version, str)):
            raise CastigateError(f"backend `{name}` is no oracle: {_what_is_missing(oracle)}")
        _check_types(name, oracle)
        _check_signature(name, oracle)
    except CastigateError:
        raise
    except (Exception, SystemExit) as error:
        raise CastigateError(f"backend `{name}`: {type(error).__name__}: {error}") from None
    return oracle


def _what_is_missing(oracle: object) -> str:
    """Name the required members that an oracle lacks, and the lines to add."""
    needs = {
        "name": "name = 'mystack'",
        "version": "version = '1.0'",
        "cast": "cast(self, case, bits)",
    }
    missing = [each for each in needs if not hasattr(oracle, each)]
    if missing:
        return f"it lacks {' and '.join(missing)}; add {' and '.join(needs[x] for x in missing)}"
    return "its version is no text; write version = '1.0'"


def _check_signature(name: str, oracle: Oracle) -> None:
    """Raise CastigateError if ``cast`` takes other arguments than a case and its bits."""
    from inspect import signature

    try:
        takes = signature(oracle.cast)
    except ValueError:
        return  # A function in C does not say what it takes.
    try:
        takes.bind(None, None)
    except TypeError:
        raise CastigateError(
            f"backend `{name}`: cast takes {plain_line(str(takes), SHOWN)}, but it is called with"
            " a case and its bits; write def cast(self, case, bits)"
        ) from None


def _check_types(name: str, oracle: Oracle) -> None:
    """Raise CastigateError unless an oracle's claims are texts and its ``row_limits`` are valid.

    It may lack either. ``name`` is the backend's.
    """
    claims = claims_of(oracle)
    if claims is not None and (
        isinstance(claims, str) or not all(isinstance(claim, str) for claim in claims)
    ):
        raise CastigateError(
            f"backend `{name}`: claims must be a tuple of documents, "
            "each as `name` or `name:version`"
        )
    if isinstance(oracle, WithRowLimits) and not are_row_limits(limits := oracle.row_limits):
        raise CastigateError(
            f"backend `{name}`: row_limits is `{plain_line(repr(limits), SHOWN)}`; it must "
            f"be a tuple of at most {MAX_ROW_LIMITS} whole numbers from 1 to {MAX_ROW_LIMIT:,}"
        )


def _instantiate(name: str) -> Any:
    left, right = _parts(name)
    if left in BUILTINS:
        builtin = BUILTINS[left]
        factory = getattr(importlib.import_module(builtin.module), builtin.attribute)
        return factory(right or None)
    if left in (others := third_party()):
        _module_named(others[left].module)
        factory = others[left].load()
        return factory(right) if right else factory()
    if left.endswith(".py") and right:
        return _attribute(_module_from(Path(left)), right, name)()
    if right and _is_importable(left):
        return _attribute(_module_named(left), right, name)()
    raise CastigateError(f"unknown backend `{name}`; {_hint(name)}")


def _hint(name: str) -> str:
    """Return a correction of a wrong name of a backend, to stand at the end of an error."""
    path = Path(name)
    if name.endswith(".py") and path.is_file():
        classes = _adapters_in(path)
        if not classes:
            return f"no class in it has name, version and cast(case, bits); {OWN_BACKENDS}"
        return f"add its class: {name}:{classes[0]}"
    if name.endswith(".py"):
        return "there is no such file; give path/to/file.py:CLASS"
    if path.is_file():
        return f"for a program write exec:{name if '/' in name else f'./{name}'}"
    if "," in name:
        several = " ".join(f"--backend {each.strip()}" for each in name.split(","))
        return f"for several write {several[:SHOWN]}"
    left, _, variant = name.partition(":")
    if variant and Path(f"{left}.py").is_file():
        return f"did you mean the file {left}.py:{variant}? {OWN_BACKENDS}"
    known = NAMES.get(left.lower()) or closest(left.lower(), BUILTINS)
    meant = f"did you mean `{known}{variant and ':'}{variant}`? " if known else ""
    return f"{meant}castigate backends lists all; {OWN_BACKENDS}"


def _adapters_in(path: Path) -> list[str]:
    """Return the names of the classes in a file that have, or inherit from it, what is needed."""
    members: dict[str, set[str]] = {}
    for node in ast.parse(path.read_text(encoding="utf-8", errors="replace")).body:
        if not isinstance(node, ast.ClassDef):
            continue
        own: set[str] = set()
        for base in node.bases:
            own |= members.get(base.id, set()) if isinstance(base, ast.Name) else {*MEMBERS}
        own.update(each.name for each in node.body if isinstance(each, ast.FunctionDef))
        for each in ast.walk(node):
            match each:
                case (
                    ast.Name(id=member, ctx=ast.Store())
                    | ast.Attribute(attr=member, ctx=ast.Store())
                ):
                    own.add(member)
        members[node.name] = own
    return [name for name, own in members.items() if own.issuperset(MEMBERS)]


MEMBERS = ("name", "version", "cast")
NAMES = {
    "onnxruntime": "ort",
    "ort-cpu": "ort",
    "pytorch": "torch",
    "np": "numpy",
    "tf": "tensorflow",
    "ml-dtypes": "ml_dtypes",
    "paddlepaddle": "paddle",
    "array-api-strict": "array_api_strict",
    "xla": "torch_xla",
    "stable-hlo": "stablehlo",
    "ov": "openvino",
    "wasm": "wasmtime",
    "nodejs": "node",
}
"""Names that people use for built-in backends."""
OWN_BACKENDS = "your own is path/to/file.py:CLASS, package.module:CLASS or exec:COMMAND"


def _parts(name: str) -> tuple[str, str]:
    r"""Split a backend's name into a framework, module or file, and a variant or class.

    A file may have a colon in its path, as ``C:\stack.py:MyStack`` has. Without anything behind
    its colon, the name has no second part.
    """
    if (found := IN_FILE.fullmatch(name)) is not None:
        return found[1], found[2]
    left, _, right = name.partition(":")
    return (left, right) if right else (name, "")


def _is_importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _module_from(path: Path) -> ModuleType:
    if not path.is_file():
        raise CastigateError(f"backend file {path} does not exist; give its path")
    # So it can import what lies beside it, as a script can; at the end, so that no folder there
    # hides a package of Castigate's.
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(f"castigate_backend_{path.stem}", path)
    assert spec is not None
    return _module_from_source(spec)


def _module_named(name: str) -> ModuleType:
    """Return a module by name; unless it is loaded already, execute its source file.

    Its parent packages are imported in any case, because they may set a path. A module without a
    source file is imported as usual.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or name in sys.modules or not isinstance(spec.loader, SourceLoader):
        return importlib.import_module(name)
    return _module_from_source(spec)


def _module_from_source(spec: ModuleSpec) -> ModuleType:
    """Compile and execute a module's source file, and return the module.

    A certificate names the digest of this file. An import could execute a compiled file instead,
    which may hold other code.
    """
    loader, origin = spec.loader, spec.origin
    assert isinstance(loader, SourceLoader)
    assert origin is not None
    code = loader.source_to_code(loader.get_data(origin), origin)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[spec.name]  # as Python does: the next attempt must fail, too
        raise
    return module


def _attribute(module: ModuleType, attribute: str, name: str) -> Callable[[], Any]:
    try:
        factory: Callable[[], Any] = getattr(module, attribute)
    except AttributeError:
        meant = did_you_mean(attribute, [each for each in vars(module) if each[:1] != "_"])
        classes = [
            each
            for each, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        ]
        has = f"it has {', '.join(classes[:MOST_CLASSES])}" if classes else "write one"
        advice = meant.strip() or has
        raise CastigateError(
            f"backend `{name}`: there is no `{attribute}` in it; {advice}"
        ) from None
    return factory


def available_backends() -> str:
    """Return which backends are installed, how to see others, and how to name one's own."""
    return (
        f"installed are {', '.join(installed())}; castigate backends says how to install others;"
        f" {OWN_BACKENDS}"
    )


def installed_version(name: str) -> str:
    """Return the version of an installed backend's package, by its metadata; empty if it has none.

    ``name``, one of ``installed``, has no variant. The package is not imported. The reference has
    Castigate's version. A built-in backend that starts an executable has none.
    """
    # Here and below, because a backend's process does without.
    from importlib.metadata import PackageNotFoundError, packages_distributions, version

    if name not in BUILTINS:
        distribution = third_party()[name].dist
        return distribution.version if distribution is not None else ""
    if (npm := BUILTINS[name].npm) is not None:
        return _npm_version(npm)
    package = BUILTINS[name].package
    if package is None:
        return "" if BUILTINS[name].executable else VERSION
    with suppress(PackageNotFoundError):
        return version(package)
    # Builds for other devices have other names, such as onnxruntime-gpu.
    names = packages_distributions().get(package, ())
    return version(names[0]) if names else ""


def installed() -> Iterator[str]:
    """Yield the names of backends whose framework is installed, without loading any.

    Built-in backends whose package is not on an index are left out. Those of other packages are all
    yielded.
    """
    for name, builtin in BUILTINS.items():
        is_had = builtin.extra or builtin.has_folder or builtin.package is None
        if is_had and _is_installed(builtin):
            yield name
    yield from third_party()


def installed_frameworks() -> Iterator[str]:
    """Yield the installed backends with a package that a night runs unasked.

    Backends of other packages are among them.
    """
    for name in installed():
        builtin = BUILTINS.get(name)
        if builtin is None or (builtin.in_nights and builtin.package is not None):
            yield name


def third_party() -> dict[str, EntryPoint]:
    """Return the entry points, by name, with which other packages register backends."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def _is_installed(builtin: Builtin) -> bool:
    if builtin.executable is not None:
        return shutil.which(builtin.executable) is not None
    if builtin.npm is not None and not _npm_version(builtin.npm):
        return False
    return builtin.package is None or _is_importable(builtin.package)


def _npm_version(name: str) -> str:
    from oracles.npm_packages import npm_version  # Most commands ask for none.

    return npm_version(name)
