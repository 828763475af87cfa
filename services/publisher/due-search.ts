import type { Pool } from 'pg';
import {
  afterAllIds,
  movedDueTargets,
  type WalkedTarget,
  type WalkStep,
  walkDueTargets,
} from '#projections/queries/due-targets.ts';
import type { MovedClock } from '#runtime/work/sandbox-clocks.ts';
import { platforms } from '#schemas/common.ts';
import { limitsOf, roomOn, type SearchScope, takenOn } from './search.ts';
import type { DueRow } from './shares.ts';

/** Rows of one platform that a search reads, longest due first, beside the rows that this process works on. */
const frontRows = 1_000;
/** Rows of all platforms together that a search reads behind these, if a platform has more. */
const behindRows = 4_000;

/** Workspaces with a clock ahead of ours that a search looks at, and as many of the others in turns. */
const movedAtOnce = 32;

export interface DueSearchOptions {
  readonly front?: number;
  readonly behind?: number;
  /** Whether a setting of this process holds publishing. Default: false. */
  readonly heldBySetting?: boolean;
  /** Workspaces whose clocks are ahead, the latest moved last. Default: none. */
  readonly moved?: () => readonly MovedClock[];
  /** The networks that rest, `live/linkedin`. Default: none. */
  readonly resting?: () => Promise<readonly string[]>;
}

/**
 * Finds due targets whose outcome is not unknown, in the order of their due times. A search reads a bounded number of
 * rows, longest due first; without a backlog these are all rows. If a platform has more, searches take turns: one also
 * reads from the newest row, so that a backlog does not hide targets due now; the next continues an older walk, so that
 * searches reach every row.
 */
export class DueSearch {
  readonly #pool: Pool;
  readonly #kind: string;
  readonly #front: number;
  readonly #behind: number;
  readonly #heldBySetting: boolean;
  readonly #resting: () => Promise<readonly string[]>;
  readonly #moved: () => readonly MovedClock[];
  #turn = 0;
  /** Platform → row from which the walk over the remaining rows continues. */
  readonly #cursors = new Map<string, WalkStep>();
  #goesOn = false;

  /** @param kind of the leases */
  constructor(pool: Pool, kind: string, options: DueSearchOptions = {}) {
    const { front = frontRows, behind = behindRows, heldBySetting = false, resting = async () => [] } = options;
    this.#moved = options.moved ?? (() => []);
    this.#pool = pool;
    this.#kind = kind;
    this.#front = front;
    this.#behind = behind;
    this.#heldBySetting = heldBySetting;
    this.#resting = resting;
  }

  /** @param before instant up to which a target is due */
  async find(before: Date, scope: SearchScope): Promise<readonly DueRow[]> {
    const { slots } = scope;
    const from = { at: before.toISOString(), id: afterAllIds };
    const open = platforms.filter((platform) => roomOn(slots, platform) > 0);
    const steps = open.map((platform) => ({ ...from, platform, rows: this.#front + takenOn(slots, platform) }));
    const front = await this.#walk('asc', steps, scope);
    const more = front.filter(({ isEdge }) => isEdge).map(({ platform }) => platform);
    for (const platform of this.#cursors.keys()) if (!more.includes(platform)) this.#cursors.delete(platform);
    const behind = more.length === 0 ? [] : await this.#walkBehind(more, from, scope);
    const found = new Map<string, WalkedTarget>();
    const moved = await this.#amongMoved(before, open, scope);
    for (const row of [...moved, ...front, ...behind])
      if (!row.isEdge && !scope.staleRows.has(row)) found.set(row.id, row);
    return [...found.values()].sort((a, b) => a.dueAt.getTime() - b.dueAt.getTime());
  }

  /** Of a bounded number of workspaces: those whose clocks were moved last, and the others in turns. */
  async #amongMoved(before: Date, open: readonly string[], scope: SearchScope): Promise<readonly WalkedTarget[]> {
    const all = this.#moved();
    if (all.length === 0 || open.length === 0) return [];
    const others = all.slice(0, -movedAtOnce);
    const begin = others.length === 0 ? 0 : this.#turn % others.length;
    this.#turn = begin + movedAtOnce;
    const clocks = [...all.slice(-movedAtOnce), ...others.slice(begin, begin + movedAtOnce)];
    const rooms = Object.fromEntries(open.map((platform) => [platform, roomOn(scope.slots, platform)]));
    const held = { bySetting: this.#heldBySetting, networks: await this.#resting() };
    return movedDueTargets(this.#pool, clocks, before, rooms, limitsOf(scope, this.#kind), held);
  }

  async #walkBehind(
    names: readonly string[],
    newest: Omit<WalkStep, 'platform' | 'rows'>,
    scope: SearchScope,
  ): Promise<readonly WalkedTarget[]> {
    const rows = Math.ceil(this.#behind / names.length);
    const steps = names.map((platform) => ({
      ...((this.#goesOn ? this.#cursors.get(platform) : undefined) ?? newest),
      platform,
      rows,
    }));
    const found = await this.#walk('desc', steps, scope);
    for (const { platform, at } of steps) {
      const edge = found.find((one) => one.isEdge && one.platform === platform);
      const cursor = this.#cursors.get(platform);
      // A walk from the newest row does not move the cursor of the other walk.
      if (cursor !== undefined && at !== cursor.at) continue;
      if (edge === undefined) this.#cursors.delete(platform);
      else this.#cursors.set(platform, { platform, at: edge.at, id: edge.id, rows });
    }
    this.#goesOn = !this.#goesOn;
    return found;
  }

  async #walk(
    direction: 'asc' | 'desc',
    steps: readonly WalkStep[],
    scope: SearchScope,
  ): Promise<readonly WalkedTarget[]> {
    if (steps.length === 0) return [];
    const { slots } = scope;
    const rooms = Object.fromEntries(steps.map(({ platform }) => [platform, roomOn(slots, platform)]));
    const held = { bySetting: this.#heldBySetting, networks: await this.#resting() };
    return walkDueTargets(this.#pool, direction, steps, rooms, limitsOf(scope, this.#kind), held);
  }
}
