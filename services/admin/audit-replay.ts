import { pause } from '#contracts/base/pause.ts';
import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import { workspaceOf as workspaceIn } from '#contracts/ports/event-store.ts';
import type { FeedMoment } from '#projections/feed/moments.ts';
import { feedEnd } from '#projections/feed/read.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { feedOf, momentIn, walk } from './audit.ts';
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

/** The end of what is shown; null: none. @throws UsageError */
const momentOf = async (admin: Admin, given: Given, workspaceId: string | null): Promise<FeedMoment | null> => {
  const at = given.flag('at');
  if (at === undefined) return null;
  if (given.has('follow')) throw new UsageError('--at ends where --follow goes on: name one of both.');
  return momentIn(admin, workspaceId ?? (await feedOf(admin, given)), at);
};

/** The feed up to that moment, and what is added to it. */
async function* feedSaid(admin: Admin, given: Given, follow: boolean): AsyncGenerator<Said> {
  const workspaceId = await feedOf(admin, given);
  const until = await momentOf(admin, given, workspaceId);
  let shown = 0;
  for (;;) {
    const { size } = await feedEnd(admin.pool, workspaceId);
    for await (const page of walk(admin, workspaceId, until?.sequence ?? size, shown)) {
      for (const { row, event } of page) {
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
async function* streamSaid(admin: Admin, given: Given, stream: string, follow: boolean): AsyncGenerator<Said> {
  const [first] = await admin.eventStore.read(stream, { limit: 1 });
  if (first === undefined) throw new Error(`There is no stream ${stream}.`);
  // What belongs to the installation, such as a member, has no feed of its own: the workspace that is named cuts it.
  const until = await momentOf(admin, given, workspaceIn(first.metadata));
  for (let next = 0n; ; ) {
    const events: readonly RecordedEvent[] = await admin.eventStore.read(stream, { from: next, limit: pageEvents });
    for (const event of events) {
      if (until !== null && event.position > until.position) return;
      const { revision, type, created } = event;
      yield { sequence: null, at: created.toISOString(), stream, revision: Number(revision), type, event };
      next = revision + 1n;
    }
    if (events.length === pageEvents) continue;
    if (!follow || admin.signal.aborted) return;
    await pause(lookMs, admin.signal);
  }
}

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
  const [name, follow, json] = [given.at(0), given.has('follow'), given.has('json')];
  const said = name === 'workspace' ? feedSaid(admin, given, follow) : streamSaid(admin, given, name, follow);
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
