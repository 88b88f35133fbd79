"""Run a function over many items elsewhere: in processes of this machine, one of which may die, or on Ray."""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from docgemma.errors import ConfigError

T = TypeVar("T")
R = TypeVar("R")


def in_processes(run: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[tuple[T, R | None]]:
    """Each item with what `run` made of it, as they end; None where its process died, alone as well.

    Processes begin anew (spawn): `run` is a function of a module, or a partial of one, and raises nothing. None of
    them outlives this one.
    """
    left, suspects = deque(items), deque[T]()
    while left or suspects:
        queue, width = (suspects, 1) if suspects else (left, workers)
        pool = ProcessPoolExecutor(width, multiprocessing.get_context("spawn"), initializer=end_with_parent)
        running: dict[Future[R], T] = {}
        try:
            while queue or running:
                while queue and len(running) < width:
                    future = pool.submit(run, queue[0])
                    running[future] = queue.popleft()
                ended = wait(running, return_when=FIRST_COMPLETED).done
                for done in sorted(ended, key=lambda future: future.exception() is not None):  # nothing done is lost
                    result = done.result()
                    yield running.pop(done), result
        except BrokenProcessPool:  # whoever was running may have done it: each of them is tried alone
            if width == 1:
                yield from ((item, None) for item in running.values())
            else:
                suspects.extend(running.values())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def end_with_parent() -> None:
    """A worker does not outlive the run, also where that was killed."""

    def watch() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def on_ray(run: Callable[[T], R], items: Iterable[T], address: str) -> Iterator[tuple[T, R | None]]:
    """Each item with what `run` made of it, as they end, on a Ray cluster; None where its worker died, also retried.

    Args:
        address: of the cluster; "local" is this machine.

    Raises:
        ConfigError: Ray is not installed, or not there.
    """
    try:
        import ray
    except ImportError as error:
        raise ConfigError("Ray is not installed.", hint="Run: pip install ray. Or use --workers.") from error
    try:
        ray.init(address=None if address == "local" else address)
    except Exception as error:  # Ray raises plain ones too
        raise ConfigError(f"Ray cannot be reached at {address}.", hint="Start it: ray start --head") from error
    try:
        applied = ray.remote(_applied)  # Ray takes no partial
        item_of = dict[int, T]()  # by its task, which lives while it stands in `left`
        left = list[Any]()
        for item in items:
            left.append(applied.remote(run, item))
            item_of[id(left[-1])] = item
        while left:
            done, left = ray.wait(left)
            try:
                yield item_of[id(done[0])], ray.get(done[0])
            except ray.exceptions.WorkerCrashedError:
                yield item_of[id(done[0])], None
    finally:
        ray.shutdown()


def _applied(run: Callable[[T], R], item: T) -> R:
    return run(item)
