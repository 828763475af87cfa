import { rmSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import { emptyFrontier, type Frontier, leafOf, rootOf, withLeaf } from '#domain/tree.ts';
import { retentionMonths } from '#projections/analytics/tables.ts';
import { compareWithRecount } from '#projections/analytics/verify.ts';
import { zonesFrom } from '#projections/analytics/zones.ts';
import { type FeedRow, feedEnd, feedPage, isInFeed } from '#projections/feed/read.ts';
import { checkpointsOf } from '#projections/feed/sign.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { kindOf } from '#schemas/topics.ts';
import { findingsOf, type Say } from './audit-findings.ts';
import { compareTables } from './audit-rows.ts';
import { StreamChecks } from './audit-streams.ts';
import type { Admin } from './context.ts';

/**
 * Holds an installation against its own log: one read of the store, in the order of the feed. Memory is bounded: events of
 * streams that are not over wait within a budget, and a stream that fell out of it is read again where it ends.
 */

const pageOfCheckpoints = 500;
/** Events of one read of the store, and milliseconds between two writes of the state file, each with a line about progress. */
const paces = { pageEvents: 500, noteMs: 2_000 };
const maxFindings = 20;

/** How a verification reads, and which events may be gone. */
export interface VerifyOptions {
  readonly pageEvents: number;
  readonly noteMs: number;
  /** Kinds of streams of which a rule of the installation's store drops events. This release has none: what else is gone was taken out. */
  readonly expired: ReadonlySet<string>;
}

export interface Verified {
  readonly workspaceId: string;
  readonly epoch: number;
  readonly events: number;
  readonly expired: number;
  readonly checkpoints: number;
  readonly root: string;
  readonly findings: readonly string[];
  readonly more: number;
  readonly counted: Readonly<Record<string, number>>;
}

/** What the state file keeps of a verification that is not over. */
interface State {
  readonly format: 1;
  readonly workspaceId: string;
  readonly epoch: number;
  readonly size: number;
  readonly begunAt: string;
  sequence: number;
  position: string | null;
  hashes: readonly string[];
  expired: number;
  findings: string[];
  more: number;
  counted: Record<string, number>;
}

const begin = async (admin: Admin, workspaceId: string): Promise<State> => ({
  ...{ format: 1, workspaceId, ...(await feedEnd(admin.pool, workspaceId)), begunAt: new Date().toISOString() },
  ...{ sequence: 0, position: null, hashes: [], expired: 0, findings: [], more: 0, counted: {} },
});

/** @throws UsageError where the file is of another verification */
const resumed = async (admin: Admin, workspaceId: string, file: string): Promise<State> => {
  const text = await readFile(file, 'utf8').catch(() => null);
  if (text === null) return begin(admin, workspaceId);
  const { epoch, size } = await feedEnd(admin.pool, workspaceId);
  let kept: State | null = null;
  try {
    kept = JSON.parse(text) as State;
  } catch {}
  if (kept?.format !== 1 || kept.workspaceId !== workspaceId || kept.epoch !== epoch || kept.size > size) {
    throw new UsageError(`${file} is not of a verification of this feed: delete it, or name another by --state.`);
  }
  admin.note(`going on behind event ${kept.sequence} of ${kept.size}, as ${file} says; it began at ${kept.begunAt}`);
  return kept;
};

/** A process that dies leaves the former state whole. */
const keep = async (file: string, state: State): Promise<void> => {
  await writeFile(`${file}.new`, JSON.stringify(state), { mode: 0o600 });
  await rename(`${file}.new`, file);
  faultPoint('audit:verify-kept');
};

const signedOf = async (admin: Admin, workspaceId: string, epoch: number): Promise<ReadonlyMap<number, string>> => {
  const signed = new Map<number, string>();
  for (let before: { epoch: number; size: number } | null = null; ; ) {
    const found: Awaited<ReturnType<typeof checkpointsOf>> = await checkpointsOf(admin.pool, workspaceId, {
      ...{ before, limit: pageOfCheckpoints },
    });
    for (const one of found) if (one.epoch === epoch) signed.set(one.size, one.root);
    before = found.at(-1) ?? null;
    if (found.length < pageOfCheckpoints || before === null) return signed;
  }
};

interface Page {
  readonly rows: readonly FeedRow[];
  /** Of the same part of the store. */
  readonly events: readonly RecordedEvent[];
  readonly after: bigint | null;
}

/** Rows of the feed beside what the store has in their place; the next page is read while one is used. */
async function* pagesOf(admin: Admin, state: State, pageEvents: number): AsyncGenerator<Page> {
  const { workspaceId, size } = state;
  let rows: readonly FeedRow[] = [];
  let sequence = state.sequence;
  const [last] = size === 0 ? [] : await feedPage(admin.pool, workspaceId, { after: size - 1, until: size, limit: 1 });
  if (size > 0 && last === undefined) throw new Error(`the feed lacks event ${size}: npm start numbers it anew`);
  if (last === undefined || sequence >= size) return;
  const read = (after: bigint | null) =>
    admin.eventStore.readWorkspace(workspaceId, { after, until: last.position, limit: pageEvents });
  let next: ReturnType<typeof read> | null = read(state.position === null ? null : BigInt(state.position));
  while (next !== null) {
    admin.signal.throwIfAborted();
    const page: Awaited<ReturnType<typeof read>> = await next;
    const isEnd = page.isEnd || page.next === null;
    next = isEnd ? null : read(page.next);
    next?.catch(() => undefined);
    const until = isEnd || page.next === null ? last.position : page.next;
    for (;;) {
      const newest = rows.at(-1);
      if (newest !== undefined && (newest.position > until || newest.sequence >= size)) break;
      const more = await feedPage(admin.pool, workspaceId, {
        ...{ after: newest?.sequence ?? sequence, until: size, limit: 2 * pageEvents },
      });
      if (more.length === 0) break;
      rows = [...rows, ...more];
    }
    const beyond = isEnd ? -1 : rows.findIndex(({ position }) => position > until);
    const here = beyond < 0 ? rows : rows.slice(0, beyond);
    rows = beyond < 0 ? [] : rows.slice(beyond);
    sequence = here.at(-1)?.sequence ?? sequence;
    yield { rows: here, events: page.events.filter(({ stream }) => isInFeed(stream)), after: page.next };
  }
}

interface Holding extends Pick<VerifyOptions, 'expired'> {
  readonly state: State;
  readonly signed: ReadonlyMap<number, string>;
  readonly say: Say;
}

/** Holds one page of the feed against the store, and against what was signed. */
const comparePage = (
  { rows, events }: Page,
  { state, signed, say, expired }: Holding,
  before: Frontier,
): { readonly frontier: Frontier; readonly stored: readonly { row: FeedRow; event: RecordedEvent }[] } => {
  let frontier = before;
  const byId = new Map(events.map((event) => [event.id, event]));
  const stored: { row: FeedRow; event: RecordedEvent }[] = [];
  let position = -1n;
  for (const row of rows) {
    const event = byId.get(row.eventId);
    byId.delete(row.eventId);
    const named = `event ${row.sequence} (${row.type} ${row.eventId} of ${row.stream})`;
    if (event === undefined && expired.has(kindOf(row.stream))) state.expired += 1;
    else if (event === undefined) say(`${named} is gone: the store does not have it, and no rule drops it`);
    else {
      if (!leafOf(event).equals(row.hash)) say(`${named} was changed`);
      if (event.position !== row.position || row.position <= position) say(`${named} is not where the store has it`);
      position = row.position;
      stored.push({ row, event });
    }
    const expected = state.sequence + 1;
    if (row.sequence !== expected) say(`event ${expected} is missing in the feed`);
    state.sequence = row.sequence;
    frontier = withLeaf(frontier, row.hash);
    const root = signed.get(row.sequence);
    if (root !== undefined && rootOf(frontier).toString('base64') !== root)
      say(`the first ${row.sequence} events are not those of the checkpoint that was signed`);
  }
  for (const { id, type, stream } of byId.values())
    say(`the feed lacks ${type} ${id} of ${stream}, which the store has`);
  return { frontier, stored };
};

/** @param file is gone when this resolves; behind a stop, the same file goes on. @throws UsageError where it is of another feed */
export const verifyWorkspace = async (
  admin: Admin,
  workspaceId: string,
  file: string,
  { pageEvents = paces.pageEvents, noteMs = paces.noteMs, expired = new Set() }: Partial<VerifyOptions> = {},
): Promise<Verified> => {
  const state = await resumed(admin, workspaceId, path.resolve(file));
  const findings = findingsOf(state, maxFindings);
  const { say } = findings;
  const signed = await signedOf(admin, workspaceId, state.epoch);
  const checks = await StreamChecks.begin(admin, { workspaceId, size: state.size, counted: state.counted, say });
  let frontier: Frontier = { size: state.sequence, hashes: state.hashes.map((one) => Buffer.from(one, 'base64')) };
  if (state.sequence === 0) frontier = emptyFrontier;
  let notedAt = Number.NEGATIVE_INFINITY;
  for await (const page of pagesOf(admin, state, pageEvents)) {
    const { frontier: grown, stored } = comparePage(page, { state, signed, say, expired }, frontier);
    frontier = grown;
    await checks.add(stored);
    if (performance.now() - notedAt < noteMs) continue;
    notedAt = performance.now();
    // What was begun is checked before the file says that it is over.
    await checks.flush();
    state.position = page.after === null ? state.position : String(page.after);
    state.hashes = frontier.hashes.map((one) => Buffer.from(one).toString('base64'));
    await keep(file, state);
    admin.note(`${state.sequence} of ${state.size} events; to go on after a stop: --state ${file}`);
  }
  await checks.flush();
  for (const size of signed.keys())
    if (size > state.size && size > (await feedEnd(admin.pool, workspaceId)).size)
      say(`a checkpoint of ${size} events was signed: the feed has ${state.size}`);
  admin.note('comparing rows, deliveries and figures');
  await checks.end();
  await compareTables(admin, workspaceId, state.counted, say);
  await compareAnalytics(admin, workspaceId, state.counted, say);
  for (const name of [file, `${file}.new`]) rmSync(name, { force: true });
  const { epoch, size, counted } = state;
  return {
    ...{ workspaceId, epoch, events: size, expired: state.expired, checkpoints: signed.size },
    ...{ root: rootOf(frontier).toString('base64'), findings: state.findings, more: state.more, counted },
  };
};

/** The totals of the analytics equal a recount, and every observation of the feed is in it. */
const compareAnalytics = async (
  { analytics: client, pool, eventStore, codec, signal, note }: Admin,
  workspaceId: string,
  counted: Record<string, number>,
  say: Say,
): Promise<void> => {
  if (client === null) return note('no analytics are configured: their totals are not compared');
  const zones = await zonesFrom(eventStore, codec)(workspaceId);
  const { rows, observations, differing } = await compareWithRecount({ client, pool, workspaceId, zones, signal });
  counted.figures = rows;
  for (const one of differing) say(`the figures of ${one} are not what a recount gives`);
  const { rows: feed } = await pool.query<{ readonly n: string }>(
    `select count(*) as n from ops.feed_events where workspace_id = $1
       and (stream like 'targetmetrics-%' or stream like 'accountmetrics-%')
       and at > date_trunc('day', now()) - make_interval(months => $2)`,
    [workspaceId, retentionMonths - 2],
  );
  const known = Number(feed[0]?.n ?? 0);
  // The day of an observation may be another than that on which it was stored: the rest of the feed is not compared.
  if (observations < known) say(`the analytics have ${observations} observations, the feed has ${known}`);
};
