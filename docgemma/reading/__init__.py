"""What a request asks for: links to what exists, asks and spans. No tool is called here."""

import os

# before numpy is first imported: products this small only wait for one another's threads (ten times slower when busy)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
