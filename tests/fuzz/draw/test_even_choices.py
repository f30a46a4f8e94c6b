"""First choices are spread evenly over programs, and each program is the same in every process."""

from collections import Counter

from fuzz.draw.choices import Choices
from fuzz.draw.even_choices import EvenlySpread, evenly_spread


def _first(choices: Choices) -> tuple[int, int, int]:
    return choices.integer(0, 9), choices.integer(3, 12), choices.integer(0, 1)


def test_choices_and_pairs_of_them_come_in_their_turn() -> None:
    for seed in "12":
        drawn = [_first(EvenlySpread(seed, n)) for n in range(2000)]
        for place, options in enumerate((range(10), range(3, 13), range(2))):
            counts = Counter(one[place] for one in drawn)
            assert set(counts) == set(options)
            assert max(counts.values()) - min(counts.values()) <= 20
        pairs = Counter(one[:2] for one in drawn)
        # Of 20 each, with a variance of 20 if they were drawn independently.
        assert sum((pairs[a, b] - 20) ** 2 for a in range(10) for b in range(3, 13)) < 100 * 5


def test_campaigns_of_other_seeds_draw_other_programs() -> None:
    one, other = (evenly_spread(_first, 50, seed, 0) for seed in ("1", "2"))
    assert sum(a == b for a, b in zip(one, other, strict=True)) < 15


def test_an_example_does_not_depend_on_how_many_are_drawn() -> None:
    def many(choices: Choices) -> list[int]:
        return [choices.integer(0, 99) for _ in range(9)]

    whole = evenly_spread(many, 60, "7", 0)
    assert whole == [one for part in range(6) for one in evenly_spread(many, 10, "7", part)]
    assert len({tuple(one[5:]) for one in whole}) == 60
