"""What a page shows of a sight: which numbers, and what its sides are."""

import numpy as np
import pytest
import torch
from demo_pages import (
    STORY,
    FakeSight,
    boat,
    image_page,
    sight_of,
    sound_page,
    text_model,
    translation_page,
    windowed_model,
)

from foveate.errors import UserError
from foveate.viewer import Audio, Image
from foveate.viewer.document import (
    TOP_KEYS,
    TOP_KEYS_LONG,
    Opening,
    Panel,
    keys_per_query,
    make_document,
    opening_on_picture,
)
from foveate.viewer.sides import make_sides, picture_type

PNG = b"\x89PNG\r\n\x1a\n..."


def random_weights(heads: int, queries: int, keys: int, examples: int = 1) -> torch.Tensor:
    return (3 * torch.randn(examples, heads, queries, keys)).softmax(-1)


def test_a_short_site_has_every_weight() -> None:
    weights = random_weights(3, 5, 7, examples=2)
    sight = sight_of({"cross": weights})
    (panel,) = make_document(sight, example=1).sites
    assert panel.exact
    assert panel.rows.keys.tolist() == [[list(range(7))] * 5] * 3
    np.testing.assert_array_equal(panel.rows.weights, weights[1])
    np.testing.assert_array_equal(panel.maps, weights[1])
    assert not panel.rows.rest.any()
    entropy = -(weights[1] * weights[1].log()).sum(-1).mean(-1)
    np.testing.assert_allclose(panel.entropy, entropy, rtol=1e-5)


def test_a_long_site_has_the_top_keys_of_each_row_and_what_remains() -> None:
    weights = random_weights(2, 151, 157)
    sight = sight_of({"attn": weights})
    (panel,) = make_document(sight).sites
    assert not panel.exact
    assert panel.rows.keys.shape == (2, 151, 16_384 // 151)
    assert (np.diff(panel.rows.keys, axis=2) > 0).all()  # in the order of the keys, none twice
    dense = weights[0].numpy()
    np.testing.assert_array_equal(np.take_along_axis(dense, panel.rows.keys, 2), panel.rows.weights)
    left_out = dense.copy()
    np.put_along_axis(left_out, panel.rows.keys, 0, 2)
    assert (left_out.max(2) <= panel.rows.weights.min(2)).all()
    np.testing.assert_allclose(panel.rows.rest, left_out.sum(2), atol=1e-6)


def test_a_long_site_is_never_asked_for_all_its_weights() -> None:
    sight = text_model(2, "pf", 173)
    make_document(sight)
    assert all("weights" not in sight[name].asked for name in sight.sites)
    short = text_model(1, "pf", 11)
    make_document(short)
    assert short["h.0.attn"].asked == ["weights"]


def test_small_maps_are_means_of_sums() -> None:
    """127 queries in 64 cells: the first cell has query 0, the second queries 1 and 2."""
    weights = random_weights(2, 127, 149)
    (panel,) = make_document(sight_of({"attn": weights})).sites
    assert panel.maps.shape == (2, 64, 64)
    np.testing.assert_allclose(panel.maps.sum(2), 1, rtol=1e-5)
    dense = weights[0]
    np.testing.assert_allclose(panel.maps[:, 0, 0], dense[:, 0, :2].sum(-1), rtol=1e-5)
    np.testing.assert_allclose(panel.maps[:, 1, 1], dense[:, 1:3, 2:4].sum(-1).mean(-1), rtol=1e-5)


def test_causal_rows_have_exactly_nothing_left() -> None:
    """The first rows have fewer keys than are kept: -1 stands for those that are not there, and nothing remains."""
    (panel,) = make_document(text_model(1, "du", 173)).sites
    count = panel.rows.keys.shape[2]
    for query in (0, 5):
        assert panel.rows.keys[0, query].tolist() == [*range(query + 1), *[-1] * (count - query - 1)]
        assert not panel.rows.weights[0, query, query + 1 :].any()
        assert panel.rows.rest[0, query] == 0
    assert (panel.rows.rest[:, 160] > 0).all()


@pytest.mark.parametrize("places", [23, 173])
def test_what_a_mask_of_large_numbers_leaves_is_none(places: int) -> None:
    """Some models add -100 to the scores of what is hidden; the smallest weight that is one still is kept."""
    weights = torch.full((1, 1, places, places), 3e-44)
    weights[..., :3] = torch.tensor([0.9, 0.1, 2.0**-64])
    (panel,) = make_document(sight_of({"attn": weights})).sites
    assert (np.count_nonzero(panel.rows.weights, axis=2) == 3).all()
    assert not panel.rows.rest.any()


def test_rows_that_give_weight_to_no_key() -> None:
    """A row that looks nowhere has no rest; of a row with a sink the sink's part is no rest either."""
    weights = random_weights(1, 151, 139)
    weights[0, 0, 3] = 0
    weights[0, 0, 4] *= 0.25
    (panel,) = make_document(sight_of({"attn": weights})).sites
    assert panel.rows.rest[0, 3] == 0
    assert panel.rows.keys[0, 3].tolist() == [-1] * panel.rows.keys.shape[2]
    assert panel.rows.rest[0, 4] + panel.rows.weights[0, 4].sum() == pytest.approx(0.25, abs=1e-5)


@pytest.mark.parametrize(
    ("queries", "keys", "share", "expected"),
    [
        (512, 512, 4096, TOP_KEYS),
        (2048, 2048, 4096, TOP_KEYS),
        (2049, 2049, 4096, TOP_KEYS_LONG),
        (10, 1500, 4096, 409),
        (64, 64, 4096, 64),
        (70, 73, 4096, 73),
        (71, 73, 4096, 57),
        (3, 5, 4096, 5),
    ],
)
def test_how_many_keys_are_kept(queries: int, keys: int, share: int, expected: int) -> None:
    assert keys_per_query(queries, keys, share) == expected


def test_names_of_groups_and_layers() -> None:
    def named(name: str) -> Panel:
        return make_document(sight_of({name: random_weights(1, 2, 3)})).sites[0]

    assert (named("decoder.11.cross").group, named("decoder.11.cross").layer) == ("decoder.*.cross", "11")
    assert (named("layers.2.blocks.5.attn").group, named("layers.2.blocks.5.attn").layer) == (
        "layers.*.blocks.*.attn",
        "2.5",
    )
    assert (named("h.3.attn2#2").group, named("h.3.attn2#2").layer) == ("h.*.attn2#2", "3")
    assert (named("decoder").group, named("decoder").layer) == ("decoder", "")


def test_sides_by_site() -> None:
    given = {"encoder*": ["a", "b"], "*cross": (["x", "y", "z"], ["a", "b"])}
    queries, keys = make_sides(given, "decoder.0.cross", 3, 2)
    assert (queries.labels, keys.labels) == (("x", "y", "z"), ("a", "b"))
    queries, keys = make_sides(given, "encoder.0.self", 2, 2)
    assert (queries.labels, keys.labels) == (("a", "b"), ("a", "b"))
    queries, keys = make_sides(given, "decoder.0.self", 3, 3)
    assert (queries.count, queries.labels, keys.labels) == (3, (), ())


def test_sides_of_pictures() -> None:
    seen = Image(PNG, 2, 3, ("[CLS]",))
    queries, keys = make_sides((["x"], seen), "cross", 1, 7)
    assert (queries.labels, keys.labels, keys.picture) == (("x",), ("[CLS]",), seen)
    heard = Audio(PNG, 1.5)
    assert make_sides((None, heard), "cross", 5, 11)[1].picture == heard


def test_tokens_that_do_not_fit() -> None:
    sight = sight_of({"decoder.0.cross": random_weights(1, 3, 5)})
    with pytest.raises(UserError, match=r"decoder\.0\.cross has 3 queries, but 5 tokens were given; .* a tuple"):
        make_document(sight, ["a"] * 5)
    with pytest.raises(UserError, match=r"has 5 keys, but 2 x 3 patches and 1 tokens before them were given"):
        make_document(sight, (["a"] * 3, Image(PNG, 2, 3, ["[CLS]"])))
    with pytest.raises(UserError, match=r"'\*corss' ?, which matches none of the sites: decoder\.0\.cross"):
        make_document(sight, {"*corss": ["a"]})
    with pytest.raises(UserError, match="are one text, 'a small dog'; pass a list"):
        make_document(sight, ("a small dog", ["a"] * 5))
    with pytest.raises(UserError, match="must be a PNG or JPEG file, but this one begins with b'<svg"):
        make_document(sight, (["a"] * 3, Image(b"<svg onload='x'>", 1, 5)))


def test_what_cannot_be_shown() -> None:
    sight = sight_of({"attn": random_weights(1, 3, 5)})
    with pytest.raises(UserError, match="there is no example 2 among 1"):
        make_document(sight, example=2)
    with pytest.raises(UserError, match="unknown site 'atn'; did you mean attn"):
        make_document(sight, sites=["atn"])
    with pytest.raises(UserError, match="nothing attended during the look"):
        make_document(FakeSight())
    with pytest.raises(UserError, match=r"some weights are NaN"):
        make_document(sight_of({"attn": torch.full((1, 1, 3, 5), torch.nan)}))


def test_chosen_sites_in_order() -> None:
    found = make_document(text_model(3, "pf", 7), STORY[:7], sites=["h.2.attn", "h.0.attn"], notes=["one"])
    assert [panel.name for panel in found.sites] == ["h.2.attn", "h.0.attn"]
    assert found.notes == ["one"]


def test_pictures_of_arrays() -> None:
    """Bytes stay as they are; other numbers run from the least to the greatest; channels may come first."""
    import io

    import PIL.Image

    colours = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(4, 5, 3)
    made = PIL.Image.open(io.BytesIO(Image.of(colours, 2, 5).data))
    np.testing.assert_array_equal(np.asarray(made), colours)
    first = torch.linspace(-2, 3, 3 * 4 * 5).reshape(3, 4, 5)
    made = np.asarray(PIL.Image.open(io.BytesIO(Image.of(first, 2, 5).data)))
    assert made.shape == (4, 5, 3)
    assert (made[0, 0, 0], made[3, 4, 2]) == (0, 255)
    sound = np.asarray(PIL.Image.open(io.BytesIO(Audio.of(np.array([[0.0, 1.0], [3.0, 4.0], [2.0, 2.0]]), 1.0).data)))
    assert sound.tolist() == [[128, 128], [191, 255], [0, 64]]  # the lowest frequency below
    long = Audio.of(np.zeros((80, 3000)), 1.0).data
    assert picture_type(long) == "image/png"
    assert PIL.Image.open(io.BytesIO(long)).size == (1024, 80)  # every frequency, of however long a sound
    with pytest.raises(UserError, match=r"shape \(2, 3, 4, 5\) is not a picture"):
        Image.of(np.zeros((2, 3, 4, 5)), 2, 2)
    with pytest.raises(UserError, match="not finite"):
        Image.of(np.full((2, 2), np.inf), 2, 2)


def test_an_image_of_other_patches_than_the_windows() -> None:
    """As many patches, but not the same."""
    text = r"^blocks\.0\.attn has windows in 30 x 22 patches, but the image has 22 x 30$"
    with pytest.raises(UserError, match=text):
        make_document(windowed_model(), Image.of(boat(), 22, 30))


def test_a_page_of_an_image_opens_on_it() -> None:
    """With the last layer that reads it: by words, if there are any; not with a rollout, and no other page does."""
    opening = opening_on_picture(image_page().sites)
    assert opening is not None
    assert opening.site == [panel.name for panel in image_page().sites if panel.name.endswith("cross")][-1]
    alone = [panel for panel in image_page().sites if panel.name.startswith("blocks")]
    assert opening_on_picture(alone) == Opening(alone[-1].name)
    assert opening_on_picture(translation_page().sites) is None
    assert opening_on_picture(sound_page().sites) is None
