"""The emoji that scenes with captions and questions show: few enough to be learned in minutes."""

PLAIN = (
    *("banana", "lemon", "watermelon", "strawberry", "carrot", "broccoli", "dog", "cat", "pig", "penguin", "duck"),
    *("octopus", "crab", "butterfly", "snail", "bus", "bicycle", "tractor", "airplane", "rocket", "umbrella"),
    *("sunflower", "key", "hammer", "door"),
)
"""Names of things whose colour is not asked for."""

COLOURED = {
    "apple": ("red", "green"),
    "heart": ("red", "blue", "yellow", "green"),
    "book": ("green", "blue", "orange"),
}
"""Things that occur in several colours, which are part of the name: "red apple"."""

NAMES = (*PLAIN, *(f"{colour} {thing}" for thing, colours in COLOURED.items() for colour in colours))
