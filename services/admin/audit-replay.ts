import { pause } from '#contracts/base/pause.ts';
import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import { workspaceOf as workspaceIn } from '#contracts/ports/event-store.ts';
import { feedEnd } from '#projections/feed/read.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { feedOf, walk } from './audit.ts';
import type { Admin, CommandOutput, Given, Shown } from './context.ts';

/** What a stream or a whole workspace says, event by event: as of a moment, or as it goes on. */

/** How often a reader that follows looks for more, milliseconds. */
const lookMs = 500;
const pageEvents = 500;

interface Said {
  /** Null: the events of a stream are shown by their revisions. */
  readonly sequence: number | null;
  readonly at: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  /** Null: a rule of retention dropped it. */
  readonly event: RecordedEvent | null;
}

/** The end of what is shown: a sequence of the feed, or an instant. */
type Moment = { readonly sequence: number } | { readonly instant: number };

const forever: Moment = { instant: Number.POSITIVE_INFINITY };

/** @throws UsageError */
const momentOf = (given: Given): Moment => {
  const at = given.flag('at');
  if (at === undefined) return forever;
  if (given.has('follow')) throw new UsageError('--at ends where --follow goes on: name one of both.');
  if (/^\d+$/.test(at)) return { sequence: Number(at) };
  const instant = Date.parse(at);
  if (Number.isNaN(instant))
    throw new UsageError(`${JSON.stringify(at)} is neither a sequence nor an instant, such as 2026-01-31T08:00:00Z.`);
  return { instant };
};

/** The feed up to that moment, and what is added to it. */
async function* feedSaid(admin: Admin, workspaceId: string, until: Moment, follow: boolean): AsyncGenerator<Said> {
  let shown = 0;
  for (;;) {
    const { size } = await feedEnd(admin.pool, workspaceId);
    const last = 'sequence' in until ? Math.min(size, until.sequence) : size;
    for await (const page of walk(admin, workspaceId, last, shown)) {
      for (const { row, event } of page) {
        if ('instant' in until && Date.parse(row.at) > until.instant) return;
        shown = row.sequence;
        const { sequence, at, stream, type } = row;
        yield { sequence, at, stream, revision: Number(row.revision), type, event };
      }
    }
    if (!follow || admin.signal.aborted) return;
    await pause(lookMs, admin.signal);
  }
}

/** @throws Error where the store has no such stream */
async function* streamSaid(admin: Admin, stream: string, until: Moment, follow: boolean): AsyncGenerator<Said> {
  let next = 0n;
  let position: bigint | null = null;
  for (;;) {
    const events: readonly RecordedEvent[] = await admin.eventStore.read(stream, { from: next, limit: pageEvents });
    const any = events.at(-1);
    if (any === undefined && next === 0n) throw new Error(`There is no stream ${stream}.`);
    if (any !== undefined && position === null && 'sequence' in until)
      position = await positionAt(admin, any, until.sequence);
    for (const event of events) {
      if ('instant' in until ? event.created.getTime() > until.instant : event.position > (position ?? -1n)) return;
      const { revision, type, created } = event;
      yield { sequence: null, at: created.toISOString(), stream, revision: Number(revision), type, event };
      next = revision + 1n;
    }
    if (events.length === pageEvents) continue;
    if (!follow || admin.signal.aborted) return;
    await pause(lookMs, admin.signal);
  }
}

/** Where the store has that event of the feed, or the last one before it. */
const positionAt = async ({ pool }: Admin, { metadata }: RecordedEvent, sequence: number): Promise<bigint> => {
  const { rows } = await pool.query<{ readonly position: string }>(
    `select position from ops.feed_events where workspace_id = $1 and sequence <= $2 order by sequence desc limit 1`,
    [workspaceIn(metadata), sequence],
  );
  return BigInt(rows[0]?.position ?? -1);
};

const shownOf = async ({ codec }: Admin, { event, ...said }: Said): Promise<Shown> => {
  if (event === null) return { ...said, expired: true };
  const { data, metadata } = await codec.decode(event);
  const { actor, commandId } = metadata;
  return { ...said, actor: `${actor.type} ${actor.id}`, commandId, data };
};

const readable = ({ sequence, at, stream, revision, type, actor, data }: Shown): string =>
  [
    ...(sequence === null ? [] : [String(sequence).padStart(7)]),
    ...[at, `${String(stream)} ${String(revision)}`, type, actor ?? 'expired', JSON.stringify(data ?? null)],
  ].join('  ');

/** Writes a line for each event, and answers how many there were. Ctrl-C ends one that follows. */
export const replay = async (admin: Admin, given: Given): Promise<CommandOutput> => {
  const until = momentOf(given);
  const [name, follow, json] = [given.at(0), given.has('follow'), given.has('json')];
  const said =
    name === 'workspace'
      ? feedSaid(admin, await feedOf(admin, given), until, follow)
      : streamSaid(admin, name, until, follow);
  let events = 0;
  try {
    for await (const one of said) {
      const shown = await shownOf(admin, one);
      await admin.line(json ? JSON.stringify(shown) : readable(shown));
      events += 1;
    }
  } catch (error) {
    if (!follow || !admin.signal.aborted) throw error;
  }
  return { events };
};
