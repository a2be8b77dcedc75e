"""The share of items inside a band by hand; Wilson's interval against scipy's."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from esfp import bands, files

pytestmark = pytest.mark.filterwarnings("error")
PROFILE = {
    "T1": {"minus": [0.0, 0.2], "plus": [0.5, 1.0]},
    "T6": {"minus": [0.0, 0.1], "plus": [0.0, 0.1]},
}
COLUMNS = "model item_id type scd_minus scd_plus".split()


@pytest.fixture
def items():
    rows = [
        ("m", "T1-01", "T1", 0.2, 0.5),  # both at the edge: inside
        ("m", "T1-02", "T1", 0.0, 1.0),
        ("m", "T1-03", "T1", 0.3, 0.9),  # stance unasked
        ("m", "T1-04", "T1", 0.1, 0.4),  # too little where asked
        ("m", "T1-05", "T1", np.nan, 0.9),
        ("m", "T1-06", "T1", 0.9, np.nan),  # undefined, though outside already
        ("m", "T6-01", "T6", 0.1, 0.1),
        ("m", "T6-02", "T6", 0.1, 0.11),
        ("m", "T3-01", "T3", 0.0, 0.0),  # not in the profile
        ("n", "T1-01", "T1", np.nan, np.nan),
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_inside_by_hand(items):
    got = bands.inside(items, PROFILE)
    mine = got[got["model"] == "m"].set_index("item_id")["inside"]
    assert "T3-01" not in mine
    expected = [True, True, False, False, pd.NA, pd.NA, True, False]
    assert mine.astype(object).where(mine.notna(), None).tolist() == [
        None if value is pd.NA else value for value in expected
    ]


def test_table_by_hand(items, tmp_path):
    got = bands.table(items, {"reports facts": PROFILE, "T6_only": {"T6": PROFILE["T6"]}}, 0.9)
    rows = got.set_index(["profile", "model"])
    row = rows.loc[("reports facts", "m")]
    assert (row["share"], row["n"], row["undefined"]) == (0.5, 6, 2)
    theirs = binomtest(3, 6).proportion_ci(0.9, method="wilson")
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((theirs.low, theirs.high))
    assert rows.loc[("T6_only", "m"), ["share", "n", "undefined"]].tolist() == [0.5, 2, 0]
    nothing = rows.loc[("reports facts", "n")]
    assert (nothing["n"], nothing["undefined"]) == (0, 1)
    assert nothing[["share", "ci_low", "ci_high"]].isna().all()
    keys = bands.numbers(got)
    assert keys["bootstrap.bands.reports facts.share.n"] is None
    assert keys["bootstrap.bands.T6_only.n.m"] == 2
    files.write_json(tmp_path / "numbers.json", keys)


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 17), (17, 17), (5, 40), (104, 110)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_wilson_equals_scipy(k, n, level):
    items = pd.DataFrame(
        [("m", f"T1-{i:03d}", "T1", 0.0, 0.8 if i < k else 0.1) for i in range(n)],
        columns=COLUMNS,
    )
    row = bands.table(items, {"p": PROFILE}, level).iloc[0]
    theirs = binomtest(k, n).proportion_ci(level, method="wilson")
    assert row["share"] == k / n
    ends = (row["ci_low"], row["ci_high"])
    assert ends == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert 0 <= ends[0] <= ends[1] <= 1


def test_a_profile_of_types_that_are_not_there_has_no_rows(items):
    got = bands.table(items, {"p": {"T9": PROFILE["T1"]}})
    assert got.empty and bands.numbers(got) == {}
