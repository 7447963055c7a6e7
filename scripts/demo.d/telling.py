"""What the demo prints: a line for each thing that happened, with the time since it began."""

import time

BEGAN = time.monotonic()


def seconds():
    return time.monotonic() - BEGAN


def say(word, text):
    print(f"{seconds():6.1f} s  {word:<11} {text}", flush=True)


def show(text):
    for line in text.rstrip().splitlines():
        print(f"{'':10}{'':<11} {line}")
