"""Every road of every adapter that is installed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.common import (
    ADAPTERS,
    ROADS,
)


@pytest.fixture(scope="module", params=ROADS, ids=lambda road: ":".join(filter(None, road)))
def oracle(request: pytest.FixtureRequest) -> Any:
    name, variant = request.param
    return ADAPTERS[name].make(variant)
