"""The mixed model of sentences: a simulated truth, statsmodels' own formula, degenerate runs."""

import numpy as np
import pandas as pd
import pingouin
import pytest
import statsmodels.formula.api as smf
from scipy.stats import norm

from esfp import files, mixed

pytestmark = pytest.mark.filterwarnings("error")
CONTRAST = ["P1", "P2"]
SHIFTS = {"T1": 0.4, "T2": 0.2, "T6": 0.0}


def simulated(items=40, sentences=6, models=("m",), seed=0, spread=0.1):
    """0/1 stances with known shifts by type and a level of its own for each item."""
    rng = np.random.default_rng(seed)
    rows = []
    for model in models:
        for kind, shift in SHIFTS.items():
            for i, level in enumerate(rng.normal(0.3, spread, items).clip(0.05, 0.55)):
                for phrasing in CONTRAST:
                    p = level + (shift if phrasing == "P2" else 0.0)
                    for stance in rng.random(sentences) < p:
                        rows.append((model, f"{kind}-{i:02d}", kind, phrasing, float(stance)))
    return pd.DataFrame(rows, columns="model item_id type phrasing stance".split())


def test_sentences_are_those_with_content():
    judged = pd.DataFrame(
        {
            "model": "m",
            "item_id": "T1-01",
            "type": "T1",
            "phrasing": ["P1", "P1", "P2", "P2", "P3"],
            "label": ["A", "C", "B", None, "B"],
        }
    )
    table = mixed.sentences(judged)
    assert table["phrasing"].tolist() == ["P1", "P2", "P3"]
    assert table["stance"].tolist() == [0.0, 1.0, 1.0]


def test_finds_the_shifts_it_was_given():
    found = mixed.contrasts(simulated(40, 20), CONTRAST).set_index("type")
    for kind, shift in SHIFTS.items():
        row = found.loc[kind]
        assert row["difference"] == pytest.approx(shift, abs=0.06)
        assert row["sentences"] == 40 * 2 * 20 and row["reason"] == ""
    assert found.loc["T1", "ci_low"] > 0.3 and found.loc["T1", "p_holm"] < 1e-6
    assert found.loc["T6", "ci_low"] < 0 < found.loc["T6", "ci_high"]


def test_equals_the_formula_with_an_interaction():
    table = simulated(20, 8, seed=3, spread=0.15)
    found = mixed.contrasts(table, CONTRAST, 0.9).set_index("type")
    fitted = smf.mixedlm("stance ~ phrasing * type", table, groups="item_id").fit(
        reml=True, method=["bfgs", "powell"]
    )
    for kind in SHIFTS:
        terms = ["phrasing[T.P2]", f"phrasing[T.P2]:type[T.{kind}]"]
        theirs = fitted.t_test(fitted.fe_params.index.isin(terms).astype(float)[None])
        row = found.loc[kind]
        assert row["difference"] == pytest.approx(theirs.effect.item(), abs=1e-4)
        error = (row["ci_high"] - row["ci_low"]) / 2 / norm.ppf(0.95)
        assert error == pytest.approx(theirs.sd.item(), rel=1e-3)
        assert row["p"] == pytest.approx(theirs.pvalue.item(), rel=1e-2)


def test_holm_is_within_a_model():
    found = mixed.contrasts(simulated(15, 3, ("m", "n"), seed=5), CONTRAST)
    for _, part in found.groupby("model"):
        _, theirs = pingouin.multicomp(part["p"].to_numpy(), method="holm")
        np.testing.assert_allclose(part["p_holm"], theirs)


def test_a_type_without_a_phrasing_has_no_contrast_and_the_others_have():
    table = simulated(20, 4)
    table = table[(table["type"] != "T2") | (table["phrasing"] != "P2")]
    found = mixed.contrasts(table, CONTRAST).set_index("type")
    assert found.loc["T2", "reason"] == "no content sentence under P1 or P2"
    assert found.loc["T2", ["difference", "ci_low", "p", "p_holm"]].isna().all()
    rest = found.drop("T2")
    assert rest["difference"].notna().all()
    _, theirs = pingouin.multicomp(rest["p"].to_numpy(), method="holm")
    np.testing.assert_allclose(rest["p_holm"], theirs)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.assign(stance=1.0), "all content sentences have the same label"),
        (lambda t: t[t["item_id"] == "T1-00"], "a random intercept needs two items"),
    ],
)
def test_says_why_there_is_no_estimate(change, reason, tmp_path):
    whole = simulated(10, 4, ("m", "n"))
    part = change(whole[whole["model"] == "m"])
    if part["stance"].nunique() > 1:
        assert reason.startswith("a random")
    found = mixed.contrasts(pd.concat([part, whole[whole["model"] == "n"]]), CONTRAST)
    mine = found[found["model"] == "m"]
    assert (mine["reason"] == reason).all() and mine["difference"].isna().all()
    assert found[found["model"] == "n"]["p_holm"].notna().all()
    keys = mixed.numbers(found)
    assert keys["score.mixed.difference.m.T1"] is None
    assert keys["score.mixed.difference.n.T1"] is not None
    files.write_json(tmp_path / "numbers.json", keys)


def test_no_sentence_at_all():
    table = simulated(2, 1).iloc[:0]
    found = mixed.contrasts(table, CONTRAST)
    assert found.empty and mixed.numbers(found) == {}


@pytest.mark.parametrize("seed", range(3))
def test_few_sentences_neither_crash_nor_warn(seed):
    table = simulated(2, 1, seed=seed)
    found = mixed.contrasts(table, CONTRAST)
    assert found["difference"].isna().equals(found["reason"].ne(""))
    assert found["p"].dropna().between(0, 1).all()


def test_items_without_spread_have_an_estimate():
    """The variance of the items is at its edge, zero; the contrast is the difference of means."""
    table = simulated(30, 4, spread=0.0, seed=2)
    found = mixed.contrasts(table, CONTRAST).set_index("type")
    means = table.groupby(["type", "phrasing"])["stance"].mean().unstack()
    np.testing.assert_allclose(
        found["difference"], (means["P2"] - means["P1"])[found.index], atol=1e-6
    )
