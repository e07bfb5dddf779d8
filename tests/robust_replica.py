"""The robust scale of `_kernels/ops/robust.h`, in plain NumPy and in absolute numbers."""

import numpy as np


class RobustScale:
    def __init__(self):
        self.moves, self.usual, self.votes, self.n = [], None, 0, 0
        self.lo, self.hi, self.mean, self.deviation = -np.inf, np.inf, 0.0, 0.0

    @property
    def known(self):
        return self.deviation > 0

    def learn(self, y):
        """Count a number; what is learned of it, its nearest in [lo, hi]."""
        moved = not (self.votes and y == self.usual)
        self.n += 1
        if moved and self.votes:
            self.votes -= 1
        else:
            self.usual, self.votes = y, self.votes + 1
        if moved:
            self.moves.append(y)
        if len(self.moves) <= 20:
            if moved:
                self.begin(np.array(self.moves))
            return self.clip(y)
        if self.known:
            self.lo, self.hi = self.mean - 10 * self.deviation, self.mean + 10 * self.deviation
        learned = self.clip(y)
        d = learned - self.mean
        self.mean += max(0.01, 1 / self.n) * d
        if moved:
            self.deviation += max(0.01, 1 / len(self.moves)) * (abs(d) - self.deviation)
        return learned

    def clip(self, y):
        if len(self.moves) <= 20 and not self.lo <= y <= self.hi:
            return self.mean
        return np.clip(y, self.lo, self.hi)

    def begin(self, first):
        mean = self.usual if self.votes > self.n / 2 else np.median(first)
        far = np.abs(first - mean)
        n, ordered = len(first), np.sort(far)
        typical = ordered[2 if n == 5 else 3 * (n - 1) // 4] or next(iter(ordered[ordered > 0]), 0.0)
        if n < 3 or not typical:
            return
        half = (10 + 1000 / n**2) * typical
        self.mean, self.deviation = mean, np.minimum(far, half).mean()
        self.lo, self.hi = mean - half, mean + half
