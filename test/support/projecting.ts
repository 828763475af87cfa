/**
 * `given(events).project(model).sees(rows)`: applies stored events through the real codec and the real projector to
 * Postgres, and compares the rows of the model's view. The pure fold (`rowOf`) must give the same rows.
 */

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { MissingKey } from '#contracts/ports/data-keys.ts';
import { Projector } from '#projections/engine/apply.ts';
import { type Model, type Row, rowOf } from '#projections/engine/model.ts';
import { asRow } from '#projections/engine/rows.ts';
import { type Projection, projections } from '#projections/index.ts';
import { view } from '#projections/shapes.ts';
import { type DataKeys, type DecodedEvent, EventCodec, type StoredBytes } from '#runtime/eventing/codec.ts';
import { eventCatalogue } from '#schemas/events.ts';
import type { PostBody } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { kindOf } from '#schemas/topics.ts';
import { postBody } from './samples.ts';
import type { Declare } from './suite.ts';

/** Data keys of a test, in memory; `destroy` does what an erasure does. */
export class TestKeys implements DataKeys {
  readonly #keys = new Map<string, Buffer | null>();

  async forWriting(clientId: string): Promise<Buffer | null> {
    const known = this.#keys.get(clientId);
    if (known !== undefined) return known;
    const key = randomBytes(32);
    this.#keys.set(clientId, key);
    return key;
  }

  async forReading(clientId: string): Promise<Buffer | null> {
    const key = this.#keys.get(clientId);
    if (key === undefined) throw new MissingKey(`no data key of client ${clientId}`);
    return key;
  }

  destroy(clientId: string): void {
    this.#keys.set(clientId, null);
  }
}

export interface Given {
  readonly stream: string;
  readonly type: string;
  readonly data: unknown;
  /** Instant it happened. Default: minutes after 2026-03-01T00:00 in the order given. */
  readonly at?: string;
}

/** A post that is scheduled at once, and its targets. */
export const scheduledPost = (
  id: string,
  clientId: string,
  targets: readonly PlannedTarget[],
  body: PostBody = postBody(),
): Given[] => [
  {
    stream: `post-${id}`,
    type: 'PostScheduled',
    data: { clientId, createdBy: { type: 'member', id: 'm' }, body, plan: { number: 1, targets } },
  },
  ...targets.map((one) => ({
    stream: `target-${one.targetId}`,
    type: 'TargetScheduled',
    data: { ...one, postId: id, postRevision: 0 },
  })),
];

export const instant = (minute: number): string => new Date(Date.UTC(2026, 2, 1, 0, minute)).toISOString();

/** A stored event: encoded, then decoded, so that a test's event must fit its schema. */
export const stored = async (
  codec: EventCodec,
  given: Given,
  { revision, position, workspaceId }: { revision: number; position: bigint; workspaceId: string },
): Promise<StoredBytes> => {
  const id = randomUUID();
  const bytes = await codec.encode(
    given.stream,
    { type: given.type, data: given.data },
    {
      workspaceId,
      partitionKey: given.stream,
      actor: { type: 'service', id: 'test' },
      $correlationId: id,
      $causationId: id,
      commandId: id,
      occurredAt: given.at ?? instant(Number(position)),
    },
  );
  return { stream: given.stream, id, type: given.type, revision: BigInt(revision), position, ...bytes };
};

/** All events of a test in the order given, each at the next revision of its stream. */
export const history = async (
  events: readonly Given[],
  { codec, workspaceId }: { readonly codec: EventCodec; readonly workspaceId: string },
): Promise<readonly DecodedEvent[]> => {
  const heads = new Map<string, number>();
  const decoded: DecodedEvent[] = [];
  for (const [index, event] of events.entries()) {
    const revision = (heads.get(event.stream) ?? -1) + 1;
    heads.set(event.stream, revision);
    decoded.push(await codec.decode(await stored(codec, event, { revision, position: BigInt(index), workspaceId })));
  }
  return decoded;
};

/** Applies events as the projections do: one transaction per projection, or per event with `oneByOne`. */
export const applyTo = async (
  pool: Pool,
  projection: Projection,
  events: readonly DecodedEvent[],
  generation = 1,
): Promise<void> => {
  const projector = new Projector(projection, generation);
  const wanted = events.filter((event) => projector.kinds.includes(kindOf(event.stream)));
  const tx = await pool.connect();
  try {
    await tx.query('begin');
    const failure = await projector.apply(tx, wanted);
    assert.equal(failure, null, failure?.reason);
    await tx.query('commit');
  } catch (error) {
    await tx.query('rollback');
    throw error;
  } finally {
    tx.release();
  }
};

/** Event types that a `given` has projected, as `kind/Type`. */
export const projected = new Set<string>();

type Members = Readonly<Record<string, unknown>>;

const only = (row: object, members: readonly string[]): Members =>
  Object.fromEntries(members.map((name) => [name, (row as Members)[name]]));

export const given = (...events: readonly Given[]) => ({
  project: (pool: Pool, model: Model) => ({
    /**
     * Exactly these rows of the model, oldest first, compared on the given members. Empties the projection's tables
     * first.
     */
    sees: async (rows: readonly Members[]): Promise<void> => {
      const projection = projections.find((one) => one.models.includes(model));
      assert.ok(projection !== undefined);
      const codec = new EventCodec(new TestKeys());
      for (const oneByOne of [false, true]) {
        for (const { name } of projection.models) await pool.query(`truncate read.${name}_v1`);
        const decoded = await history(events, { codec, workspaceId: randomUUID() });
        for (const batch of oneByOne ? decoded.map((one) => [one]) : [decoded]) await applyTo(pool, projection, batch);
        // A log may deliver again: nothing changes.
        await applyTo(pool, projection, decoded);
        for (const { stream, type } of decoded) projected.add(`${kindOf(stream)}/${type}`);
        const found = await pool.query(`select * from ${view(model.name)} order by created_at, id`);
        const shown = found.rows.map((raw) => asRow(model, raw));
        assert.deepEqual(
          shown.map((row, at) => only(row, Object.keys(rows[at] ?? { id: '' }))),
          rows,
          oneByOne ? 'one event a batch' : 'all in one batch',
        );
        for (const row of shown) sameAsFold(model, row, decoded);
      }
    },
  }),
});

const sameAsFold = (model: Model, row: Row<object>, events: readonly DecodedEvent[]): void => {
  const folded = rowOf(
    model,
    events.filter((event) => event.stream === `${model.kind}-${row.id}`),
  );
  const members = Object.keys(folded ?? {}).filter((name) => model.counted[name] === undefined);
  assert.deepEqual(only(row, members), only(folded ?? {}, members), 'the pure fold makes the same row');
};

/** An event of a stream, as `given` takes it. */
export const on = (kind: string, id: string) => (type: string, data: unknown) => ({
  stream: `${kind}-${id}`,
  type,
  data,
});

export const ids = <N extends string>(...names: readonly N[]) =>
  Object.fromEntries(names.map((name) => [name, randomUUID()])) as Record<N, string>;

/**
 * The last test of a model: no event of its kind is left that no `given` of this process has projected, but for those
 * that have a test of their own, as `kind/Type`.
 */
export const everyEventIsProjected = (t: Declare, kind: string, elsewhere: readonly string[] = []): void =>
  t('every event of the model was projected above', () => {
    const all = Object.keys(eventCatalogue[kind] ?? {}).map((type) => `${kind}/${type}`);
    const left = all.filter((one) => !projected.has(one));
    assert.deepEqual(left, elsewhere);
  });
