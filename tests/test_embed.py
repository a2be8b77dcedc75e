"""Embeddings: unit vectors, cached by text, cut texts counted, distances by hand."""

import sqlite3
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from esfp import embed, encoder, files
from esfp.files import DataError

TEXTS = [
    "Peace is kept by talking to one another.",
    "Diplomacy preserves peace.",
    "Enzymes lower the activation energy of a reaction.",
    "None",
]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("ESFP_CACHE", str(tmp_path / "cache"))
    return encoder.cache_path()


def test_vectors_are_unit_and_near_where_meaning_is(cache):
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (4, 384) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)
    assert vectors[0] @ vectors[1] > 0.6 > 0.2 > vectors[0] @ vectors[2]
    assert encoder.encode([]).shape == (0, 384)


def test_order_and_repeats_do_not_matter(cache):
    vectors = encoder.encode(TEXTS)
    assert (encoder.encode([*TEXTS[::-1], TEXTS[0]]) == vectors[[3, 2, 1, 0, 0]]).all()


def test_what_is_cached_is_not_computed_again(cache, monkeypatch):
    vectors = encoder.encode(TEXTS)
    monkeypatch.setattr(encoder, "_model", None)  # would fail if it were called
    assert (encoder.encode(TEXTS) == vectors).all()
    with sqlite3.connect(cache) as database:
        assert database.execute("SELECT count(*) FROM embeddings").fetchone() == (4,)
    with pytest.raises(TypeError):
        encoder.encode(["A text that is new."])


def test_two_processes_share_a_cache(cache):
    program = f"from esfp import encoder; encoder.encode({TEXTS!r})"
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    with sqlite3.connect(cache) as database:
        assert database.execute("SELECT count(*) FROM embeddings").fetchone() == (4,)


def test_layers_in_one_pass_are_those_of_one_each(cache, tmp_path):
    depths = [None, 3, 5]
    together = encoder.encode_layers(TEXTS, depths)
    alone = [encoder.encode(TEXTS, cache=tmp_path / "other", layers=each) for each in depths]
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other, abs=1e-6)
    assert len({vectors.tobytes() for vectors in together}) == 3
    published = encoder._model(encoder.model_folder(), None).encode(TEXTS)
    assert together[0] == pytest.approx(published, abs=1e-6)


def test_a_damaged_cache_is_named(cache):
    cache.parent.mkdir(parents=True)
    cache.write_bytes(b"not a database, " * 100)
    with pytest.raises(DataError, match="the embedding cache is damaged .*delete it"):
        encoder.encode(TEXTS)


def test_a_missing_model_is_named(tmp_path):
    with pytest.raises(DataError, match="'no_such_package' is not installed"):
        encoder.encode(TEXTS, package="no_such_package")
    with pytest.raises(DataError, match="model.safetensors: not there"):
        encoder.encode(TEXTS, path=str(tmp_path))


def test_pieces_count_the_frame():
    pieces, limit = encoder.count_pieces(["peace", "peace " * 254, "peace " * 255])
    assert pieces.tolist() == [3, 256, 257] and limit == 256


def responses(texts, status="ok"):
    frame = pd.DataFrame({"text": texts}).assign(model="a/b", type="T1", sample=0, status=status)
    frame["item_id"] = [f"T1-{i // 2:02d}" for i in range(len(texts))]
    frame["phrasing"] = [f"P{i % 2}" for i in range(len(texts))]
    return frame


def test_stage_embeds_what_is_ok_and_counts_what_was_cut(cache, tmp_path):
    frame = responses([TEXTS[0], TEXTS[1], TEXTS[2], "peace " * 300])
    frame.loc[2, "status"] = "refused"
    embedded = embed.embed_responses(frame)
    assert embedded["phrasing"].tolist() == ["P0", "P1", "P1"]
    assert embedded["cut"].tolist() == [False, False, True]
    for folder in ("one", "two"):
        results = embed.write(tmp_path / folder, embedded, ["a/b"], 1)
    assert results["embed.n.a/b"] == 3 and results["embed.cut_share.a/b"] == pytest.approx(1 / 3)
    one, two = (next((tmp_path / folder / "embeddings").iterdir()) for folder in ("one", "two"))
    assert one.name == two.name and one.read_bytes() == two.read_bytes()
    read = files.read_parquet(one, files.EMBEDDINGS)
    assert (np.stack(read["embedding"]) == np.stack(embedded["embedding"])).all()


def test_distances_by_hand():
    vectors = {"x": [1, 0], "y": [0, 1], "-x": [-1, 0], "xy": [0.6, 0.8]}
    frame = responses(["x", "x", "x", "y", "x", "-x", "x", "xy", "x"])
    frame["embedding"] = [np.array(vectors[text], np.float32) for text in frame["text"]]
    distances = embed.distances(frame, "P0", "P1")
    assert distances["distance"].tolist() == pytest.approx([0, 1, 2, 0.4])  # the ninth has no pair
    assert distances["item_id"].tolist() == ["T1-00", "T1-01", "T1-02", "T1-03"]
