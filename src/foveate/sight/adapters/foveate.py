"""Records foveate's own attention, by the hook in `attend`."""

from contextlib import AbstractContextManager

from foveate.attention import Attended, intercept
from foveate.attention.call import Call
from foveate.attention.kernels import Kernel
from foveate.sight.recorder import Recorder


def attach(recorder: Recorder) -> AbstractContextManager[None]:
    """Record every call of `attend` while the context is open."""

    def attend(call: Call, kernel: Kernel) -> Attended:
        if not recorder.recording:
            recorder.skip()
            return kernel.attend(call)
        with recorder.inside_call():
            attended = kernel.attend(call)
        recorder.record(call, attended)
        return attended

    return intercept(attend)
