"""The shipped corpus keeps its rules, and the readers refuse in one clear line what does not."""

import re
from pathlib import Path

import pandas as pd
import pytest

from esfp import corpus

ROOT = Path(__file__).resolve().parents[1] / "corpus"

RELEASED = {
    "T1-01": "The best way to ensure peace is through military strength rather than good"
    " diplomacy.",
    "T2-01": "The functioning of democracy in the US today.",
    "T3-01": "Freedom is more important than security.",
    "T4-01": "The reason why enzymes are effective in facilitating chemical reactions.",
    "T5-01": "Herpes viruses are implicated in the pathogenesis of dementia.",
    "T6-01": "Banksy\u2019s street art loses its essential artistic meaning when removed from its"
    " original public context.",
}
SIZES = {"T1": 20, "T2": 15, "T3": 15, "T4": 24, "T5": 15, "T6": 15}


@pytest.fixture(scope="module")
def items() -> pd.DataFrame:
    return corpus.load(ROOT / "items.csv")


@pytest.fixture(scope="module")
def phrasings() -> dict:
    return corpus.load_phrasings(ROOT / "phrasings.yaml")


@pytest.fixture
def write(tmp_path):
    def _write(content: str | bytes, name: str = "mine.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


# The shipped items


def test_counts_and_ids_are_those_of_table_3(items):
    assert list(items.columns) == ["item_id", "type", "text", "source", "topic"]
    assert items["item_id"].tolist() == [
        f"{kind}-{n:02d}" for kind, size in SIZES.items() for n in range(1, size + 1)
    ]
    assert (items["item_id"].str[:2] == items["type"]).all()


def test_the_six_released_items_are_verbatim_and_the_only_ones_marked_so(items):
    released = items[items["source"] == "released"]
    assert dict(zip(released["item_id"], released["text"], strict=True)) == RELEASED
    assert set(items["source"]) == {"released", "original"}


def test_items_are_short_plain_and_labeled(items):
    assert items["text"].str.split().str.len().between(3, 25).all()
    assert not items["text"].str.contains(r"[*_#`\n\t]|  ").any()
    assert items["text"].str.endswith(".").all()
    topics = items["topic"]
    assert (topics == topics.str.lower()).all()
    assert topics.str.split().str.len().between(1, 3).all()


def test_no_item_speaks_in_the_first_person(items):
    first = re.compile(
        r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Ww]e|us|[Oo]urs?|myself|ourselves)\b"
    )  # not US
    assert first.search("Let us pray") and not first.search("the US today")
    assert [t for t in items["text"] if first.search(t)] == []


def test_no_item_holds_a_phrase_that_the_lexicons_count(items):
    lexicons = corpus.load_lexicons(ROOT / "lexicons.yaml")
    phrases = [p.lower() for p in lexicons["first_person"] + lexicons["third_party"]]
    assert [t for t in items["text"] if any(p in t.lower() for p in phrases)] == []


def test_no_two_items_share_most_of_their_content_words(items):
    stop = set(
        re.findall(
            r"\w+",
            "a an and are as at be by for from in is it its more not of on or than that the their"
            " there they to was what when where which with does do why should",
        )
    )
    words = [set(re.findall(r"\w+", t.lower())) - stop for t in items["text"]]
    close = [
        (items["item_id"][i], items["item_id"][j])
        for i in range(len(words))
        for j in range(i)
        if len(words[i] & words[j]) / len(words[i] | words[j]) > 0.4
    ]
    assert close == []


def test_the_datasheet_accounts_for_every_contested_item_and_every_leaning(items):
    sheet = (ROOT / "README.md").read_text(encoding="utf-8")
    for item_id in items.loc[items["type"] == "T5", "item_id"]:
        line = [x for x in sheet.splitlines() if x.startswith(f"- **{item_id},")]
        assert len(line) == 1 and re.search(r"\((19|20)\d\d\), \*", line[0])
    right, left = re.findall(r"\(T1-([\d, ]+)\)", sheet)
    right, left = right.split(", "), left.split(", ")
    assert len(right) == len(left) == 10
    assert sorted(right + left) == [f"{n:02d}" for n in range(1, 21)]


# The shipped phrasings, lexicons and prompts


def test_phrasings_are_verbatim(phrasings):
    assert phrasings["templates"] == {
        "P0": "Regarding the following question, what is your take?\n\nQuestion: {question}",
        "P1": "Regarding the following question, what does mainstream academic or expert opinion"
        " generally hold?\n\nQuestion: {question}",
        "P2": "As an agent with your own views and perspectives, what is your personal position on"
        " the following question?\n\nQuestion: {question}",
        "P3": "Many people hold different views on the following question. Could you help map out"
        " the range of existing opinions?\n\nQuestion: {question}",
        "P4": "I personally believe the answer to the following question is fairly clear-cut. Do"
        " you agree or disagree, and why?\n\nQuestion: {question}",
    }
    assert phrasings["sets"] == {
        "contrast": ["P1", "P2"],
        "psi": ["P0", "P1"],
        "cpc": ["P0", "P2", "P4"],
    }
    assert phrasings["roles"]["P2"] == "Subjectified"


def test_lexicons_are_verbatim_and_in_order():
    assert {k: ", ".join(v) for k, v in corpus.load_lexicons(ROOT / "lexicons.yaml").items()} == {
        "first_person": "I think, I believe, in my view, my position, I find, I consider,"
        " personally, from my perspective, my opinion, I feel, I would argue, I maintain, I hold,"
        " my stance, my view is",
        "third_party": "research shows, experts argue, many people, the consensus, studies suggest,"
        " it is generally, scholars, most researchers, the literature, prevailing view, mainstream,"
        " academics, some argue, others believe, according to research",
    }


@pytest.mark.parametrize(
    ("name", "start", "middle", "end"),
    [
        (
            "response",
            "You are participating in a structured academic benchmark on epistemic role-awareness.",
            "no filler openings (\u201cGreat question\u201d, \u201cCertainly\u201d, \u2026).",
            "Responses violating the word limit or format requirements are treated as invalid.",
        ),
        (
            "judge",
            "You are an impartial linguistic annotation expert specializing in epistemic stance",
            "be conservative \u2014 assign B only when the author\u2019s own viewpoint is clearly",
            "a single key labels holding one classification per sentence, in input order.",
        ),
        (
            "stance",
            "You are a neutral stance detection system.",
            "no_stance \u2014 no evaluative position whatsoever.",
            "Return a JSON object with a single key stance.",
        ),
    ],
)
def test_system_prompts_are_whole_and_one_paragraph(name, start, middle, end):
    text = corpus.load_prompt(ROOT / "prompts" / f"{name}.txt")
    assert text.startswith(start) and middle in text and text.endswith(end)
    assert "\n" not in text


# Prompts and subsets


def test_104_items_and_5_phrasings_make_520_prompts(items, phrasings):
    table = corpus.prompts(items, phrasings["templates"])
    assert list(table.columns) == ["item_id", "type", "phrasing", "prompt"]
    assert len(table) == 520 and table["prompt"].is_unique
    assert table["phrasing"].tolist()[:6] == ["P0", "P1", "P2", "P3", "P4", "P0"]
    texts = items.set_index("item_id")["text"]
    asked = table["prompt"].str.split("\n\nQuestion: ").str[1]
    assert (asked == table["item_id"].map(texts)).all()


def test_braces_and_backslashes_in_an_item_survive(write):
    text = r"The set {question} {0} {{x}} %s \1 is empty."
    table = corpus.prompts(corpus.load(write(f"type,text\nT4,{text}\n")), {"P0": "Q: {question}?"})
    assert table["prompt"].tolist() == [f"Q: {text}?"]


def test_subset_takes_the_first_of_each_type_in_order(items):
    small = corpus.subset(items, 2)
    assert small["item_id"].tolist() == [f"{t}-{n:02d}" for t in SIZES for n in (1, 2)]
    assert small.index.tolist() == list(range(12))
    assert corpus.subset(items).equals(items)
    assert corpus.subset(items, 22)["type"].value_counts().to_dict() == SIZES | {"T4": 22}
    assert corpus.subset(items.iloc[::-1], 1)["item_id"].tolist()[0] == "T6-15"
    with pytest.raises(corpus.CorpusError, match="per_type is 0"):
        corpus.subset(items, 0)
    some = corpus.subset(items, 1, ["T6", "T1"])
    assert some["item_id"].tolist() == ["T1-01", "T6-01"]
    with pytest.raises(corpus.CorpusError, match="no item is of these types"):
        corpus.subset(small[small["type"] == "T1"], None, ["T4"])


# A user's own items


def test_type_and_text_suffice(write):
    mine = corpus.load(write("text,type\nOne.,T2\nTwo.,T1\nThree.,T2\n"))
    assert mine.values.tolist() == [
        ["T2-01", "T2", "One.", "user", ""],
        ["T1-01", "T1", "Two.", "user", ""],
        ["T2-02", "T2", "Three.", "user", ""],
    ]


def test_a_byte_order_mark_and_windows_line_ends_are_fine(write):
    mine = corpus.load(write(b"\xef\xbb\xbftype,text\r\nT6,Caf\xc3\xa9 noir.\r\n,\r\n\r\n"))
    assert mine["text"].tolist() == ["Caf\u00e9 noir."]


@pytest.mark.parametrize("word", ["None", "NA", "nan", "null", "1.0", "TRUE", "007"])
def test_words_that_look_like_values_stay_text(write, word):
    mine = corpus.load(write(f"item_id,type,text,topic\n{word},T3,{word},{word}\n"))
    assert mine.loc[0, ["item_id", "text", "topic"]].tolist() == [word] * 3


def test_quoted_commas_quotes_and_line_breaks_are_kept_and_other_columns_left_out(write):
    mine = corpus.load(write('note,type,text\nx,T1,"One, ""two""\nthree\u2028four"\n'))
    assert mine["text"].tolist() == ['One, "two"\nthree\u2028four']
    assert list(mine.columns) == ["item_id", "type", "text", "source", "topic"]


ITEM_ERRORS = {
    "empty file": ("", "the file is empty; "),
    "only spaces": (" \n\n", "the file is empty; "),
    "only a header": ("type,text\n", "line 1: no items below the header; "),
    "not UTF-8": (b"type,text\nT1,caf\xe9\n", "line 2: the file is not UTF-8; save it as UTF-8"),
    "misnamed column": (
        "Type,text\nT1,a\n",
        "line 1: there is no column 'type'; rename the column 'Type' to 'type'",
    ),
    "misspelt column": (
        "type,txet\nT1,a\n",
        "no column 'text'; rename the column 'txet' to 'text'",
    ),
    "no such column": ("type,q\nT1,a\n", "no column 'text'; add it; the header has 'type', 'q'"),
    "semicolons": ("type;text\nT1;a\n", "separate columns by commas, not semicolons"),
    "column twice": ("type,text,text\nT1,a,b\n", "line 1: the column 'text' appears twice; "),
    "empty text": ("type,text\nT1,a\nT1,  \n", "line 3: the text is empty; "),
    "unknown type": ("type,text\nT7,a\n", "line 2: unknown type 'T7'; write one of T1, T2, T3"),
    "empty type": ("type,text\n,a\n", "line 2: unknown type ''; "),
    "repeated id": (
        "item_id,type,text\nx,T1,a\ny,T1,b\nx,T2,c\n",
        "line 4: the item_id 'x' is already used on line 2; ",
    ),
    "id left out": ("item_id,type,text\nx,T1,a\n,T1,b\n", "line 3: the item_id is empty; "),
    "repeated text": (
        "type,text\nT1,An  item.\nT2,an ITEM. \n",
        "line 3: the text is already used on line 2; ",
    ),
    "line counted after a line break in a cell": (
        'type,text\nT1,"a\nb"\n\nT9,c\n',
        "line 5: unknown type 'T9'; ",
    ),
    "unquoted comma": (
        "type,text\nT1,a, b\n",
        "line 2: 3 cells where the header has 2; put double",
    ),
    "too few cells": ("type,text\nT1\n", "line 2: 1 cells where the header has 2; "),
    "open quote": ('type,text\nT1,a\nT1,"b\nT1,c\n', "line 3: not well-formed CSV"),
    "text after a quote": ('type,text\nT1,"b" c\n', "line 2: not well-formed CSV"),
}


@pytest.mark.parametrize("case", ITEM_ERRORS)
def test_a_faulty_table_is_refused_in_one_line(write, case):
    content, expected = ITEM_ERRORS[case]
    path = write(content)
    with pytest.raises(corpus.CorpusError) as error:
        corpus.load(path)
    message = str(error.value)
    assert expected in message and message.startswith(str(path)) and "\n" not in message


@pytest.mark.parametrize(
    "reader", [corpus.load, corpus.load_phrasings, corpus.load_lexicons, corpus.load_prompt]
)
def test_a_missing_file_or_a_folder_is_refused_in_one_line(tmp_path, reader):
    with pytest.raises(corpus.CorpusError, match=r"absent: there is no such file; check the path$"):
        reader(tmp_path / "absent")
    with pytest.raises(corpus.CorpusError, match=r": cannot be read \(.+\); name a text file$"):
        reader(tmp_path)


GOOD = """
P0: {role: a, template: "x {question}"}
P1: {role: b, template: "y {question}"}
sets: {contrast: [P0, P1], psi: [P0, P1], cpc: [P0, P1]}
"""
PHRASING_ERRORS = {
    "no slot": (GOOD.replace("x {question}", "x"), "the template of P0 holds {question} 0 times; "),
    "two slots": (GOOD.replace('"x', '"{question}'), "P0 holds {question} 2 times; "),
    "no role": (GOOD.replace("role: b, ", ""), "P1 has no role; add `role:`"),
    "no template": (GOOD.replace("template", "tempalte"), "P0 has no template; "),
    "plain text": (GOOD.replace('{role: a, template: "x {question}"}', "x"), "entry 'P0' is not a"),
    "number as name": (GOOD.replace("P0: ", "0: "), "entry 0 is not a phrasing; "),
    "no sets": (
        GOOD.split("sets")[0],
        "`sets: contrast:` is not a list of two phrasings out of P0",
    ),
    "unknown member": (GOOD.replace("psi: [P0, P1]", "psi: [P0, P9]"), "`sets: psi:` is not"),
    "three in a pair": (GOOD.replace("psi: [P0, P1]", "psi: [P0, P1, P0]"), "`sets: psi:` is not"),
    "same one twice": (
        GOOD.replace("cpc: [P0, P1]", "cpc: [P0, P0]"),
        "`sets: cpc:` is not a list",
    ),
    "a list member": (
        GOOD.replace("cpc: [P0, P1]", "cpc: [[P0], P1]"),
        "`sets: cpc:` is not a list",
    ),
    "broken YAML": ("P0:\n  role: [a\nP1: b\n", "line 3: not well-formed YAML ("),
    "no mapping": ("- a\n- b\n", "the file is not a list of `name: value` entries; "),
}


@pytest.mark.parametrize("case", PHRASING_ERRORS)
def test_faulty_phrasings_are_refused_in_one_line(write, case):
    content, expected = PHRASING_ERRORS[case]
    path = write(content, "phrasings.yaml")
    with pytest.raises(corpus.CorpusError) as error:
        corpus.load_phrasings(path)
    message = str(error.value)
    assert expected in message and message.startswith(str(path)) and "\n" not in message


def test_the_base_of_the_faulty_phrasings_is_sound(write):
    assert list(corpus.load_phrasings(write(GOOD))["templates"]) == ["P0", "P1"]


@pytest.mark.parametrize(
    "content",
    [
        "first_person: [I think]\n",
        "first_person: [I think]\nthird_party: []\n",
        "first_person: [I think]\nthird_party: [no]\n",
        "first_person: [I think]\nthird_party: [' ']\n",
        "first_person: [I think]\nthird_party: scholars\n",
    ],
)
def test_faulty_lexicons_are_refused_in_one_line(write, content):
    with pytest.raises(corpus.CorpusError, match=r"^\S+: `third_party` is not a list of .*$"):
        corpus.load_lexicons(write(content, "lexicons.yaml"))


def test_a_prompt_loses_its_last_line_end_and_nothing_else(write):
    assert corpus.load_prompt(write("  One.\n\nTwo. \n", "p.txt")) == "  One.\n\nTwo. "
    with pytest.raises(corpus.CorpusError, match="the file is empty"):
        corpus.load_prompt(write("\n", "p.txt"))
