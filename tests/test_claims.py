"""The ledger: verdicts follow from readings, released digits decide them, pages link to rows."""

import re
from dataclasses import replace
from pathlib import Path

import nbformat.v4 as nb
import numpy as np
import pandas as pd
import pytest
from nbformat import write as write_notebook
from scipy import stats

from esfp import cells, claims, claims_ledger, claims_tables, files, paper
from esfp.claims_evidence import COUNTS, Reading
from esfp.equations import composite

REPO = Path(__file__).parent.parent
RELEASED = REPO / "outputs" / "published" / "released.csv"
CLAIMS = REPO / "paper" / "claims.yaml"


def evidence(released: Path = RELEASED):
    facts = REPO / "paper" / "public_facts.yaml"
    corpus = REPO / "corpus"
    return claims.read_evidence(
        released, facts, corpus / "phrasings.yaml", corpus / "lexicons.yaml"
    )


@pytest.fixture(scope="module")
def listed():
    return claims.load(CLAIMS)


@pytest.fixture(scope="module")
def ledger(listed):
    return claims.evaluate(listed, evidence())


def changed(tmp_path, *cells_of) -> pd.DataFrame:
    """The ledger after some cells of the released table got another value."""
    table = pd.read_csv(RELEASED, dtype=str)
    for model, column, value in cells_of:
        table.loc[table["model"] == model, column] = value
    table.to_csv(tmp_path / "released.csv", index=False)
    (tmp_path / "printed.yaml").write_bytes(RELEASED.with_name("printed.yaml").read_bytes())
    rows = claims.evaluate(claims.load(CLAIMS), evidence(tmp_path / "released.csv"))
    return rows.set_index("id")["verdict"]


# ---- verdicts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "reading", "expected"),
    [
        ("0.905", Reading(0.9048), "holds"),
        ("0.905", Reading(0.9055), "holds"),  # half a unit is still that digit
        ("0.905", Reading(0.9056), "does not hold"),
        ("0.905", Reading(0.907, 0.9052, 0.909), "holds within rounding"),
        ("0.905", Reading(0.907, 0.9056, 0.909), "does not hold"),
        ("12,480", Reading(12480), "holds"),
        ("5", Reading(6), "does not hold"),
        ("−0.24", Reading(-0.2381), "holds"),
        ("< 0.001", Reading(0.0011), "does not hold"),
        ("> 3", Reading(2.9, 2.8, 3.1), "holds within rounding"),
        ("≥ 0.79", Reading(0.786), "does not hold"),
        ("≤ 0.36", Reading(0.3571), "holds"),
        ("Gemma-3-27B", Reading("Gemma-3-27B"), "holds"),
        ("Gemma-3-27B", Reading("GLM-5"), "does not hold"),
        (None, Reading(true=True), "holds"),
        (None, Reading(possible=True), "holds within rounding"),
        (None, Reading(), "does not hold"),
    ],
)
def test_one_reading_against_the_print(printed, reading, expected):
    assert claims.judge(printed, reading) == expected


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([Reading(0.1), Reading(0.1)], "holds"),
        ([Reading(0.1), Reading(0.9)], "depends"),
        ([Reading(0.9), Reading(0.1)], "depends"),
        ([Reading(0.9), Reading(0.8)], "does not hold"),
        ([Reading(0.9, 0.1, 0.9), Reading(0.1)], "holds within rounding"),
    ],
)
def test_readings_make_one_verdict(readings, expected):
    claim = claims.Claim("a", "paper", "here", "it is so", printed="0.1", check={"items": {}})
    assert claims.verdict(claim, readings) == expected


def test_every_claim_has_a_verdict_and_each_checkable_one_a_computation(listed, ledger):
    assert len(ledger) >= 120
    assert set(ledger["verdict"]) == set(claims.VERDICTS)
    for claim, row in zip(listed, ledger.itertuples(), strict=True):
        assert (claim.check is None) == (row.verdict == claims.OPEN)
        assert bool(row.recomputed) == (claim.check is not None)
        assert row.because or row.verdict in (claims.HOLDS, claims.ROUNDING), claim.id


def test_the_known_slips_are_found(ledger):
    verdicts = ledger.set_index("id")["verdict"]
    false = "f3-67 f3-two r-only-open r-cot-five dd-nonlinear q-tie-by-cpc wu-f7-ideal wu-f7-qwen"
    for name in false.split():
        assert verdicts[name] == claims.FAILS, name
    tied = "r-rho-psi c-psi-ar c-psi-scd t6-psi wu-cpc-psi cost-cohort-judges t6-bottom2"
    for name in tied.split():
        assert verdicts[name] == claims.DEPENDS, name
    for name in "f3-34 r-inv-every r-sixfold t6-even c-cpc cost-judge five-vendors".split():
        assert verdicts[name] == claims.HOLDS, name


@pytest.mark.parametrize(
    ("cells_of", "flips"),
    [
        (
            [("Claude-Haiku-4.5", "ci_low", "0.630")],
            {"f3-67": "holds", "f3-two": "holds", "wu-67": "holds"},
        ),
        (
            [("Gemini-3.1-Pro", "delta_scd", "0.191")],
            {
                "r-scd-min": "does not hold",
                "r-sixfold": "does not hold",
                "t5-esfp": "does not hold",
            },
        ),
        ([("Gemma-3-27B", "psi_scaled", "0.875")], {"t5-psi-joint": "does not hold"}),
        ([("Gemini-3.1-Flash-Lite", "boot_mean", "0.620")], {"dd-most-visibly": "does not hold"}),
        (
            [("Gemini-3.1-Flash-Lite", "cpc_kappa", "0.200")],
            {"r-inv-every": "does not hold", "r-inv-kappa": "does not hold"},
        ),
        ([("Qwen3-Next-80B", "vendor", "Google")], {"five-vendors": "does not hold"}),
        ([("GLM-5", "n_cpc", "91")], {"cpc-n-min": "does not hold"}),
    ],
)
def test_a_changed_digit_flips_the_verdicts_that_depend_on_it(tmp_path, ledger, cells_of, flips):
    before, after = ledger.set_index("id")["verdict"], changed(tmp_path, *cells_of)
    for name, verdict in flips.items():
        assert before[name] != verdict and after[name] == verdict, name
    untouched = ["items-104", "cost-cohort", "r-only-open", "intro-typology-four"]
    assert (before[untouched] == after[untouched]).all()


def test_every_released_number_decides_a_verdict(listed):
    """A hundredth more (one more of a count) in any cell changes what is said of the table."""
    rows = [claim for claim in listed if claim.check and "row" in claim.check]
    known = evidence()
    for model in known.models:
        for name in known.table.columns.drop(["model", "vendor", "endpoint", "type"]):
            table = known.table.copy()
            table.loc[model, name] += 1 if name in COUNTS else 0.01
            after = claims.evaluate(rows, replace(known, table=table))["verdict"]
            assert (after == claims.FAILS).any(), (model, name)


# ---- single checks ---------------------------------------------------------------------------


def readings(name: str, **arguments) -> list[Reading]:
    return claims.CHECKS[name](evidence(), **arguments)


def test_correlations_are_those_of_scipy():
    table = pd.read_csv(RELEASED)
    for a, b in (("delta_scd", "esfp"), ("psi_scaled", "delta_ar"), ("cpc_kappa", "delta_scd")):
        first, *_ = readings("rho", a=a, b=b)
        assert first.value == pytest.approx(stats.spearmanr(table[a], table[b]).statistic)
        approximate, *_ = readings("p", a=a, b=b)
        assert approximate.value == pytest.approx(stats.spearmanr(table[a], table[b]).pvalue)

    x, y = (stats.zscore(stats.rankdata(table[name])) for name in ("delta_scd", "esfp"))
    found = stats.permutation_test(
        (x,),
        lambda x, axis: np.abs((x * y).sum(axis=axis)),
        permutation_type="pairings",
        vectorized=True,
        n_resamples=np.inf,
        alternative="greater",
    )
    *_, exact = readings("p", a="delta_scd", b="esfp")
    assert exact.value == pytest.approx(found.pvalue)


def test_the_tie_is_broken_one_way_by_hand():
    table = pd.read_csv(RELEASED)
    table.loc[table["model"] == "Gemma-3-27B", "psi_scaled"] += 0.0001
    printed = {"esfp": "0.357", "delta_ar": "0.10", "delta_scd": "0.17", "cpc_kappa": "-0.24"}
    for other, text in printed.items():
        rho = stats.spearmanr(table["psi_scaled"], table[other]).statistic
        assert f"{rho:.{len(text.partition('.')[2])}f}" == text
    assert readings("one_tie_order")[0].value == "Gemma-3-27B above the other"


def test_a_ceiling_and_means_that_fit_are_found_and_others_not(tmp_path):
    (fits,) = readings("consistent")
    low, high = map(float, re.findall(r"0\.\d+", fits.value))
    assert fits.true and 0.1985 <= low <= high <= 0.1995 + 1e-9
    # at either end every printed scaled value is within its box, by plain division
    table = pd.read_csv(RELEASED)
    for ceiling in (low + 1e-4, high - 1e-5):
        for row in table.itertuples():
            ends = np.clip(np.array([row.psi_mean - 5e-4, row.psi_mean + 5e-4]) / ceiling, 0, 1)
            assert ends[0] - 5.1e-4 <= row.psi_scaled <= ends[1] + 5.1e-4
    assert not claims_tables.consistent(_with(tmp_path, "GLM-5", "psi_scaled", "0.890"))[0].true


def _with(tmp_path, model, column, value):
    changed(tmp_path, (model, column, value))
    return evidence(tmp_path / "released.csv")


def test_the_bootstrap_described_cannot_exceed_the_score():
    """Simulated items, kappa and ceiling held: the mean over draws is the score or below."""
    rng = np.random.default_rng(3)
    n, draws, kappa = 104, 4000, 0.257
    items = rng.beta(1, 2, (3, n))
    items[2] *= 0.4
    for ceiling in (items[2].mean() * 0.98, items[2].mean() * 1.2):  # clipped, and not

        def score(x, ceiling=ceiling):
            psi = np.clip(x[2].mean(axis=-1) / ceiling, 0, 1)
            return composite(x[0].mean(axis=-1), x[1].mean(axis=-1), psi, kappa)[1]

        drawn = score(items[:, rng.integers(0, n, (draws, n))])
        error = drawn.std() / np.sqrt(draws)
        assert drawn.mean() <= score(items) + 3 * error
    (reading,) = readings("reachable_means")
    assert not reading.true and "Gemini-3.1-Flash-Lite +0.017" in reading.value


def test_without_psi_another_model_leads_by_hand():
    table = pd.read_csv(RELEASED).set_index("model")
    score = (0.2 * table["delta_ar"] + 0.5 * table["delta_scd"]) * (1 + 0.25 * table["cpc_kappa"])
    assert score.nlargest(3).index.tolist() == ["Gemma-3-27B", "Claude-Sonnet-4.6", "DeepSeek-V3.2"]
    assert readings("left_out", model="DeepSeek-V3.2")[2].value.startswith("Gemma-3-27B first")


# ---- the file --------------------------------------------------------------------------------

GOOD = {"id": "a", "place": "here", "says": "so", "check": "{items: {}}"}


def entry(**changes) -> str:
    parts = {k: v for k, v in (GOOD | changes).items() if v is not None}
    return "  - {" + ", ".join(f"{k}: {v}" for k, v in parts.items()) + "}\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("paper: [", "not valid YAML"),
        ("elsewhere:\n" + entry(), "expected lists of claims below paper and write-up"),
        ("paper:\n" + entry(check="{os.system: {}}"), "a: no check 'os.system'; there are "),
        ("paper:\n" + entry(check="{_order: {}}"), "a: no check '_order'"),
        ("paper:\n" + entry(check=None), "a: give a check, or what one would need"),
        ("paper:\n" + entry(needs="more"), "a: give a check, or what one would need"),
        ("paper:\n" + entry(says=None), "a: has no says"),
        ("paper:\n" + entry(prints=5), "a: unknown key 'prints'"),
        ("paper:\n" + entry() + entry(), "a: the id is there twice"),
        ("paper:\n" + entry(beside="b"), "a: beside names no claim: b"),
    ],
)
def test_a_fault_in_the_file_is_one_line(tmp_path, text, line):
    path = tmp_path / "claims.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(files.DataError) as error:
        claims.load(path)
    assert line in str(error.value) and "\n" not in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("check", "line"),
    [
        ({"cell": {"column": "esfp", "model": "Nobody"}}, "the released table has no 'Nobody'"),
        ({"cell": {"column": "esfp"}}, "claim a: cell(column=esfp): "),
    ],
)
def test_a_check_that_cannot_be_made_is_one_line(check, line):
    claim = claims.Claim("a", "paper", "here", "so", check=check)
    with pytest.raises(files.DataError, match=re.escape(line)):
        claims.evaluate([claim], evidence())


# ---- what is shown ---------------------------------------------------------------------------


def test_each_result_of_the_page_links_to_its_row_of_the_notebook(tmp_path, ledger):
    shown = [claims_ledger.computed(ledger, theme) for theme in claims.THEMES]
    outputs = [nb.new_output("display_data", {"text/html": html}) for html in shown]
    notebook = nb.new_notebook(cells=[nb.new_code_cell("show()", outputs=outputs)])
    write_notebook(notebook, tmp_path / "n.ipynb")
    paper.notebook_html(tmp_path / "n.ipynb", tmp_path / "n.html")
    anchors = set(re.findall(r'id="(claim-[^"]+)"', (tmp_path / "n.html").read_text("utf-8")))
    page = claims_ledger.page(ledger)
    links = re.findall(r'href="notebooks/6_figures\.html#([^"]+)"', page)
    assert len(links) == (ledger["verdict"] != claims.OPEN).sum()
    assert set(links) == anchors
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(re.findall(r'<tr id="([^"]+)"', page))
    assert "<script" not in page and "src=" not in page


def test_text_of_a_claim_is_never_markup(ledger):
    odd = ledger.head(1).assign(says="a <b>&", because="", recomputed="<i>", call="f()")
    page = claims_ledger.page(odd)
    assert "a &lt;b&gt;&amp;" in page and "<i>" not in page
    assert "&lt;i&gt;" in claims_ledger.computed(odd, odd["theme"].iloc[0])


def test_the_table_of_the_paper_has_every_claim_that_does_not_hold(ledger):
    table = claims_ledger.failing(ledger)
    assert len(table.frame) == (ledger["verdict"] == claims.FAILS).sum() > 0
    lines = cells.to_markdown(table).splitlines()
    assert len(lines) == len(table.frame) + 2
    assert "lower-right" in cells.to_markdown(table)


def test_numbers_for_the_prose_add_up(ledger):
    found = claims.numbers(ledger)
    words = claims.SHORT.values()
    assert sum(found[f"claims.{word}"] for word in words) == found["claims.all"] == len(ledger)
    assert found["claims.all.paper"] + found["claims.all.write-up"] == len(ledger)
    assert found["claims.verdict.f3-67"] == "fails"
    assert found["claims.checked"] == len(ledger) - found["claims.open"]


def test_a_run_without_printed_values_has_no_ledger(tmp_path):
    assert claims_ledger.absent(str(RELEASED)) is None
    for released in (None, str(tmp_path / "released.csv")):
        assert "printed.yaml" in claims_ledger.absent(released)
