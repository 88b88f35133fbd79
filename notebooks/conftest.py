"""tests/test_notebooks.py runs these, and compares what they say; nbmake need not run them once more.

`make notebooks` names them, and then they are run all the same.
"""

collect_ignore_glob = ["*.ipynb"]
