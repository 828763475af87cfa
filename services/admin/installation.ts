import { client } from '#domain/client.ts';
import { birthOf, Rejection } from '#domain/decider.ts';
import { contentFor, wantedAfter } from '#domain/post/content.ts';
import { newestBody, post } from '#domain/post/post.ts';
import { target } from '#domain/post-target/target.ts';
import { rebuildAnalytics } from '#projections/analytics/rebuild.ts';
import { rebuild } from '#projections/engine/rebuild.ts';
import { projections } from '#projections/index.ts';
import { inviteKeyVersions } from '#projections/models/invites.ts';
import { teamInviteKeyVersions } from '#projections/models/team-invites.ts';
import { webhookKeyVersions } from '#projections/models/webhook-endpoints.ts';
import { type RebuildProgress, rebuildAll } from '#projections/rebuild-all.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import type { Failure } from '#schemas/target.ts';
import { signInKeyUses } from '#services/auth/upkeep.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type Admin, type CommandOutput, type Given, type Shown, shown } from './context.ts';
import { idOf } from './find.ts';

/** Commands about the whole installation, and decisions that only a person can make. */

/** A version may be removed from SECRET_KEY when nothing needs it. */
export const uses = async ({ secrets, dataKeys, pool, operator }: Admin): Promise<CommandOutput> => {
  const wrapped = await dataKeys.uses();
  const now = new Date(operator.clock()).toISOString();
  const invites = await inviteKeyVersions(pool, now);
  const signing = await webhookKeyVersions(pool, now);
  const team = await teamInviteKeyVersions(pool, now);
  const people = await signInKeyUses(pool);
  const known = await pool.query<{ version: string }>('select version from ops.secret_keys');
  const checked = new Set(known.rows.map((row) => row.version));
  const versions = new Set([
    ...[...secrets.versions(), ...checked],
    ...[...wrapped.keys(), ...invites.keys(), ...signing.keys(), ...team.keys(), ...people.keys()],
  ]);
  return [...versions].map((version) => ({
    version,
    inSecretKey: secrets.has(version),
    // The database keeps a check value of it: no process with another key of this version can start.
    checked: checked.has(version),
    current: version === secrets.current,
    dataKeys: wrapped.get(version) ?? 0,
    openInvites: invites.get(version) ?? 0,
    webhookSecrets: signing.get(version) ?? 0,
    teamInvites: team.get(version) ?? 0,
    // Addresses, second factors and recovery codes of persons; keys and clients of the authorization server.
    signIn: people.get(version) ?? 0,
    // Under the oldest version, so that a repeated call is recognised after new versions were added.
    idempotencyKeys: version === secrets.oldest ? 'all' : 'none',
  }));
};

const settledFailed = (reason: string): Failure => ({
  category: 'unknown',
  code: 'outcome_unknown',
  message: reason,
  platformCode: null,
  platformMessage: null,
  retryable: true,
  actor: 'user',
  mediaId: null,
});

/**
 * Records the outcome that a person found on the network. This settles only the target; the outcomes process records
 * the outcome in the post.
 */
export const settleTarget = async (admin: Admin, { at, flag }: Given): Promise<CommandOutput> => {
  const id = idOf(at(0), 'target');
  const { operator, store } = admin;
  const { state, events } = await store.load(target, id);
  const first = birthOf(target, events);
  if (state.status === 'none' || first === undefined) throw new Rejection('not_found', 'There is no such target.');
  const context = contextOf(operator, first.metadata.workspaceId);
  const permalink = flag('permalink') ?? null;
  if (permalink !== null && !URL.canParse(permalink)) throw new UsageError('--permalink is a URL.');
  const externalId = flag('external-id') ?? null;
  const place = flag('segment');
  if (place !== undefined && !/^[1-9]\d?$/.test(place))
    throw new UsageError('--segment is the place of a segment, from 1.');
  const kind = at(1);
  if (kind !== 'published' && kind !== 'failed') throw new UsageError('The outcome is published or failed.');
  const outcome =
    kind === 'published'
      ? ({ kind, externalId, permalink, publishedAt: context.now } as const)
      : ({ kind, failure: settledFailed(flag('reason') ?? 'An operator found that it was not published.') } as const);
  const { positions } = operator;
  const segment = place === undefined ? {} : { segment: Number(place) - 1 };
  const { now } = context;
  const { postId, postRevision, platform } = state.common;
  const written = (await store.load(post, postId, postRevision)).state;
  const body = written.status === 'live' ? newestBody(written) : null;
  const follows = body === null ? {} : wantedAfter(platform, contentFor(body, platform).overrides, body, now);
  const command = { type: 'Settle', by: 'admin', now, outcome, ...follows, ...segment } as const;
  const settled = await execute(store, target, id, command, context, { positions, partitionKey: postId });
  await shown(admin);
  // In a thread one segment is settled; the thread goes on with the next.
  return { targetId: id, postId, status: settled.state.status };
};

/**
 * Destroys the key first, so that the stored personal data and the network credentials cannot be read from then on. If
 * we die before the append, the same command repeated appends the event, and the read models then delete the data
 * that they show.
 */
export const eraseClient = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const id = idOf(at(0), 'client');
  const { operator, store, dataKeys, credentials, attempts } = admin;
  const { state, events } = await store.load(client, id);
  const first = birthOf(client, events);
  if (state.status === 'none' || first === undefined) throw new Rejection('not_found', 'There is no such client.');
  await dataKeys.destroy(id);
  await credentials.destroyOfClient(id);
  await attempts.destroyOfClient(id);
  const { positions } = operator;
  await execute(store, client, id, { type: 'Erase' }, contextOf(operator, first.metadata.workspaceId), { positions });
  await shown(admin);
  return { clientId: id, erased: true };
};

const former = (dropped: boolean): string => (dropped ? 'dropped' : 'still read; the next rebuild drops them');

const rebuildAnalyticsTables = async (admin: Admin): Promise<CommandOutput> => {
  const { pool, eventStore: store, log, codec, logger, signal, analytics: client } = admin;
  if (client === null)
    throw new UsageError(
      'There are no analytics to rebuild: set CLICKHOUSE_URL, or name with --data the folder of npm start that has the ' +
        'embedded engine (its analytics folder).',
    );
  const { version, events, before, differing, dropped } = await rebuildAnalytics({
    ...{ client, pool, store, log, codec, logger, signal },
  });
  return {
    projection: 'analytics',
    version,
    events,
    observationsBefore: before,
    differingDays: differing,
    formerTables: former(dropped),
  };
};

/** How often the progress of a rebuild is noted, milliseconds. */
const noteEveryMs = 2_000;

/** @throws Error that names what was not rebuilt */
const rebuildEverything = async (admin: Admin, isAnew: boolean): Promise<CommandOutput> => {
  const { pool, eventStore: store, log, codec, logger, signal, analytics: client, note } = admin;
  if (client === null)
    note('There are no analytics, or neither CLICKHOUSE_URL nor --data names them: they are left as they are.');
  const began = performance.now();
  let notedAt = began;
  const report = ({ share, events, readTo }: RebuildProgress): void => {
    const now = performance.now();
    if (share < 1 && now < notedAt + noteEveryMs) return;
    notedAt = now;
    const rate = Math.round(events / ((now - began) / 1_000));
    const behind = Math.max(0, Math.round((Date.now() - readTo.getTime()) / 1_000));
    note(
      `${Math.floor(share * 100)} % of the store, ${events} events, ${rate} a second; read to ${readTo.toISOString()}, ${behind} s behind`,
    );
  };
  const ended = (name: string, failed: string | null): void => {
    const seconds = ((performance.now() - began) / 1_000).toFixed(1);
    note(
      failed === null
        ? `${name}: rebuilt after ${seconds} s`
        : `${name}: not rebuilt, its former rows are served: ${failed}`,
    );
  };
  const parts = await rebuildAll({
    ...{ pool, store, log, codec, logger, signal, client, isAnew, report, ended },
  });
  const failed = parts.flatMap((part) => (part.failed === null ? [] : [`${part.name} (${part.failed})`]));
  if (failed.length > 0) throw new Error(`Not rebuilt: ${failed.join('; ')}. The same command goes on with them.`);
  return parts.map(({ name, generation, events, dropped }) => ({
    ...{ projection: name, generation, events },
    formerTables: former(dropped),
  }));
};

export const rebuildProjection = async (admin: Admin, { at, has }: Given): Promise<CommandOutput> => {
  const name = at(0);
  if (name === 'all') return rebuildEverything(admin, has('anew'));
  if (has('anew')) throw new UsageError('--anew is of rebuild all: one alone always begins anew.');
  if (name === 'analytics') return rebuildAnalyticsTables(admin);
  const names = [...projections.map((one) => one.name), 'analytics', 'all'];
  if (!names.includes(name)) throw new UsageError(`No projection is called ${name}; there are ${names.join(', ')}.`);
  const { pool, eventStore: store, log, codec, logger, signal } = admin;
  const { generation, events, dropped } = await rebuild({ pool, store, log, codec, name, logger, signal });
  return {
    projection: name,
    generation,
    events,
    formerTables: former(dropped),
  };
};

/**
 * Deletes the topics, after a restore of the store to an earlier day: Kafka is a copy of the store, and the relay and
 * consumers refuse a copy that has more. A relay that runs would fill them again at once.
 */
export const resetLog = async ({ log, pool, confirm }: Admin, { has }: Given): Promise<CommandOutput> => {
  if (log.reset === null)
    throw new UsageError('There are no topics: without KAFKA_BROKERS the event table is the log.');
  const { rows } = await pool.query<{ holder: string }>(
    'select holder from ops.relay_checkpoints where until > clock_timestamp() limit 1',
  );
  const [active] = rows;
  if (active !== undefined) throw new UsageError(`${active.holder} runs: stop the relay and all workers first.`);
  const asked = 'Delete all topics of the log? Consumers read on from the store.';
  if (!has('yes') && (await confirm?.(asked)) !== true) {
    throw new UsageError('Nothing was deleted. Say --yes where nobody can be asked.');
  }
  // Offsets of the former topics mean other records of the new ones: behind no topic's beginning, a consumer reads what it
  // lacks from the store. If we die between the two, it does so too, and a repeat deletes the topics.
  await pool.query('update ops.consumer_positions set next_offset = -1 where next_offset is not null');
  const deleted = await log.reset();
  return {
    deleted: deleted.join(', ') || 'none was there',
    next: 'start the relay and the workers: the first process makes the topics again, each consumer reads what it lacks from the store',
  };
};

/** Commands about clusters on this machine's disk whose data folders were removed. They need no database. */
export interface DataFiles {
  /** Clusters of data folders that were removed. */
  former(): readonly Shown[];
  /** Null: no cluster has that name. */
  remove(name: string): Shown | null;
}

export const listData = (files: DataFiles): CommandOutput => files.former();

export const removeData = (files: DataFiles, { at }: Given): CommandOutput => {
  const name = at(0);
  if (!/^[0-9a-f]{16}\/former-\w+$/.test(name))
    throw new UsageError(`${JSON.stringify(name)} is no name of a former cluster: data list shows them.`);
  const removed = files.remove(name);
  if (removed === null) throw new Rejection('not_found', 'There is no such former cluster: data list shows them.');
  return { ...removed, removed: true };
};

/** Commands about the tables in Postgres, which run before a process changes them. */

export interface Tables {
  /** Numbered files that were not carried out yet. */
  pending(): Promise<readonly Shown[]>;
  /** Carries them out, and makes the tables that the read models lack. */
  migrate(): Promise<void>;
}

/** @returns the files that it carries out; with `--dry-run` those that it would */
export const migrateTables = async (tables: Tables, { has }: Given): Promise<CommandOutput> => {
  const files = await tables.pending();
  if (!has('dry-run')) await tables.migrate();
  return files;
};
