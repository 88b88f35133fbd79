"""The console through which everything with Rich's styles is printed; plain lines go through `shared.say`."""

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from docgemma.text.characters import visible

PIPED_WIDTH = 10_000  # where no terminal shows it a line is a line, also in a table: a program or a file reads it


class Terminal(Console):
    """Rich's console; of what it is given to print, nothing steers the terminal."""

    def __init__(self, stderr: bool = False):
        super().__init__(stderr=stderr, highlight=False)
        if not self.is_terminal:
            self.width, self.soft_wrap = PIPED_WIDTH, True

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for part in super().render(renderable, options):
            # "\r" alone is our own end of a line: Rich takes it out of texts
            yield part if part.control or part.text == "\r" else part._replace(text=visible(part.text))
