"""One measured thing: its rounds, the medians, and whether it clears its bar."""
from dataclasses import asdict, dataclass
from statistics import median

from .report import number


@dataclass(frozen=True)
class Bar:
    """What a number has to reach: Bar('<=', 0.8)."""
    sign: str
    limit: float

    def cleared(self, value):
        return value <= self.limit if self.sign == '<=' else value >= self.limit

    def __str__(self):
        return f'{self.sign} {self.limit:.2f}'


@dataclass(frozen=True)
class Result:
    """rounds: one (heap, inplace) pair each. The bar is for the median of the pairwise ratios, or,
    where own is set, for the median of inplace's own numbers."""
    what: str
    unit: str
    rounds: tuple
    bar: Bar = None
    own: bool = False

    def median(self, am):
        return median(pair[am == 'inplace'] for pair in self.rounds)

    def ratio(self):
        """None where heap has nothing to divide by."""
        if any(heap == 0 for heap, _ in self.rounds):
            return None
        return median(inplace / heap for heap, inplace in self.rounds)

    def verdict(self):
        if not self.bar:
            return ''
        value = self.median('inplace') if self.own else self.ratio()
        return 'pass' if value is not None and self.bar.cleared(value) else 'FAIL'

    def row(self):
        """what, unit, heap, inplace, ratio, bar, verdict, as text."""
        return [self.what, self.unit, number(self.median('heap'), self.unit), number(self.median('inplace'), self.unit),
                number(self.ratio()), str(self.bar or ''), self.verdict()]

    def as_json(self):
        return {**asdict(self), 'bar': str(self.bar or ''), 'heap': self.median('heap'),
                'inplace': self.median('inplace'), 'ratio': self.ratio(), 'verdict': self.verdict()}


HEADS = ['', 'unit', 'heap', 'inplace', 'ratio', 'bar', '']
