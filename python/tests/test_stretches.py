"""How fast requests complete with so many in flight."""

import numpy as np
import pytest
from factory import MS

from iosonar.quantities.stretches import Stretch, service_rates, together


@pytest.mark.parametrize("moved", [True, False])
def test_the_time_of_a_flush_counts_for_no_depth(moved: bool) -> None:
    # Fifty reads wait for the first request, and complete soon after it.
    number = np.arange(1, 51)
    issued = np.append(0, number * MS)
    completed = np.append(100 * MS, 100 * MS + number * MS // 100)
    nothing = np.zeros(51, np.int64)
    part = Stretch(issued, completed, nothing, nothing + 8, nothing == 0, np.append(moved, np.ones(50, bool)))
    seconds = together(list(service_rates(part))).seconds.sum()
    assert seconds == pytest.approx(100.5e-3 if moved else 0.5e-3)
