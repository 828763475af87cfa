import { BoundedMap } from '#contracts/base/bounded-map.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import type { Positions } from './domain-store.ts';

/**
 * The positions that a reader must have applied for the caller to read its own writes: `topic-partition` → commit
 * position. Positions count the writes of all tenants: the token is encrypted, and each takes the same room in it.
 */

const positionDigits = 19;

export const encodeToken = (secrets: Secrets, positions: Positions): string =>
  secrets.encrypt(
    'consistency',
    [...positions].map(([lane, position]) => `${lane}=${String(position).padStart(positionDigits, '0')}`).join(','),
  );

/**
 * Null when the token is not ours or was altered. The caller ignores it then: no token promises less than an old one.
 */
export const decodeToken = (secrets: Secrets, token: string): Positions | null => {
  const payload = secrets.decrypt('consistency', token);
  if (payload === null) return null;
  const entries = payload.split(',').flatMap((pair): [string, bigint][] => {
    const [lane, position] = pair.split('=');
    return lane === undefined || position === undefined || !/^\d+$/.test(position) ? [] : [[lane, BigInt(position)]];
  });
  return new Map(entries);
};

export const mergePositions = (into: Positions, from: Positions): void => {
  for (const [lane, position] of from) {
    const known = into.get(lane);
    if (known === undefined || known < position) into.set(lane, position);
  }
};

/**
 * Remembers the last writes of each credential in this instance. Bounded: the least recently used credential is dropped
 * first.
 */
export class RecentWrites {
  readonly #byCredential: BoundedMap<string, Positions>;

  constructor(max = 10_000) {
    this.#byCredential = new BoundedMap(max);
  }

  remember(credential: string, positions: Positions): void {
    if (positions.size === 0) return;
    const known = this.#byCredential.get(credential) ?? new Map<string, bigint>();
    mergePositions(known, positions);
    this.#byCredential.set(credential, known);
  }

  of(credential: string): Positions {
    return this.#byCredential.get(credential) ?? new Map();
  }
}
