"""Several processes that train one model as if they were one: started by torchrun, found by its environment variables.

`launch` says which process this is, `processes` what they tell each other, `watch` notices when one ends; `placement`,
`replicas`, `shards` and `plan` say how the model lies on them, `batch_sharding` which examples each one gets.
"""

from foveate.training.parallel.batch_sharding import fingerprint
from foveate.training.parallel.error_reporting import reports_errors
from foveate.training.parallel.launch import ProcessInfo, main_process, process_info
from foveate.training.parallel.placement import Placement
from foveate.training.parallel.processes import Processes, join_process_group
from foveate.training.parallel.strategy import place

__all__ = [
    "ProcessInfo",
    "Placement",
    "Processes",
    "fingerprint",
    "process_info",
    "main_process",
    "place",
    "reports_errors",
    "join_process_group",
]
