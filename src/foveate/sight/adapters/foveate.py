"""Reports foveate's own attention, by the hook in `attend`."""

from contextlib import AbstractContextManager

from foveate.attention import Attended, intercept
from foveate.attention.call import Call
from foveate.attention.kernels import Kernel
from foveate.sight.watcher import Watcher


def attach(watcher: Watcher) -> AbstractContextManager[None]:
    """Report every call of `attend` while the context is open."""

    def attend(call: Call, kernel: Kernel) -> Attended:
        if not watcher.watching:
            watcher.skip()
            return kernel.attend(call)
        if (changed := watcher.change(lambda: call)) is not None:
            return changed
        with watcher.inside_call():
            attended = kernel.attend(call)
        watcher.record(call, attended)
        return attended

    return intercept(attend)
