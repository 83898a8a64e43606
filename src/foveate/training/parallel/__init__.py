"""Several processes that train one model as if they were one: started by torchrun, found by its environment variables.

`launch` says which process this is, `processes` what they tell each other, `watch` notices when one ends; `placement`,
`replicas`, `shards` and `plan` say how the model lies on them, `rows` which examples each one gets.
"""

from foveate.training.parallel.choice import place
from foveate.training.parallel.launch import Launch, launched, main_process
from foveate.training.parallel.placement import Placement
from foveate.training.parallel.processes import Processes, together
from foveate.training.parallel.rows import fingerprint
from foveate.training.parallel.speaking import speaks

__all__ = [
    "Launch",
    "Placement",
    "Processes",
    "fingerprint",
    "launched",
    "main_process",
    "place",
    "speaks",
    "together",
]
