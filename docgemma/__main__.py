"""`python -m docgemma` is the command line."""

from docgemma.cli import main

if __name__ == "__main__":
    main()
