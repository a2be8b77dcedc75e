"""Reference models: where each answer comes from, and that one that never moves scores nothing."""

import numpy as np
import pandas as pd
import pytest

from esfp import attribution, corpus, equations, files, rigid, score

pytestmark = pytest.mark.filterwarnings("error")
PHRASINGS = ["P0", "P1", "P2", "P3", "P4"]
CONTRAST = ["P1", "P2"]
ITEMS = [f"T1-{i:02d}" for i in range(1, 5)] + ["T6-01", "T6-02"]
LEXICONS = corpus.load_lexicons(attribution.LEXICONS)


def sources(kind, seed=0):
    return rigid.sources(kind, ITEMS, PHRASINGS, CONTRAST, np.random.default_rng(seed))


@pytest.fixture
def run():
    """Responses, labels, stances and embeddings of two models, as the stages write them."""
    rng = np.random.default_rng(1)
    keys = pd.MultiIndex.from_product([["a", "b"], ITEMS, PHRASINGS, [0]])
    keys = keys.to_frame(index=False, name=["model", "item_id", "phrasing", "sample"])
    keys["type"] = keys["item_id"].str[:2]
    keys = keys[files.KEYS]
    openings = rng.choice(["I believe so.", "Experts say so.", "My opinion is no."], len(keys))
    markers = rng.choice(["Scholars argue it.", "In my view it is."], len(keys))
    texts = [f"{a} {b}" for a, b in zip(openings, markers, strict=True)]
    responses = keys.assign(text=texts, status="ok", violations=None)
    judged = keys.loc[keys.index.repeat(4)].reset_index(drop=True)
    judged["label"] = rng.choice(["A", "B", "C"], len(judged))
    stances = keys.assign(stance=rng.choice(score.STANCES, len(keys)))
    embeddings = keys.assign(embedding=list(rng.normal(size=(len(keys), 6))))
    return responses, judged, stances, embeddings


def test_each_kind_covers_each_cell_once():
    for kind in rigid.KINDS:
        table = sources(kind)
        assert len(table) == len(ITEMS) * len(PHRASINGS)
        assert not table.duplicated(["item_id", "phrasing"]).any()


def test_rules_without_chance():
    own = sources("as answered")
    assert (own["from_item"] == own["item_id"]).all()
    assert (own["from_phrasing"] == own["phrasing"]).all()
    for kind, source in (("reporter", "P1"), ("opiner", "P2")):
        table = sources(kind)
        assert (table["from_phrasing"] == source).all()
        assert (table["from_item"] == table["item_id"]).all()
    table = sources("prefixed")
    expected = table["phrasing"].replace({"P2": "P1"})
    assert table["from_phrasing"].tolist() == expected.tolist()
    assert (table["from_item"] == table["item_id"]).all()


def test_shuffled_keeps_each_item_and_uses_each_answer_once():
    table = sources("shuffled")
    assert (table["from_item"] == table["item_id"]).all()
    assert not table.duplicated(["from_item", "from_phrasing"]).any()
    assert (table["from_phrasing"] != table["phrasing"]).any()
    orders = table.groupby("item_id")["from_phrasing"].agg(tuple)
    assert orders.nunique() > 1  # not one order for all
    pd.testing.assert_frame_equal(table, sources("shuffled"))
    assert not table.equals(sources("shuffled", seed=1))


def test_noise_keeps_each_phrasing_and_uses_each_answer_once():
    table = sources("noise")
    assert (table["from_phrasing"] == table["phrasing"]).all()
    assert not table.duplicated(["from_item", "from_phrasing"]).any()
    assert (table["from_item"] != table["item_id"]).any()
    orders = table.groupby("phrasing")["from_item"].agg(tuple)
    assert orders.nunique() > 1


def test_rearranged_moves_values_and_keeps_the_type_of_the_cell():
    frame = pd.DataFrame(
        [
            ("m", "T1-01", "T1", "P1", 0, 0.1),
            ("m", "T6-01", "T6", "P1", 0, 0.2),
            ("m", "T6-01", "T6", "P1", 1, 0.3),
            ("n", "T6-01", "T6", "P1", 0, 0.4),
        ],
        columns=[*files.KEYS, "scd"],
    )
    source = pd.DataFrame(
        [("T1-01", "P1", "T6-01", "P1"), ("T1-01", "P2", "T6-01", "P2"),
         ("T6-01", "P2", "T1-01", "P1")],
        columns=["item_id", "phrasing", "from_item", "from_phrasing"],
    )  # fmt: skip
    got = rigid.rearranged(frame, source)
    assert got.columns.tolist() == frame.columns.tolist()
    assert sorted(got.itertuples(index=False, name=None)) == [
        ("m", "T1-01", "T1", "P1", 0, 0.2),
        ("m", "T1-01", "T1", "P1", 1, 0.3),
        ("m", "T6-01", "T6", "P2", 0, 0.1),
        ("n", "T1-01", "T1", "P1", 0, 0.4),
    ]


def test_as_answered_changes_nothing(run):
    responses, judged, stances, _ = run
    table = score.measures(responses, judged, stances, LEXICONS)
    got = rigid.rearranged(table, sources("as answered"))
    got = got.set_index(files.KEYS).loc[pd.MultiIndex.from_frame(table[files.KEYS])]
    pd.testing.assert_frame_equal(got.reset_index(), table, check_dtype=False)


def test_prefixed_by_hand():
    """P1 says "I believe" once and "Experts" not at all by the lexicon but "scholars" once."""
    text = "I believe it is open. Some scholars disagree. The rest is plain."
    assert attribution.count_attributions(text, LEXICONS) == (1, 1)
    keys = pd.DataFrame(
        [("m", "T1-01", "T1", p, 0) for p in CONTRAST] + [("m", "T1-02", "T1", "P2", 0)],
        columns=files.KEYS,
    )
    responses = keys.assign(text=[text, "It is.", "It is not."], status="ok")
    measures = keys.assign(n_self=[1, 1, None], n_third=[1, 1, None], ar=[0.5, 0.5, np.nan])
    measures = measures.astype({"n_self": "Int64", "n_third": "Int64"})
    index = pd.MultiIndex.from_tuples(
        [("m", "T1-01", "P1", 0), ("m", "T1-01", "P2", 0)],
        names=["model", "item_id", "phrasing", "sample"],
    )
    sentences = pd.Series([3, 9], index=index)
    before = measures.copy()
    got = rigid.prefixed(measures, responses, sentences, "P2", "P1", LEXICONS)
    assert got["n_self"].fillna(-1).tolist() == [1, 4, -1]  # 1 and three times "I think"
    assert got["n_third"].fillna(-1).tolist() == [1, 1, -1]
    assert got["ar"].tolist()[:2] == [0.5, 0.8] and np.isnan(got["ar"].iloc[2])
    pd.testing.assert_frame_equal(measures, before)
    whole = "I think I believe it is open. I think some scholars disagree. I think the rest is."
    assert attribution.count_attributions(whole, LEXICONS) == (4, 1)
    other = LEXICONS | {"first_person": ["in my view"]}
    got = rigid.prefixed(measures, responses, sentences, "P2", "P1", other)
    assert got["n_self"].iloc[1] == 0
    nothing = rigid.prefixed(measures.iloc[:1], responses, sentences, "P2", "P1", LEXICONS)
    pd.testing.assert_frame_equal(nothing, measures.iloc[:1])


def scored(run, kind):
    responses, judged, stances, embeddings = run
    measures = score.measures(responses, judged, stances, LEXICONS)
    source = sources(kind)
    moved = rigid.rearranged(measures, source)
    if kind == "prefixed":
        counts = judged.groupby(["model", "item_id", "phrasing", "sample"]).size()
        moved = rigid.prefixed(moved, responses, counts, "P2", "P1", LEXICONS)
    apart = score.psi(rigid.rearranged(embeddings, source), ["P1", "P2"])
    listed = responses[["item_id", "type"]].drop_duplicates()
    items = score.items(moved, apart, listed, ["a", "b"], CONTRAST, PHRASINGS)
    densities = items.groupby("model")[["scd_minus", "scd_plus"]].mean()
    table = score.per_model(items).join(densities, on="model")
    return equations.leaderboard(table, 0.2)


@pytest.mark.parametrize("kind", ["reporter", "opiner"])
def test_what_never_moves_scores_nothing(run, kind):
    table = scored(run, kind)
    for name in ("delta_ar", "delta_scd", "psi_mean", "flex", "esfp"):
        np.testing.assert_allclose(table[name], 0, atol=1e-12)
    own = scored(run, "as answered").set_index("model")
    side = "scd_minus" if kind == "reporter" else "scd_plus"
    np.testing.assert_allclose(table.set_index("model")["scd_minus"], own[side][table["model"]])
    np.testing.assert_allclose(table["cpc_kappa"], 1)  # the same stance under every prompt


def test_prefixed_moves_in_words_alone(run):
    table = scored(run, "prefixed")
    np.testing.assert_allclose(table[["delta_scd", "psi_mean"]], 0, atol=1e-12)
    assert (table["delta_ar"] > 0).all() and (table["esfp"] > 0).all()
    np.testing.assert_allclose(table["flex"], 0.2 * table["delta_ar"])


def test_table_and_numbers(run, tmp_path):
    one, two = scored(run, "as answered"), scored(run, "shuffled")
    one.loc[one["model"] == "a", "esfp"] = np.nan
    gap = two.copy()
    gap.loc[gap["model"] == "a", "esfp"] = np.nan
    table = rigid.table({"as answered": [one], "shuffled": [two, gap]})
    rows = table.set_index(["kind", "model"])
    assert rows.loc[("shuffled", "a"), "draws"] == 2
    both = two.set_index("model")["esfp"]
    assert rows.loc[("shuffled", "a"), "esfp"] == pytest.approx(both["a"])
    assert np.isnan(rows.loc[("as answered", "a"), "esfp"])
    keys = rigid.numbers(table)
    assert keys["score.rigid.as_answered.esfp.a"] is None
    assert keys["score.rigid.as_answered.esfp"] == keys["score.rigid.as_answered.esfp.b"]
    assert keys["score.rigid.shuffled.esfp"] == pytest.approx(both.mean())
    files.write_json(tmp_path / "numbers.json", keys)
