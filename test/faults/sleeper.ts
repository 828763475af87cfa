import { target } from '#domain/post-target/target.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { patience } from '#test/support/patience.ts';
import { until } from '#test/support/until.ts';
import { check, untilQuiet } from './check.ts';
import type { FaultWorld } from './world.ts';

/**
 * A publisher sleeps at a fault point for longer than its lease; another one takes the target over; then the first one
 * wakes. Its pending work may have no effect any more.
 */

export type Nap = 'publisher:before-claim' | 'publisher:before-boundary';

export interface Woken {
  /** The target's violations in one line; empty when there is none. */
  readonly target: string;
  readonly violations: readonly string[];
}

/** A network without idempotency keys: a second create makes a second post, and absence proves nothing. */
const platform = 'x';

export const oversleep = async (world: FaultWorld, at: Nap): Promise<Woken> => {
  const [sleeper, other] = [world.role('publisher-1'), world.role('publisher-2')];
  if (other.up !== null) await other.end();
  const sleeps = await world.sleepAt(sleeper, at);
  const { pool, store } = world.adapters;
  // A long preparation: the other publisher is under way and has not written its boundary when the sleeper wakes.
  const id = await world.load.one(platform, '[[sandbox:slow 2500ms]]');
  const events = async () => world.codec.decodeAll(await store.read(`target-${id}`));
  await until('it sleeps', async () => sleeps());
  const held = async (): Promise<string> =>
    (await pool.query(`select epoch::text from ops.work_leases where kind = 'target' and id = $1`, [id])).rows[0]
      ?.epoch;
  const before = await held();
  await other.begin();
  await until('another holds its lease', async () => (await held()) !== before);
  if (at === 'publisher:before-claim') {
    await until('the other has published', async () => foldEvents(target, await events()).status === 'published');
  } else {
    // The sleeper must lose to this takeover; a build that takes over without an event has nothing to wait for.
    await until('the takeover', async () => (await events()).some((one) => one.type === 'TargetPublishTakenOver'), {
      withinMs: 1_500,
    }).catch(() => undefined);
  }
  sleeper.dieAt(null);
  sleeper.up?.signal('SIGCONT');
  const { checked } = world;
  const open = await untilQuiet(checked, 30_000 * patience);
  const { violations } = await check(checked);
  const reported = await events();
  const { status } = foldEvents(target, reported);
  const types = reported.map((one) => one.type);
  const starts = types.filter((type) => type === 'TargetPublishStarted').length;
  const posts = (await world.sandbox.creates(id)).filter((row) => row.outcome === 'created').length;
  const taken = types.includes('TargetPublishTakenOver') || at === 'publisher:before-claim';
  // A machine that is busy for longer than a call may wait defers it, and the target is claimed once more.
  const deferred = types.filter((type) => type === 'TargetPublishDeferred').length;
  const well = status === 'published' && starts === 1 + deferred && posts === 1 && taken;
  return {
    target: well ? '' : `${status} after ${starts} claims with ${posts} posts: ${types.join(' ')}`,
    violations: [...open, ...violations, ...world.violations],
  };
};
