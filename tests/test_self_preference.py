"""A judge and its own vendor's models: who is compared with whom, and what a bias looks like."""

import numpy as np
import pandas as pd
import pytest

from esfp import params, self_preference
from tests.test_agreement import labelled


def models(**vendors):
    return [{"name": name, "vendor": vendor} for name, vendor in vendors.items()]


@pytest.mark.parametrize(
    ("judges", "expected"),
    [
        ({"x": "v"}, {"x": (["m"], ["n", "o"])}),
        ({"x": " V "}, {"x": (["m"], ["n", "o"])}),
        # o is of the other judge's vendor, which may favour it; so is m for the other judge
        ({"x": "v", "y": "u"}, {"x": (["m"], ["n"]), "y": (["o"], ["n"])}),
        ({"x": "v", "y": "u", "z": "w"}, {"x": (["m"], ["n", "o"]), "y": (["o"], ["m", "n"])}),
        ({"x": "q"}, {}),
        ({"x": ""}, {}),
    ],
)
def test_who_is_compared(judges, expected):
    candidates = models(m="v", n="w", o="u", p="")
    found = self_preference.sides(models(**judges), candidates)
    if "z" in judges:
        assert found.pop("z") == (["n"], ["m", "o"])
    assert found == expected
    assert self_preference.sides([{"name": "x", "kind": "words"}], candidates) == {}
    assert self_preference.sides(models(x="v"), models(m="v", o="V")) == {}


SIDES = {"x": (["m"], ["n"])}


def row(frame, measure, judges="xyz"):
    table = self_preference.compare(frame, list(judges), SIDES)
    assert set(table["judge"]) == {"x"}
    return table.set_index("measure").loc[measure]


def test_measures_by_hand():
    frame = labelled(models=("m", "n"))
    frame.loc[::7, "label_y"] = None
    own = frame[frame["model"] == "m"]
    both = own[own["label_y"].notna()]
    agreed = row(frame, "agreement with y")
    assert agreed["own"] == pytest.approx((both["label_x"] == both["label_y"]).mean())
    assert agreed["difference"] == pytest.approx(agreed["own"] - agreed["others"])
    assert agreed["difference_low"] < agreed["difference"] < agreed["difference_high"]
    is_b = {name: both[f"label_{name}"] == "B" for name in "xyz"}
    beyond = is_b["x"].mean() - (is_b["y"].mean() + is_b["z"].mean()) / 2
    assert row(frame, "beyond_B")["own"] == pytest.approx(beyond)
    assert row(frame, "share_B")["own"] == pytest.approx((own["label_x"] == "B").mean())
    right = ((own["label_x"] == "B") & (own["reference"] == "B")).sum()
    assert row(frame, "precision_B")["own"] == pytest.approx(right / (own["label_x"] == "B").sum())
    assert row(frame, "recall_B")["own"] == pytest.approx(right / (own["reference"] == "B").sum())


def test_a_models_own_bs_are_no_bias_and_a_judges_are():
    frame = labelled(models=("m", "n"), sentences=1200)
    mine = frame["model"] == "m"
    says_more = frame.copy()
    changed = mine & (np.arange(len(frame)) % 5 == 0)
    says_more.loc[changed, ["reference", "label_x", "label_y", "label_z"]] = "B"
    assert row(says_more, "share_B")["difference_low"] > 0
    beyond = row(says_more, "beyond_B")
    assert beyond["difference_low"] < 0 < beyond["difference_high"]
    favours = frame.copy()
    favours.loc[changed, "label_x"] = "B"
    assert row(favours, "beyond_B")["difference_low"] > 0
    assert row(favours, "precision_B")["difference_high"] < 0
    assert row(favours, "agreement with z")["difference_high"] < 0


def test_what_is_undefined_has_no_row():
    frame = labelled(models=("m", "n"), judges="x")
    frame.loc[frame["model"] == "n", "reference"] = None
    table = self_preference.compare(frame, ["x"], SIDES)
    assert table["measure"].tolist() == ["share_B"]
    out = self_preference.results(table)
    assert set(out) == {f"judge.own_vendor.share_B{end}.x" for end in ("", "_low", "_high")}
    assert self_preference.compare(frame, ["x"], {}).empty
    assert self_preference.results(pd.DataFrame()) == {}
    assert "nothing to compare" in self_preference.note({})
    assert self_preference.note(SIDES) == "- **x**: its own vendor's `m`; others: `n`"


RUN = """
providers: {p: {base_url: http://here}}
generate: {candidates: [{name: m, vendor: V, provider: p}]}
judge: {judges: [{name: j, kind: llm, provider: p, model: i}]}
"""


def test_the_vendor_reaches_the_judge_stage_alone(tmp_path):
    path = tmp_path / "run.yaml"
    stages = []
    for text in (RUN, RUN.replace("kind: llm", "kind: llm, vendor: V")):
        path.write_text(text)
        values = params.load(path)
        stages.append({s: params.stage_parameters(values, s, "run") for s in params.STAGES})
    before, after = stages
    assert {stage for stage in before if before[stage] != after[stage]} <= {"judge", "figures"}
    assert after["judge"]["judges"][0]["vendor"] == "V"
    assert [model["vendor"] for model in after["judge"]["models"]] == ["V"]
