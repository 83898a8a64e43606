"""Two looks on one page of the explorer, their heads beside each other, as `foveate look --beside` has them."""

from foveate.errors import UserError
from foveate.viewer.beside import LETTERS, lettered, place_beside
from foveate.viewer.server.session_cache import Session, Span, head_of_page


class PairedSession:
    """Two sessions, whose sites are named "A.NAME" and "B.NAME"; it answers as a `Session` does."""

    def __init__(self, first: Session, second: Session) -> None:
        self._document = place_beside(first.document(), second.document())
        places = {
            lettered(letter, name): (session, place)
            for letter, session in zip(LETTERS, (first, second), strict=True)
            for place, name in enumerate(session.sites)
        }
        self._places = [places[panel.name] for panel in self._document.sites]

    def head(self) -> bytes:
        """The head of the page of both, as JSON."""
        return head_of_page(self._document, [session.site(place) for session, place in self._places])

    def maps(self, place: int) -> bytes:
        """The entropies and the small maps of all heads of a site."""
        session, own = self._place(place)
        return session.maps(own)

    def rows(self, place: int, head: int, rows: Span) -> bytes:
        """Keys, weights and remaining weight of some queries."""
        session, own = self._place(place)
        return session.rows(own, head, rows)

    def points(self, place: int, head: int, rows: Span) -> bytes:
        """The points of some queries."""
        session, own = self._place(place)
        return session.points(own, head, rows)

    def tile(self, place: int, head: int, rows: Span, columns: Span, size: Span) -> bytes:
        """A map of a part of a head, at higher resolution."""
        session, own = self._place(place)
        return session.tile(own, head, rows, columns, size)

    def _place(self, place: int) -> tuple[Session, int]:
        """The session that has a site of the page, and the site's number there. Raises UserError if there is none."""
        if not 0 <= place < len(self._places):
            raise UserError(f"there is no site {place} among {len(self._places)}")
        return self._places[place]
