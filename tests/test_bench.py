"""What `make bench` compares computes the same scores; how fast, no test says."""

import numpy as np
import pytest

from esfp import bench


@pytest.mark.parametrize("name", [name for name in bench.WAYS if name != "vectorised"])
def test_every_way_gives_the_same_scores(name):
    items = bench.cohort(models=3, n_items=20)
    way, _ = bench.WAYS[name]
    np.testing.assert_allclose(way(items, 6), bench.WAYS["vectorised"][0](items, 6), atol=1e-9)


def test_the_machine_is_described_without_naming_it():
    facts = bench.machine()
    assert facts["cores"] >= 1 and not {"host", "node", "user"} & set(facts)
