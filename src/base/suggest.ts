/** The candidate nearest to a mistyped word, if it is near enough to be what was meant. */
export function suggest(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Edit distance with letters omitted, added, replaced or swapped; a swap, the most common typing error, counts once. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, k) => k);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const shortest = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + same);
      next.push(swapped ? Math.min(shortest, before[j - 2]! + 1) : shortest);
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}
