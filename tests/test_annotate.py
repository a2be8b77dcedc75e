"""Labels by people: the page over real HTTP and in a real browser, its files, and agreement."""

from __future__ import annotations

import csv
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from esfp import agreement, annotate, human, params
from tests.conftest import REPO

GOLD = REPO / "corpus" / "gold"
HOSTILE = "<img src=x onerror=document.title='owned'><script>alert(1)</script> & \"so\" it goes."
QUOTED = "Freedom is more important than security."
TEXTS = [
    HOSTILE,
    "Patience is the rarer of the two goods.",
    "Water boils at a lower temperature on a mountain.",
    "A word " + "w" * 400 + " that is wider than any window.",
    "A sentence\nover two lines, with a rule:\n\n* * *",
    "None",
    "Patience is the rarer of the two goods.",  # again, in another response
    QUOTED,  # in the manual
]
DISTINCT = set(TEXTS) - {QUOTED}
SECRETS = r"written-|recorded-|T[1-6]-\d|\bP[0-4]\b|secret_voice|zzz"


def lay_gold(root: Path) -> Path:
    """A folder like corpus/gold with a few sentences that a page could stumble over."""
    folder = root / "corpus" / "gold"
    folder.mkdir(parents=True)
    (folder.parent / "prompts").symlink_to(REPO / "corpus" / "prompts")
    shutil.copy(GOLD / human.MANUAL, folder)
    rows = [
        [f"written-00{i}-01", f"written-00{i}", f"T{1 + i % 6}-01", f"T{1 + i % 6}", f"P{i % 5}"]
        + ["secret_voice", text, "A", "zzz"]
        for i, text in enumerate(TEXTS)
    ]
    columns = "sentence_id response_id item_id type phrasing voice sentence label pass_2".split()
    pd.DataFrame(rows, columns=columns).to_csv(folder / "sentences.csv", index=False)
    return folder


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return lay_gold(tmp_path)


class Site:
    """A running `python -m esfp.annotate`."""

    def __init__(self, gold: Path, *arguments: str) -> None:
        self.gold = gold
        self.process = subprocess.Popen(
            [sys.executable, "-m", "esfp.annotate", "--gold", gold, "--port", "0", *arguments],
            cwd=REPO,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = self.process.stdout.readline()
        assert said, self.process.stderr.read()
        self.address = re.search(r"http://127\.0\.0\.1:\d+", said)[0]
        self.port = self.address.rpartition(":")[2]

    def get(self, path: str, data: dict | None = None, **headers: str) -> tuple[int, str]:
        """Status and body, redirects followed; a POST where there is data."""
        body = None if data is None else urllib.parse.urlencode(data).encode()
        request = urllib.request.Request(self.address + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def press(self, page: str, label: str, **more: str) -> str:
        """Send the form of a page, and return the page that follows."""
        data = {"token": token(page), "label": label, "seconds": "2.5", "note": ""} | more
        status, after = self.get(re.search(r'method="post" action="(.+?)"', page)[1], data)
        assert status == 200, after
        return after

    def rows(self, name: str) -> list[list[str]]:
        with (self.gold / f"human_{name}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))[1:]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """One server for many tests: each labels under a name of its own."""
    running = Site(lay_gold(tmp_path_factory.mktemp("site")))
    yield running
    running.end()


@pytest.fixture
def serve(gold: Path):
    """Servers of a folder of one's own, as many as a test starts."""
    running: list[Site] = []

    def one_more(*arguments: str) -> Site:
        running.append(Site(gold, *arguments))
        return running[-1]

    yield one_more
    for each in running:
        each.end()


def token(page: str) -> str:
    return re.search(r'name="token" value="(.+?)"', page)[1]


def place(page: str) -> int:
    return int(re.search(r"<h1>Sentence (\d+)</h1>", page)[1])


def problem(page: str) -> str:
    return re.search(r'role="alert">(.*?)</p>', page, re.S)[1]


# ---- the order -------------------------------------------------------------------------------


def test_any_beginning_resembles_the_whole_and_is_the_same_for_all():
    order = human.sentences(GOLD)
    assert list(order) == ["sentence_id", "sentence"]
    pd.testing.assert_frame_equal(order, human.sentences(GOLD))
    whole = pd.read_csv(GOLD / "sentences.csv", dtype=str, keep_default_na=False)
    frame = order.merge(whole, on=["sentence_id", "sentence"], validate="1:1")
    assert (frame["sentence_id"] == order["sentence_id"]).all()
    for column in ("type", "phrasing"):
        share = frame[column].value_counts(normalize=True)
        for n in (100, 200, 400):
            assert (frame[column][:n].value_counts(normalize=True) - share).abs().max() < 0.05
    assert (
        frame["item_id"][:200].nunique() > 65
    )  # of 104; two dozen items hold half of the sentences
    assert not order["sentence_id"].is_monotonic_increasing


def test_what_is_quoted_or_repeated_is_not_asked(gold):
    order = human.sentences(gold)
    assert set(order["sentence"]) == DISTINCT and order["sentence"].is_unique


def test_a_sentence_that_goes_does_not_disturb_the_others(gold):
    frame = pd.read_csv(GOLD / "sentences.csv", dtype=str, keep_default_na=False)
    frame.drop(index=range(0, len(frame), 200)).sample(frac=1, random_state=0).to_csv(
        gold / "sentences.csv", index=False
    )
    before, after = human.sentences(GOLD)["sentence_id"], human.sentences(gold)["sentence_id"]
    before = before[before.isin(after)].reset_index(drop=True)
    moved = np.abs(after.map({name: i for i, name in before.items()}) - after.index)
    assert 0 < len(after) < len(human.sentences(GOLD))
    assert len(set(before[:200]) & set(after[:200])) >= 180 and moved.median() < 30


# ---- the page --------------------------------------------------------------------------------


def test_labels_are_on_disk_one_by_one_and_the_same_name_goes_on(serve):
    site = serve()
    _, page = site.get("/?name=Ann")
    first = place(page)
    page = site.press(page, "B", note="  =odd,\n“quote”  ")
    (row,) = site.rows("ann")
    assert row[1] == "B" and row[3] == "2.5" and row[4] == "=odd, “quote”"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", row[2])
    site.press(page, "C")
    site.process.send_signal(signal.SIGKILL)
    site.end()

    again = serve("--name", "ann")
    _, page = again.get("/")
    assert [row[1] for row in again.rows("ann")] == ["B", "C"]
    assert "2 of 6 labelled" in page and place(page) not in (first, None)
    for label in "ABCA":
        page = again.press(page, label)
    assert "All sentences are labelled" in page and "6 of 6" in page
    assert len({row[0] for row in again.rows("ann")}) == 6


def test_going_back_shows_the_label_and_another_replaces_it(site):
    _, page = site.get("/label/back")
    first, page = place(page), site.press(page, "A", note="first")
    second, page = place(page), site.press(page, "A")
    third = place(page)
    _, page = site.get(re.search(r'id="back" href="(.+?)"', page)[1])
    assert place(page) == second
    _, page = site.get(re.search(r'id="back" href="(.+?)"', page)[1])
    assert place(page) == first and 'id="back"' not in page and ">first</textarea>" in page
    assert re.search(r'value="A"[^>]*aria-pressed="true"', page)
    assert [row[1] for row in site.rows("back")] == ["A", "A"]  # looking changes nothing
    _, forward = site.get(re.search(r'id="forward" href="(.+?)"', page)[1])
    assert place(forward) == second
    page = site.press(page, "C", note="second thoughts")
    assert place(page) == third
    assert [(row[1], row[3], row[4]) for row in site.rows("back")] == [
        ("A", "2.5", ""),
        ("C", "5.0", "second thoughts"),
    ]


def test_what_is_skipped_comes_again_at_the_end(site):
    _, page = site.get("/label/skipping")
    skipped, page = place(page), site.press(page, "skip")
    assert "1 skipped" in page
    for _ in range(5):
        assert place(page) != skipped
        page = site.press(page, "A")
    assert place(page) == skipped
    page = site.press(page, "skip")
    assert place(page) == skipped
    page = site.press(page, "B")
    assert "All sentences are labelled" in page and len(site.rows("skipping")) == 6


def test_time_left_is_the_median_pace():
    assert annotate.time_left([3.0] * 4, 100) is None
    assert annotate.time_left([3.0] * 4 + [9000.0], 100) == "about 5 min left at your pace"
    assert annotate.time_left([30.0] * 9, 190) == "about 1 h 35 min left at your pace"
    assert annotate.time_left([30.0] * 9, 240) == "about 2 h left at your pace"
    assert annotate.time_left([3.0] * 9, 2) == "less than a minute left"
    assert annotate.time_left([3.0] * 9, 0) is None


def test_the_page_is_blind(site):
    """No id, label, voice or phrasing; and one's page is the same whatever others did."""

    def bare(page: str) -> str:
        return re.sub(r'nonce="[^"]+"|value="[\w-]{20,}"', "", page)

    _, before = site.get("/label/bob")
    pages = [before, site.get("/")[1]]
    _, page = site.get("/label/ann")
    for label in "BBCCAA":
        pages.append(page := site.press(page, label))
    pages += [site.get(f"/label/bob/{i}")[1] for i in range(1, 7)]
    assert not re.search(SECRETS, bare("".join(pages)))
    assert bare(site.get("/label/bob")[1]) == bare(before)
    assert not (site.gold / "human_bob.csv").exists()


def test_definitions_are_the_papers_word_for_word(site):
    prompt = (REPO / "corpus/prompts/judge.txt").read_text(encoding="utf-8")
    _, page = site.get("/label/reader")
    shown = re.findall(r'<span id="meaning-(.)">(.+?)</span>', page)
    assert [letter for letter, _ in shown] == ["A", "B", "C"]
    for letter, meaning in shown:
        assert f"{letter} = {meaning} " in prompt
    assert "assign B only when the author’s own viewpoint is clearly foregrounded" in page
    assert "JSON" not in page
    assert '<details id="manual" class="manual">' in page  # folded
    assert "Enzymes play a crucial role in digestion." in page and "four stances" not in page


def test_a_request_from_elsewhere_changes_nothing(site):
    _, page = site.get("/label/elsewhere")
    good = {"token": token(page), "label": "A", "seconds": "1", "note": ""}
    for host in ("evil.example", f"evil.example:{site.port}", "127.0.0.1.evil.example", "a]b", ""):
        assert site.get("/label/elsewhere", Host=host)[0] == 403
        assert site.get("/label/elsewhere/1", good, Host=host)[0] == 403
    assert site.get("/label/elsewhere/1", good | {"token": "guessed"})[0] == 403
    assert site.get("/label/elsewhere/1", {"label": "A"})[0] == 403
    assert not list(site.gold.glob("human_elsewhere*"))
    assert site.get("/label/elsewhere/1", good, Host=f"localhost:{site.port}")[0] == 200
    assert len(site.rows("elsewhere")) == 1


def test_bad_input_is_one_line_and_changes_nothing(site):
    _, page = site.get("/label/wrong")
    good = {"token": token(page), "label": "A", "seconds": "", "note": ""}
    for path, data, status, words in [
        ("/label/wrong/1", good | {"label": "D"}, 400, "no label; expected A, B, C or skip"),
        ("/label/wrong/1", good | {"label": "<b>"}, 400, "&lt;b&gt;"),
        ("/label/wrong/1", good | {"seconds": "-1"}, 400, "no number of seconds"),
        ("/label/wrong/1", good | {"seconds": "nan"}, 400, "no number of seconds"),
        ("/label/wrong/1", good | {"seconds": "9" * 400}, 400, "no number of seconds"),
        ("/label/wrong/0", good, 404, "no sentence 0"),
        ("/label/wrong/7", good, 404, "no sentence 7"),
        ("/label/wrong/" + "9" * 5000, good, 404, "no sentence 9"),
        ("/label/a%20b/1", good, 400, "cannot be an annotator"),
        ("/label/..%2Fx", None, 400, "cannot be an annotator"),
        ("/?name=%3Cb%3E", None, 400, "&lt;b&gt;"),
        ("/elsewhere", None, 404, "Not Found"),
    ]:
        code, page = site.get(path, data)
        assert code == status and words in problem(page) and "\n" not in problem(page)
    assert not list(site.gold.glob("human_wrong*"))
    assert site.get("/label/wrong/1", good | {"note": "x" * 3000 + "\0"})[0] == 200
    assert site.rows("wrong")[0][3:] == ["", "x" * human.LONGEST_NOTE]


def refusal(capsys, gold: Path, *arguments: str) -> str:
    """The one line with which the command ends."""
    assert annotate.main(["--gold", str(gold), "--port", "0", *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1, err
    return err


HEADER = "sentence_id,label,labelled_at,seconds,note\n"
ROW = "written-000-01,A,2030-01-01T00:00:00+00:00,1.0,\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "row 1: expected sentence_id,label"),
        (HEADER.replace("seconds", "secs"), "row 1: expected sentence_id,label"),
        (HEADER + ROW[:20], "row 2: expected 5 values, found 3"),
        (HEADER + ROW.replace(",A,", ",X,"), "row 2: label 'X' is none of A, B, C, skip"),
        (HEADER + ROW + ROW, "row 3: the sentence 'written-000-01' is there twice"),
        (HEADER + ROW.replace("000", "999"), "row 2: no sentence 'written-999-01'"),
        (HEADER + ROW.replace("1.0", "soon"), "row 2: 'soon' is no number of seconds"),
        (HEADER + ROW.rstrip() + '"open\n', "not a readable CSV file"),
        (HEADER + "\udcff\udcfe", "not a readable CSV file"),
    ],
)
def test_a_damaged_file_is_one_line_and_is_left_alone(gold, capsys, text, words):
    path = gold / "human_ann.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = path.read_bytes()
    line = refusal(capsys, gold)
    assert str(path) in line and words in line
    assert path.read_bytes() == before


def test_a_file_that_is_damaged_while_the_page_is_open_is_left_alone(site):
    _, page = site.get("/label/hurt")
    data = {"token": token(page), "label": "A", "seconds": "", "note": ""}
    path = site.gold / "human_hurt.csv"
    path.write_text(HEADER + "half a li")
    status, page = site.get("/label/hurt/1", data)
    assert status == 409 and "row 2: expected 5 values, found 1" in problem(page)
    assert path.read_text() == HEADER + "half a li"
    path.write_bytes(("\ufeff" + HEADER + ROW).replace("\n", "\r\n").encode())  # saved by Excel
    assert site.get("/label/hurt/1", data)[0] == 200
    assert "written-000-01" in {row[0] for row in site.rows("hurt")}


def test_a_second_process_and_a_wrong_start_are_one_line(site, gold, capsys):
    def fails(folder: Path, *arguments: str) -> str:
        return refusal(capsys, folder, *arguments)

    assert "another `make annotate` is at work" in fails(site.gold)
    other = gold
    assert f"port {site.port} cannot be used" in fails(other, "--port", site.port)
    for port in ("abc", "-1", "70000", ""):
        assert f"PORT={port}: expected a number" in fails(other, "--port", port)
    assert "cannot be an annotator's name" in fails(other, "--name", "../ann")
    (other / "GUIDELINES.md").write_text("# Another manual\n")
    assert "no section '## Sentences'" in fails(other)
    (other / "sentences.csv").write_text("sentence_id,label\n")
    assert "sentences.csv" in fails(other)
    (other / "sentences.csv").unlink()
    assert "sentences.csv: not there" in fails(other)


def test_ctrl_c_ends_it_quietly(serve):
    site = serve()
    site.process.send_signal(signal.SIGINT)
    _, err = site.process.communicate(timeout=20)
    assert site.process.returncode == 0 and err.strip().splitlines() == [
        "ended; the same command goes on from here"
    ]


# ---- agreement -------------------------------------------------------------------------------


def test_agreement_counts_what_both_labelled(gold):
    known = human.known(gold)
    ids = list(human.sentences(gold)["sentence_id"])
    for name, given in {"ann": "ABCABC", "bob": "ABCB", "cyd": "s"}.items():
        for sentence, label in zip(ids, given, strict=False):
            label = human.SKIP if label == "s" else label
            human.record(human.label_file(gold, name), known, sentence, label, 1.0, "")
    frame = pd.read_csv(gold / "sentences.csv", dtype=str, keep_default_na=False)
    judged = frame.assign(label_words="A", label_panel=frame["label"])
    people = human.labels(gold, judged)
    table = human.agreement(people, judged).set_index(["first", "second"])
    assert list(table["n"]) == [4, 6, 4, 6, 4, 6, 4]
    pair = table.loc[("human ann", "human bob")]
    assert pair["agreement"] == 0.75 and pair["kappa"] == pytest.approx((0.75 - 5 / 16) / (11 / 16))
    assert not any("cyd" in name for pair in table.index for name in pair)  # skipped all
    out = human.results(people, table.reset_index())
    assert out["judge.human.annotators"] == 2 and out["judge.human.sentences"] == 6
    assert out["judge.human.n.human_ann.reference"] == 6


def test_nobody_has_labelled(gold):
    frame = pd.read_csv(gold / "sentences.csv", dtype=str, keep_default_na=False)
    people = human.labels(gold, frame)
    table = human.agreement(people, frame)
    assert table.empty and human.results(people, table) == {
        "judge.human.annotators": 0,
        "judge.human.sentences": 0,
    }


def test_the_interval_is_that_of_drawing_items_one_by_one():
    rng = np.random.default_rng(1)
    items = np.repeat(np.arange(30), rng.integers(1, 9, 30))
    first = rng.choice(list("ABC"), len(items))
    second = np.where(rng.random(len(items)) < 0.6, first, rng.choice(list("ABC"), len(items)))
    drawn = []
    for _ in range(1000):
        chosen = [np.flatnonzero(items == i) for i in rng.integers(0, 30, 30)]
        rows = np.concatenate(chosen)
        drawn.append(agreement.cohen_kappa(first[rows], second[rows]))
    low, high = agreement.kappa_interval(first, second, items)
    assert [low, high] == pytest.approx(list(np.quantile(drawn, [0.025, 0.975])), abs=0.03)
    assert low < agreement.cohen_kappa(first, second) < high
    assert np.isnan(agreement.kappa_interval(first[:1], second[:1], items[:1])).all()
    assert np.isnan(agreement.kappa_interval(["A"] * 9, ["A"] * 9, range(9))).all()


def test_make_watches_the_labels(gold, monkeypatch):
    monkeypatch.chdir(gold.parent.parent)
    values = params.load(REPO / "params/local.yaml")
    assert not any("human" in file for file in params.inputs(values)["judge"])
    (gold / "human_ann.csv").write_text(HEADER)
    assert "corpus/gold/human_ann.csv" in params.inputs(values)["judge"]
    assert "corpus/gold/human_ann.csv" not in params.inputs(values)["generate"]


# ---- in a browser ----------------------------------------------------------------------------

CHROMIUM = shutil.which("chromium")
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (tests/browser.sh)")
def test_a_person_labels_with_keys(site):
    from playwright.sync_api import sync_playwright

    asked, said = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
        try:
            page = browser.new_page(viewport={"width": 400, "height": 800})
            page.on("request", lambda request: asked.append(request.url))
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))

            def press(key: str) -> None:
                with page.expect_navigation():
                    page.keyboard.press(key)

            def text() -> str:
                return page.text_content("#sentence")

            page.goto(site.address)
            page.fill("#name", "keys")
            press("Enter")
            shown = []
            for key in ("a", "2", "Shift+c"):
                assert page.evaluate("document.activeElement.id") == "sentence"
                shown.append(text())
                press(key)
            assert [row[1] for row in site.rows("keys")] == ["A", "B", "C"]
            assert all(0 < float(row[3]) < 60 for row in site.rows("keys"))

            press("u")  # undo: back to the last one, and another label
            assert text() == shown[2]
            assert page.get_attribute("button[value=C]", "aria-pressed") == "true"
            press("ArrowLeft")
            press("ArrowRight")
            assert text() == shown[2]
            press("b")
            assert [row[1] for row in site.rows("keys")] == ["A", "B", "B"]

            fourth = text()
            page.reload()  # resumes
            assert text() == fourth and "3 of 6 labelled" in page.text_content("main")

            page.keyboard.press("n")  # letters in a note are letters
            page.keyboard.type("abc skip")
            page.keyboard.press("Escape")
            page.keyboard.press("Control+b")
            assert len(site.rows("keys")) == 3
            shown.append(text())
            press("s")
            assert site.rows("keys")[-1][1::3] == ["skip", "abc skip"]

            page.keyboard.press("m")  # the manual stays open from one sentence to the next
            assert page.evaluate("document.documentElement.scrollWidth") <= 400
            shown.append(text())
            press("c")
            assert page.get_attribute("#manual", "open") is not None
            page.click("summary:has-text('Keys')")
            page.uncheck("#keys")
            page.reload()
            page.keyboard.press("a")
            assert len(site.rows("keys")) == 5
            page.click("summary:has-text('Keys')")
            page.check("#keys")

            page.goto(f"{site.address}/label/held")
            with page.expect_navigation():  # a key that is held labels once
                page.keyboard.down("a")
                page.keyboard.down("a")
            page.keyboard.down("a")
            page.keyboard.up("a")
            assert len(site.rows("held")) == 1

            for number in range(1, 7):
                page.goto(f"{site.address}/label/keys/{number}")
                shown.append(text())
                for width in (320, 400, 1280):
                    page.set_viewport_size({"width": width, "height": 800})
                    assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert set(shown) == DISTINCT  # word for word, markup and line ends included
            assert page.locator("#sentence *").count() == 0 and page.title() != "owned"

            page.goto(f"{site.address}/label/keys")
            press("a")
            press("a")
            assert "All sentences are labelled" in page.text_content("main")
        finally:
            browser.close()
    assert len(site.rows("keys")) == 6
    assert said == []
    assert {urllib.parse.urlsplit(url).netloc for url in asked} == {f"127.0.0.1:{site.port}"}
