"""The page of a service: how to ask it."""

from html import escape

from foveate.serving.service import Service

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
pre { background: #f3f3f3; padding: .8rem 1rem; overflow-x: auto; border-radius: 6px; }
code { font-size: .9em; }
@media (prefers-color-scheme: dark) {
  body { background: #181818; color: #ddd; }
  pre { background: #262626; }
  a { color: #9cf; }
}
"""

COMMANDS = {
    "text": (
        """curl {url}/answer {json} -d '{{"input": "..."}}'""",
        """curl {url}/answer {json} -d '{{"inputs": ["...", "..."]}}'""",
        """curl {url}/look {json} -H 'accept: text/html' -d '{{"input": "..."}}' > look.html""",
    ),
    "image": ("""curl {url}/answer -H 'content-type: image/jpeg' --data-binary @photo.jpg""",),
    "question": (
        """curl '{url}/answer?question=what+is+this' -H 'content-type: image/jpeg' --data-binary @photo.jpg""",
    ),
    "audio": ("""curl {url}/answer -H 'content-type: audio/wav' --data-binary @talk.wav""",),
}
"""How to ask a model, by what it reads."""

ADDRESS = "http://ADDRESS"

JSON = "-H 'content-type: application/json'"


def make_page(service: Service) -> str:
    """The page, with commands for what the model reads."""
    skill = service.skill
    commands = "\n".join(line.format(url=ADDRESS, json=JSON) for line in COMMANDS[skill.takes])
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(skill.name)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f"<h1>{escape(skill.task.name)}</h1><p>{escape(skill.name)}</p>"
        "<p>Ask it from a terminal (ADDRESS is where this page is):</p>"
        f"<pre><code>{escape(commands)}</code></pre>"
        '<p><a href="/openapi.json">All requests and options</a> · <a href="/health">health</a> · '
        '<a href="/metrics">metrics</a></p></html>'
    )
