"""foveate's own attention: the tap in `attend`."""

from contextlib import AbstractContextManager

from foveate.attention import Attended, intercept
from foveate.attention.call import Call
from foveate.attention.kernels import Kernel
from foveate.sight.recorder import Recorder


def attach(recorder: Recorder) -> AbstractContextManager[None]:
    """Note every call of `attend` while open."""

    def attend(call: Call, kernel: Kernel) -> Attended:
        if not recorder.listening:
            recorder.unheard()
            return kernel.attend(call)
        with recorder.attending():
            attended = kernel.attend(call)
        recorder.note(call, attended)
        return attended

    return intercept(attend)
