import { setTimeout as delay } from 'node:timers/promises';
import { listParked, type ParkedStream, requestRetry, requestSkip } from '#runtime/parking.ts';
import { inTransaction } from '#runtime/transactions.ts';
import type { Given } from './commands.ts';
import { type Admin, type Answer, type Shown, UsageError } from './context.ts';
import { idOf } from './find.ts';

/** Events that consumers set aside. They are asked for here, and applied by the consumer whose they are. */

const shown = ({ group, stream, events, eventId, type, revision, since, wanted, reason }: ParkedStream): Shown => ({
  ...{ group, stream, events, event: eventId, type, revision, since: since.toISOString() },
  state: wanted ? 'to be tried again' : 'parked',
  reason,
});

export const listOfParked = async ({ pool }: Admin, { flag }: Given): Promise<Answer> =>
  (await listParked(pool, flag('group') ?? null)).map(shown);

/** A running consumer looks every second. */
const patienceMs = 8_000;

/** What is still parked of these once their consumer has tried, or when it did not in time. */
const outcomeOf = async ({ pool, note, signal }: Admin, group: string, stream: string | null): Promise<Answer> => {
  const left = async () => (await listParked(pool, group)).filter((one) => stream === null || one.stream === stream);
  for (const until = performance.now() + patienceMs; ; await delay(100, undefined, { signal })) {
    const rows = await left();
    if (rows.every(({ wanted }) => !wanted)) return rows.map(shown);
    if (performance.now() < until) continue;
    note(`The consumer ${group} has not got to it: it does so as soon as it runs.`);
    return rows.map(shown);
  }
};

const known = async (admin: Admin, group: string): Promise<void> => {
  const groups = new Set((await listParked(admin.pool, null)).map((one) => one.group));
  if (groups.has(group)) return;
  const named = groups.size === 0 ? 'no group has' : `those that have: ${[...groups].join(', ')}`;
  throw new UsageError(`The group ${group} has nothing parked; ${named}.`);
};

export const retryParked = async (admin: Admin, { at, flag }: Given): Promise<Answer> => {
  const [group, stream] = [at(0), flag('stream') ?? null];
  await known(admin, group);
  const events = await inTransaction(admin.pool, async (tx) => ({
    commit: true,
    result: await requestRetry(tx, group, stream),
  }));
  if (events === 0) throw new UsageError(`The group ${group} has nothing of ${stream} parked.`);
  return outcomeOf(admin, group, stream);
};

export const skipParked = async (admin: Admin, { at }: Given): Promise<Answer> => {
  const [group, eventId] = [at(0), idOf(at(1), 'event')];
  await known(admin, group);
  const skipped = await inTransaction(admin.pool, async (tx) => ({
    commit: true,
    result: await requestSkip(tx, group, eventId),
  }));
  if (skipped === null) {
    throw new UsageError(`${eventId} is not the first event that ${group} has parked of a stream: see parked list.`);
  }
  return outcomeOf(admin, group, skipped.stream);
};
