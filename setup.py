"""What pyproject.toml cannot say: a wheel carries `data/` as docgemma/data. An editable install reads it in place."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithData(build_py):
    def run(self) -> None:
        if self.editable_mode:
            return super().run()
        shutil.rmtree(self.build_lib, ignore_errors=True)  # a module deleted since the last build must not come back
        super().run()
        shutil.copytree("data", Path(self.build_lib, "docgemma", "data"))


setup(cmdclass={"build_py": BuildWithData})
