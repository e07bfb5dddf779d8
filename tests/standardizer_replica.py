"""The statistics of standardised columns, value by value, in plain Python."""

import numpy as np

LIMIT = 5.0


def counted(u):
    return u if abs(u) <= 40 * LIMIT else np.clip(u, -LIMIT, LIMIT)


class Column:
    """Sums of the values so far; while there are only two, they and their weights are kept, too."""

    def __init__(self):
        self.two, self.weight, self.mean, self.scale, self.evidence = {}, 0.0, 0.0, 0.0, 0

    def image(self, x):
        scale = self.scale
        return 0.0 if np.isnan(x) or not scale else float(np.clip((x - self.mean) / scale, -LIMIT, LIMIT))

    def count(self, x, h):
        if np.isnan(x) or h == 0:
            return
        if self.two is not None:
            self.count_first(x, h)
            return
        far = abs(x - self.mean) > 2 * LIMIT * self.scale
        self.evidence = max(self.evidence + (3 if far else -1), 0)
        if self.evidence >= 24:
            self.__init__()
            self.count_first(x, h)
        else:
            self.add(x, h)

    def count_first(self, x, h):
        values = list(self.two)
        span = max(values) - min(values) if values else 0.0
        tolerance = 1e-14 * (abs(self.mean) + span)
        gaps = [abs(x - value) for value in values]
        nearest = values[int(np.argmin(gaps))] if values else x
        if len(values) == 2 and tolerance < min(gaps) < 0.005 * span:
            self.two = {nearest: h}
        elif len(values) == 2 and min(gaps) > tolerance:
            self.two = None
            self.add(x, h)
            return
        x = nearest if values and min(gaps) <= tolerance else x
        self.two[x] = self.two.get(x, 0.0) + h
        values, weights = np.array(list(self.two)), np.array(list(self.two.values()))
        self.weight = weights.sum()
        self.mean = values @ weights / self.weight if len(values) == 2 else values[0]
        self.scale = np.sqrt((values - self.mean) ** 2 @ weights / self.weight) if len(values) == 2 else 0.0
        if nearest == x and len(values) == 2 and gaps[0] != gaps[-1] and self.weight >= 8 * h:
            self.two = None

    def add(self, x, h):
        u, share = counted((x - self.mean) / self.scale), h / (self.weight + h)
        self.mean += share * u * self.scale
        self.scale *= np.sqrt((1 - share) * (1 + share * u**2))
        self.weight += h


class Uncentred(Column):
    """Mean 0, and the root mean square of the values that are not 0, `size`."""

    def __init__(self):
        super().__init__()
        self.size, self.total = 0.0, 0.0

    def count(self, x, h):
        if h == 0:
            return
        self.total += h
        if x != 0 and (self.weight == 0 or (self.weight <= 3 * h and abs(x) < 0.005 * self.size)):
            self.size, self.weight = abs(x), h
        elif x != 0:
            u, share = counted(abs(x) / self.size), h / (self.weight + h)
            self.size, self.weight = self.size * np.sqrt(1 - share + share * u**2), self.weight + h
        self.scale = self.size * np.sqrt(self.weight / self.total)


class Replica:
    """z = (x - mean) / deviation for all columns of rows; sparse rows about 0."""

    def __init__(self, d, centred=True):
        self.columns = [Column() if centred else Uncentred() for _ in range(d)]

    @property
    def mean(self):
        return np.array([column.mean for column in self.columns])

    @property
    def scale(self):
        return np.array([column.scale or 1.0 for column in self.columns])

    def standardize(self, X):
        return np.array(
            [[column.image(x) for column, x in zip(self.columns, row, strict=True)] for row in np.atleast_2d(X)]
        )

    def count(self, x, h=1.0):
        for column, value in zip(self.columns, x, strict=True):
            column.count(value, h)
