"""Texts to mutate are as long as they may be, wherever they are from."""

import random

from fuzz.draw.text_mutations import LARGEST, mutations, pieces, sources


def test_pieces_fit_and_begin_with_the_first_line() -> None:
    header = "HloModule m\n"
    body = [f"{'x' * size}\n" for size in (LARGEST, 10, LARGEST - 20, 5, 2 * LARGEST, 7)]
    found = pieces(header + "".join(body))
    assert len(found) > 2
    for piece in found:
        assert len(header) < len(piece) <= LARGEST and piece.startswith(header)
    assert all(len(piece) <= LARGEST for piece in pieces("h" * 3 * LARGEST + "\nline\n"))


def test_long_texts_alone_are_mutated() -> None:
    texts = sources(["HloModule m\n" + "line\n" * LARGEST])
    assert not texts.whole and texts.choice(random.Random(0)) in texts.parts
    assert len(list(mutations(texts, 0, range(5)))) == 5
