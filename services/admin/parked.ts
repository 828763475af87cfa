import { setTimeout as delay } from 'node:timers/promises';
import {
  isRetryPending,
  listParked,
  maxListed,
  type ParkedStream,
  parkedGroups,
} from '#runtime/consuming/parked-reads.ts';
import { requestRetry, requestSkip } from '#runtime/consuming/parked-requests.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import type { Admin, CommandOutput, Given, Shown } from './context.ts';
import { idOf } from './find.ts';

/** Events that consumers parked. A command here requests a retry; the consumer itself applies the events. */

const shown = ({ group, stream, events, eventId, type, revision, since, retryAt, reason }: ParkedStream): Shown => ({
  ...{ group, stream, events: events < maxListed ? events : `${maxListed} or more` },
  ...{ event: eventId, type, revision, since: since.toISOString() },
  state: retryAt === null ? 'parked' : `to be tried again at ${retryAt.toISOString()}`,
  reason,
});

export const listOfParked = async ({ pool }: Admin, { flag }: Given): Promise<CommandOutput> =>
  (await listParked(pool, flag('group') ?? null)).map(shown);

/** A running consumer checks every second whether a retry is requested. */
const patienceMs = 8_000;

/** Which of these are still parked after their consumer has tried, or after the wait. */
const outcomeOf = async (
  { pool, note, signal }: Admin,
  group: string,
  stream: string | null,
): Promise<CommandOutput> => {
  for (const until = performance.now() + patienceMs; await isRetryPending(pool, group, stream); ) {
    if (performance.now() > until) {
      note(`The consumer ${group} has not finished the retry: it continues as soon as it runs. See parked list.`);
      break;
    }
    await delay(100, undefined, { signal });
  }
  return (await listParked(pool, group, stream)).map(shown);
};

const known = async (admin: Admin, group: string): Promise<void> => {
  const groups = await parkedGroups(admin.pool);
  if (groups.includes(group)) return;
  const named = groups.length === 0 ? 'no group has' : `those that have: ${groups.join(', ')}`;
  throw new UsageError(`The group ${group} has nothing parked; ${named}.`);
};

export const retryParked = async (admin: Admin, { at, flag }: Given): Promise<CommandOutput> => {
  const [group, stream] = [at(0), flag('stream') ?? null];
  await known(admin, group);
  const streams = await inTransaction(admin.pool, async (tx) => ({
    commit: true,
    result: await requestRetry(tx, group, stream),
  }));
  if (streams === 0) throw new UsageError(`The group ${group} has nothing of ${stream} parked.`);
  return outcomeOf(admin, group, stream);
};

export const skipParked = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
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
