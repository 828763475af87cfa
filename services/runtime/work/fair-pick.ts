import type { Share, Slots, Taker } from './slots.ts';

export interface PickRules<Job> {
  readonly slots: Slots;
  readonly takerOf: (job: Job) => Taker;
  /** Among workspaces with equally many slots, the network with the fewest goes first. */
  readonly byNetwork?: boolean;
}

/** Jobs of one workspace. */
interface Owner {
  /** Slots that the workspace has. */
  taken: number;
  /** Jobs that have no slot yet. */
  left: number;
}

/** Jobs of one workspace on one network, in their order. */
interface Line {
  readonly taker: Taker;
  readonly owner: Owner;
  /** The owner's slots when the line was last put in its place. */
  rank: number;
  /** Index of its first job; `end`: none is left. */
  first: number;
  last: number;
}

interface Network {
  readonly lines: Map<string, Line>;
  /** Lines that may have a slot, as a heap: the least is the first. */
  heap: Line[];
  taken: number;
}

interface Sorted {
  readonly networks: readonly Network[];
  readonly owners: readonly Owner[];
  /** By index of a job: the next job of its line. */
  readonly next: Int32Array;
}

const end = -1;

const isBefore = (one: Line, other: Line): boolean =>
  one.rank < other.rank || (one.rank === other.rank && one.first < other.first);

const siftDown = (heap: Line[], from: number): void => {
  const line = heap[from];
  if (line === undefined) return;
  let at = from;
  for (;;) {
    let child = 2 * at + 1;
    let least = heap[child];
    if (least === undefined) break;
    const right = heap[child + 1];
    if (right !== undefined && isBefore(right, least)) {
      least = right;
      child += 1;
    }
    if (!isBefore(least, line)) break;
    heap[at] = least;
    at = child;
  }
  heap[at] = line;
};

const pop = (heap: Line[]): void => {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  heap[0] = last;
  siftDown(heap, 0);
};

const sort = <Job>(jobs: readonly Job[], { slots, takerOf }: PickRules<Job>): Sorted => {
  const networks = new Map<string, Network>();
  const owners = new Map<string, Owner>();
  const next = new Int32Array(jobs.length).fill(end);
  for (const [at, job] of jobs.entries()) {
    const taker = takerOf(job);
    const { workspaceId, network: name = '' } = taker;
    const network = networks.get(name) ?? { lines: new Map(), heap: [], taken: slots.on(name) };
    if (network.lines.size === 0) networks.set(name, network);
    const line = network.lines.get(workspaceId);
    if (line !== undefined) {
      line.owner.left += 1;
      next[line.last] = at;
      line.last = at;
      continue;
    }
    const owner = owners.get(workspaceId) ?? { taken: slots.of(workspaceId), left: 0 };
    if (owner.left === 0) owners.set(workspaceId, owner);
    owner.left += 1;
    network.lines.set(workspaceId, { taker, owner, rank: owner.taken, first: at, last: at });
  }
  return { networks: [...networks.values()], owners: [...owners.values()], next };
};

const heapOf = (lines: Iterable<Line>): Line[] => {
  const heap: Line[] = [];
  for (const line of lines) {
    if (line.first === end) continue;
    line.rank = line.owner.taken;
    heap.push(line);
  }
  for (let at = (heap.length >> 1) - 1; at >= 0; at -= 1) siftDown(heap, at);
  return heap;
};

/** The first line in its present place: other networks may have given its workspace slots. A rank only grows. */
const topOf = ({ heap }: Network): Line | undefined => {
  for (;;) {
    const line = heap[0];
    if (line === undefined || line.rank === line.owner.taken) return line;
    line.rank = line.owner.taken;
    siftDown(heap, 0);
  }
};

/** The network whose first line goes first; null: no line may have a slot. */
const bestOf = (networks: readonly Network[], byNetwork: boolean): Network | null => {
  let best: Network | null = null;
  let bestLine: Line | null = null;
  for (const network of networks) {
    const line = topOf(network);
    if (line === undefined) continue;
    if (best !== null && bestLine !== null) {
      const ofNetworks = byNetwork && line.rank === bestLine.rank ? network.taken - best.taken : 0;
      if (ofNetworks > 0 || (ofNetworks === 0 && !isBefore(line, bestLine))) continue;
    }
    best = network;
    bestLine = line;
  }
  return best;
};

/** The line's first job has got a slot. */
const advance = (network: Network, line: Line, next: Int32Array): void => {
  network.taken += 1;
  line.owner.taken += 1;
  line.owner.left -= 1;
  line.first = next[line.first] ?? end;
  if (line.first === end) pop(network.heap);
};

/**
 * Takes the free slots for the jobs that get them, and returns these jobs. The workspace with the fewest slots goes
 * first, then perhaps its network, then the job's place. A job beyond the first share gets a slot when none is left
 * within it. The time grows with jobs + slots × log(workspaces): a search reads thousands of rows.
 */
export const takeFairly = <Job>(jobs: readonly Job[], rules: PickRules<Job>): readonly Job[] => {
  const { slots, byNetwork = false } = rules;
  const picked: Job[] = [];
  if (slots.free <= 0 || jobs.length === 0) return picked;
  const { networks, owners, next } = sort(jobs, rules);
  let before: Share | null = null;
  let othersWaited = false;
  for (const share of slots.shares) {
    const othersWait = owners.reduce((sum, { left }) => sum + (left > 0 ? 1 : 0), 0) > 1;
    // A share that comes again gives more only if others waited before.
    if (share === before && othersWait === othersWaited) continue;
    before = share;
    othersWaited = othersWait;
    for (const network of networks) network.heap = heapOf(network.lines.values());
    while (slots.free > 0) {
      const network = bestOf(networks, byNetwork);
      const line = network?.heap[0];
      if (network === null || line === undefined) break;
      if (share(line.taker, slots, othersWait)) {
        slots.take(line.taker);
        picked.push(jobs[line.first] as Job);
        advance(network, line, next);
      } else if (line.rank === 0) network.heap = [];
      else pop(network.heap);
    }
  }
  return picked;
};

/** The jobs that would get the free slots; none is taken. */
export const pickFairly = <Job>(jobs: readonly Job[], rules: PickRules<Job>): readonly Job[] => {
  const picked = takeFairly(jobs, rules);
  for (const job of picked) rules.slots.give(rules.takerOf(job));
  return picked;
};
