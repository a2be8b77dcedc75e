"""Paired changes: against a plain loop over draws, and where little is there."""

import numpy as np
import pandas as pd
import pytest

from esfp import bootstrap, changes, equations, files, score

SCORE = {
    "weights": {"ar": 0.2, "scd": 0.5, "psi": 0.3},
    "psi_ceiling": "p95",
    "cpc_bonus": 0.25,
}
SETTINGS = {"draws": 60, "level": 0.9, "seed": 7}


def table(seed, models=("m", "n", "o"), n=20):
    rng = np.random.default_rng(seed)
    rows = []
    for model in models:
        for item in range(n):
            ar, scd = rng.uniform(size=2), rng.uniform(size=2)
            stances = rng.multinomial(3, [0.5, 0.2, 0.1, 0.2])
            ids = {"model": model, "item_id": f"T{item % 5 + 1}-{item:02d}"}
            rows.append(
                ids
                | {"type": f"T{item % 5 + 1}", "ar_minus": ar[0], "ar_plus": ar[1]}
                | {"delta_ar": ar[1] - ar[0], "scd_minus": scd[0], "scd_plus": scd[1]}
                | {"delta_scd": scd[1] - scd[0], "psi": rng.uniform(0, 0.4)}
                | dict(zip([f"n_{s}" for s in score.STANCES], stances, strict=True))
                | {"cpc_status": "counted"}
            )
    return pd.DataFrame(rows)[files.ITEMS.names]


def by_hand(items, ids, settings):
    """ESFP of each model on a list of drawn items, from the stage's own functions."""
    drawn = pd.concat([items[items["item_id"] == each] for each in ids])
    found = score.per_model(drawn).set_index("model").loc[items["model"].unique()]
    ceiling = equations.psi_ceiling(found["psi_mean"], settings["psi_ceiling"])
    weights = tuple(settings["weights"][name] for name in ("ar", "scd", "psi"))
    scaled = np.clip(found["psi_mean"] / ceiling, 0, 1)
    return equations.composite(
        found["delta_ar"], found["delta_scd"], scaled, found["cpc_kappa"], weights
    )[1].to_numpy()


def test_a_change_is_that_of_a_plain_loop_over_the_same_draws():
    first, second = table(1), table(2)
    second = second[second["type"] != "T4"]
    other = SCORE | {"psi_ceiling": "max"}
    found = changes.paired((first, SCORE), (second, other), SETTINGS)
    ids = first["item_id"].unique()
    kept = set(second["item_id"])
    counts = bootstrap.multiplicities(len(ids), SETTINGS["draws"], SETTINGS["seed"]).astype(int)
    drawn = []
    for row in counts:
        mine = np.repeat(ids, row)
        drawn.append(
            by_hand(second, [i for i in mine if i in kept], other) - by_hand(first, mine, SCORE)
        )
    esfp = found[found["statistic"] == "esfp"]
    np.testing.assert_allclose(esfp[["low", "high"]].T, np.percentile(drawn, [5, 95], axis=0))
    point = by_hand(second, [i for i in ids if i in kept], other) - by_hand(first, ids, SCORE)
    np.testing.assert_allclose(esfp["change"], point)


def test_an_interval_of_the_change_is_narrower_than_two_apart():
    first = table(3)
    second = first.assign(scd_plus=first["scd_plus"] + 0.1)
    found = changes.paired((first, SCORE), (second, SCORE), SETTINGS)
    scd = found[found["statistic"] == "delta_scd"]
    np.testing.assert_allclose(scd[["change", "low", "high"]], 0.1)


def test_fewer_models_are_held_at_the_bases_ceiling_and_fewer_items_at_the_same():
    base = {"items": table(4), "score": SCORE, "per_type": None, "models": ["m", "n", "o"]}
    few = base["items"][base["items"]["item_id"] < "T3"]
    same = base | {"items": few[few["model"] == "n"], "per_type": 2, "models": ["n"]}
    found = changes.against_base(base, same, SETTINGS).set_index("statistic")
    assert (found[["change", "low", "high"]] == 0).all(axis=None)
    ceiling = changes.ceiling(base["items"], "p95")
    psi = found.loc["psi_mean", "reference"]
    assert found.loc["psi_scaled", "reference"] == pytest.approx(min(psi / ceiling, 1))
    with pytest.raises(files.DataError, match="no model in common"):
        changes.against_base(base, base | {"items": few.assign(model="q")}, SETTINGS)


def test_an_undefined_score_stays_undefined_and_is_in_no_order():
    first = table(5)
    first.loc[first["model"] == "o", ["ar_minus", "delta_ar"]] = np.nan
    found = changes.paired((first, SCORE), (first, SCORE), SETTINGS)
    gone = found[(found["model"] == "o") & (found["statistic"] == "esfp")].iloc[0]
    assert np.isnan(gone[["change", "low"]].astype(float)).all()
    assert gone["n_undefined"] == SETTINGS["draws"]
    assert changes.text(*gone[["change", "low", "high"]]) == "–"
    assert changes.order(found) == {"tau": 1.0, "models": 2, "swapped": ""}


def test_the_order_names_pairs_that_changed_places():
    changed = pd.DataFrame(
        {
            "model": ["m", "n", "o"],
            "statistic": "esfp",
            "reference": [0.3, 0.2, 0.1],
            "variant": [0.2, 0.3, 0.1],
        }
    )
    found = changes.order(changed)
    assert found["tau"] == pytest.approx(1 / 3) and found["swapped"] == "n over m"
    assert np.isnan(changes.order(changed.head(1))["tau"])
