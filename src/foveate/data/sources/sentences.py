"""Simple English sentences made of a hundred words: numbers, times, orders and places of things."""

import random

ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)

TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")

COLOURS = ("red", "green", "blue", "yellow", "white", "black", "brown", "grey")

THINGS = (
    *("lamp", "door", "window", "chair", "table", "book", "cup", "ball", "box", "clock", "bag", "key", "phone"),
    *("plate", "shirt", "hat"),
)

ROOMS = ("kitchen", "garden", "hall", "bathroom", "bedroom", "office", "garage", "cellar")

PLACES = ("on", "under", "behind", "beside", "near", "left of", "right of", "in front of")

ORDERS = ("open", "close", "take", "find", "clean", "paint", "move", "bring me", "show me", "look at")


def number_words(number: int) -> str:
    """A number below ten thousand in words: "two thousand and five"."""
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10 - 2] + (f" {ONES[number % 10]}" if number % 10 else "")
    size = 1000 if number >= 1000 else 100
    count, rest = divmod(number, size)
    joint = " and " if rest < 100 else " "
    name = "thousand" if size == 1000 else "hundred"
    return f"{number_words(count)} {name}" + (f"{joint}{number_words(rest)}" if rest else "")


def random_sentence(draw: random.Random) -> str:
    """A sentence of one of six kinds, in small letters and without punctuation."""

    def thing() -> str:
        return f"{draw.choice(COLOURS)} {draw.choice(THINGS)}"

    kind = draw.randrange(6)
    if kind == 0:
        return number_words(draw.randrange(10 ** draw.randint(2, 4)))
    if kind == 1:
        side = draw.choice(["past", "to"])
        return f"it is {number_words(draw.randint(2, 29))} minutes {side} {number_words(draw.randint(1, 12))}"
    if kind == 2:
        return f"{draw.choice(ORDERS)} the {thing()} in the {draw.choice(ROOMS)}"
    if kind == 3:
        return f"the {thing()} is {draw.choice(PLACES)} the {thing()}"
    if kind == 4:
        number = number_words(draw.randint(2, 99))
        return f"there are {number} {draw.choice(COLOURS)} {_plural(draw.choice(THINGS))} in the {draw.choice(ROOMS)}"
    return f"where is the {thing()} from the {draw.choice(ROOMS)}"


def _plural(thing: str) -> str:
    return thing + ("es" if thing.endswith("x") else "s")
