"""The statistics of standardised columns, value by value, in plain Python."""

import numpy as np

LIMIT = 5.0


class Column:
    """Mean, deviation (None: not known), and weight of the values that they remember; before, up to two values."""

    def __init__(self):
        self.two, self.weight, self.mean, self.deviation = [], 0.0, 0.0, None

    def image(self, x):
        scale = self.scale
        return 0.0 if np.isnan(x) or not scale else float(np.clip((x - self.mean) / scale, -LIMIT, LIMIT))

    @property
    def scale(self):
        return abs(self.two[1] - self.two[0]) / 2 if self.deviation is None and len(self.two) > 1 else self.deviation

    def count(self, x, h):
        if np.isnan(x) or h == 0:
            return
        if self.deviation is None and len(self.two) < 2:
            same = self.two and abs(x - self.two[0]) <= 1e-14 * abs(self.two[0])
            self.weight = self.weight + h if same else h if not self.two else 2 * h
            self.two += [] if same else [x]
        elif self.deviation is None:
            spread = abs(self.two[1] - self.two[0]) / 2
            gaps = [abs(x - value) for value in self.two]
            nearest = self.two[int(np.argmin(gaps))]
            if min(gaps) <= 1e-15 * (abs(sum(self.two)) / 2 + spread):
                self.weight += h
                self.deviation = spread if self.weight >= 8 * h else None
            elif min(gaps) < 0.1 * spread:
                self.two, self.weight = [nearest, x], 2 * h
            else:
                self.deviation = spread
                self.mean = sum(self.two) / 2
                self.add(x, h, forget=False, free=min(gaps) <= 50 * spread)
                return
        else:
            self.add(x, h)
            return
        self.mean = sum(self.two) / len(self.two)

    def add(self, x, h, forget=True, free=False):
        u = (x - self.mean) / self.deviation
        if forget and abs(u) > 2 * LIMIT and self.weight >= 8 * h:
            if self.weight < 40 * h:
                self.two, self.weight, self.mean, self.deviation = [x], h, x, None
                return
            self.weight *= 0.75
        limit = 2 * LIMIT if self.weight < 8 * h or not forget else LIMIT
        u = u if free else np.clip(u, -limit, limit)
        share = h / (self.weight + h)
        variance = (1 - share) * (self.deviation**2 + share * (u * self.deviation) ** 2)
        self.mean += share * u * self.deviation
        self.deviation, self.weight = np.sqrt(variance), self.weight + h


class Uncentred(Column):
    """Mean 0, and the root mean square of the values that are not 0, `size`."""

    def __init__(self):
        super().__init__()
        self.size, self.total = 0.0, 0.0

    def count(self, x, h):
        if h == 0:
            return
        self.total += h
        if x != 0 and (self.weight == 0 or (self.weight <= 3 * h and abs(x) < 0.1 * self.size)):
            self.size, self.weight = abs(x), h
        elif x != 0:
            u, share = min(abs(x) / self.size, LIMIT), h / (self.weight + h)
            self.size, self.weight = self.size * np.sqrt(1 - share + share * u**2), self.weight + h
        self.deviation = self.size * np.sqrt(self.weight / self.total) or None


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
