"""Maps, what is seen on them, and routes, on one map drawn here:

(1,1) lamp ---wood--- (2,1) ---wood--- (3,1) chair
                        |
                      grass
                        |
                      (2,2)
"""

import json
from pathlib import Path

import numpy as np
import pytest

from foveate.contracts import IGNORE, World
from foveate.data.sources import open_source
from foveate.data.worlds.maps import FORWARD, LEFT, RIGHT, STOP, MapWorld, Sights, actions_between, make_map, read_map
from foveate.data.worlds.routes import mirrored, read_routes, words_of
from foveate.errors import UserError
from foveate.forms.processor import Processor
from foveate.forms.walks import MapActions
from foveate.forms.world import Directions
from foveate.special_tokens import LEARNED

UNKNOWN = LEARNED.unknown

MAP = """<?xml version="1.0"?>
<map name="T"><nodes>
<node x="1" y="1" item="lamp"/><node x="2" y="1" item=""/><node x="3" y="1" item="chair"/><node x="2" y="2" item=""/>
</nodes><edges>
<edge node1="1,1" node2="2,1" wall="fish" floor="wood"/><edge node1="2,1" node2="3,1" wall="fish" floor="wood"/>
<edge node1="2,1" node2="2,2" wall="tower" floor="grass"/>
</edges></map>"""

PATH = [[2, 2, -1], [2, 2, 90], [2, 2, 0], [2, 1, 0], [2, 1, 270], [1, 1, 270]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps/map-t.xml").write_text(MAP)
    routes = [
        {"instruction": "Turn left, go to the lamp", "map": "maps/map-t.xml", "path": PATH},
        {"instruction": "go on", "map": "maps/map-t.xml", "path": [[1, 1, -1]]},
        {"instruction": "turn around, go", "map": "maps/map-t.xml", "path": [[1, 1, 90], [1, 1, 270]]},
    ]
    (tmp_path / "routes.json").write_text(json.dumps(routes))
    return tmp_path / "routes.json"


def test_actions_lead_through_a_path(file) -> None:
    route = read_routes([file])[0]
    assert route.path[0] == (2, 2, 90)
    assert actions_between(route.path, route.walk_map) == [LEFT, FORWARD, LEFT, FORWARD, STOP]
    assert actions_between(read_routes([file])[1].path, route.walk_map) == [RIGHT, RIGHT, STOP]


def test_routes_in_a_mirror(file) -> None:
    routes = read_routes([file])
    mirror = mirrored(routes)
    assert [route.instruction for route in mirror] == ["Turn right, go to the lamp", "turn around, go"]
    assert mirror[0].path[:2] == ((-2, 2, 270), (-2, 2, 0))
    assert actions_between(mirror[0].path, mirror[0].walk_map) == [RIGHT, FORWARD, RIGHT, FORWARD, STOP]
    assert mirror[0].walk_map.items[-1, 1] == "lamp"
    sights = Sights.of([routes[0].walk_map])
    size = sights.size // 4
    pose, other = (2, 1, 0), (-2, 1, 0)
    here, *turned = np.split(sights.features(routes[0].walk_map, pose), [2, 2 + size, 2 + 2 * size, 2 + 3 * size])
    mirror_here, *ways = np.split(sights.features(mirror[0].walk_map, other), [2, 2 + size, 2 + 2 * size, 2 + 3 * size])
    np.testing.assert_array_equal(here, mirror_here)
    for way, one in zip((0, 3, 2, 1), ways, strict=True):
        np.testing.assert_array_equal(turned[way], one)


def test_a_world_does_what_it_is_told(file) -> None:
    walk_map = read_map(file.parent / "maps/map-t.xml")
    world = MapWorld(walk_map, (2, 2, 90), Sights.of([walk_map]))
    assert isinstance(world, World)
    assert not world.act(FORWARD)
    assert world.pose == (2, 2, 90)  # there is no hall
    other = world.copy()
    for action in (LEFT, FORWARD, RIGHT, FORWARD):
        world.act(action)
    assert (world.pose, other.pose) == ((3, 1, 90), (2, 2, 90))
    assert world.act(STOP)


def test_what_is_seen(file) -> None:
    walk_map = read_map(file.parent / "maps/map-t.xml")
    sights = Sights.of([walk_map])
    assert (sights.floors, sights.walls, sights.items) == (("grass", "wood"), ("fish", "tower"), ("chair", "lamp"))
    here, *views = np.split(sights.features(walk_map, (2, 1, 270)), [2, 9, 16, 23])
    assert here.tolist() == [0, 0]
    ahead, right, behind, left = (view.tolist() for view in views)  # floors, walls, items, no hall
    assert ahead == [0, 1, 1, 0, 0, 1, 0]
    assert right == [0, 0, 0, 0, 0, 0, 1]
    assert behind == [0, 1, 1, 0, 1, 0, 0]
    assert left == [1, 0, 0, 1, 0, 0, 0]
    far = sights.features(walk_map, (1, 1, 90))
    assert far[:9].tolist() == [0, 1, 0, 1, 1, 0, 1, 0, 0]  # the lamp here, the chair two places ahead


def test_routes_as_tensors(file) -> None:
    routes = read_routes([file])
    assert routes.report == "routes.json: 2 routes (2 on T; 1 without a heading left out)"
    reads = Directions().learn(routes, None)
    processor = Processor(reads, MapActions().learn(routes, reads, None))
    assert reads.words == (",", "go", "turn")
    assert reads.prepare("Turn left, go to the lamp").tokens == [6, UNKNOWN, 4, 5, UNKNOWN, UNKNOWN, UNKNOWN]
    assert reads.prepare("").tokens == [UNKNOWN]
    prepared = processor.prepare(routes)
    assert [processor.cost(one) for one in prepared] == [7 + 5, 4 + 3]
    batch = processor.batch(prepared, None)
    assert batch.inputs["lengths"].tolist() == [7, 4]
    assert batch.labels.tolist() == [[1, 0, 1, 0, 3], [2, 2, 3, IGNORE, IGNORE]]
    assert batch.inputs["features"].shape == (2, 5, processor.writes.sights.size) == (2, 5, 30)
    route = routes[0]
    seen = processor.writes.sights.features(route.walk_map, (2, 1, 0))
    assert np.array_equal(batch.inputs["features"][0, 2].numpy(), seen)
    drawn = processor.batch([*prepared] * 20, np.random.default_rng(1)).inputs["tokens"]
    assert 0 < int(((drawn == UNKNOWN).sum(1) > 4).sum()) < 40


def test_the_layout_of_sail(file, tmp_path) -> None:
    text = (
        "<examples><example id='7' map='T'><instruction>\n go\n on\n</instruction>"
        "<path>[(2, 2, 0), (2, 1, 0)]</path></example></examples>"
    )
    (tmp_path / "routes.xml").write_text(text)
    (route,) = read_routes([tmp_path / "routes.xml"])
    assert (route.place, route.instruction, route.path) == ("example 7", "go on", ((2, 2, 0), (2, 1, 0)))
    with pytest.raises(UserError, match=r"routes.xml has no routes on these maps"):
        read_routes([tmp_path / "routes.xml"], leave_out=["T"])


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ([[2, 2, 0], [1, 1, 0]], r"route 1: no action leads from \(2, 2, 0\) to \(1, 1, 0\) on the map T"),
        ([[2, 3, 0]], "route 1: the map T has no place 2,3"),
        ([[2, 2, 45]], r"route 1: \[2, 2, 45\] is not x,y,heading"),
        ([[2, 2]], "has no routes"),
        ("north", "has no routes"),
    ],
)
def test_invalid_paths(file, path, complaint) -> None:
    file.write_text(json.dumps([{"instruction": "go", "map": "maps/map-t.xml", "path": path}]))
    with pytest.raises(UserError, match=complaint):
        read_routes([file])


def test_several_files_are_one_set_of_routes(file, tmp_path) -> None:
    file.write_text(json.dumps([{"instruction": "go", "map": "maps/map-t.xml", "path": PATH}]))
    found = read_routes([file, file])
    assert found.name == f"{file.name}, {file.name}"
    assert len(found) == 2
    with pytest.raises(UserError, match="no file has no routes"):
        read_routes([])


def test_an_invalid_path_among_others_is_left_out(file) -> None:
    routes = [{"instruction": "go", "map": "maps/map-t.xml", "path": path} for path in (PATH, [[2, 2, 0], [1, 1, 0]])]
    file.write_text(json.dumps(routes))
    found = read_routes([file])
    assert len(found) == 1
    assert "1 left out, the first because of route 2: no action leads from (2, 2, 0) to (1, 1, 0)" in found.report


def test_files_that_are_no_maps_or_routes(file, tmp_path) -> None:
    (tmp_path / "map.xml").write_text("<map><nodes/></map>")
    with pytest.raises(UserError, match="has no <node"):
        read_map(tmp_path / "map.xml")
    (tmp_path / "map.xml").write_text(MAP.replace("3,1", "2,5"))
    with pytest.raises(UserError, match=r"map T: there can be no hall from \(2, 1\) to \(2, 5\)"):
        read_map(tmp_path / "map.xml")
    (tmp_path / "map.xml").write_text("".join(f"<node x='{x}' y='0'/>" for x in range(1001)).join(["<map>", "</map>"]))
    with pytest.raises(UserError, match=r"has 1,001 places; a map has at most 1,000"):
        read_map(tmp_path / "map.xml")
    (tmp_path / "map.xml").write_text("<map")
    with pytest.raises(UserError, match="is not a map"):
        read_map(tmp_path / "map.xml")
    with pytest.raises(UserError, match=r"could not read .*missing\.json"):
        read_routes([tmp_path / "missing.json"])
    file.write_text("{}[")
    with pytest.raises(UserError, match="is damaged"):
        read_routes([file])


def test_a_map_that_is_no_file(file) -> None:
    """Such as one without end."""
    for name, complaint in (
        ("/dev/zero", "there is no file"),
        (".", "there is no file"),
        ("a\0b", "there is no file"),
    ):
        file.write_text(json.dumps([{"instruction": "go", "map": name, "path": PATH}]))
        with pytest.raises(UserError, match=complaint):
            read_routes([file])


def test_maps_with_too_much_to_tell_apart() -> None:
    walk_map = make_map("many", {(x, 0): f"item {x}" for x in range(101)}, [])
    with pytest.raises(UserError, match="the maps have 101 different items, but can have at most 100"):
        Sights.of([walk_map])


def test_words() -> None:
    assert words_of("Go 12 steps, then: the café's end.") == [
        "go",
        "1",
        "2",
        "steps",
        ",",
        "then",
        ":",
        "the",
        "café",
        "'",
        "s",
        "end",
        ".",
    ]


def test_the_source_of_halls_has_other_maps_in_each_part() -> None:
    splits = open_source("halls", task="walk")
    assert [len(part) for part in (splits.train, splits.dev, splits.test)] == [3600, 300, 500]
    maps = [
        {one.content for one in {id(route.walk_map): route.walk_map for route in part}.values()}
        for part in (splits.train, splits.dev, splits.test)
    ]
    assert not maps[0] & (maps[1] | maps[2])
    for route in splits.test.some(50):
        world = MapWorld(route.walk_map, route.path[0], Sights((), (), ()))
        for action in actions_between(route.path, route.walk_map):
            world.act(action)
        assert world.pose == route.path[-1]
        if route.instruction.startswith("go to the ") and len(words_of(route.instruction)) == 4:
            assert route.walk_map.items[route.path[-1][:2]] == words_of(route.instruction)[-1]
