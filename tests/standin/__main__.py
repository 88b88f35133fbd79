"""`python -m tests.standin`: serve until interrupted, and print what to export."""

from contextlib import suppress

from tests.standin.server import start

with start() as standin:
    print("export DOCGEMMA_SOURCES=live")
    for name, url in standin.urls.items():
        print(f"export DOCGEMMA_{name.upper()}={url}", flush=True)
    with suppress(KeyboardInterrupt):
        standin.thread.join()
