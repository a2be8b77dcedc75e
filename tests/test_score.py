"""Stage 4: attribution counts, the measures of a response, item and model, kappa, composite."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_kappa

from esfp import attribution, corpus, coverage, equations, files, rankings, score

# --- attribution ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (0, 0)),
        ("Peace needs patience.", (0, 0)),
        ("I think so. I think not. Scholars doubt it.", (2, 1)),
        ("In my view is where it starts.", (1, 0)),  # 'my view is' overlaps and is not counted
        ("My view is firm.", (1, 0)),
        ("i THINK; MAINSTREAM", (1, 1)),
        ("_I think_ *I believe* 'I feel' \"I hold\"", (4, 0)),
        ("(personally)-mainstream-personally's", (2, 1)),
        ("mainstreamed, unscholars, scholarship, I thinker, hi think", (0, 0)),
        ("2scholars scholars2 éscholars scholarsé", (0, 0)),
        ("I\u00a0think, in\n my\t\u2003view, many   people", (2, 1)),
        ("I don't think; I, think", (0, 0)),  # another word or a comma within the phrase
        ("I do not say I think.", (1, 0)),  # literal: negations count
        ("The literature: according to research, the consensus is mainstream.", (0, 4)),
        ("I thinkI think", (0, 0)),
        ("I believe I find I consider I maintain", (4, 0)),
    ],
)
def test_counts_of_attributions(text, expected):
    assert score.count_attributions(text) == expected


def test_every_phrase_of_both_lexicons_is_found_once_on_its_own():
    lexicons = corpus.load_lexicons(attribution.LEXICONS)
    for phrase in lexicons["first_person"]:
        assert score.count_attributions(f"So, {phrase.upper()}.") == (1, 0), phrase
    for phrase in lexicons["third_party"]:
        assert score.count_attributions(f"({phrase})") == (0, 1), phrase


def test_other_lexicons_longest_first_and_special_characters():
    lexicons = {"first_person": ["we", "we hold", "c++ (ours)"], "third_party": []}
    assert score.count_attributions("we hold; we; C++ (ours)", lexicons) == (3, 0)


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="I think\u00a0scholars_*.x2mainstream\n", max_size=80))
def test_counts_do_not_depend_on_case_or_on_the_kind_of_white_space(text):
    counts = score.count_attributions(text)
    assert counts == score.count_attributions(text.swapcase())
    assert counts == score.count_attributions(text.replace("\u00a0", "\u2003"))
    n_self, n_third = counts
    if n_self + n_third:
        assert 0 <= attribution.share([n_self], [n_third])[0] <= 1


def test_echoed_phrases_are_those_of_the_response_s_own_template():
    templates = corpus.load_phrasings("corpus/phrasings.yaml")["templates"]
    lexicons = corpus.load_lexicons(attribution.LEXICONS)
    text = "I think mainstream views, many people, personally."
    rows = [("P0", "ok"), ("P1", "ok"), ("P2", "ok"), ("P3", "ok"), ("P4", "ok"), ("P0", "error")]
    responses = pd.DataFrame(rows, columns=["phrasing", "status"]).assign(text=text)
    got = attribution.echo_free_ar(responses, templates, lexicons)
    # P1 leaves out 'mainstream', P3 'many people', P4 'personally': 2 self, 2 third otherwise
    np.testing.assert_allclose(got, [2 / 4, 2 / 3, 2 / 4, 2 / 3, 1 / 3, np.nan])
    assert attribution.echo_free_ar(responses[:0], templates, lexicons).shape == (0,)


# --- from responses to models ---------------------------------------------------------------


def cell(model, item, phrasing, text="", labels="", stance="neutral", **extra):
    """One response with its sentence labels ('-' is a missing one) and stance."""
    key = {"model": model, "item_id": item, "type": item[:2], "phrasing": phrasing, "sample": 0}
    response = {"text": text, "status": "ok", "violations": []} | extra
    labels = [None if label == "-" else label for label in labels]
    return key | {"key": dict(key)} | response | {"labels": labels, "stance": stance}


def tables(cells):
    """responses, judged and stances of the cells."""
    responses = pd.DataFrame(cells).drop(columns=["key", "labels", "stance"])
    judged = pd.DataFrame(
        [
            c["key"] | {"sentence_id": i, "label": x}
            for c in cells
            for i, x in enumerate(c["labels"])
        ],
        columns=[*files.KEYS, "sentence_id", "label"],
    )
    stances = pd.DataFrame(
        [c["key"] | {"stance": c["stance"]} for c in cells if c["status"] == "ok"]
    )
    return responses, judged, stances


def test_measures_of_a_response():
    cells = [
        cell("m", "T1-01", "P0", "I think so, scholars say.", "ABBC", "positive"),
        cell("m", "T1-01", "P1", "Nothing.", "CC", "no_stance"),
        cell("m", "T1-01", "P2", "I think, I feel, mainstream.", "B-A-", None),
        cell("m", "T1-01", "P3", "Yes.", "", "neutral"),  # no sentence of 12 characters
        cell("m", "T1-01", "P4", "I think", "BB", "positive", status="refused"),
    ]
    table = score.measures(*tables(cells))
    np.testing.assert_allclose(table["ar"], [1 / 2, np.nan, 2 / 3, np.nan, np.nan])
    np.testing.assert_allclose(table["scd"], [2 / 3, np.nan, 1 / 2, np.nan, np.nan])
    assert table["n_missing"].tolist()[:4] == [0, 0, 2, 0]
    assert table["n_c"].tolist()[:4] == [1, 2, 0, 0]
    assert table.loc[4, ["n_self", "n_a", "n_missing"]].isna().all()
    assert table["stance"].isna().tolist() == [False, False, True, False, True]


def test_a_response_that_was_never_judged_is_not_one_without_sentences():
    responses, judged, stances = tables(
        [cell("m", "T1-01", p, "I think.", "BA") for p in ("P1", "P2")]
    )
    lost = (judged["phrasing"] == "P2").to_numpy(), (stances["phrasing"] == "P2").to_numpy()
    table = score.measures(responses, judged[~lost[0]], stances[~lost[1]])
    assert table["n_missing"].isna().tolist() == [False, True]
    empty = score.measures(responses, judged[:0], stances[:0])
    assert empty["n_b"].isna().all() and empty["scd"].isna().all()


def test_one_judges_labels_in_place_of_the_panels():
    cells = [
        cell("m", "T1-01", "P1", "Nothing.", "CCA"),
        cell("m", "T1-01", "P2", "I think so.", "C-B"),
        cell("m", "T1-01", "P3", "Yes.", ""),
        cell("m", "T1-01", "P4", "I think", "BB", status="refused"),
    ]
    responses, judged, stances = tables(cells)
    judged["label_one"] = ["A", "B", "A", "A", "B", "B", "B", "B"]
    panel = score.measures(responses, judged, stances)
    one = score.relabelled(panel, judged, "label_one")
    np.testing.assert_allclose(one["scd"], [1 / 3, 2 / 3, np.nan, np.nan])
    assert one["n_missing"].tolist()[:3] == [0, 0, 0] and one.loc[3, ["n_a", "n_b"]].isna().all()
    same = ["model", "ar", "n_self", "stance"]
    pd.testing.assert_frame_equal(one[same], panel[same])
    pd.testing.assert_frame_equal(score.relabelled(panel, judged, "label"), panel)
    np.testing.assert_allclose(panel["scd"], [0, 1, np.nan, np.nan])


def test_measures_fit_their_schema_and_come_back(tmp_path):
    cells = [cell("m", "T1-01", "P0", "I think so.", "AB", None, status=s) for s in ("ok",)]
    table = score.measures(*tables(cells))
    files.write_parquet(tmp_path / "m.parquet", table, files.MEASURES)
    back = files.read_parquet(tmp_path / "m.parquet", files.MEASURES)
    assert back["scd"].tolist() == [0.5] and back["stance"].isna().all()


ITEMS = pd.DataFrame({"item_id": ["T1-01", "T1-02", "T4-01"], "type": ["T1", "T1", "T4"]})
SELF, THIRD, MIXED = "I think.", "Scholars.", "I think, scholars."


def small_cohort():
    """Two models on three items, small enough to score by hand; model b lacks T4-01."""
    cells = [
        # item 1: AR 0 -> 1, SCD 1/4 -> 1; stances positive, positive, negative
        cell("a", "T1-01", "P0", "x", "A", "positive"),
        cell("a", "T1-01", "P1", THIRD, "AAAB", "neutral"),
        cell("a", "T1-01", "P2", SELF, "BBC", "positive"),
        cell("a", "T1-01", "P4", "x", "A", "negative"),
        # item 2: AR under P1 undefined, SCD 0 -> 1/2; stances all positive
        cell("a", "T1-02", "P0", "x", "B", "positive"),
        cell("a", "T1-02", "P1", "x", "A", "neutral"),
        cell("a", "T1-02", "P2", SELF, "AB", "positive"),
        cell("a", "T1-02", "P4", "x", "B", "positive"),
        # item 3: AR 1/2 -> 1/2, SCD under P1 undefined -> 0, no B under P0, P2, P4
        cell("a", "T4-01", "P0", "x", "A", "no_stance"),
        cell("a", "T4-01", "P1", MIXED, "C", "neutral"),
        cell("a", "T4-01", "P2", MIXED, "A", "no_stance"),
        cell("a", "T4-01", "P4", "x", "A", "no_stance"),
        cell("b", "T1-01", "P0", "x", "B", "negative"),
        cell("b", "T1-01", "P1", THIRD, "A", "neutral"),
        cell("b", "T1-01", "P2", SELF, "B", None),
        cell("b", "T1-01", "P4", "x", "B", "negative"),
    ]
    vectors = {"P0": [1, 0], "P1": [0.6, 0.8], "P2": [0, 1], "P4": [1, 0]}
    responses, judged, stances = tables(cells)
    embeddings = responses[files.KEYS].copy()
    embeddings["embedding"] = [np.array(vectors[p], dtype="f4") for p in responses["phrasing"]]
    return responses, judged, stances, embeddings


def small_items():
    responses, judged, stances, embeddings = small_cohort()
    return score.items(
        score.measures(responses, judged, stances),
        score.psi(embeddings, ["P0", "P1"]),
        ITEMS,
        ["a", "b"],
        ["P1", "P2"],
        ["P0", "P2", "P4"],
    )


def test_items_by_hand(tmp_path):
    table = small_items()
    assert table["item_id"].tolist() == ITEMS["item_id"].tolist() * 2
    assert table["type"].tolist() == ["T1", "T1", "T4"] * 2
    np.testing.assert_allclose(table["delta_ar"], [1, np.nan, 0, 1, np.nan, np.nan])
    np.testing.assert_allclose(table["scd_minus"], [0.25, 0, np.nan, 0, np.nan, np.nan])
    np.testing.assert_allclose(table["scd_plus"], [1, 0.5, 0, 1, np.nan, np.nan])
    np.testing.assert_allclose(table["delta_scd"], [0.75, 0.5, np.nan, 1, np.nan, np.nan])
    np.testing.assert_allclose(table["psi"], [0.4, 0.4, 0.4, 0.4, np.nan, np.nan], atol=1e-7)
    missing = ["missing_stance"] * 3
    assert table["cpc_status"].tolist() == ["counted", "counted", "no_b", *missing]
    assert table["n_positive"].tolist() == [2, 3, 0, 0, 0, 0]
    assert table["n_negative"].tolist() == [1, 0, 0, 2, 0, 0]
    files.write_parquet(tmp_path / "items.parquet", table, files.ITEMS)
    back = files.read_parquet(tmp_path / "items.parquet", files.ITEMS)
    pd.testing.assert_frame_equal(back, table, check_dtype=False)


def test_models_by_hand():
    table = score.per_model(small_items()).set_index("model")
    a, b = table.loc["a"], table.loc["b"]
    assert a["delta_ar"] == pytest.approx(0.5) and a["n_ar"] == 2
    # mean of 1, 1/2, 0 minus mean of 1/4, 0: each over its own defined items
    assert a["delta_scd"] == pytest.approx(0.5 - 0.125) and a["n_scd"] == 2
    # two items, three raters: (2, 1) and (3, 0); P = (1/3 + 1) / 2, E = (5/6)^2 + (1/6)^2
    assert a["cpc_kappa"] == pytest.approx((2 / 3 - 26 / 36) / (1 - 26 / 36)) and a["n_cpc"] == 2
    assert math.isnan(b["cpc_kappa"]) and b["n_cpc"] == 0
    assert a["psi_mean"] == pytest.approx(0.4, abs=1e-7)


def test_several_samples_are_averaged_within_the_item():
    cells = [
        cell("m", "T1-01", "P1", THIRD, "A"),
        cell("m", "T1-01", "P2", SELF, "AB", "positive"),
        cell("m", "T1-01", "P1", MIXED, "AB"),
        cell("m", "T1-01", "P2", "no marker", "B", "negative"),
    ]
    for second in cells[2:]:
        second["sample"] = second["key"]["sample"] = 1
    responses, judged, stances = tables(cells)
    embeddings = responses[files.KEYS].assign(
        embedding=[np.array(v, dtype="f4") for v in ([1, 0], [0, 1], [1, 0], [1, 0])]
    )
    table = score.items(
        score.measures(responses, judged, stances),
        score.psi(embeddings, ["P1", "P2"]),
        ITEMS[:1],
        ["m"],
        ["P1", "P2"],
        ["P1", "P2"],
    ).loc[0]
    assert (table["ar_minus"], table["ar_plus"]) == (0.25, 1.0)
    assert (table["scd_minus"], table["scd_plus"]) == (0.25, 0.75)
    assert table["psi"] == 0.5  # distances 1 and 0
    assert table["n_neutral"] == 2 and table["cpc_status"] == "counted"  # four raters


def test_psi_is_zero_for_equal_texts_and_ignores_vector_length():
    keys = {"model": "m", "item_id": "T1-01", "type": "T1", "sample": 0}
    vector = np.random.default_rng(1).normal(size=384).astype("f4")
    frame = pd.DataFrame(
        [
            keys | {"phrasing": "P0", "embedding": vector},
            keys | {"phrasing": "P1", "embedding": 3 * vector},
            keys | {"phrasing": "P2", "embedding": -vector},
        ]
    )
    assert score.psi(frame, ["P0", "P1"])["psi"].item() == pytest.approx(0, abs=1e-7)
    assert score.psi(frame, ["P0", "P2"])["psi"].item() == pytest.approx(2)
    assert score.psi(frame, ["P0", "P4"]).empty


def test_dropping_responses_that_break_the_limits():
    responses = small_cohort()[0]
    responses["violations"] = [["too_long"], [], None, np.array(["cut_off"]), *[[]] * 12]
    responses.loc[1, "status"] = "error"
    frame = responses[files.KEYS]
    assert len(score.usable(frame, responses)) == 15
    kept = score.usable(frame, responses, compliant_only=True)
    assert len(kept) == 13 and kept["phrasing"].tolist()[:2] == ["P2", "P0"]


# --- reading --------------------------------------------------------------------------------


def write_run(folder, slug="a"):
    responses, judged, stances, embeddings = (t[t["model"] == "a"] for t in small_cohort())
    for name in files.RESPONSES.names:
        if name not in responses:
            responses = responses.assign(**{name: None})
    embeddings = embeddings.assign(embedding=[np.eye(384, dtype="f4")[0]] * len(embeddings))
    judged = judged.assign(sentence="Some sentence.", label_x=judged["label"], label_y=None)
    schemas = [files.RESPONSES, files.judged_schema(["x", "y"]), files.STANCES, files.EMBEDDINGS]
    names = ["responses", "judged", "stances", "embeddings"]
    for name, frame, schema in zip(
        names, [responses, judged, stances, embeddings], schemas, strict=True
    ):
        files.write_parquet(folder / name / f"{slug}.parquet", frame, schema)
    return stances


def test_reading_a_run(tmp_path):
    write_run(tmp_path)
    responses, judged, stances, embeddings = score.read(tmp_path, ["a"])
    assert len(responses) == len(stances) == len(embeddings) == 12
    assert {"label_x", "label_y", "label"} <= set(judged.columns)
    with pytest.raises(files.DataError, match="b.parquet: not there"):
        score.read(tmp_path, ["a", "b"])


def test_a_row_that_is_there_twice_is_refused(tmp_path):
    stances = write_run(tmp_path)
    twice = pd.concat([stances, stances[3:4]])
    files.write_parquet(tmp_path / "stances" / "a.parquet", twice, files.STANCES)
    with pytest.raises(files.DataError, match="stances: the row .'a', 'T1-01'.* is there twice"):
        score.read(tmp_path, ["a"])


# --- coverage -------------------------------------------------------------------------------

USED = {"ar": ["P1", "P2"], "scd": ["P1", "P2"], "psi": ["P0", "P1"], "cpc": ["P0", "P2", "P4"]}


def coverage_of(responses, judged, stances, embeddings):
    table = score.measures(responses, judged, stances)
    return coverage.coverage(table, responses, embeddings, ["a", "b"], len(ITEMS), USED)


def test_coverage_counts_what_is_expected_not_what_is_there():
    table = coverage_of(*small_cohort()).set_index(["model", "measure"])["coverage"]
    assert (table["a"] == 1).all()
    assert table["b"].to_dict() == {"ar": 2 / 6, "scd": 2 / 6, "psi": 2 / 6, "cpc": 2 / 9}


def test_coverage_by_cause():
    responses, judged, stances, embeddings = small_cohort()
    responses.loc[(responses["model"] == "a") & (responses["item_id"] == "T1-01"), "status"] = (
        "error"
    )
    judged.loc[(judged["item_id"] == "T1-02") & (judged["phrasing"] == "P2"), "label"] = None
    table = coverage_of(responses, judged, stances, embeddings[:-5]).set_index(["model", "measure"])
    assert table.loc[("a", "scd"), ["covered", "not_ok", "unlabelled"]].tolist() == [3, 2, 1]
    assert table.loc[("a", "ar"), ["covered", "not_ok", "unlabelled"]].tolist() == [4, 2, 0]
    assert table.loc[("a", "psi"), "unlabelled"] == 0


def test_a_model_below_the_bar_is_refused_in_one_line():
    table = coverage_of(*small_cohort())
    coverage.require(table, 0.2, "outputs/local")
    with pytest.raises(coverage.CoverageError) as refusal:
        coverage.require(table, 0.95, "outputs/ablations/mine")
    text = str(refusal.value)
    assert "\n" not in text
    for part in (
        "b: only 2 of 9",
        "CPC",
        "1_generate",
        "make all PARAMS=params/ablations/mine.yaml",
    ):
        assert part in text
    unlabelled = table.assign(covered=3, unlabelled=9, not_ok=0, coverage=0.25)
    with pytest.raises(coverage.CoverageError, match="1 more models are short.*missing from 3_emb"):
        coverage.require(unlabelled.iloc[[2, 6]], 0.95, "outputs/local")


@pytest.mark.parametrize(
    ("measure", "not_ok", "final", "unlabelled", "stage", "words"),
    [
        ("ar", 6, 0, 0, "generate", "6 without an answer. "),
        ("scd", 1, 0, 5, "judge", "1 without an answer, 5 without a label on every sentence. "),
        ("scd", 6, 5, 2, "judge", "6 without an answer (5 of them refused or blocked), 2 without"),
        ("scd", 6, 2, 4, "generate", "4 without a label"),
        ("cpc", 0, 0, 6, "judge", "0 without an answer, 6 without a stance. "),
        ("psi", 0, 0, 6, "embed", "6 without an embedding. "),
        ("psi", 6, 6, 0, None, "6 without an answer (6 of them refused or blocked). "),
    ],
)
@pytest.mark.parametrize(
    ("run_dir", "file"),
    [
        ("outputs/local", "params/local.yaml"),
        ("outputs/mine-a-b-1234abcd", "params/mine-a-b-1234abcd.yaml"),
        ("/somewhere/outputs/ablations/equal", "params/ablations/equal.yaml"),
    ],
)
def test_each_gap_has_its_stage_and_its_command(
    measure, not_ok, final, unlabelled, stage, words, run_dir, file
):
    row = {"model": "b", "measure": measure, "expected": 20, "covered": 20 - not_ok - unlabelled}
    row |= {"not_ok": not_ok, "final": final, "unlabelled": unlabelled, "coverage": 0.7}
    with pytest.raises(coverage.CoverageError) as refusal:
        coverage.require(pd.DataFrame([row]), 0.95, run_dir)
    text = str(refusal.value)
    assert words in text and f"only {row['covered']} of 20" in text and measure.upper() in text
    if stage is None:
        assert f"lower score.min_coverage in {file}" in text and "make" not in text
    else:
        assert f"`.venv/bin/python -m esfp.run {stage} --params {file}`" in text
        assert f"`make all PARAMS={file}`" in text


# --- kappa ----------------------------------------------------------------------------------

WORKED = [  # ten subjects, fourteen raters, five categories; kappa = 0.210 in many textbooks
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def test_kappa_of_the_worked_example():
    assert score.fleiss_kappa(WORKED) == pytest.approx(0.20993070442195522, abs=1e-12)


@pytest.mark.parametrize(
    "counts",
    [
        np.empty((0, 4)),
        [],
        [[3, 0, 0, 0]],  # one item, agreed
        [[3, 0], [3, 0], [3, 0]],  # one category everywhere
        [[1, 0], [0, 1]],  # a single rater
        [[0, 0], [0, 0]],  # none
    ],
)
def test_kappa_is_nan_where_undefined_and_says_nothing(counts):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(score.fleiss_kappa(counts))


def test_kappa_by_hand():
    assert score.fleiss_kappa([[3, 0], [0, 3]]) == 1.0
    assert score.fleiss_kappa([[2, 1]]) == pytest.approx((1 / 3 - 5 / 9) / (4 / 9))
    assert score.fleiss_kappa([[1, 1, 0, 0], [1, 1, 0, 0]]) == pytest.approx(-1.0)
    with pytest.raises(ValueError, match="same number of raters"):
        score.fleiss_kappa([[3, 0], [1, 1]])


def random_table(rng):
    items, categories, raters = rng.integers(1, 40), rng.integers(2, 6), rng.integers(2, 8)
    shares = rng.dirichlet(np.full(categories, 0.7))
    return rng.multinomial(raters, shares, size=items)


def test_kappa_equals_statsmodels_on_random_tables():
    rng = np.random.default_rng(7)
    compared = 0
    for _ in range(1000):
        counts = random_table(rng)
        if np.count_nonzero(counts.sum(axis=0)) > 1:
            expected = statsmodels_kappa(counts, method="fleiss")
            assert score.fleiss_kappa(counts) == pytest.approx(expected, abs=1e-12)
            compared += 1
    assert compared > 900


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_kappa_is_at_most_one_and_ignores_the_order_of_items_and_categories(seed):
    rng = np.random.default_rng(seed)
    counts = random_table(rng)
    value = score.fleiss_kappa(counts)
    if not math.isnan(value):
        assert value <= 1
        mixed = rng.permutation(rng.permutation(counts, axis=0), axis=1)
        assert score.fleiss_kappa(mixed) == pytest.approx(value, abs=1e-12)


# --- ceiling and composite ------------------------------------------------------------------


def test_ceiling():
    # 0.95 * 7 = 6.65: between the seventh and the eighth of the paper's values
    values = [0.210, 0.170, 0.170, 0.174, 0.163, 0.172, 0.180, 0.158]
    assert score.psi_ceiling(values) == pytest.approx(0.180 + 0.65 * 0.030)
    assert score.psi_ceiling(values, "max") == 0.210
    assert score.psi_ceiling(values, 0.199) == 0.199
    assert score.psi_ceiling([0.3, np.nan]) == 0.3
    assert math.isnan(score.psi_ceiling([np.nan]))
    np.testing.assert_allclose(score.psi_ceiling([[1, 2, 3], [5, 5, 5]], "max"), [3, 5])
    np.testing.assert_allclose(score.psi_ceiling([[1, 2, 3], [5, 5, 5]], 0.2), [0.2, 0.2])


def test_composite_by_hand():
    flex, esfp = score.composite(0.5, 0.4, 0.9, 0.2)
    assert flex == pytest.approx(0.10 + 0.20 + 0.27)
    assert esfp == pytest.approx(0.57 * 1.05)
    assert score.composite(0.5, 0.4, 0.9, -0.8)[1] == pytest.approx(0.57)
    assert score.composite(0.5, 0.4, 0.9, float("nan"))[1] == pytest.approx(0.57)
    assert math.isnan(score.composite(float("nan"), 0.4, 0.9, 0.2)[1])
    flex, esfp = score.composite(0.5, 0.4, 0.9, 1.0, weights=(1, 0, 0), cpc_bonus=0)
    assert flex == esfp == 0.5


unit = st.floats(0, 1)


@settings(deadline=None, max_examples=60)
@given(unit, unit, unit, st.floats(-1, 1), st.sampled_from([0, 1, 2, 3]), unit)
def test_composite_grows_with_each_part(ar, scd, psi, kappa, which, step):
    parts = [ar, scd, psi, kappa]
    more = list(parts)
    more[which] += step
    assert score.composite(*more)[1] >= score.composite(*parts)[1] - 1e-12


def test_two_passes_rank_and_scale():
    table = pd.DataFrame(
        {
            "model": ["low", "none", "high", "same"],
            "delta_ar": [0.1, np.nan, 0.5, 0.5],
            "delta_scd": [0.1, 0.9, 0.5, 0.5],
            "psi_mean": [0.1, 0.1, 0.2, 0.2],
            "cpc_kappa": [0.5, 0.5, np.nan, -1.0],
        }
    )
    first = equations.leaderboard(table, 1.0)
    second = equations.leaderboard(table, 0.2)
    assert second["model"].tolist() == ["high", "same", "low", "none"]
    assert second["rank"].tolist()[:3] == [1, 1, 3] and second["rank"].isna().tolist()[3]
    assert second["esfp"].tolist()[:3] == pytest.approx([0.65, 0.65, 0.22 * 1.125])
    assert first["psi_scaled"].tolist()[:2] == [0.2, 0.2]
    assert equations.leaderboard(table, 0.05)["psi_scaled"].max() == 1.0  # clipped


def test_a_model_s_measures_do_not_depend_on_the_order_of_the_items():
    table = small_items()
    expected = score.per_model(table).set_index("model")
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(len(table))
        mixed = score.per_model(table.iloc[order]).set_index("model").loc[["a", "b"]]
        pd.testing.assert_frame_equal(mixed, expected)


def test_numbers_by_name():
    table = pd.DataFrame({"model": ["a b"], "rank": pd.array([None], "Int64"), "esfp": [0.5]})
    assert score.numbers(table, ["rank", "esfp"]) == {"score.rank.a b": None, "score.esfp.a b": 0.5}


def test_rankings_under_other_labels_are_held_against_the_runs_own():
    def scored(*esfp):
        table = pd.DataFrame({"model": list("abcd"), "esfp": esfp, "cpc_kappa": 0.1, "n_cpc": 9})
        table[["delta_scd", "delta_scd_low", "delta_scd_high"]] = 0.2
        table["rank"] = table["esfp"].rank(ascending=False, method="min").astype("Int64")
        return table.sort_values("rank")

    own, gap = scored(0.4, 0.3, 0.2, np.nan), scored(0.2, 0.4, np.nan, np.nan)
    swapped, more = scored(0.3, 0.4, 0.2, np.nan), scored(0.4, 0.3, 0.2, 0.1)
    kinds = {"panel": own, "one": swapped, "two": more, "corrected": gap}
    table = rankings.by_labels(kinds).set_index(["labels", "model"])
    tau = table["tau"].groupby("labels").first()
    assert tau[["panel", "one", "two"]].tolist() == pytest.approx([1, 1 / 3, 1])
    assert np.isnan(tau["corrected"])  # two models have both scores
    assert table.loc["one", "rank"].dropna().to_dict() == {"b": 1, "a": 2, "c": 3}
    assert table.loc["corrected", "rank"].isna().all() and table.loc[("two", "d"), "rank"] == 4
