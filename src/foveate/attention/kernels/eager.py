"""The reference: all T x S scores at once, any score, mask, bias and selection.

Every other kernel is tested against it.
"""

from foveate.attention.call import Call
from foveate.attention.selection import Attended, log_sum_exp


def attend(call: Call) -> Attended:
    scores = call.scores()
    rule = call.select.for_queries(call.queries) if call.select.reads_queries else call.select
    attended = rule.select(scores, call.values, call.dropout, call.state, call.generator)
    if call.full:
        attended.log_sum_exp = log_sum_exp(scores, call.select.sinks).expand(*call.leading, -1)
    return attended
