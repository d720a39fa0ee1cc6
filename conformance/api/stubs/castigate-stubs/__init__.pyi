# Made from castigate.py by: REWRITE_DOCS=1 pytest tests/conformance/api/test_stubs.py
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
import numpy as np
from numpy.typing import ArrayLike, NDArray
from conformance.api.arrays import TensorDtype
from conformance.api.questions import DocumentRow, Explanation, FormatRow, Listing, Run
from conformance.api.results import Result
from conformance.extras.checkpoints.results import CheckedCheckpoint
from conformance.extras.portable.agreement import PortableAgreement
from oracles.protocol import Unsupported as Unsupported
from specs.errors import CastigateError as CastigateError
_Dtype = str | type | np.dtype[Any] | TensorDtype
_Mode = Mapping[str, str | int]
_CastFunction = Callable[[NDArray[Any]], ArrayLike]
_TensorFunction = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], ArrayLike] | Callable[[NDArray[Any]], Mapping[str, ArrayLike]]
__all__ = ['CastigateError', 'Unsupported', 'bitcast', 'cast', 'check', 'check_checkpoint', 'documents', 'explain', 'formats', 'judge', 'portable', 'run']
def cast(values: ArrayLike, source: _Dtype, target: _Dtype, *, document: str | None=None, mode: _Mode | None=None, bits: bool=False) -> NDArray[Any]:
    ...
def bitcast(values: ArrayLike, source: _Dtype, target: _Dtype, *, document: str | None=None, bits: bool=False) -> NDArray[Any]:
    ...
def explain(value: ArrayLike, source: _Dtype, target: _Dtype, *, document: str | None=None, backends: Sequence[str]=()) -> Explanation:
    ...
def check(function: _CastFunction | _TensorFunction, source: _Dtype, target: _Dtype, *, document: str | None=None, mode: _Mode | None=None, every: bool=False) -> Result:
    ...
def check_checkpoint(path: str | Path, target: _Dtype, *, source: _Dtype | None=None, document: str | None=None, backends: Sequence[str]=()) -> CheckedCheckpoint:
    ...
def judge(inputs: ArrayLike | Mapping[str, ArrayLike], answers: ArrayLike | Mapping[str, ArrayLike], source: _Dtype | None=None, target: _Dtype | None=None, *, document: str | None=None, mode: _Mode | None=None) -> Result:
    ...
def portable(*backends: str, pair: str, documents: Sequence[str]=(), every: bool=False) -> PortableAgreement:
    ...
def run(*backends: str, documents: Sequence[str]=(), sources: Sequence[_Dtype]=(), targets: Sequence[_Dtype]=(), tier: str='quick', out: str | None=None) -> Run:
    ...
def documents() -> Listing[DocumentRow]:
    ...
def formats() -> Listing[FormatRow]:
    ...
__version__: str
