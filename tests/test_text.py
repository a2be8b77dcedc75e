"""Text: traces taken off, sentences cut, limits checked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esfp.text import count_words, split_report, split_sentences, strip_trace, violations

HARMONY = (
    "<|channel|>analysis<|message|>Let me think.<|end|>"
    "<|start|>assistant<|channel|>final<|message|>The answer.<|return|>"
)


@pytest.mark.parametrize(
    ("raw", "answer", "trace"),
    [
        ("The answer.", "The answer.", None),
        ("<think>why</think>The answer.", "The answer.", "why"),
        ("<THINK>\nwhy\n</Think>\n\nThe answer.", "The answer.", "why"),
        ("<thinking>why</thinking> The answer.", "The answer.", "why"),
        ("<reasoning>why</reasoning> The answer.", "The answer.", "why"),
        ("[THINK]why[/THINK]The answer.", "The answer.", "why"),
        ("◁think▷why◁/think▷The answer.", "The answer.", "why"),
        ("<think>cut off in the midd", "", "cut off in the midd"),
        ("The answer. <think>and then", "The answer.", "and then"),
        ("no opening tag</think>The answer.", "The answer.", "no opening tag"),
        ("one</think>two</think>The answer.", "The answer.", "one\ntwo"),
        ("<think>a<think>b</think>c</think>The answer.", "The answer.", "a\nb\nc"),
        ("<think>a<reasoning>b</think>The answer.", "The answer.", "a\nb"),
        ("<think>a</think>One. <think>b</think>Two.", "One. Two.", "a\nb"),
        ("<think>a<think>b</think>still thought", "", "a\nb\nstill thought"),
        ("<think>\n\n</think>\n\nThe answer.", "The answer.", None),
        (HARMONY, "The answer.", "Let me think."),
        (HARMONY.upper().replace("FINAL", "Final"), "THE ANSWER.", "LET ME THINK."),
        ("<|channel|>analysis<|message|>cut off", "", "cut off"),
        ("<|channel|>analysis", "", None),
        ("Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "Yes.", "Hm."),
        ("<|begin_of_thought|>why<|end_of_thought|>The answer.", "The answer.", "why"),
        (
            "<|START_THINKING|>why<|END_THINKING|><|START_RESPONSE|>The answer.<|END_RESPONSE|>",
            "The answer.",
            "why",
        ),
        (
            "analysisWe need an answer.assistantfinalThe answer.",
            "The answer.",
            "We need an answer.",
        ),
        ("analysisWe need an ans", "", "We need an ans"),
        ("analysis: it is so.", "analysis: it is so.", None),
        ("<|channel|>final<|message|><think>why</think>The answer.", "The answer.", "why"),
        ("I think <br> this & that < 3.", "I think <br> this & that < 3.", None),
    ],
)
def test_traces(raw, answer, trace):
    assert strip_trace(raw) == (answer, trace)


@given(st.text(), st.text(alphabet="abc .\n"))
def test_what_follows_a_closed_trace_is_the_answer(trace, answer):
    trace = trace.replace("<", "").replace("[", "").replace("◁", "")
    assert strip_trace(f"<think>{trace}</think>{answer}")[0] == answer.strip()


PIECES = [
    "<think>",
    "</think>",
    "<thi",
    "nk>",
    "[THINK]",
    "<|channel|>final<|message|>",
    "<|end|>",
    "a",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_an_answer_holds_no_trace_however_often_it_is_read(raw):
    answer = strip_trace(raw)[0]
    assert strip_trace(answer) == (answer, None)


def test_long_trace_of_a_reasoning_model():
    trace = "Wait, let me reconsider. Is it so?\n" * 5000
    assert strip_trace(f"<think>\n{trace}</think>\n\nI agree.") == ("I agree.", trace.strip())


def test_sentences_floor_and_order():
    text = 'I disagree. It is so!  Is that\nclear to you? "Yes." he said, e.g. to me.'
    report = split_report(text)
    assert report.sentences == ["Is that\nclear to you?", '"Yes." he said, e.g.']
    assert report.fragments == ["I disagree.", "It is so!", "to me."]
    assert report.beyond_cap == 0
    assert split_sentences(text) == report.sentences


def test_twelve_characters_are_enough_and_eleven_are_not():
    assert split_sentences("Elevenchar. Twelve chars.") == ["Twelve chars."]
    assert len("Elevenchar.") == 11 and split_sentences("Twelvechars.") == ["Twelvechars."]


def test_the_cap_comes_after_the_floor():
    text = " ".join(["No."] * 30 + [f"Sentence number {i}." for i in range(30)])
    report = split_report(text)
    assert len(report.sentences) == 25 and report.sentences[-1] == "Sentence number 24."
    assert report.beyond_cap == 5 and len(report.fragments) == 30


def test_decimal_points_and_unicode_space():
    assert split_sentences("It rose by 3.5 per cent.\u00a0Then it fell again.") == [
        "It rose by 3.5 per cent.",
        "Then it fell again.",
    ]


def test_kept_splitter_knows_abbreviations():
    text = "Dr. Smith wrote the first study. It was small, e.g. in size."
    assert split_sentences(text, "sentencex") == [
        "Dr. Smith wrote the first study.",
        "It was small, e.g. in size.",
    ]
    assert split_sentences(text) != split_sentences(text, "sentencex")
    assert (
        split_sentences("I disagree. " + "A long enough one. " * 30, "sentencex")
        == ["A long enough one."] * 25
    )


def test_unknown_rule():
    with pytest.raises(ValueError, match="'paper' or 'sentencex'"):
        split_sentences("Anything.", "pysbd")


@given(st.text())
def test_sentences_are_parts_of_the_text(text):
    report = split_report(text)
    assert all(sentence in text and len(sentence) >= 12 for sentence in report.sentences)
    assert all(fragment in text and 0 < len(fragment) < 12 for fragment in report.fragments)


@pytest.mark.parametrize(("text", "n"), [("", 0), ("One two—three  4 …", 3), ("it's so. - *", 2)])
def test_words(text, n):
    assert count_words(text) == n


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("Peace is kept by talking.", []),
        (" ".join(["word"] * 150), []),
        (" ".join(["word"] * 151), ["too_long"]),
        ("One.\n\nTwo.", []),
        ("One.\n\nTwo.\n \nThree.", ["too_many_paragraphs"]),
        ("First:\n- one\n- two", ["markdown"]),
        ("1. One\n2. Two", ["markdown"]),
        ("a) One", ["markdown"]),
        ("## Heading\nText.", ["markdown"]),
        ("This is **bold**.", ["markdown"]),
        ("This is *italic*.", ["markdown"]),
        ("This is _italic_ too.", ["markdown"]),
        ("Use `code`.", ["markdown"]),
        ("> quoted", ["markdown"]),
        ("See [here](http://a.b).", ["markdown"]),
        ("Text.\n\t+ one", ["markdown"]),
        ("Text.\n  | a | b |\nmore", ["markdown"]),
        ("Heading\n===\nText.", ["markdown"]),
        ("so__bold__it is", ["markdown"]),
        ("**not closed, *nor this, a_b_c, 3*4*5 and [this] (that)", []),
        ("Text. - no bullet, 1. no number, > no quotation", []),
        ("2 * 3 * 4 makes 24, and snake_case_names stay.", []),
        ("In 1990. 5 of 10 agreed - most of them.", []),
        ("I. Newton held this.", []),
        ("Great question! Peace is kept by talking.", ["filler_opening"]),
        ("That's a really interesting question. Yes.", ["filler_opening"]),
        ("Certainly! Peace.", ["filler_opening"]),
        ("Sure, here it is.", ["filler_opening"]),
        ("Of course, peace.", ["filler_opening"]),
        ("Thank you for asking.", ["filler_opening"]),
        ("I'd be happy to help.", ["filler_opening"]),
        ("Certainly not every war is lost.", []),
        ("A good question to ask is who pays.", []),
        ("Well known facts support it.", []),
        (
            "Sure! **" + "word " * 151 + "**\n\nb\n\nc",
            ["too_long", "too_many_paragraphs", "filler_opening"],
        ),
    ],
)
def test_violations(text, broken):
    assert violations(text) == broken
