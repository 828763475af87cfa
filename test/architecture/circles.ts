/** Tarjan's strongly connected components of more than one node, each sorted: the circles of a graph. */
export const circlesOf = (edges: Iterable<{ readonly from: string; readonly to: string }>): readonly string[][] => {
  const next = new Map<string, Set<string>>();
  for (const { from, to } of edges) next.set(from, (next.get(from) ?? new Set()).add(to));
  const at = new Map<string, number>();
  const low = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  const visit = (node: string): number => {
    const own = at.size;
    at.set(node, own);
    let lowest = own;
    open.push(node);
    for (const to of next.get(node) ?? []) {
      if (!at.has(to)) lowest = Math.min(lowest, visit(to));
      else if (open.includes(to)) lowest = Math.min(lowest, low.get(to) ?? at.get(to) ?? own);
      low.set(node, lowest);
    }
    low.set(node, lowest);
    if (lowest === own) {
      const circle = open.splice(open.indexOf(node));
      if (circle.length > 1) circles.push(circle.sort());
    }
    return lowest;
  };
  for (const node of next.keys()) if (!at.has(node)) visit(node);
  return circles.sort();
};
