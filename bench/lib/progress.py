"""A bar with the time that is left, redrawn on a terminal and told once per step elsewhere."""
import sys
import time

WIDTH = 24


class Progress:
    def __init__(self, expected_seconds):
        self.expected, self.begin, self.step_name = expected_seconds, time.monotonic(), ''
        self.redraw = sys.stderr.isatty()

    def step(self, name):
        self.step_name = name
        if not self.redraw:
            print(f'{self._left():>12}  {name}', file=sys.stderr, flush=True)
        else:
            self.tick('')

    def tick(self, remark):
        if self.redraw:
            done = min(1.0, (time.monotonic() - self.begin) / self.expected)
            bar = ('#' * round(done * WIDTH)).ljust(WIDTH, '.')
            print(f'\r[{bar}] {self._left():>10}  {self.step_name} {remark}\033[K', end='', file=sys.stderr, flush=True)

    def finish(self):
        if self.redraw:
            print('\r\033[K', end='', file=sys.stderr, flush=True)

    def elapsed(self):
        return time.monotonic() - self.begin

    def _left(self):
        left = max(0, round(self.expected - self.elapsed()))
        return f'{left // 60}:{left % 60:02} left'
