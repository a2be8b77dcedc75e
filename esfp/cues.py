"""Hand-made cues of epistemic stance in English: what a sentence's words give away about it.

They follow the definitions of the judge prompt (Appendix A of the paper): who speaks, who is
reported, whether something is valued or demanded, and whether anything is said at all.
"""

from __future__ import annotations

import functools
import re

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

_OWN = (
    "think|believe|feel|find|consider|suspect|hold|maintain|argue|say|prefer|favou?r|see|regard|"
    "doubt|lean|conclude|judge|reckon|support|oppose|reject|value|like|love|trust|agree|disagree"
)
_HOLDERS = (
    "experts?|researchers?|scholars?|scientists?|economists?|historians?|critics?|supporters?|"
    "opponents?|proponents?|advocates?|defenders?|s[ck]eptics?|philosophers?|psychologists?|"
    "physicians?|people|others|some|many|most|few|academics?|observers?|authors?|groups?|camps?|"
    "writers?|mainstream|consensus|literature"
)
_REPORTS = (
    "argued?s?|claim(?:s|ed)?|believed?s?|holds?|held|says?|said|point(?:s|ed)?|report(?:s|ed)?|"
    "finds?|found|show(?:s|ed|n)?|suggest(?:s|ed)?|contend(?:s|ed)?|noted?s?|maintains?|sees?|"
    "view(?:s|ed)?|regard(?:s|ed)?|considered|answers?|repl(?:y|ies)|object(?:s|ed)?|"
    "according to|known as|called|refers? to|defined"
)
_EVIDENCE = (
    "stud(?:y|ies)|trials?|surveys?|evidence|data|meta-analys[ei]s|replicat\\w+|findings?|"
    "experiments?|estimates?|research|results?|effects?|reviews?"
)
_PRAISE = (
    "good|great|beaut\\w+|valuable|wonderful|excellent|wise|honest|elegant|rich|sound|sensible|"
    "convincing|persuasive|plausible|impressive|masterpiece|gift|admir\\w+|deserv\\w+|powerful|"
    "timeless|profound|remarkable|genius|graceful|fair|reasonable|rightly"
)
_BLAME = (
    "bad|wrong|mistake\\w*|harmful|poor|weak|foolish|shallow|over(?:rated|stated)|exaggerat\\w+|"
    "unfair|unjust|dishonest|cruel|cheap|lazy|nonsense|dangerous|troubl\\w+|fail\\w*|flaw\\w*|"
    "misleading|absurd|silly|waste\\w*|unproven|naive|excuses?|dull|doubtful"
)
_META = (
    "questions?|topic|issue|debated?|discuss\\w*|complex|multifaceted|nuanced|perspectives?|"
    "viewpoints?|opinions?|sides|various|different|following|above|below|summary|conclusion|"
    "ultimately|overall|depends?|consider|note|explore|overview|answer|hope|helps?|let|clarify|"
    "more research|subjective|context"
)
_OPENERS = (
    "in (?:conclusion|summary|short)|overall|ultimately|however|therefore|thus|moreover|"
    "furthermore|additionally|finally|first(?:ly)?|second(?:ly)?|on the (?:one|other) hand|"
    "that said|here|now|so|well|okay|let"
)

_ABOUT_THE_TALK = (
    "note|consider|remember|recogni[sz]e|acknowledge|understand|keep|approach|examine|clarify|"
    "be (?:mindful|aware)"
)
_NECESSARY = (
    r"(?:important|essential|crucial|vital|necessary|imperative|critical)(?: for [\w' ]{1,40})?"
)

_PATTERNS = {
    "first person": r"\b(?:i|me|my|mine|myself|i['’](?:d|m|ve|ll))\b",
    "first person plural": r"\b(?:we|us|our|ours)\b",
    "starts with the speaker": r"^\W*(?:i|my|personally|in my)\b",
    "own view": rf"\bi(?:['’]d| would| do| also| still)? (?:not )?(?:{_OWN})\b"
    r"|\bmy (?:\w+ )?(?:view|opinion|position|stance|take|sense|reading|preference|judge?ment)\b"
    r"|\bpersonally\b|\bas i see\b",
    "agreement": r"\bagree[ds]?\b|\byes\b|\b(?:is|are) (?:correct|true|right)\b",
    "disagreement": r"\bdisagree\b|\bclear-cut\b|\bdoubt\b|\bs[ck]eptical\b|^\W*no\b"
    r"|n['’]t (?:buy|convinced)|\b(?:is|are) (?:not (?:correct|true|right)|false|wrong)\b",
    "norm": r"\b(?:should|must|ought|shall|needs? to|ha(?:s|ve) to|deserves?|had better)\b"
    r"|\b(?:essential|crucial|important|vital|necessary|better|best|worth|time) (?:to|that|for)\b",
    "comparison of worth": r"\b(?:better|worse|best|worst|rather than|outweighs?|prefer\w*|rarer"
    r"|matters? (?:more|most|less)|greatest|finest|superior|inferior|worth\w*|too (?!many)\w+"
    r"|more (?:important|valuable|honest|beautiful|interesting))\b",
    "verdict": r"\b(?:is|are|was|were|remains?|seems?|looks?) (?:\w+ )?"
    r"(?:a|an|the|more|less|not|no|far|too|simply|what|better|worse|good|right|wrong)\b",
    "praise": rf"\b(?:{_PRAISE})\b",
    "blame": rf"\b(?:{_BLAME})\b",
    "hedge": r"\b(?:may|might|could|perhaps|possibly|probably|likely|tends?|seems?|appears?"
    r"|sometimes|often|generally|usually|tentativ\w+|somewhat)\b",
    "booster": r"\b(?:clearly|certainly|undoubtedly|surely|obviously|simply|plainly|truly|really"
    r"|indeed|of course|no doubt|always|never|nothing|only|exactly|even)\b",
    "holder of a view": rf"\b(?:{_HOLDERS})\b",
    "report": rf"\b(?:{_REPORTS})\b",
    "evidence": rf"\b(?:{_EVIDENCE})\b|\d",
    "the speaker as a machine": r"\b(?:ai|language model|assistant|training)\b"
    r"|\bpersonal (?:opinions?|views?|beliefs?)\b"
    r"|\bi (?:do not|don['’]t|cannot|can['’]t|won['’]t|am not|am unable|aim|try)\b",
    "refusal": r"\b(?:cannot|can['’]t|won['’]t|unable|sorry|apologi\w+|decline|refrain|neutral"
    r"|impartial|take (?:a )?sides?)\b",
    "talk about the talk": rf"\b(?:{_META})\b",
    "opener": rf"^\W*(?:{_OPENERS})\b",
    "pronoun first": r"^\W*(?:it|this|that|these|those|they|he|she|such)\b",
    "negation": r"\b(?:not|no|never|none|neither|nor|without)\b|n['’]t\b",
    "contrast": r"\b(?:but|however|although|though|yet|while|whereas|despite|still|instead)\b",
    "several sides": r"\b(?:others|supporters|opponents|proponents|critics|both|each|camps?|schools"
    r"|balance|middle|half|depends)\b|\bon the other hand\b|\bone view\b|\btwo \w+\b",
    "question": r"\?",
    "exclamation": r"!",
    "colon at the end": r":\s*$",
    "quotation": r"[\"“”]",
    "list or line break": r"^\s*(?:[-*•]|\d+[.)])\s|\n",
    "stance withheld or announced": r"\b(?:rather|prefer) not\b"
    r"|\b(?:appropriate|right|fair) for me to"
    r"|\bi(?:['’]m| am) (?:happy|glad|here|unable|not able|committed|going)\b|\bapolog"
    r"|\bi should (?:note|say|add)\b|\bi (?:hope|want to|would like to|can only)\b"
    r"|\bas an? (?:agent|ai|language|seasoned|expert)\b",
    "report of a belief": rf"\b(?:{_HOLDERS}|they|those who|camps?)\b[^.,;:]{{0,40}}"
    r"\b(?:say|says|said|believes?|argues?|argued|holds?|held|thinks?|feels?|sees?|claims?|maintains?|contends?"
    r"|views?|points?|asks?|objects?|prefer|worry|worried|fear|notes?|answers?|repl(?:y|ies))\b",
    "quoted first person": r"['‘’“\"]\s*(?:i|we|my)\b|\bsays? ['‘“\"]",
    "experience": r"\bi(?:['’]ve| have) \w+",
    "prescription": rf"\b{_NECESSARY} (?:to|that)\b(?! (?:{_ABOUT_THE_TALK}))",
    "prescription for the talk": rf"\b{_NECESSARY} to (?:{_ABOUT_THE_TALK})\b"
    r"|\bworth (?:noting|considering)\b",
    "fallacy": r"\bfallac\w+|\bfalse (?:dichotomy|assumption|premise|choice)|\bincorrect"
    r"|\bnot (?:justif\w+|convinc\w+|persuad\w+)|\bmislead\w+|\bmisguided",
    "requirement": r"\b(?:requires?|calls? for|demands?|a call to|a matter of"
    r"|(?:it['’]s|it is) (?:not )?about)\b",
    "the answer is": r"\b(?:the|my) (?:\w+ )?answer\b[^.]{0,60}\b(?:is|would be)\b|\bunequivocal",
    "superlative": r"\bthe (?:most|least|best|worst|greatest|finest|only)\b"
    r"|\b(?:more|less) \w+ than\b|\b(?!oth|rath|eith)\w+er than\b",
    "right or duty": r"\b(?:rights? to|rights|dut(?:y|ies)|owes?|entitled|justice|freedom to)\b",
    "stock phrase": r"\bplays? an? \w+ role|\btestament|\breminder|\breflect\w*|\bimportance of\b"
    r"|\bsignificant\b",
    "possible effect": r"\bcan (?:\w+ )?(?:lead|help|be|have|provide|make|cause|improve|reduce"
    r"|result|contribute)\b|\bleads? to\b|\bbecause\b",
    "past": r"\b(?:was|were|had|did|became|\w{3,}ed)\b",
    "would": r"\bwould\b",
    "second person": r"\b(?:you|your|let['’]?s|let us)\b",
    "heading": r"^\W*\*\*|^[-*•] |^[a-z][\w ]{0,30}:",
    "number": r"\d",
    "some of several": r"\b(?:some|several|various|many|different|both|either|each)\b",
}
NAMES = [*_PATTERNS, "length"]
_COMPILED = [re.compile(pattern, re.I) for pattern in _PATTERNS.values()]


@functools.lru_cache(maxsize=100_000)
def _row(text: str) -> tuple[float, ...]:
    counts = [min(3.0, len(pattern.findall(text))) for pattern in _COMPILED]
    return (*counts, np.log1p(len(text.split())))


def count_cues(texts: list[str]) -> np.ndarray:
    """How often each cue occurs, at most three times, and the log of the number of words.

    Returns
    -------
    ndarray of float64, shape (len(texts), len(NAMES))
    """
    return np.array([_row(text) for text in texts], float).reshape(len(texts), len(NAMES))


def frames(text: str) -> list[str]:
    """Runs of one to four tokens of a sentence's frame.

    Function words and punctuation are kept and of any other word its last two letters, so that
    what the sentence is about goes and how it is built stays; '^' and '$' mark its ends.
    """
    found = re.findall(r"\w+|[?!:,.;\"]", text.lower())
    kept = [
        token if token in ENGLISH_STOP_WORDS or not token[0].isalnum() else f"*{token[-2:]}"
        for token in found
    ]
    tokens = ["^", *kept, "$"]
    return [
        " ".join(tokens[start : start + length])
        for length in range(1, 5)
        for start in range(len(tokens) - length + 1)
    ]
