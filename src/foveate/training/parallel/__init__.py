"""Training on several processes, started by torchrun and found by its environment variables.

`launcher` starts them too. `launch` tells which process this is, `processes` and
`group` how they communicate, and `watch` notices when one ends. `placement`, `replicas`, `shards`, `strategy` and
`plan` distribute the model, `batch_sharding` the examples.
"""

from foveate.training.parallel.batch_sharding import fingerprint
from foveate.training.parallel.error_reporting import reports_errors
from foveate.training.parallel.group import join_process_group
from foveate.training.parallel.launch import ProcessInfo, main_process, process_info
from foveate.training.parallel.placement import Placement
from foveate.training.parallel.processes import Processes
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
