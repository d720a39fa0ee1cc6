"""Reads the run of a gate that somebody else ran; the gate's certificate must hold."""

from __future__ import annotations

from pathlib import Path

from conformance.extras.board.board_file import Reported
from conformance.extras.board.rows import Attempt, read_good_run
from conformance.running.run import asked_names
from reports.gate.canonical_json import read_canonical
from reports.gate.certificate import FILE
from reports.gate.certificate_check import (
    certificate_bytes,
    check_seals,
    differences,
    load_evidence,
)
from specs.errors import CastigateError


def read_reported(by: str, gate: Path) -> list[Attempt]:
    """Check the certificate of a gate, and return the attempts of its run.

    ``by`` is who ran the gate. No backend is asked again. Raise CastigateError if the certificate
    does not hold: its seals are broken, or a file of the folder or the results of the run differ.
    """
    file = gate / FILE
    content = read_canonical(certificate_bytes(file), str(file))
    signer = check_seals(content, str(file), None)
    evidence = load_evidence(content, gate, asked_names, str(file))
    if found := differences(content, evidence):
        raise CastigateError(
            f"{file} does not match its run: {found[0]}; get the original folder of the gate,"
            f" or leave --reported {by}=… out"
        )
    reported = Reported(
        by=by, certificate=content["digest"], signer=signer or "", result=content["result"]
    )
    return read_good_run(evidence.store, reported)
