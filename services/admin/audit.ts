import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { copyFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { finished } from 'node:stream/promises';
import type { RecordedEvent } from '#contracts/ports/event-store.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { beforeFirst, type FeedMoment, momentOfInstant, momentOfNamed, namedEvent } from '#projections/feed/moments.ts';
import { movesOf } from '#projections/feed/moves.ts';
import { type FeedRow, feedEnd, feedPage, recordedOf, textsOf } from '#projections/feed/read.ts';
import { checkpointAt, feedKeys, rotateFeedKey } from '#projections/feed/sign.ts';
import { feedUses } from '#projections/feed/uses.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { verifyWorkspace } from './audit-verify.ts';
import type { Admin, CommandOutput, Given, Shown } from './context.ts';
import { workspaceOf } from './find.ts';

/** Commands for auditors: what happened, who read it, and the proof that nothing was changed or left out. */

/** Events of one read of the store. */
const pageEvents = 500;
/** Between two lines about progress, milliseconds. */
const noteMs = 2_000;

/** The live workspace, or its sandbox twin. */
export const feedOf = async (admin: Admin, given: Given): Promise<string> => {
  const workspace = await workspaceOf(admin, given.flag('workspace'));
  return given.has('test') ? testTwinIdOf(workspace.id) : workspace.id;
};

/**
 * A moment as somebody writes it: an event of the feed as the api takes it, or an instant.
 * @throws UsageError for a moment that is none
 */
export const momentIn = async (
  { pool }: Pick<Admin, 'pool'>,
  workspaceId: string,
  text: string,
): Promise<FeedMoment> => {
  const named = namedEvent(text);
  const isInstant = /^\d{4}-/.test(text) && !Number.isNaN(Date.parse(text));
  if (named === null && !isInstant) {
    throw new UsageError(
      `${JSON.stringify(text)} is no instant, such as 2026-01-31T08:00:00Z, and no event of the feed.`,
    );
  }
  const byInstant = named === null ? await momentOfInstant(pool, workspaceId, new Date(text).toISOString()) : null;
  const found = named === null ? byInstant?.moment : await momentOfNamed(pool, workspaceId, named);
  if (byInstant !== null && byInstant.aheadMs > 0) throw new UsageError(`${text} lies in the future.`);
  if (named === null && found === null) throw new UsageError(`${text} ${beforeFirst}.`);
  if (found === null || found === undefined) throw new Error('The feed is being numbered anew.');
  if ('wrong' in found) throw new UsageError(`${text} ${found.wrong}.`);
  return found;
};

export interface Walked {
  readonly row: FeedRow;
  /** Null: a rule of retention dropped it. */
  readonly event: RecordedEvent | null;
}

/** Every event of the feed behind a sequence and up to that size, in order; one page is read while the one before it is used. It says how far it is. */
export async function* walk(
  admin: Exporting,
  workspaceId: string,
  size: number,
  behind = 0,
): AsyncGenerator<readonly Walked[]> {
  const read = async (after: number): Promise<readonly Walked[]> => {
    const rows = await feedPage(admin.pool, workspaceId, { after, until: size, limit: pageEvents });
    if (rows.length === 0) throw new Error(`the feed lacks event ${after + 1}: npm start numbers it anew`);
    const events = await recordedOf(admin.eventStore, workspaceId, rows);
    return rows.slice(0, events.length).map((row, at) => ({ row, event: events[at] ?? null }));
  };
  let notedAt = performance.now();
  let next = size <= behind ? null : read(behind);
  while (next !== null) {
    admin.signal.throwIfAborted();
    const page = await next;
    const after = page.at(-1)?.row.sequence ?? size;
    next = after < size ? read(after) : null;
    // A page that is read ahead may fail while nobody waits for it.
    next?.catch(() => undefined);
    yield page;
    if (performance.now() - notedAt < noteMs) continue;
    notedAt = performance.now();
    admin.note(`${after} of ${size} events`);
  }
}

const lineOf = ({ row, event }: Walked): string => {
  const { sequence, eventId: id, stream, revision, type, at, clientId } = row;
  const place = { sequence, id, stream, revision: Number(revision), type, at, clientId };
  if (event === null) return JSON.stringify({ ...place, expired: true });
  return JSON.stringify({ ...place, ...textsOf(event) });
};

/** A file that is written line by line; a full buffer is waited for. */
export const linesInto = (file: string) => {
  const stream = createWriteStream(file);
  return {
    write: async (lines: readonly string[]): Promise<void> => {
      if (!stream.write(lines.map((line) => `${line}\n`).join(''))) await once(stream, 'drain');
    },
    end: async (): Promise<void> => {
      stream.end();
      await finished(stream);
    },
  };
};

const verifier = new URL('verify-export.mjs', import.meta.url);

export type Exporting = Pick<Admin, 'pool' | 'eventStore' | 'secrets' | 'operator' | 'signal' | 'note'>;

/** What an export has beside the feed and its proof. */
export interface MoreOfExport {
  /** Sees each event that is written. */
  readonly see: (walked: Walked) => void;
  /** Writes its own files; what it answers is in the manifest. */
  readonly write: (size: number) => Promise<object>;
}

/** @param folder is there and empty */
export const writeExport = async (
  admin: Exporting,
  workspaceId: string,
  folder: string,
  more: MoreOfExport | null = null,
): Promise<Shown> => {
  const { epoch, size } = await feedEnd(admin.pool, workspaceId);
  const now = admin.operator.clock();
  const checkpoint = await checkpointAt(admin.pool, admin.secrets, { workspaceId, epoch, size, now });
  const events = linesInto(path.join(folder, 'events.ndjson'));
  const leaves = linesInto(path.join(folder, 'leaves.txt'));
  for await (const page of walk(admin, workspaceId, size)) {
    await events.write(page.map(lineOf));
    await leaves.write(page.map(({ row }) => row.hash.toString('base64')));
    if (more !== null) for (const one of page) more.see(one);
  }
  await events.end();
  await leaves.end();
  await writeFile(path.join(folder, 'checkpoint.txt'), checkpoint.note);
  const moves = await movesOf(admin.pool, workspaceId);
  if (moves.length > 0) await writeFile(path.join(folder, 'moves.json'), `${JSON.stringify({ moves }, null, 2)}\n`);
  await writeFile(path.join(folder, 'keys.json'), `${JSON.stringify({ keys: await feedKeys(admin.pool) }, null, 2)}\n`);
  await copyFile(verifier, path.join(folder, 'verify-export.mjs'));
  const manifest = {
    ...{ format: 1, workspaceId, epoch, size, exportedAt: new Date(now).toISOString() },
    ...(await more?.write(size)),
  };
  // Last: an export without it did not end.
  await writeFile(path.join(folder, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  return { folder, workspaceId, epoch, events: size, root: checkpoint.root };
};

interface Verified {
  readonly log: string;
  readonly events: number;
  readonly expired: number;
  readonly root: string;
  readonly keyOfExport: boolean;
  readonly findings: readonly string[];
  readonly more: number;
}

/** Something is not as it was signed: the exit code is 1. */
const notWhole = (findings: readonly string[], more = 0): Error =>
  new Error(
    [...findings.map((one) => `WRONG  ${one}`), ...(more > 0 ? [`and ${more} more`] : []), 'not whole'].join('\n'),
  );

/** @throws Error that names what is wrong */
export const requireWholeExport = async (
  folder: string,
  given: Readonly<Partial<Record<'key' | 'checkpoint' | 'expired', string | undefined>>>,
): Promise<Omit<Verified, 'findings' | 'more'>> => {
  const { verifyExport } = (await import(verifier.href)) as {
    verifyExport(
      folder: string,
      given: Readonly<Partial<Record<'key' | 'checkpoint' | 'expired', string | undefined>>>,
    ): Verified;
  };
  const { findings, more, ...verified } = verifyExport(folder, given);
  if (findings.length > 0) throw notWhole(findings, more);
  return verified;
};

/** Needs no installation: the same file verifies an export on a machine that has Node alone. */
export const verifyExportOf = async (given: Given): Promise<CommandOutput> => ({
  ...(await requireWholeExport(path.resolve(given.at(0)), {
    ...{ key: given.flag('key'), checkpoint: given.flag('checkpoint'), expired: given.flag('expired') },
  })),
  whole: true,
});

/** @throws Error that names what is wrong */
export const verifyInstallation = async (admin: Admin, given: Given): Promise<CommandOutput> => {
  const workspaceId = await feedOf(admin, given);
  const file = given.flag('state') ?? `audit-verify-${workspaceId}.json`;
  const { findings, more, counted, ...verified } = await verifyWorkspace(admin, workspaceId, file, {
    expired: new Set(given.flag('expired')?.split(',')),
  });
  if (findings.length > 0) throw notWhole(findings, more);
  return { ...verified, ...counted, whole: true };
};

export const listFeedUses = async (admin: Admin, given: Given): Promise<CommandOutput> =>
  (await feedUses(admin.pool, await feedOf(admin, given), 1_000)).map(({ hour, credential, asked, range, times }) => ({
    ...{ hour, credential, asked, times },
    from: range?.[0] ?? null,
    to: range?.[1] ?? null,
  }));

export const listFeedKeys = async ({ pool }: Admin): Promise<CommandOutput> =>
  (await feedKeys(pool)).map((key) => ({ ...key }));

export const rotateFeedKeyOf = async ({ pool, secrets }: Admin): Promise<CommandOutput> =>
  (await rotateFeedKey(pool, secrets)).map((key) => ({ ...key }));
