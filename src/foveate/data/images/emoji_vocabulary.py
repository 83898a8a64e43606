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

FRENCH = {
    "banana": "banane",
    "lemon": "citron",
    "watermelon": "pastèque",
    "strawberry": "fraise",
    "carrot": "carotte",
    "broccoli": "brocoli",
    "dog": "chien",
    "cat": "chat",
    "pig": "cochon",
    "penguin": "manchot",
    "duck": "canard",
    "octopus": "pieuvre",
    "crab": "crabe",
    "butterfly": "papillon",
    "snail": "escargot",
    "bus": "bus",
    "bicycle": "vélo",
    "tractor": "tracteur",
    "airplane": "avion",
    "rocket": "fusée",
    "umbrella": "parapluie",
    "sunflower": "tournesol",
    "key": "clé",
    "hammer": "marteau",
    "door": "porte",
    "red apple": "pomme rouge",
    "green apple": "pomme verte",
    "red heart": "cœur rouge",
    "blue heart": "cœur bleu",
    "yellow heart": "cœur jaune",
    "green heart": "cœur vert",
    "green book": "livre vert",
    "blue book": "livre bleu",
    "orange book": "livre orange",
}
"""The French names of the same things."""


def is_held_out(one: str, other: str) -> bool:
    """Returns whether two things, in this order, are one of the pairs in ten that are for tests alone."""
    return (7 * NAMES.index(one) + 11 * NAMES.index(other)) % 10 == 3
